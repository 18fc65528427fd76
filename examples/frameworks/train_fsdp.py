"""Fit a line with PyTorch's FullyShardedDataParallel: each rank holds a part of the model; rank 0 writes the result.

ytf-submit --wait --framework pytorch -r worker:2 -s examples/frameworks/train_fsdp.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os

import torch
from torch.distributed.fsdp import FullyShardedDataParallel


def main():
    """Each rank draws batches of its own; gradients are averaged where their weights are."""
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = torch.distributed.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(0)  # the same first weights everywhere
    model = FullyShardedDataParallel(torch.nn.Linear(2, 1, bias=False), device_id=device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(rank)
    for _ in range(100):
        inputs = torch.randn(8, 2, device=device)
        labels = inputs @ torch.tensor([[1.0], [2.0]], device=device)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), labels).backward()
        optimizer.step()
    own = sum(parameter.numel() for parameter in model.parameters())
    with FullyShardedDataParallel.summon_full_params(model):  # on all ranks
        weights = [round(value, 3) for value in model.module.weight[0].tolist()]
    if rank == 0:
        result = {"weights": weights, "own_weights": own, "ranks": torch.distributed.get_world_size()}
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump(result, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
