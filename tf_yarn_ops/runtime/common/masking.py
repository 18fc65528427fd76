"""Mask secrets in what a job shows: values of its variables whose names suggest a secret, wherever they stand.

The dry run, the live page and the history use the same rule.
"""

import re
from typing import Any, Dict, Iterable, Mapping, Set

#: Stands for a secret.
MASK = "***"
#: Characters of the shortest value that is looked for in texts; a shorter one stands in every text by chance.
SHORTEST = 6
#: A value behind an option or an assignment: ``--api-key=x``, ``--password x``, ``TOKEN=x``.
_ASSIGNED = re.compile(r"(?P<option>(?<![\w-])--?)?(?P<name>[A-Za-z][\w-]*)(?:=|(?(option)\s+(?!-)|(?!)))"
                       r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"';|&]+)")
#: The password in ``scheme://user:password@host``.
_IN_URL = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)@")


def is_secret(variable: str) -> bool:
    """Return whether the name of a variable suggests a secret: ``API_KEY`` does, ``MAX_TOKENS`` does not."""
    name = variable.upper()
    return (any(word in name for word in ("SECRET", "PASSW", "CREDENTIAL"))
            or any(part.endswith(("TOKEN", "KEY")) for part in name.split("_")))


def mask_variables(env: Mapping[str, Any], mask: str = MASK) -> Mapping[str, Any]:
    """Return variables with the values masked whose names suggest a secret."""
    return {name: mask if is_secret(name) else value for name, value in env.items()}


def secrets_of(holders: Iterable[Mapping[str, Any]]) -> Set[str]:
    """Return the secret values that can be looked for in texts.

    Parameters
    ----------
    holders : iterable of mapping
        Each may have variables under ``env`` and a ``command``.
    """
    found = set()
    for holder in holders:
        found |= {str(value) for name, value in (holder.get("env") or {}).items() if is_secret(name)}
        found |= secrets_in_command(holder.get("command") or "")
    return {secret for secret in found if len(secret) >= SHORTEST}


def mask_texts(value: Any, secrets: Iterable[str], *, names: bool = True) -> Any:
    """Return plain values with these secrets replaced in every text, at any depth; by default in names too."""
    found = sorted(set(secrets), key=len, reverse=True)  # a secret may contain another one
    return _masked(value, found, names) if found else value


def _masked(value: Any, secrets: Iterable[str], names: bool) -> Any:
    if isinstance(value, Mapping):
        return {_masked(name, secrets, names) if names else name: _masked(item, secrets, names)
                for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(item, secrets, names) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
    return value


def mask_command(text: str) -> str:
    """Return a command without the values of options, variables and URLs whose names suggest a secret."""

    def mask(found: "re.Match[str]") -> str:
        return text[found.start():found.start("value")] + MASK if is_secret(_name(found)) else found[0]

    return _IN_URL.sub(rf"\1:{MASK}@", _ASSIGNED.sub(mask, text))


def secrets_in_command(text: str) -> Set[str]:
    """Return the values that `mask_command` masks, without their quotes."""
    values = {found["value"].strip("\"'") for found in _ASSIGNED.finditer(text) if is_secret(_name(found))}
    return {value for value in values | {found[2] for found in _IN_URL.finditer(text)} if len(value) >= SHORTEST}


def _name(found: "re.Match[str]") -> str:
    return found["name"].replace("-", "_")


def mask_options(job: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the options of a job as plain values, with secrets masked.

    Parameters
    ----------
    job : mapping
        As ``--spec`` reads it: variables stand under ``env``, also in each entry of ``tasks``.
    """
    holders = (job, *(job.get("tasks") or {}).values())
    found: Dict[str, Any] = mask_texts(_options(job), secrets_of(holders))
    return found


def _options(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: mask_variables(item) if name == "env" and isinstance(item, Mapping) else _options(item)
                for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_options(item) for item in value]
    return mask_command(value) if isinstance(value, str) else value
