"""``ytf-submit -h``: a manual page made from the table of options."""

import shutil
import textwrap

from ..declaration import OPTION_SECTIONS, Option
from ..job.options import OPTIONS
from ..runtime.common.reasons import Reason
from .parameters import DESIGN, JOB_OPTIONS, SUBMISSION, help_of, names_of, shown_default, value_of

SYNOPSIS = "ytf-submit [OPTIONS] -r <cluster_requirement> <task_command>"

_COMMAND = """\
The command of each task. bash runs it after DTF_TASK_JOB_NAME and DTF_TASK_INDEX have been set. Quote it as one word, \
with single quotes, so that ${DTF_...} is expanded on the node. See also TASK EXECUTION ENVIRONMENT."""

_PURPOSE = """\
Submits an application master to YARN, which allocates the resources and runs the tasks. Prints the application id and \
exits; with --wait it follows the job until it ends."""
_STATUS = "Without --wait: 0 once YARN has accepted the application. With --wait: by the reason in the report:"

VARIABLES = (
    ("DTF_TASK_JOB_NAME", "The type of this task (ps, worker, ...)."),
    ("DTF_TASK_INDEX", "The index of this task within its type, and so its place in DTF_{JOBNAME}_HOSTS."),
    ("DTF_{JOBNAME}_HOSTS",
     'The addresses of the tasks of a type, "host1:port1,host2:port2,...", in the order of the task index: '
     "DTF_PS_HOSTS, DTF_WORKER_HOSTS. The name is in upper case; characters other than letters and digits become _."),
    ("DTF_TASK_SCRIPT", "The name of the file of --script."),
    ("DTF_INPUT_PATH", "The value of --input."),
    ("DTF_OUTPUT_PATH", "The value of --output. Also in DTF_OUT_PATH."),
    ("DTF_TASK_PROGRAM", "The task_command itself."),
    ("DTF_DOCKER_IMAGE", "The value of --docker_image."),
    ("TF_CONFIG", "The cluster spec and the task, as tf.distribute reads them; --framework may set others instead."),
    ("CLUSTER_SPEC, JOB_NAME, TASK_INDEX, TASK_NUM", "As TonY sets them."),
    ("YTF_APPLICATION_ID, YTF_ROUND", "The application id; the number of the round, from 1."),
    ("YTF_RESULT_FILE",
     "The file into which the chief, or worker 0 if there is no chief, may write a JSON object: the metrics of the "
     "report."),
    ("YTF_METRICS_FILE",
     'The file to which a task may append lines such as {"step": 100, "loss": 0.3}; the page of the job shows them as '
     "curves."),
    ("TB_PORT", "A free port for a TensorBoard that the chief, or worker 0 if there is no chief, starts by itself."),
    ("YTF_HOST, YTF_PORT", "The address that is reserved for this task."),
)  # fmt: skip
EXAMPLES = (
    ("Two parameter servers and four workers; the program and the data are on every node:",
     """ytf-submit -r "ps:2,worker:4" \\
  'python /home/user1/mnist/mnist.py \\
    --job_name ${DTF_TASK_JOB_NAME} --task_index ${DTF_TASK_INDEX} \\
    --ps_hosts ${DTF_PS_HOSTS} --worker_hosts ${DTF_WORKER_HOSTS} \\
    --data_dir /home/user1/mnist/data --train_dir /home/user1/mnist/train'"""),
    ("The program travels with the job, the data is on HDFS, TensorBoard runs as well:",
     """ytf-submit --tensorboard -r "ps:1,worker:2" -s /home/user1/mnist/mnist.py \\
  -i hdfs://nn1/user/user1/mnist/data -o hdfs://nn1/user/user1/mnist/train10 \\
  'python ${DTF_TASK_SCRIPT} --data_dir ${DTF_INPUT_PATH} --train_dir ${DTF_OUTPUT_PATH}'"""),
    ("More memory for the workers, and most for the first one; follow the job to its end:",
     """ytf-submit --wait -r "ps:2,worker:4" -c worker:4 \\
  -m "4096,worker:8 GiB,worker[0]:16 GiB" -s train.py 'python ${DTF_TASK_SCRIPT}'"""),
    ("Submit the job, and come back to it later from another machine:",
     """id=$(ytf-submit -r worker:4 -s train.py 'python ${DTF_TASK_SCRIPT}')
ytf wait $id || ytf logs $id --task worker:0"""),
)  # fmt: skip


_PAGE = """\
NAME
    ytf-submit - Submit a TensorFlow session to Apache Hadoop YARN

{purpose}

SYNOPSIS
    Usage: {synopsis}

DESCRIPTION
    task_command
{command}

{first}
  More options (a long name may be written with - instead of _):

{design}
{sections}
    -h, --help
        Show this page.

    --version
        Show the version of this program.

TASK EXECUTION ENVIRONMENT
{finds}
{variables}

EXAMPLES
{examples}
EXIT STATUS
{status}
{codes}
    130   Ctrl-C; the application was killed
    143   SIGTERM; the application was killed
"""


def manual_page(width: int | None = None) -> str:
    """Return the manual page.

    Parameters
    ----------
    width : int, optional
        Characters per line. Default: the width of the terminal, at most 100.
    """
    width = width or min(100, shutil.get_terminal_size((80, 24)).columns)

    def fill(text: str, depth: int) -> str:
        return "\n\n".join(
            textwrap.fill(part, width, initial_indent=" " * depth, subsequent_indent=" " * depth,
                          break_on_hyphens=False, break_long_words=False)
            for part in text.split("\n\n")
        )  # fmt: skip

    def entry(row: Option) -> str:
        default = f" DEFAULT={shown_default(row)}" if shown_default(row) else ""
        return f"    {', '.join(names_of(row))} {value_of(row)}".rstrip() + f"\n{fill(help_of(row) + default, 8)}\n"

    sections = {title: [row for row in (*JOB_OPTIONS, *SUBMISSION) if row.section == name]
                for name, title in OPTION_SECTIONS.items()}  # fmt: skip
    codes: dict[int, list[str]] = {}
    for reason in Reason:
        codes.setdefault(reason.exit_code, []).append(reason.value)
    return _PAGE.format(
        purpose=fill(_PURPOSE, 4),
        synopsis=SYNOPSIS,
        command=fill(_COMMAND, 8),
        first=entry(DESIGN[0]),
        design="\n".join(map(entry, (*DESIGN[1:], OPTIONS["spec"]))),
        sections="\n".join(f"  {title}:\n\n" + "\n".join(map(entry, rows)) for title, rows in sections.items() if rows),
        finds=fill("The task_command runs in a YARN container. It finds these variables:", 4),
        variables="\n".join(f"    {name}:\n{fill(text, 8)}" for name, text in VARIABLES),
        examples="\n".join(f"{fill(text, 4)}\n{textwrap.indent(example, ' ' * 8)}\n" for text, example in EXAMPLES),
        status=fill(_STATUS, 4),
        codes="\n".join(f"    {code:<5}{fill(', '.join(names), 9).lstrip()}" for code, names in codes.items()),
    )
