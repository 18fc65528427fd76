"""Fit a line with JAX on all processes of the job; process 0 writes the result.

ytf-submit --wait --framework jax -r worker:2 -s examples/frameworks/train_jax.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


@jax.jit
def step(weights, inputs, labels):
    """Return the weights after one step of gradient descent."""
    return weights - 0.1 * jax.grad(lambda own: ((inputs @ own - labels) ** 2).mean())(weights)


def main():
    """Each process draws batches of its own; the gradients are those of all of them."""
    jax.distributed.initialize()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    split, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    random = np.random.default_rng(jax.process_index())
    weights = jax.device_put(np.zeros(2, np.float32), everywhere)
    for _ in range(100):
        inputs = random.normal(size=(8 * jax.local_device_count(), 2)).astype(np.float32)
        labels = inputs @ np.array([1, 2], np.float32)
        weights = step(
            weights,
            jax.make_array_from_process_local_data(split, inputs),
            jax.make_array_from_process_local_data(split, labels),
        )
    if jax.process_index() == 0:
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"weights": np.asarray(weights).round(3).tolist(), "ranks": jax.process_count()}, file)


if __name__ == "__main__":
    main()
