"""The names on which the packed application and the action in Oozie's launcher agree.

The action runs in the working directory of the launcher, where Oozie has put `PACKED_JOB_FILE`, the folder
`FILES_FOLDER` and perhaps `PEX`. Its shell action is::

    <exec>bash</exec>
    <argument>launch.sh</argument>
    <argument>PYTHON</argument>
    <env-var>YTF_OOZIE_user=${wf:user()}</env-var> ...
    <file>launch.sh#launch.sh</file>
    <file>job.yaml#job.yaml</file>
    <file>ytf.pex#ytf.pex</file>              with --pex
    <archive>files.tar.gz#files</archive>     where the job names local files
    <capture-output/>

``launch.sh`` replaces itself by ``PYTHON -m tf_yarn_ops.oozie.action``, with ``ytf.pex`` behind
PYTHON if that file is there, so a signal for the command of the shell action reaches the action itself. Stdout is for
the output properties alone; each line of the log goes to stderr.

References
----------
Oozie 5.2.1, "Shell action", "Workflow EL functions", "Coordinator EL functions". Oozie cuts ``<exec>`` to its base
name, therefore the interpreter is an argument.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

#: The name of the action of a single job; ``${wf:actionData('train')['status']}`` reads its outputs.
ACTION_NAME = "train"
#: The script that starts the action.
LAUNCH = "launch.sh"
#: The job's document. Its local sources are relative paths below `FILES_FOLDER`.
PACKED_JOB_FILE = "job.yaml"
#: The folder into which Oozie unpacks the local files and folders that the job names.
FILES_FOLDER = "files"
#: This package with its dependencies in one file.
PEX = "ytf.pex"
WORKFLOW, COORDINATOR, PROPERTIES = "workflow.xml", "coordinator.xml", "job.properties"
#: The keys of job.properties with the application's folder.
APP_PATH, COORDINATOR_PATH, WORKFLOW_PATH = "appPath", "oozie.coord.application.path", "oozie.wf.application.path"
#: The property of a workflow by which Oozie finds it, also after its end.
EXTERNAL_ID = "oozie.wf.external.id"
#: The names of all files that an application may have, apart from included ones.
OWN_FILE = re.compile(
    r"workflow\.xml|coordinator\.xml|job\.properties|launch\.sh|ytf\.pex|job(-.+)?\.yaml|"
    r"files(-.+)?\.tar\.gz"
)

#: The launcher's file for the ids of child applications. Oozie drops the stdout of a failed action and keeps this file:
#: it puts ``hadoopJobs:`` before the content and reads that as data of the action, so the lines behind the id are
#: outputs. A success writes it too, because Oozie prefers the content of an earlier try to the stdout of this one.
CHILD_IDS = "externalChildIDs"

#: How the environment variables begin that carry the values for the job's fields: ``YTF_OOZIE_nominalTime``.
VARIABLE_PREFIX = "YTF_OOZIE_"
#: The variable with the outputs that the workflow reads, separated by blanks: the last to be left out.
FIRST_OUTPUTS = "YTF_FIRST_OUTPUTS"


class Name(NamedTuple):
    """A value that a job's fields may use as ``${name}``.

    Attributes
    ----------
    name : str
    expression : str
        Oozie's expression for it.
    help : str
        A sentence.
    """

    name: str
    expression: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable of the action that carries the value."""
        return VARIABLE_PREFIX + self.name


#: The values of each workflow.
WORKFLOW_NAMES = (
    Name("workflowId", "${wf:id()}", "The id of the workflow job."),
    Name("workflowName", "${wf:name()}", "The name of the workflow application."),
    Name("workflowRun", "${wf:run()}", "How often a person has run the same workflow job again, from 0."),
    Name("user", "${wf:user()}", "The user of the workflow."),
)
#: The values of a workflow that a coordinator has started.
COORDINATOR_NAMES = (
    Name(
        "nominalTime",
        "${coord:nominalTime()}",
        "The time for which the training is scheduled, 2026-11-21T02:00Z. HDFS allows no colon in a path.",
    ),
    Name(
        "nominalDate",
        "${coord:formatTime(coord:nominalTime(), 'yyyy-MM-dd')}",
        "The day of the nominal time in UTC, 2026-11-21.",
    ),
    Name(
        "nominalStamp",
        "${coord:formatTime(coord:nominalTime(), 'yyyyMMddHHmm')}",
        "The nominal time in UTC for paths, 202611210200.",
    ),
    Name("actualTime", "${coord:actualTime()}", "The time at which Oozie has created the coordinator's action."),
    Name(
        "actionId",
        "${coord:actionId()}",
        "The id of the coordinator's action. It stays the same when the action runs again.",
    ),
    Name("coordinatorName", "${coord:name()}", "The name of the coordinator application."),
)
#: The names of input and output data sets that were given without a name.
DATA_IN, DATA_OUT = "dataIn", "dataOut"


def values_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values for the job's fields by their names, from the environment of the action."""
    return {
        name.removeprefix(VARIABLE_PREFIX): value for name, value in environ.items() if name.startswith(VARIABLE_PREFIX)
    }
