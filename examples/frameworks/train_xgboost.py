"""Train with XGBoost on all workers, whose tracker worker 0 runs at its reserved address; worker 0 writes the result.

ytf-submit --wait --framework none -r worker:2 -s examples/frameworks/train_xgboost.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os
import socket

import numpy as np
import xgboost
from xgboost.tracker import RabitTracker

INDEX, WORKERS = int(os.environ["DTF_TASK_INDEX"]), int(os.environ["TASK_NUM"])


def main():
    """Learn which numbers are positive; each worker has only one sign, so none could learn it alone."""
    host, port = os.environ["DTF_WORKER_HOSTS"].split(",")[0].rsplit(":", 1)
    if INDEX == 0:
        tracker = RabitTracker(WORKERS, host_ip=socket.gethostbyname(host), port=int(port))
        tracker.start()
    random = np.random.default_rng(INDEX)
    inputs = np.abs(random.normal(size=(500, 1))) * (1 if INDEX else -1)
    with xgboost.collective.CommunicatorContext(
        dmlc_communicator="rabit",
        dmlc_tracker_uri=socket.gethostbyname(host),
        dmlc_tracker_port=int(port),
        dmlc_task_id=str(INDEX),
    ):
        data = xgboost.DMatrix(inputs, label=inputs[:, 0] > 0)
        model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, num_boost_round=5)
    if INDEX == 0:
        tracker.wait_for()
        test = np.random.default_rng(9).normal(size=(500, 1))
        accuracy = float(np.mean((model.predict(xgboost.DMatrix(test)) > 0.5) == (test[:, 0] > 0)))
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"accuracy": accuracy, "workers": WORKERS}, file)


if __name__ == "__main__":
    main()
