"""Make docs/picture.svg, the README's picture, and the output in the quickstart: a real run on the embedded Hadoop.

Run ``python docs/picture.py [FOLDER]``; FOLDER is where the cluster and the model lie, by default a temporary one.
The extra `tensorflow` must be installed.
"""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tf_yarn_ops.minicluster import MiniCluster

DOCS = Path(__file__).resolve().parent
PROGRAM = DOCS.parent / "examples" / "quickstart" / "train.py"
BIN = Path(sys.executable).parent
COMMAND = ["ytf-submit", "--wait", "-r", "worker:2", "-m", "1024", "-n", "line", "-s", "train.py",
           "--environment", "venv://$VIRTUAL_ENV", "-o", "$PWD/model", "python ${DTF_TASK_SCRIPT}"]  # fmt: skip


def typed(words: list[str]) -> str:
    """Return a command as a person types it: only the words with blanks in quotes."""
    return " ".join(shlex.quote(word) if " " in word else word for word in words)


def record(folder: Path, environ: dict[str, str]) -> str:
    """Run the quickstart's command in a folder; return what a terminal without colours shows."""
    (folder / "train.py").write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    words = [word.replace("$VIRTUAL_ENV", sys.prefix).replace("$PWD", str(folder)) for word in COMMAND]
    ran = subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        cwd=folder,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    return ran.stdout.replace(str(folder), "~/line").replace(sys.prefix, "~/venv")


def main() -> None:
    """Start a cluster, run, write the picture, end the cluster."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if sys.argv[1:] else temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        with MiniCluster(folder / "hadoop") as cluster:
            output = record(folder, {**os.environ, **cluster.environ})
    quickstart = DOCS / "quickstart.md"
    page = quickstart.read_text(encoding="utf-8")
    quickstart.write_text(
        re.sub(r"(```text\n).*?(```)", lambda found: found[1] + output + found[2], page, flags=re.S), encoding="utf-8"
    )
    console = Console(record=True, width=118, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold green"), (typed(COMMAND), "bold")))
    console.print(Text(output))  # Without colours, as a pipe shows it.
    svg = console.export_svg(title="distributed TensorFlow on YARN", unique_id="run")
    # GitHub shows pictures without foreign fonts.
    (DOCS / "picture.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S), encoding="utf-8")


if __name__ == "__main__":
    main()
