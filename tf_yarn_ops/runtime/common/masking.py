"""Mask secrets in what a job shows: values whose names suggest a secret, wherever they stand.

The dry run, the live page, the history, reports and logs use the same rule.
"""

import re
from typing import Any, Dict, Iterable, Iterator, Mapping, Set, Tuple

#: Stands for a secret.
MASK = "***"
#: Characters of the shortest value that is looked for in texts; a shorter one stands in every text by chance.
SHORTEST = 6
#: The credentials of an HTTP header, behind their scheme.
_HEADER = re.compile(r"(?i)(?<=authorization:)\s*(?:[a-z]+\s+)?(?P<value>[^\s\"']+)")
#: The password in scheme://user:password@host.
_PASSWORD = re.compile(r"(?<=://)[^/\s:@]*:(?P<value>[^/\s@]+)@")
#: What may stand before a secret, if the name suggests one: an option, an assignment, a header or a key of JSON, as in
#: --api-key=x, --password x, TOKEN=x, X-Api-Key: x. The search tries beginnings of words only, because values are long.
_NAME = re.compile(
    r"(?<![\w-])(?P<option>--?(?=[A-Za-z]))?(?:(?![A-Za-z])[\w-])*(?P<name>[A-Za-z][\w-]*)"
    r"(?:=|:\s+|[\"']:\s*|(?(option)\s+(?!-)|(?!)))"
)
_VALUE = re.compile(r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"';|&]+)")


def is_secret(variable: str) -> bool:
    """Return whether the name of a variable suggests a secret: ``API_KEY`` does, ``MAX_TOKENS`` does not."""
    name = variable.upper()
    return any(word in name for word in ("SECRET", "PASSW", "CREDENTIAL", "SIGNATURE")) or any(
        part.endswith(("TOKEN", "KEY")) for part in name.split("_")
    )


def texts_of(value: Any, name: str = "") -> Iterator[Tuple[str, str]]:
    """Yield each text of plain values, with the name of its variable if it is one: an item below a key ``env``."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "env" and isinstance(item, Mapping):
                yield from ((str(variable), str(text)) for variable, text in item.items())
            else:
                yield from texts_of(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, str):
        yield name, value


def secrets_of(value: Any) -> Set[str]:
    """Return the secrets of plain values, such as the options of a job, that can be looked for in texts."""
    found: Set[str] = set()
    for name, text in texts_of(value):
        found |= (
            {text} if is_secret(name) else {match["value"].strip("\"'") for find in _FINDERS for match in find(text)}
        )
    return {secret for secret in found if len(secret) >= SHORTEST}


def mask_texts(value: Any, secrets: Iterable[str], *, names: bool = True) -> Any:
    """Return plain values with these secrets replaced in every text, at any depth; by default in names too."""
    found = sorted(set(secrets), key=len, reverse=True)  # a secret may contain another one
    return _masked(value, found, names) if found else value


def _masked(value: Any, secrets: Iterable[str], names: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            _masked(name, secrets, names) if names else name: _masked(item, secrets, names)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(item, secrets, names) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
    return value


def mask_command(text: str) -> str:
    """Return a command, URL or other text without the values of what suggests a secret by its name or its place."""
    for find in _FINDERS:
        for match in reversed(list(find(text))):
            text = text[: match.start("value")] + MASK + text[match.end("value") :]
    return text


def _find_named(text: str) -> Iterator["re.Match[str]"]:
    start = 0
    while named := _NAME.search(text, start):
        start = named.end()  # the value of another name may hold a secret: --options "--api-key=x"
        if is_secret(named["name"].replace("-", "_")) and (match := _VALUE.match(text, start)):
            yield match
            start = match.end()


#: Each yields matches whose ``value`` is a secret; those of two of them may overlap.
_FINDERS = (_HEADER.finditer, _find_named, _PASSWORD.finditer)


def mask_options(job: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the options of a job as plain values, with secrets masked.

    Parameters
    ----------
    job : mapping
        As ``--spec`` reads it: variables stand under ``env``, also in each entry of ``tasks``.
    """
    found: Dict[str, Any] = mask_texts(_options(job), secrets_of(job))
    return found


def _options(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {
            key: {variable: _options(item, variable) for variable, item in entry.items()}
            if key == "env" and isinstance(entry, Mapping)
            else _options(entry)
            for key, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_options(item) for item in value]
    if is_secret(name):
        return MASK
    return mask_command(value) if isinstance(value, str) else value
