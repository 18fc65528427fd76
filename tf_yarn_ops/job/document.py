"""The text form of a job: YAML to plain values and back. `spec` checks the values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import Fault, FaultCode, GeneralFault, SpecInvalid


class DocumentFault(FaultCode):
    """Fault codes for a document."""

    NOT_A_JOB = "{file!r} is not a mapping of keys to values; ytf-submit --dry_run prints one"


def read_document(path: str, folder: Path = Path(), *, key: str = "spec") -> dict[str, Any]:
    """Read the YAML or JSON file of a job. A dry run prints two documents; the first is the job.

    Parameters
    ----------
    path : str
    folder : Path, optional
        The folder of relative paths. Default: the current one.
    key : str, optional
        The name of the path's option, for faults. Default ``spec``.

    Returns
    -------
    dict
        The document as `JobSpec.from_dict` takes it, not yet checked.

    Raises
    ------
    SpecInvalid
        The file can't be read, or is not a mapping.
    """
    try:
        document = parse_yaml((folder / path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecInvalid(Fault(key, GeneralFault.UNREADABLE_FILE, {"file": path, "error": str(error)})) from error
    if not isinstance(document, Mapping):
        raise SpecInvalid(Fault(key, DocumentFault.NOT_A_JOB, {"file": path}))
    return dict(document)


def parse_yaml(text: str) -> Any:
    """Parse YAML; raise `SpecInvalid` with the line and the column if the text is not YAML."""
    from ..yaml_text import load_yaml

    return load_yaml(text).value


def format_yaml(document: Mapping[str, Any]) -> str:
    """Return a document as YAML, which `parse_yaml` reads back as the same values."""
    import yaml

    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    # PyYAML writes these characters as they are, and reads them back as line breaks.
    if any(letter in text for letter in "\x85\u2028\u2029\ufeff"):
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=False)
    return text
