"""Mask secrets in what a job shows: values whose names suggest a secret, wherever they stand.

The dry run, the live page, the history, reports, results and logs use the same rule.
"""

import re
from typing import Any, Dict, Iterable, Iterator, Mapping, Set, Tuple

from .values import map_values

#: Stands for a secret.
MASK = "***"
#: Characters of the shortest value that is looked for in texts; a shorter one stands in every text by chance.
SHORTEST = 6
#: Parts of a name that suggest a secret anywhere; as the end of a word; as the last word.
_ANYWHERE = ("SECRET", "PASSW", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "SIGNATURE")
_ENDS = ("TOKEN", "KEY")
_LAST = {"AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "CRED", "CREDS", "JWT", "PASS", "PW", "PWD"}
#: Words where a capital letter begins a new one: dbPass.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Names of shells, and words in sentences: "unknown key: x".
_NOT_SECRET = {"PWD", "OLDPWD"}
_PROSE = {"key", "token", "pass", "auth"}
#: What says how somebody logs in.
_METHODS = {"basic", "bearer", "digest", "false", "kerberos", "ldap", "negotiate", "none", "null", "simple", "true"}
#: What may stand before a secret, if the name suggests one: an option, an assignment, a header or a key of JSON, as in
#: --api-key=x, --password x, TOKEN=x, X-Api-Key: x, {\"key\" : \"x\"}. A backslash continues a line. The search tries
#: beginnings of words only, because values are long.
_NAME = re.compile(
    r"(?<![\w-])(?P<option>--?(?=[A-Za-z]))?(?:(?![A-Za-z])[\w-])*(?P<name>[A-Za-z][\w-]*)"
    r"(?:(?P<json>\\*[\"'](?:\s|\\+[nrt])*(?::|=>?)(?:\s|\\+[nrt])*)|(?P<colon>:[ \t]+)|(?P<tight>:)"
    r"|[ \t]+=[ \t]+|=(?!=)|(?(option)(?:[ \t]|\\\r?\n|\\{3,}n)+(?!-)|(?!)))"
)
#: A quoted value, one that its end cuts off, and parts of a word in a shell: a"b"'c'.
_QUOTED = re.compile(r"(?P<quote>\\*[\"']).*?(?<!\\)(?P=quote)", re.DOTALL)
_QUOTED_IN_JSON = re.compile(r"(?P<quote>\\*[\"'])[^\r\n]*?(?<!\\)(?P=quote)")
_CUT = re.compile(r"\\*[\"'][^\r\n]*")
_WORD = re.compile(r"(?:\{[^}\s]{0,200}\}|\\+[^\"'\n\\]|[^\s\"';|&\\])+")
_WORD_OF_JSON = re.compile(r"[^\s\"',;|&}\]\\]+")
#: The credentials of an HTTP header, behind their scheme; the value of a cookie; a credential that names its scheme.
_HEADER = re.compile(
    r"(?i)(?<=authorization)(?:\\*[\"'])?\s*[:=]\s*(?:\\*[\"'])?(?:[a-z]+\s+)?(?P<value>[^\s\"'\\]+)"
    r"|\b(?:cookie|cookie2):[ \t]*(?P<cookie>[^\s\"'\\][^\"'\\\r\n]*)"
    r"|\b(?:bearer|basic)[ \t]+(?P<scheme>(?=[\w.~+/-]*[\d=])[\w.~+/-]{8,}=*)"
)
#: The beginning of the credentials of a URL, scheme://user:, and what ends it; a token in place of a user.
_URL = re.compile(r"://(?P<user>[^/\s:@\"'<>]{0,200})(?P<mark>[:@])")
_END_OF_URL = re.compile(r"[\s\"'<>\\]")
_PORT = re.compile(r"\d{0,5}(?:[/?#,]|\Z)")
#: Credentials with a colon or in a place of their own: curl -u name:x, sshpass -p x, jdbc:oracle:thin:name/x@host.
_PAIR = re.compile(
    r"(?<![\w-])(?:-u|-U|--user|--proxy-user)(?:[ \t]+|=)\\*[\"']?[^\s:\"'\\=/]+:(?P<value>(?!\d+(?!\S))[^\s\"'\\]+)"
    r"|\bsshpass[ \t]+-p[ \t]*\\*[\"']?(?P<ssh>[^\s\"'\\]+)"
    r"|\bjdbc:oracle:\w+:[^\s/@\"']{1,100}/(?P<oracle>[^\s\"'/@]+)@"
)
#: Where a value lies in a text: its first character, and the first one behind it.
_Span = Tuple[int, int]


def is_secret(variable: str) -> bool:
    """Return whether the name of a variable suggests a secret: ``API_KEY`` does, ``MAX_TOKENS`` does not."""
    if variable in _NOT_SECRET:
        return False
    name = variable.upper().replace("-", "_")
    last = _CAMEL.sub("_", variable).upper().replace("-", "_").rpartition("_")[2]
    return (
        any(word in name for word in _ANYWHERE)
        or any(part.endswith(_ENDS) for part in name.split("_"))
        or last in _LAST
    )


def texts_of(value: Any) -> Iterator[Tuple[str, str]]:
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
        yield "", value


def secrets_of(value: Any) -> Set[str]:
    """Return the secrets of plain values, such as the options of a job, that can be looked for in texts."""
    found: Set[str] = set()
    for name, text in texts_of(value):
        if is_secret(name):
            found.add(text)
        else:
            found.update(*(_spellings(text[begin:end]) for begin, end in _find_secrets(text)))
    return {secret for secret in found if len(secret) >= SHORTEST}


def _spellings(value: str) -> Set[str]:
    """Return how the value of a command may be written elsewhere: without quotes and the marks of a shell or URL."""
    plain = value.replace("\\\n", "").strip("\"'\\")
    bare = re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)[\"']", "", value))
    from urllib.parse import unquote  # an agent starts without it

    return {plain, plain.rstrip(",}])"), plain.strip("{}"), bare, unquote(plain)}


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
    pieces, after = [], 0
    for begin, end in sorted(_find_secrets(text)):
        if begin >= after:  # else it overlaps the one before, and both become one
            pieces += [text[after:begin], MASK]
        after = max(after, end)
    return "".join([*pieces, text[after:]])


def mask_output(value: Any, secrets: Iterable[str]) -> Any:
    """Return what a program has written, a text or plain values, as `mask_texts` and `mask_command`; names stay."""
    return mask_texts(map_values(value, _mask_named), secrets, names=False)


def _mask_named(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return MASK if value and is_secret(name) else mask_command(value)


def _find_secrets(text: str) -> Iterator[_Span]:
    """Yield where the secrets of a text lie, in any order."""
    yield from _find_named(text)
    yield from _find_in_urls(text)
    for pattern in (_HEADER, _PAIR):
        for match in pattern.finditer(text):
            yield match.span(match.lastgroup or 0)


def _find_named(text: str) -> Iterator[_Span]:
    start, counted, opened = 0, 0, {"'": 0, '"': 0}
    while named := _NAME.search(text, start):
        start = named.end()  # the value of another name may hold a secret: --options "--api-key=x"
        name = named["name"]
        if not is_secret(name):
            continue
        if not named["option"] and (
            (named["tight"] and "-" not in name) or (named["colon"] and name.lower() in _PROSE)
        ):
            continue
        line = text.rfind("\n", counted, start) + 1
        if line:
            counted, opened = line, {"'": 0, '"': 0}
        for quote in opened:
            opened[quote] += text.count(quote, counted, start) - text.count("\\" + quote, counted, start)
        counted = start
        inside = "".join(quote for quote, number in opened.items() if number % 2)
        end = _end_of_value(text, start, "\"'" if named["json"] else inside)
        if end > start and text[start:end].strip("\"'\\").lower() not in _METHODS:
            yield start, end
            start = end


def _end_of_value(text: str, start: int, ends: str) -> int:
    """Return the end of the value that begins here; a quote of ``ends`` is behind it and begins no part of a word."""
    json, end = len(ends) == 2, start
    while not (end > start and (json or text[end : end + 1] in ends)):
        quoted, word = (_QUOTED_IN_JSON, _WORD_OF_JSON) if json else (_QUOTED, _WORD)
        part = quoted.match(text, end) or word.match(text, end) or _CUT.match(text, end)
        if part is None:
            break
        end = part.end()
    return end


def _find_in_urls(text: str) -> Iterator[_Span]:
    for match in _URL.finditer(text):
        if match["mark"] == "@":
            if len(match["user"]) >= 16 and re.search(r"\d", match["user"]):  # a token in place of the user's name
                yield match.span("user")
            continue
        start = match.end()
        found = _END_OF_URL.split(text[start : start + 1000], maxsplit=1)[0]
        authority = re.split(r"[/?#]", found, maxsplit=1)[0]
        if "@" in authority:
            yield start, start + authority.rindex("@")
        elif "@" in found and not _PORT.match(found):  # the password has a character that belongs in %2F
            yield start, start + found.index("@")


def mask_options(job: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the options of a job as plain values, with secrets masked.

    Parameters
    ----------
    job : mapping
        As ``--spec`` reads it: variables stand under ``env``, also in each entry of ``tasks``.
    """
    return dict(mask_texts(_options(job), secrets_of(job)))


def _options(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: {variable: MASK if is_secret(variable) else _options(item) for variable, item in entry.items()}
            if key == "env" and isinstance(entry, Mapping)
            else _options(entry)
            for key, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_options(item) for item in value]
    return mask_command(value) if isinstance(value, str) else value
