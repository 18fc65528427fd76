"""`safe_url`: a URL that others wrote, before a page, a terminal or an engine shows it as a link; `is_url`."""

import re

#: A link; its first group is there if host and port are plain, as nearly all are, so that nobody takes it apart.
_LINK = re.compile(
    r"[hH][tT][tT][pP][sS]?://([a-zA-Z0-9.-]+(?::[0-5]?[0-9]{1,4})?(?=[/?#]|\Z))?[^\s\"'<>\\\x00-\x20\x7f-\x9f]*\Z"
)
#: Characters of the longest link.
_LONGEST = 2048


def safe_url(url: object) -> str:
    """Return a URL that a browser may follow; empty for any other value.

    Parameters
    ----------
    url : object
        Of a report, a record or a page that others may have written.

    Returns
    -------
    str
        The same text: http or https, with a host, without a login, quotes, blanks and control characters.
    """
    if not isinstance(url, str) or len(url) > _LONGEST or not (found := _LINK.match(url)):
        return ""
    if found[1]:
        return url
    from urllib.parse import urlsplit  # an agent starts without it

    split = urlsplit(url) if is_url(url) else None
    return url if split and split.hostname and "@" not in split.netloc else ""


def is_url(text: str) -> bool:
    """Return whether Python can take a text apart as a URL; not ``hdfs://[``, ``http://[a]:1`` and ``http://a:b``."""
    from urllib.parse import urlsplit  # an agent starts without it

    try:
        urlsplit(text).port  # noqa: B018  raises ValueError too
    except ValueError:
        return False
    return True
