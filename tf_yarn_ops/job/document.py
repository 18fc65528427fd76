"""The text form of a job: YAML to plain values and back. `spec` checks the values."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import Fault, FaultCode, GeneralFault, SpecInvalid, why_unreadable
from ..runtime.common.values import read_text_file
from ..validation import check_faults


class DocumentFault(FaultCode):
    """Fault codes for a document."""

    NOT_A_JOB = "{file!r} is not a mapping of keys to values; ytf-submit --dry_run prints one"


def read_document(
    path: str,
    folder: Path = Path(),
    *,
    key: str = "spec",
    render: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
    faults: list[Fault] | None = None,
) -> dict[str, Any]:
    """Read the YAML or JSON file of a job. A dry run prints two documents; the first is the job.

    Parameters
    ----------
    path : str
        A ``~/`` in front is the user's home.
    folder : Path, optional
        The folder of a relative path. Default: the current one.
    key : str, optional
        The name of the path's option, for faults. Default ``spec``.
    render : callable, optional
        Returns the document with the values of its templates. Default: without a change.
    faults : list, optional
        As in `load_yaml`, for a caller that reports the faults of the values too. Default: keys that are given twice
        are raised.

    Returns
    -------
    dict
        The document as `JobSpec.from_dict` takes it, not yet checked. Its relative paths begin in the folder of the
        file, like ``path`` itself; those of a pipe in the current one.

    Raises
    ------
    SpecInvalid
        The file can't be read, or is not a mapping.
    """
    from ..yaml_text import load_yaml

    def unreadable(why: object) -> Fault:
        return Fault(key, GeneralFault.UNREADABLE_FILE, {"file": path, "error": why})

    twice: list[Fault] = []
    try:
        document = load_yaml(read_text_file(folder / expand_home(path)), twice).value
    except SpecInvalid as error:
        raise SpecInvalid(map(unreadable, error.faults)) from error
    except (OSError, ValueError) as error:
        raise SpecInvalid(unreadable(why_unreadable(error))) from error
    (check_faults if faults is None else faults.extend)(map(unreadable, twice))
    if not isinstance(document, Mapping):
        raise SpecInvalid(Fault(key, DocumentFault.NOT_A_JOB, {"file": path}))
    own = os.path.dirname(path) if os.path.isfile(folder / expand_home(path)) else ""  # a pipe has no folder
    return _with_paths(render(dict(document)), own)


def expand_home(path: str) -> str:
    """Return a path with the user's home for ``~/`` in front, which a shell replaces only at the start of a word."""
    return os.path.expanduser(path) if path.startswith("~/") else path


def _with_paths(document: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return a document whose relative paths of this machine begin in a folder."""

    def placed(source: Any) -> Any:
        if not isinstance(source, str) or not source or source.startswith(("/", "~/", "${")):
            return source
        scheme, separator, location = source.rpartition("://")
        if separator and (scheme != "requirements" or location.startswith(("/", "~/"))):
            return source
        return f"{scheme}{separator}{os.path.join(folder, location)}"

    changed = {name: placed(document[name]) for name in ("script", "environment") if name in document}
    if isinstance(docker := document.get("docker"), Mapping) and "client_config" in docker:
        changed["docker"] = {**docker, "client_config": placed(docker["client_config"])}
    for name in ("files", "archives"):
        if isinstance(sources := document.get(name), Mapping):
            changed[name] = {link: placed(source) for link, source in sources.items()}
    if isinstance(tasks := document.get("tasks"), Mapping):
        changed["tasks"] = {
            name: {**task, "environment": placed(task["environment"])}
            if isinstance(task, Mapping) and "environment" in task
            else task
            for name, task in tasks.items()
        }
    return {**document, **changed}


def format_yaml(document: Mapping[str, Any]) -> str:
    """Return a document as YAML, which `load_yaml` reads back as the same values."""
    import yaml

    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    # PyYAML writes these characters as they are, and reads them back as line breaks.
    if any(letter in text for letter in "\x85\u2028\u2029\ufeff"):
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=False)
    return text
