"""An adapter for `requests` that gives the sending of a body as long as the answer.

`requests` knows two timeouts, of the connection and of the answer, and sends under the
first: a DataNode under load that does not read for three seconds would fail an upload.

References
----------
urllib3, ``connection.HTTPConnection``: the socket keeps the timeout of its connection until
the answer is awaited.
"""

from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class PatientAdapter(HTTPAdapter):
    """Sends for as long as it waits.

    Parameters
    ----------
    patience : float
        Seconds that the other side may stop reading.
    """

    def __init__(self, patience: float):
        self._patience = patience
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the connections patient as soon as they stand."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {
            "http": _pool(HTTPConnectionPool, HTTPConnection, self._patience),
            "https": _pool(HTTPSConnectionPool, HTTPSConnection, self._patience),
        }


def _pool(pool: Any, connection: Any, patience: float) -> Any:
    """Give a class of pools whose connections send with this timeout."""

    class Patient(connection):  # type: ignore[misc]
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(patience)

    class Pool(pool):  # type: ignore[misc]
        ConnectionCls = Patient

    return Pool
