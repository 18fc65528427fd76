"""``ytf convert tony``: print a job of TonY as YAML, by the table that the job type uses."""

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from ..errors import Fault, SpecInvalid
from ..hadoop.configuration import read_configuration_file
from ..terminal.output import show
from .job import read_azkaban_job

#: What TonY's client takes on its command line, by the same names.
CLIENT_OPTIONS = {
    "executes": "The program, as for TonY's client.", "task_params": "Its arguments.",
    "src_dir": "The folder of the program.", "python_venv": "An archive with Python.",
    "python_binary_path": "The interpreter in that archive, or on the nodes.",
}
_NO_COMMAND = "# command: the program was an option of TonY's client; give it as --executes, or write it here\n"


def convert_tony(properties: Mapping[str, str], folder: Path) -> str:
    """Return a job of TonY as YAML, which `JobSpec.from_yaml` reads.

    Parameters
    ----------
    properties : mapping of str to str
        TonY's keys, and the `CLIENT_OPTIONS`.
    folder : Path
        Where relative paths begin.

    Returns
    -------
    str
        With a comment for each key without a counterpart, which says why.

    Raises
    ------
    SpecInvalid
        With faults that belong to no key, such as no tasks.
    """
    served, refused = dict(properties), dict[str, Fault]()
    while True:
        without = not any(name == "executes" or name.endswith(".command") for name in served)
        try:
            job, request = read_azkaban_job(served | ({"tony.containers.command": "true"} if without else {}), folder)
        except SpecInvalid as error:
            found = {fault.path: fault for fault in error.faults if fault.path in served}
            if not found:
                raise
            refused |= found
            served = {name: text for name, text in served.items() if name not in found}
            continue
        comments = [f"{name}={properties[name]}: {fault.text}" for name, fault in refused.items()] + request.warnings
        text = "".join(f"# {comment}\n" for comment in comments) + job.to_yaml()
        return text.replace("command: 'true'\n", _NO_COMMAND) if without else text


def _client_options(function: Callable[..., None]) -> Callable[..., None]:
    for name, text in reversed(CLIENT_OPTIONS.items()):
        function = click.option(f"--{name}", help=text)(function)
    return function


@click.group("convert")
def convert() -> None:
    """Print jobs of other tools as YAML for --spec."""


@convert.command("tony")
@click.argument("files", nargs=-1, required=True, metavar="TONY.XML [TONY-SITE.XML]",
                type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_client_options
def tony(files: tuple[Path, ...], **client: str | None) -> None:
    """Print a job of TonY: its tony.xml, whose values win over those of files behind it."""
    properties: dict[str, str] = {}
    try:
        for file in reversed(files):
            properties |= read_configuration_file(file)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    properties |= {name: text for name, text in client.items() if text is not None}
    show(convert_tony(properties, files[0].parent), nl=False)
