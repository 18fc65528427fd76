"""The program of a task that trains a Python function: call the function, and leave its value as the job's result.

It is the command of the task, so the agent starts and ends it like any other. `launch.function` packs the function.
"""

import json
import logging
import os
import pickle
import sys
from typing import Any, Dict, List

from ..common.contract import FUNCTION_FOLDER, FUNCTION_PICKLE, MAX_RESULT, RETURNED
from ..common.values import check_values, parse_json


class TaskContext:
    """What a function knows of its task; it gets one if it has a parameter ``context``.

    Attributes
    ----------
    type : str
        The task type, ``worker``.
    index : int
        The task index.
    cluster : dict of str to list of str
        The cluster spec: one ``host:port`` per task index.
    leads : bool
        Whether this is the chief or, without a chief, worker 0, whose return value counts.
    log : logging.Logger
        Writes to the log of the task.
    """

    def __init__(self) -> None:
        self.type = os.environ["JOB_NAME"]
        self.index = int(os.environ["TASK_INDEX"])
        self.cluster: Dict[str, List[str]] = json.loads(os.environ["CLUSTER_SPEC"])
        self.leads = (self.type, self.index) == ("chief" if "chief" in self.cluster else "worker", 0)
        self.log = logging.getLogger("tf_yarn_ops.task")

    def metrics(self, step: float, **values: float) -> None:
        """Add a point to the curves on the page of the job."""
        point = {"step": step, **{name: float(value) for name, value in values.items()}}
        with open(os.environ["YTF_METRICS_FILE"], "a") as file:
            file.write(json.dumps(point) + "\n")


def dump_value(value: Any) -> str:
    """Return a function's value as the JSON object for the metrics of the report; `launch.function` reads it back.

    Raises
    ------
    TypeError, ValueError
        JSON can't hold the value, or it is longer or nested deeper than a report takes.
    """
    text = json.dumps({RETURNED: value}, default=_plain)
    if len(text) > MAX_RESULT:
        raise ValueError(
            "the value of the function has %d bytes of JSON, at most %d are allowed; write it to a file "
            "below DTF_OUTPUT_PATH" % (len(text), MAX_RESULT)
        )
    try:
        check_values(parse_json(text))  # the agent leaves out what it refuses
    except ValueError as error:
        raise ValueError("the value of the function: %s; write it to a file below DTF_OUTPUT_PATH" % error) from None
    return text


def _plain(value: Any) -> Any:
    """Return an array or a scalar of numpy, or what is like one, as lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(
        "the function returned a %s, which JSON can't hold; write it to a file below DTF_OUTPUT_PATH"
        % type(value).__name__
    )


def main(arguments: List[str]) -> int:
    """Call the function; an exception ends the task with its traceback.

    Parameters
    ----------
    arguments : list of str
        The release of Python that pickled the function, ``3.11``: no other reads its byte code.

    Returns
    -------
    int
        0, or 1 for another release of Python.
    """
    here = "%d.%d" % sys.version_info[:2]
    if arguments[0] != here:
        sys.stderr.write(
            "the function was pickled by Python %s, and this is Python %s: choose an environment with "
            "Python %s\n" % (arguments[0], here, arguments[0])
        )
        return 1
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    runtime = os.path.abspath(sys.path.pop(0))
    # The zip has a part of this package only; an environment may have all of it.
    for name in [name for name in sys.modules if name.partition(".")[0] == "tf_yarn_ops"]:
        del sys.modules[name]
    sys.path[:] = [os.path.abspath(FUNCTION_FOLDER), *sys.path, runtime]
    with open(os.path.join(FUNCTION_FOLDER, FUNCTION_PICKLE), "rb") as file:
        function, args, kwargs, wants_context = pickle.load(file)
    context = TaskContext()
    value = function(*args, **kwargs, **({"context": context} if wants_context else {}))
    if context.leads and value is not None:
        text = dump_value(value)
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            file.write(text)
    return 0
