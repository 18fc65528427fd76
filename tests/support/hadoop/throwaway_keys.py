"""RSA keys that are made before Java starts, which needs 0.4 s of CPU for 1,024 bits and 1.1 s for 2,048.

Netty in Skein's application master makes a key of 1,024 bits at each start, only to try what OpenSSL can do. A
ResourceManager makes one of 2,048 bits at its first start, for application masters with HTTPS pages. Each cluster has
keys of its own; a class beside Hadoop's jars (``ThrowawayKeys.java``) hands them out. Java itself makes keys of all
other sizes.

References
----------
JDK: ``conf/security/java.security``, for the providers, the preferred one, and the file that adds to them.
"""

import base64
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .class_archive import own_jar

if TYPE_CHECKING:
    from .settings import HadoopSettings

_NAME = "ThrowawayKeys"
#: Sizes of keys, bits: a program in a container may want a real key of a size that is in use.
_CONTAINERS, _RESOURCEMANAGER = 1024, 2048


def write_keys(settings: "HadoopSettings") -> None:
    """Write the keys of a cluster, unless they exist; nothing if its Java can't use them."""
    providers = settings.java_home / "conf" / "security" / "java.security"
    # Java 8 knows no preferred provider.
    if not settings.classes or not own_jar(settings.hadoop).is_file() or not providers.is_file():
        shutil.rmtree(_containers(settings).parent, ignore_errors=True)
        return
    numbers = re.findall(r"^security\.provider\.(\d+)=", providers.read_text("utf-8", "replace"), re.M)
    for file, bits in ((_containers(settings), _CONTAINERS), (_resourcemanager(settings), _RESOURCEMANAGER)):
        if file.exists():
            continue
        text = (
            f"security.provider.{max(map(int, numbers), default=0) + 1}={_NAME}\n"
            f"jdk.security.provider.preferred=KeyPairGenerator.RSA:{_NAME}\n"
            f"tf_yarn_ops.rsa.{bits}={_make(bits)}\n"
        )
        file.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = file.with_suffix(".tmp")
        fresh.touch(0o600)
        fresh.write_text(text)
        os.replace(fresh, file)


def use_in_containers(settings: "HadoopSettings") -> tuple[str, ...]:
    """Return the flags with which a JVM in a container finds its key, if there is one."""
    return _flags(_containers(settings))


def use_in_resourcemanager(settings: "HadoopSettings") -> tuple[str, ...]:
    """Return the flags with which a ResourceManager finds its key, if there is one."""
    return _flags(_resourcemanager(settings))


def _containers(settings: "HadoopSettings") -> Path:
    return settings.directory / "java" / "containers.security"


def _resourcemanager(settings: "HadoopSettings") -> Path:
    return settings.directory / "java" / "resourcemanager.security"


def _flags(file: Path) -> tuple[str, ...]:
    return (f"-Djava.security.properties={file}",) if file.is_file() else ()


def _make(bits: int) -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return base64.b64encode(
        key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    ).decode()
