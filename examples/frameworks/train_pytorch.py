"""Fit a line with PyTorch's DistributedDataParallel; rank 0 writes the result.

ytf-submit --wait --framework pytorch -r worker:2 -s examples/frameworks/train_pytorch.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os

import torch
from torch.nn.parallel import DistributedDataParallel


def main():
    """Each rank draws batches of its own; the gradients are averaged."""
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = torch.distributed.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False).to(device))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(100):
        inputs = torch.randn(8, 2, device=device)
        labels = inputs @ torch.tensor([[1.0], [2.0]], device=device)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), labels).backward()
        optimizer.step()
    if rank == 0:
        weights = [round(value, 3) for value in model.module.weight[0].tolist()]
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"weights": weights, "ranks": torch.distributed.get_world_size()}, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
