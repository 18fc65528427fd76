"""Mask secrets in what a job shows: values of its variables whose names suggest a secret, wherever they stand.

The dry run, the live page and the history use the same rule.
"""

from typing import Any, Iterable, Mapping, Set

#: Stands for a secret.
MASK = "***"
#: Characters of the shortest value that is looked for in texts; a shorter one stands in every text by chance.
SHORTEST = 6


def is_secret(variable: str) -> bool:
    """Return whether the name of a variable suggests a secret: ``API_KEY`` does, ``MAX_TOKENS`` does not."""
    name = variable.upper()
    return (any(word in name for word in ("SECRET", "PASSW", "CREDENTIAL"))
            or any(part.endswith(("TOKEN", "KEY")) for part in name.split("_")))


def mask_variables(env: Mapping[str, Any], mask: str = MASK) -> Mapping[str, Any]:
    """Return variables with the values masked whose names suggest a secret."""
    return {name: mask if is_secret(name) else value for name, value in env.items()}


def secrets_of(envs: Iterable[Mapping[str, str]]) -> Set[str]:
    """Return the secret values of some environments that can be looked for in texts."""
    return {str(value) for env in envs for name, value in env.items()
            if is_secret(name) and len(str(value)) >= SHORTEST}


def mask_texts(value: Any, secrets: Iterable[str]) -> Any:
    """Return plain values with these secrets replaced in every text, at any depth; names in mappings too."""
    found = sorted(set(secrets), key=len, reverse=True)  # a secret may contain another one
    return _masked(value, found) if found else value


def _masked(value: Any, secrets: Iterable[str]) -> Any:
    if isinstance(value, Mapping):
        return {_masked(name, secrets): _masked(item, secrets) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(item, secrets) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
    return value
