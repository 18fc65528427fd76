"""The program of a task whose command is ``ytf-server``: TensorFlow's server, which computes what the chief asks for.

It is the command of the task, so the agent starts and ends it like any other. Python leaves SIGTERM to the system, so
it ends at once.
"""

import importlib
import importlib.util
import json
import os
import sys
from typing import List


def main(arguments: List[str]) -> int:
    """Serve the task's part of the cluster spec until the job ends it.

    Parameters
    ----------
    arguments : list of str
        Not used.

    Returns
    -------
    int
        1 for an environment without TensorFlow.

    References
    ----------
    ``tf.distribute.Server``; TensorFlow's guide to parameter server training, for GRPC_FAIL_FAST.
    """
    if importlib.util.find_spec("tensorflow") is None:
        sys.stderr.write(
            "ytf-server needs TensorFlow, which %s does not have: name an environment that has it\n" % sys.executable
        )
        return 1
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # servers notice the loss of others at once
    importlib.import_module("tensorflow").distribute.Server(
        json.loads(os.environ["CLUSTER_SPEC"]),
        job_name=os.environ["JOB_NAME"],
        task_index=int(os.environ["TASK_INDEX"]),
        protocol="grpc",
    ).join()
    return 0
