"""``./dev demo``: the digits example on a fresh Hadoop of this machine, from nothing to the report.

Starts HDFS and YARN, which needs no package of Python, puts the data into HDFS, trains with ParameterServerStrategy on
chief, two workers, ps and evaluator through ``ytf-submit --wait``, prints the report, and ends everything it started.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "examples" / "digits"
PROGRAMS = Path(sys.executable).parent
#: What the training has to reach on the test images.
ACCURACY = 0.95


def echo(text: str) -> None:
    """Write a line for people to stderr, where the progress of the job goes too."""
    print(text, file=sys.stderr, flush=True)


def show(folder: Path) -> str:
    """Return a path as the reader would type it."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


def train(cluster: MiniCluster, output: Path) -> int:
    """Run the example on the cluster; return the exit code."""
    from tf_yarn_ops.hadoop.cluster import current_user

    environ = {**os.environ, **cluster.environ}
    environ["HADOOP_USER_NAME"] = current_user(environ)  # one user for all programs; LOGNAME does not count
    user, data = environ["HADOOP_USER_NAME"], f"/user/{environ['HADOOP_USER_NAME']}/digits.npz"
    echo("\n== the data: 1,797 handwritten digits into HDFS")
    subprocess.run(
        [sys.executable, "prepare.py", cluster.namenode_url.replace("http://", f"webhdfs://{user}@") + data],
        cwd=DIGITS,
        env=environ,
        stdout=sys.stderr,
        check=True,
    )

    command = [
        str(PROGRAMS / "ytf-submit"), "--wait", "-n", "digits", "-r", "chief:1,worker:2,ps:1,evaluator:1", "-m", "1024",
        "--command", "worker=ytf-server", "--command", "ps=ytf-server",
        "--environment", f"venv://{sys.prefix}", "-s", "parameter_server.py",
        "--file", "digits.py", "-i", cluster.default_filesystem + data, "-o", str(output), "python ${DTF_TASK_SCRIPT}",
    ]  # fmt: skip
    echo("\n== the training, ParameterServerStrategy on five tasks")
    echo(f"$ cd {show(DIGITS)}\n$ {shlex.join(['ytf-submit', *command[1:]])}\n")
    submitted = subprocess.run(command, cwd=DIGITS, env=environ, stdout=subprocess.PIPE, text=True)
    application_id = submitted.stdout.strip()
    if not application_id:
        return submitted.returncode or 1
    answer = subprocess.run(
        [str(PROGRAMS / "ytf"), "report", "--json", application_id], env=environ, stdout=subprocess.PIPE, text=True
    )
    accuracy = (json.loads(answer.stdout).get("metrics") or {}).get("accuracy", 0.0)
    echo("\n== the result")
    echo(f"test accuracy  {accuracy:.4f}")
    echo(f"model          {show(output / 'model')}")
    echo(f"curves         {show(PROGRAMS / 'tensorboard')} --logdir {show(output / 'logs')}")
    if accuracy < ACCURACY:
        echo(f"the accuracy is below {ACCURACY}: the demo has failed")
    return submitted.returncode or int(accuracy < ACCURACY)


def start(folder: Path) -> None:
    """Start a fresh Hadoop."""
    MiniCluster(folder / "hadoop", progress=echo).down()
    shutil.rmtree(folder, ignore_errors=True)
    echo("== a fresh Hadoop")
    MiniCluster(folder / "hadoop", progress=echo).up()


def end(folder: Path, keep: bool) -> None:
    """End the cluster, or say how to use it."""
    cluster = MiniCluster(folder / "hadoop", progress=echo)
    if not keep:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one changes nothing
        cluster.down()
        echo("\nnothing is left running; ./dev demo --keep leaves the cluster up")
        return
    echo(f"\n== the cluster is still up: {cluster.resourcemanager_url}/cluster")
    echo(f'use it:  eval "$({show(PROGRAMS / "ytf")} minicluster env --dir {show(folder / "hadoop")})"')
    echo(f"end it:  {show(PROGRAMS / 'ytf')} minicluster down --dir {show(folder / 'hadoop')}")


def main() -> int:
    """Run the demo, or one step of it; return the exit code."""
    parser = argparse.ArgumentParser(prog="./dev demo", description="Train the handwritten digits on a fresh Hadoop.")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up, and say how to look at it")
    parser.add_argument("--dir", type=Path, default=ROOT / ".ytf" / "demo", help="where cluster and output lie")
    parser.add_argument("--only", choices=["start", "train", "end"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder, step, code = options.dir.absolute(), options.only, 0
    # SIGTERM ends the daemons too, also where SIGINT is ignored, as below nohup.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if step in (None, "start"):
            start(folder)
        if step in (None, "train"):
            code = train(MiniCluster(folder / "hadoop"), folder / "output")
    except MiniClusterError as error:
        echo(f"./dev demo: {error}")
        code = error.reason.exit_code
    except (KeyboardInterrupt, SystemExit) as error:
        echo("./dev demo: interrupted")
        code = int(error.code or 0) if isinstance(error, SystemExit) else 130
    finally:
        if step == "end" or step != "start":
            end(folder, options.keep and step != "end")
    return code


if __name__ == "__main__":
    sys.exit(main())
