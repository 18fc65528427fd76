"""``ytf convert tony``: print a job of TonY as YAML, by the table that the job type uses."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import click

from ..errors import Fault, SpecInvalid, did_you_mean
from ..hadoop.configuration import read_configuration_file
from ..job.spec import JobSpec
from ..terminal.output import echo, show
from ..validation import check_faults
from .entry_point import SOURCE_FOLDER
from .job import read_azkaban_job
from .request import AzkabanJobFault
from .tony import WORKER_ENV, TonyFault

#: What TonY's client takes on its command line, by the same names.
CLIENT_OPTIONS = {
    "executes": "The program, as for TonY's client.",
    "task_params": "Its arguments.",
    "src_dir": "The folder of the program.",
    "python_venv": "An archive with Python.",
    "python_binary_path": "The interpreter in that archive, or on the nodes.",
    "hdfs_classpath": "Files in HDFS for the tasks.",
    "sidecar_tensorboard_log_dir": "The folder that TensorBoard shows.",
}
#: The options of this client that have a key, too.
_KEYS = {"sidecar_tensorboard_log_dir": "tony.application.tensorboard-log-dir"}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NO_COMMAND = "# command: the program was an option of TonY's client; give it as --executes, or write it here\n"
#: A relative script at the beginning of a command, after an interpreter and its options.
_SCRIPT = re.compile(r"\s*['\"]?(\S*(python[\d.]*|sh)\s+)?(-\w+\s+)*(?P<script>[\w.-][\w./-]*\.(py|sh))(['\"\s]|\Z)")


def convert_tony(properties: Mapping[str, str], folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return a job of TonY as YAML, which `JobSpec.from_yaml` reads.

    Parameters
    ----------
    properties : mapping of str to str
        TonY's keys, and the `CLIENT_OPTIONS`.
    folder : Path
        Where relative paths begin.

    Returns
    -------
    text : str
        With a comment for each key that is left out, which says why.
    left_out : tuple of str
        These keys.

    Raises
    ------
    SpecInvalid
        With faults of the `CLIENT_OPTIONS`, missing scripts, and all faults if one belongs to no key, such as no tasks.
    """
    served, refused = dict(properties), dict[str, Fault]()
    while True:
        without = not any(name == "executes" or name.endswith(".command") for name in served)
        try:
            job, request = read_azkaban_job(served | ({"tony.containers.command": "true"} if without else {}), folder)
        except SpecInvalid as error:
            found = {fault.path: fault for fault in error.faults if fault.path in served}
            refused |= found
            if not found:
                no_tasks = Fault("tony.<type>.instances", TonyFault.NO_TASKS)
                others = (no_tasks if one.code is AzkabanJobFault.NO_TASKS else one for one in error.faults)
                raise SpecInvalid([*(fault.renamed(_option_or_key) for fault in refused.values()), *others]) from error
            served = {name: text for name, text in served.items() if name not in found}
            continue
        scripts = () if "src_dir" in refused else _missing_scripts(served, job, folder)
        of_client = (fault.renamed(_option_or_key) for name, fault in refused.items() if name in CLIENT_OPTIONS)
        check_faults([*of_client, *scripts])
        comments = [f"{name}={properties[name]}: left out; {_reason(fault)}" for name, fault in refused.items()]
        text = "".join(f"# {comment}\n" for comment in comments + request.warnings) + job.to_yaml()
        return text.replace("command: 'true'\n", _NO_COMMAND) if without else text, tuple(refused)


def _reason(fault: Fault) -> str:
    return replace(fault, code=TonyFault.NO_COUNTERPART if fault.code is TonyFault.NOT_SERVED else fault.code).text


def _option_or_key(name: str) -> str:
    return f"--{name}" if name in CLIENT_OPTIONS else name


def _missing_scripts(properties: Mapping[str, str], job: JobSpec, folder: Path) -> Iterator[Fault]:
    """Yield a fault for each command with a relative script that the job does not bring."""
    for name, command in properties.items():
        match = _SCRIPT.match(command) if name == "executes" or name.endswith(".command") else None
        if match is None or SOURCE_FOLDER in job.archives:  # the nodes alone see the content of an archive
            continue
        script = PurePosixPath(match["script"])
        first, *rest = script.parts
        source = job.files.get(first)
        if first not in job.archives and (
            source is None or (rest and "://" not in source and not os.path.exists((folder / source).joinpath(*rest)))
        ):
            yield Fault(_option_or_key(name), TonyFault.NO_SCRIPT, {"given": str(script)})


def _option(name: str, **settings: Any) -> Callable[..., Any]:
    """Return an option with one dash or two, as the parser of TonY's client takes them."""
    return click.option(f"--{name}", f"-{name}", **settings)


def _read_pairs(ctx: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    for pair in pairs:
        if not pair.partition("=")[0].strip() or "=" not in pair:
            raise click.BadParameter("give key=value", ctx, option)  # the pair may be a secret
    return {name.strip(): text for name, _, text in (pair.partition("=") for pair in pairs)}


class _TonyClient(click.Command):
    """A command whose long options may have one dash; an unknown one is named as a whole."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name.lstrip("-") for option in self.params for name in option.opts}
        given = [word.partition("=")[0] for word in args if word.startswith("-")]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            wrong = next((word for word in given if word.lstrip("-") not in known), error.option_name)
            ctx.fail(f"TonY's client has no option {wrong}{did_you_mean(wrong.lstrip('-'), known)}")


@click.group("convert", context_settings={"token_normalize_func": str})
def convert() -> None:
    """Print jobs of other tools as YAML for --spec."""


@convert.command(
    "tony",
    cls=_TonyClient,
    params=[click.Option([f"--{name}", f"-{name}"], help=text) for name, text in CLIENT_OPTIONS.items()],
)
@click.argument("files", nargs=-1, metavar="[TONY.XML [TONY-SITE.XML]]", type=_FILE)
@_option("conf_file", type=_FILE, help="The tony.xml, as for TonY's client.")
@_option("conf", multiple=True, callback=_read_pairs, help="A key and its value, key=value. Repeatable.")
@_option("shell_env", multiple=True, callback=_read_pairs, help="A variable of the tasks, NAME=VALUE. Repeatable.")
@_option("container_env", multiple=True, callback=_read_pairs, help="The same.")
def tony(files: tuple[Path, ...], conf_file: Path | None, conf: dict[str, str], shell_env: dict[str, str],
         container_env: dict[str, str], **client: str | None) -> None:  # fmt: skip
    """Print a job of TonY: its tony.xml, whose values win over those of files behind it.

    The options are those of TonY's client, with one dash or two: what follows ClusterSubmitter in your command can be
    pasted.
    """
    files = (*([conf_file] if conf_file else []), *files)
    properties: dict[str, str] = {}
    try:
        for file in reversed(files):
            properties |= read_configuration_file(file)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    properties |= conf
    properties |= {f"{WORKER_ENV}{name}": text for name, text in {**container_env, **shell_env}.items()}
    properties |= {_KEYS.get(name, name): text for name, text in client.items() if text is not None}
    text, left_out = convert_tony(properties, files[0].parent if files else Path())
    show(text, nl=False)
    if left_out:
        echo(f"{len(left_out)} key{'s' * (len(left_out) > 1)} left out: {', '.join(left_out)}, see the comments")
