"""``python -m tf_yarn_ops.skeinchild FOLDER``: one submission through Skein's Java client, then the end.

A process of its own: it can be ended when Skein waits for ever, its JVM ends with it, and
its environment may differ. Reads ``application.proto`` and the certificate in FOLDER; the
last line on stdout is ``submitted <application id>`` or ``refused <why>``.
"""

import sys
from pathlib import Path

from .imports import import_skein

#: Half of the JVM's start and memory.
JAVA_OPTIONS = "-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
PROTO, CERTIFICATE, KEY, LOG = "application.proto", "client.crt", "client.key", "driver.log"


def main(folder: Path) -> str:
    """Submit what lies in ``folder``; give the answer's line."""
    skein = import_skein()
    from skein import proto

    message = proto.ApplicationSpec()
    message.ParseFromString((folder / PROTO).read_bytes())
    application = skein.ApplicationSpec.from_protobuf(message)
    security = skein.Security(cert_bytes=(folder / CERTIFICATE).read_bytes(), key_bytes=(folder / KEY).read_bytes())
    try:
        with skein.Client(security=security, log=str(folder / LOG), java_options=JAVA_OPTIONS) as client:
            return f"submitted {client.submit(application)}"
    except skein.SkeinError as error:
        return f"refused {_cause(str(error))}"


def _cause(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.rstrip().endswith("exception:")]
    return (lines[0] if lines else "no reason given")[:500]


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1])) + "\n")
