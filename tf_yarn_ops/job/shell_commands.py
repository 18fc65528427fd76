"""What the end of a shell command hides: a task ends with the exit code of its last command."""

import shlex
from itertools import pairwise

_SEPARATORS = (";", ";;", "&", "&&", "|", "||", "|&", "(", ")")
#: Commands that succeed whatever was before them.
_HARMLESS = ("echo", "printf", "true", ":", "date", "wait")


def hiding_end(command: str) -> str:
    """Return the words at the end of a command that hide the failure of what stands before them; empty if none do.

    Parameters
    ----------
    command : str
        As bash reads it. A loop, a condition and brackets at the end count as hiding nothing.

    References
    ----------
    POSIX, Shell Command Language, 2.9.3 Lists and 2.11 ``set -e``.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        tokens = [token if token.strip("\n;&|()") else token.replace("\n", "") or ";" for token in lexer]
    except ValueError:  # an open quote, which bash reports
        return ""
    while tokens and tokens[-1] == ";":
        tokens.pop()
    if tokens and tokens[-1] == "&":
        return "&"
    *earlier, last = [at for at in range(len(tokens)) if at == 0 or tokens[at - 1] in _SEPARATORS] or [0]
    if all(tokens[at] in _HARMLESS for at in earlier) or tokens[last] not in _HARMLESS:
        return ""
    separator, words = tokens[last - 1], tokens[last:]
    if words[0] == "wait":
        return "wait" if "&" in tokens and len(words) == 1 else ""
    stops = any(word == "set" and "e" in option.partition("-")[2] for word, option in pairwise(tokens[:last]))
    hides = separator in ("||", "&") or (separator == ";" and not stops)
    return f"{separator} {words[0]}" if hides else ""
