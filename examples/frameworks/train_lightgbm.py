"""Train with LightGBM on all workers by its machine list; worker 0 writes the result.

ytf-submit --wait --framework none -r worker:2 -s examples/frameworks/train_lightgbm.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os
import socket

import lightgbm
import numpy as np

INDEX = int(os.environ["DTF_TASK_INDEX"])


def machine_list():
    """Return LightGBM's ``address:port,...``: it finds its own entry by address and port, so names don't do."""
    pairs = [address.rsplit(":", 1) for address in os.environ["DTF_WORKER_HOSTS"].split(",")]
    return ",".join(f"{socket.gethostbyname(host)}:{port}" for host, port in pairs)


def main():
    """Learn which numbers are positive; each worker has only one sign, so none could learn it alone."""
    random = np.random.default_rng(INDEX)
    inputs = np.abs(random.normal(size=(500, 1))) * (1 if INDEX else -1)
    parameters = {
        "objective": "binary",
        "tree_learner": "data",
        "pre_partition": True,
        "machines": machine_list(),
        "local_listen_port": int(os.environ["YTF_PORT"]),
        "num_machines": int(os.environ["TASK_NUM"]),
        "num_threads": 1,
    }
    model = lightgbm.train(parameters, lightgbm.Dataset(inputs, inputs[:, 0] > 0), num_boost_round=5)
    if INDEX == 0:
        test = np.random.default_rng(9).normal(size=(500, 1))
        accuracy = float(np.mean((model.predict(test) > 0.5) == (test[:, 0] > 0)))
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"accuracy": accuracy, "workers": int(os.environ["TASK_NUM"])}, file)


if __name__ == "__main__":
    main()
