"""The program of the tasks and its files: entry point, arguments, the folder of sources.

This module reads the folder of the project; `job` reads the rest of a request from the properties.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..validation import ARCHIVE_SUFFIXES
from .request import AzkabanJobFault, AzkabanRequest, file_name, shown

#: The folder into which YARN unpacks an archive of tf.source. The command copies its content to the working directory.
SOURCE_FOLDER = "tf_source"
#: The beginnings of names in a folder of sources that no task needs.
_LEFT_OUT = (".git", ".skein", ".ytf", "__pycache__")


def add_program(request: AzkabanRequest, tasks: Mapping[str, dict[str, Any]]) -> None:
    """Write the command and its files into the request."""
    unpack = _add_source(request)
    command = _command(request)
    arguments = _arguments(request)
    if command is not None:
        key = request.values.get("tf.command") or request.values["tf.entry_point"]
        request.give("task_command", f"{unpack}{command}{arguments}", key.key)
    elif arguments:
        first = next(name for name in request.values if name.startswith("tf.args"))
        request.refuse(first, AzkabanJobFault.NOTHING_TO_PASS_TO)
        request.options["task_command"] = "true"
    for task in tasks.values():
        if task.get("command") and unpack:
            task["command"] = unpack + task["command"]


def _command(request: AzkabanRequest) -> str | None:
    command, entry_point = request.values.get("tf.command"), request.text("tf.entry_point")
    if command is not None and command.text.strip():
        if entry_point is not None:
            request.refuse(command.key, AzkabanJobFault.TWO_PROGRAMS, other=request.values["tf.entry_point"].key)
        return command.text.rstrip("\r\n")  # a YAML block ends with one, and arguments follow
    if entry_point is None:
        return None
    python = shlex.quote(request.text("tf.python") or "python3")
    if entry_point.startswith("/") or entry_point.removeprefix("./").partition("/")[0] in _shipped(request):
        return f"{python} {shlex.quote(entry_point)}"
    if not request.may_read("tf.entry_point", entry_point):
        request.refuse("tf.entry_point", AzkabanJobFault.OUTSIDE, given=shown(entry_point))
    elif not os.path.isfile(request.folder / entry_point):
        request.refuse("tf.entry_point", AzkabanJobFault.NO_ENTRY_POINT, given=shown(entry_point))
    elif "tf.script" in request.values:
        request.ship("file", entry_point, request.values["tf.entry_point"].key)
    else:
        request.give("script", entry_point, request.values["tf.entry_point"].key)
    return f"{python} {shlex.quote(os.path.basename(entry_point))}"


def _shipped(request: AzkabanRequest) -> set[str]:
    """Return the names that the working directory will have."""
    return {file_name(text) for option in ("file", "archive") for text in request.options.get(option, ())}


def _arguments(request: AzkabanRequest) -> str:
    """Return the arguments as bash reads them, with a blank first."""
    words = [request.values["tf.args"].text.rstrip("\r\n")] if request.text("tf.args") else []
    numbered = [
        (int(name.rpartition(".")[2]), value.text)
        for name, value in request.values.items()
        if name.startswith("tf.args.") and name.rpartition(".")[2].isdecimal()
    ]
    words += [shlex.quote(text) for _, text in sorted(numbered)]
    return "".join(f" {word}" for word in words)


def _add_source(request: AzkabanRequest) -> str:
    """Add the content of tf.source to the files of the job; return the shell text to run before the command."""
    if (path := request.text("tf.source")) is None:
        return ""
    if "://" in path or path.endswith(ARCHIVE_SUFFIXES):
        request.ship("archive", f"{SOURCE_FOLDER}={path}", request.values["tf.source"].key)
        return f"cp -R {SOURCE_FOLDER}/. . && "
    if not request.may_read("tf.source", path):
        request.refuse("tf.source", AzkabanJobFault.OUTSIDE, given=shown(path))
    elif not os.path.isdir(request.folder / path):
        request.refuse("tf.source", AzkabanJobFault.NO_FOLDER, given=shown(path))
    else:
        for name in sorted({*os.listdir(request.folder / path)} - _shipped(request)):
            if not name.startswith(_LEFT_OUT):
                request.ship("file", f"{name}={Path(path) / name}", request.values["tf.source"].key)
    return ""
