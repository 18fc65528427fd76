"""``ytf-submit -h``: a manual page made from the table of options."""

import shutil
import textwrap
from collections.abc import Iterable, Iterator

from ..declaration import OPTION_SECTIONS, Option
from ..job.options import OPTIONS
from ..runtime.common.reasons import OUTCOMES
from .parameters import DESIGN, JOB_OPTIONS, SUBMISSION, help_of, names_of, shown_default, value_of

SYNOPSIS = "ytf-submit [OPTIONS] -r <cluster_requirement> <task_command>"

_COMMAND = """\
The command of each task. bash runs it after DTF_TASK_JOB_NAME and DTF_TASK_INDEX have been set. Quote it as one word, \
with single quotes, so that ${DTF_...} is expanded on the node. See also TASK EXECUTION ENVIRONMENT."""

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


def manual_page(width: int | None = None) -> str:
    """Return the manual page.

    Parameters
    ----------
    width : int, optional
        Characters per line. Default: the width of the terminal, at most 100.
    """
    return "\n".join(_lines(width or min(100, shutil.get_terminal_size((80, 24)).columns))) + "\n"


def _lines(width: int) -> Iterator[str]:
    def fill(text: str, depth: int) -> str:
        return "\n\n".join(
            textwrap.fill(part, width, initial_indent=" " * depth, subsequent_indent=" " * depth,
                          break_on_hyphens=False, break_long_words=False)
            for part in text.split("\n\n")
        )  # fmt: skip

    def options(rows: Iterable[Option]) -> Iterator[str]:
        for row in rows:
            value, default = value_of(row), shown_default(row)
            yield f"    {', '.join(names_of(row))}{f' {value}' if value else ''}"
            yield fill(f"{help_of(row)}{f' DEFAULT={default}' if default else ''}", 8)
            yield ""

    yield "NAME"
    yield "    ytf-submit - Submit a TensorFlow session to Apache Hadoop YARN"
    yield ""
    yield fill("Submits an application master to YARN, which allocates the resources and runs the tasks. Prints the "
               "application id and exits; with --wait it follows the job until it ends.", 4)  # fmt: skip
    yield "\nSYNOPSIS"
    yield f"    Usage: {SYNOPSIS}"
    yield "\nDESCRIPTION"
    yield "    task_command"
    yield fill(_COMMAND, 8)
    yield ""
    yield from options(DESIGN[:1])
    yield "  More options (a long name may be written with - instead of _):"
    yield ""
    yield from options((*DESIGN[1:], OPTIONS["spec"]))
    for section, title in OPTION_SECTIONS.items():
        if rows := [row for row in JOB_OPTIONS if row.section == section]:
            yield f"  {title}:"
            yield ""
            yield from options(rows)
    yield f"  {OPTION_SECTIONS['submission']}:"
    yield ""
    yield from options(SUBMISSION)
    yield "    -h, --help"
    yield "        Show this page."
    yield ""
    yield "    --version"
    yield "        Show the version of this program."
    yield "\nTASK EXECUTION ENVIRONMENT"
    yield fill("The task_command runs in a YARN container. It finds these variables:", 4)
    for name, text in VARIABLES:
        yield f"    {name}:"
        yield fill(text, 8)
    yield "\nEXAMPLES"
    for text, example in EXAMPLES:
        yield fill(text, 4)
        yield textwrap.indent(example, "        ")
        yield ""
    yield "EXIT STATUS"
    yield fill("Without --wait: 0 once YARN has accepted the application. With --wait: by the reason in the report:", 4)
    codes: dict[int, list[str]] = {}
    for reason, outcome in OUTCOMES.items():
        codes.setdefault(outcome.exit_code, []).append(reason.value)
    for code, reasons in codes.items():
        yield f"    {code:<5}" + fill(", ".join(reasons), 9).lstrip()
    yield "    130   Ctrl-C; the application was killed"
    yield "    143   SIGTERM; the application was killed"
