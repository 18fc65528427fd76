"""``ytf env pack|check``: environments that travel with a job."""

import shlex
import time
from dataclasses import asdict
from pathlib import Path

import click

from ..environments.check import NODES, check_archive
from ..errors import SpecInvalid
from ..runtime.common.escaping import escape_controls
from ..terminal.output import echo, print_json, show

_platform = click.option(
    "--platform",
    "nodes",
    metavar="<platform>",
    default=NODES,
    help="The nodes' system: linux-x86_64 or linux-aarch64.  [default: this machine's processor]",
)


@click.group("env")
def env_group() -> None:
    """Environments that travel: an interpreter with its packages in one archive, for --environment."""


@env_group.command("pack")
@click.argument("source", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="environment.tar.gz",
    show_default=True,
    help="The archive to write.",
)
@click.option(
    "--python",
    metavar="<version or path>",
    default="",
    help="The Python of a requirements.txt or a project.  [default: the one that runs ytf]",
)
@click.option(
    "--node_python",
    metavar="<path>",
    default="",
    help="Bring no interpreter: use this one, which every node has, such as /usr/bin/python3.11.",
)
@_platform
def pack_command(source: Path | None, out: Path, python: str, node_python: str, nodes: str) -> None:
    """Pack an environment that runs in any folder of a node.

    SOURCE is a requirements.txt, a project with pyproject.toml and uv.lock or pylock.toml, a venv, or a folder of
    conda. Without SOURCE the environment that runs ytf is packed, with the projects that are installed editable in it.
    """
    from ..environments.pack import Packing, pack_environment

    began = time.monotonic()
    pack_environment(source, out, Packing(nodes, python, node_python, echo))
    echo(
        f"{out} has {out.stat().st_size / 2**20:.0f} MiB, made in {time.monotonic() - began:.0f} s; "
        f"next: ytf env check {out}"
    )


@env_group.command("check")
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_platform
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def check_command(archive: Path, nodes: str, as_json: bool) -> int:
    """Check that an archive can be the environment of a job.

    The archive is only read, and nothing in it runs. The exit code is 2 if there is a fault.
    """
    report = check_archive(archive, nodes)
    if as_json:
        print_json({**asdict(report), "faults": list(map(str, report.faults)), "doubts": list(map(str, report.doubts))})
    else:
        for word, found in (("fault", report.faults), ("warning", report.doubts)):
            for one in found:
                show(escape_controls(f"{word:<9}{one}", kept=""))
        show(
            f"{'fault' if report.faults else 'ok':<9}{archive}: Python {report.python or 'unknown'}, "
            f"{report.packages} packages, {report.packed / 2**20:.0f} MiB, unpacked {report.unpacked / 2**20:.0f} MiB"
        )
        if not report.faults:
            echo(f"next, on a node: ytf doctor --submit --environment {shlex.quote(str(archive))}")
    return SpecInvalid.reason.exit_code if report.faults else 0
