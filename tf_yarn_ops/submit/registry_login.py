"""`find_logins`: the login for the registry of an image, as a token that only the job's containers get.

YARN reads a client configuration that ``YARN_CONTAINER_RUNTIME_DOCKER_CLIENT_CONFIG`` names as the NodeManager's user,
so that such a file could not be private. The token is what NodeManagers make of that file; it travels with the others.

References
----------
Hadoop: ``DockerClientConfigHandler``, ``DockerCredentialTokenIdentifier``. Docker: ``config.json``, key ``auths``.
"""

import base64
import json
from pathlib import Path

from ..errors import Fault, FaultCode, SpecInvalid
from ..job.spec import JobSpec
from ..runtime.common.tokens import Token
from .preflight import CLIENT_CONFIG, local_path

KIND = "DOCKER_CLIENT_CREDENTIAL_TOKEN"
#: The registry of an image that names none, and its names in client configurations.
_HUB, _HUBS = "docker.io", ("docker.io", "index.docker.io", "registry-1.docker.io")
#: Bytes of a client configuration.
_LARGEST = 1 << 20


class LoginFault(FaultCode):
    """Fault codes for a client configuration of Docker; none has a part of its content but names of registries."""

    NOT_A_CONFIG = "{file} is not a client configuration of Docker: a JSON object with auths"
    NO_LOGIN = "{file} has no login for {registry}{others}; run: docker login {registry}"
    NEEDS_REST = "travels over REST only, and Skein's Java client submits here; see submit_with of the site file"
    ELSEWHERE = (
        "{file} does not have the password for {registry}: it is in a program that credsStore or credHelpers names. "
        "Remove these keys and run: docker login {registry}"
    )


def registry_of(image: str) -> str:
    """Return the registry of an image: its first part, if that looks like a host."""
    first, slash, _ = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    return _HUB if not named or first in _HUBS else first


def find_logins(spec: JobSpec, application_id: str) -> dict[str, Token]:
    """Return the tokens of a job with a client configuration, as `read_login`, by their services."""
    if not spec.docker.client_config or not (file := local_path(spec.docker.client_config)):
        return {}
    images = [one.location for one in spec.environments.values() if one.scheme == "docker"]
    return {token.service: token for token in (read_login(file, image, application_id) for image in images)}


def read_login(file: Path, image: str, application_id: str) -> Token:
    """Return the token of an application for the registry of its image, and for no other registry of the file.

    Raises
    ------
    SpecInvalid
        The file is no client configuration, or has no password for the registry.
    """
    registry = registry_of(image)
    try:
        with file.open("rb") as opened:
            auths = json.loads(opened.read(_LARGEST + 1))["auths"]
        logins = {str(key): entry if isinstance(entry, dict) else {} for key, entry in auths.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise SpecInvalid(
            Fault(CLIENT_CONFIG, LoginFault.NOT_A_CONFIG, {"file": file})
        ) from None  # texts may have the content
    names = {key.rpartition("://")[2].partition("/")[0]: key for key in logins}  # a key may be a URL
    key = next((names[name] for name in (_HUBS if registry == _HUB else (registry,)) if name in names), None)
    if key is None:
        others = f", only for {', '.join(sorted(names))}" if names else ""
        raise SpecInvalid(
            Fault(CLIENT_CONFIG, LoginFault.NO_LOGIN, {"file": file, "registry": registry, "others": others[:300]})
        )
    login = str(logins[key].get("auth"))
    if not _is_login(login):
        raise SpecInvalid(Fault(CLIENT_CONFIG, LoginFault.ELSEWHERE, {"file": file, "registry": registry}))
    identifier = b"".join(
        bytes([number << 3 | 2]) + _varint(len(text)) + text
        for number, text in enumerate((key.encode(), application_id.encode()), 1)
    )
    return Token(identifier, login.encode(), KIND, key)


def _is_login(login: str) -> bool:
    try:
        return b":" in base64.b64decode(login, validate=True)
    except ValueError:
        return False


def _varint(number: int) -> bytes:
    """Return a number as Protobuf writes it."""
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)
