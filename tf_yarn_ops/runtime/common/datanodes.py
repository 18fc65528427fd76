"""`UnreachableDatanodes`: the DataNodes that this process can't reach, so that a NameNode names others.

References
----------
Hadoop, ``NamenodeWebHdfsMethods.chooseDatanode``: the parameter ``excludedatanodes``. A NameNode compares it with the
IP addresses of its DataNodes; host names, which are what it redirects to, have no effect. An HttpFS ignores it.
"""

import re
import socket
import time
from typing import Callable, Dict, List, Mapping, Optional, Set, Tuple, TypeVar
from urllib.parse import urlsplit

#: Seconds for which a DataNode that could not be reached is left out.
OUTAGE_SECONDS = 60.0
#: Seconds for opening a connection to a DataNode while there may be others.
DATANODE_CONNECT_SECONDS = 3.0
#: A write may take this many times as long as a read: a DataNode waits 65 s for the next one of its pipeline before it
#: leaves that out (``dfs.client.socket-timeout``), and a NameNode takes a dead one for alive for 10.5 minutes.
PIPELINE_FACTOR = 3.0
#: Requests for one place: a NameNode that does not know a DataNode by an address of ours leads there again by chance.
MAX_REQUESTS = 20
#: What NameNodes and DataNodes answer, as an IOException, while no DataNode can take or give a block.
NO_DATANODE = re.compile(
    r"Failed to find datanode|All datanodes .*are bad|could only be (?:written|replicated) to \d+|"
    "Unable to create new block|No active nodes contain this block|Could not obtain block"
)
Transferred = TypeVar("Transferred")


class DatanodeUnreachable(Exception):
    """A DataNode does not answer, and the same request may go to another one. If there is none, its cause is raised."""


class UnreachableDatanodes:
    """Remembers for a minute which DataNodes could not be reached.

    Parameters
    ----------
    clock : callable, optional
        Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._known: Dict[str, Tuple[float, List[str]]] = {}  # by host and port: the end, and the IP addresses

    def add(self, netloc: str) -> None:
        """Leave out a DataNode, ``host:port`` as in a redirect."""
        self._known[netloc] = (self._clock() + OUTAGE_SECONDS, _addresses_of(netloc))

    def parameters(self) -> Dict[str, str]:
        """Return the parameters for a NameNode; empty if no DataNode is left out."""
        self._known = {netloc: known for netloc, known in self._known.items() if known[0] > self._clock()}
        found = sorted({address for _, addresses in self._known.values() for address in addresses})
        return {"excludedatanodes": ",".join(found)} if found else {}

    def follow(
        self, locate: Callable[[Mapping[str, str]], Optional[str]], transfer: Callable[[str, bool], Transferred]
    ) -> Optional[Transferred]:
        """Transfer a file's content to or from a DataNode that can be reached.

        Parameters
        ----------
        locate : callable
            Gets the parameters for the NameNode; returns the URL to which it redirects, or None: there is no transfer.
        transfer : callable
            Gets that URL, and whether it is the last chance, for which a longer wait is due. Raises
            `DatanodeUnreachable`.
        """
        failed: Optional[BaseException] = None
        last_chance = False
        tried: Set[str] = set()
        for left in reversed(range(MAX_REQUESTS)):
            last_chance = last_chance or left == 0
            excluded = {} if last_chance else self.parameters()
            try:
                location = locate(excluded)
            except Exception as error:
                if not excluded or not NO_DATANODE.search(str(error)):
                    raise
                # Those of earlier calls may be back; without them, only the ones that failed now are left.
                last_chance = self._known.keys() <= tried
                self._known = {netloc: known for netloc, known in self._known.items() if netloc in tried}
                continue
            if location is None:
                return None
            netloc = urlsplit(location).netloc
            if netloc in self._known and not last_chance:
                continue
            try:
                result = transfer(location, last_chance)
            except DatanodeUnreachable as error:
                failed = error.__cause__
                self.add(netloc)
                tried.add(netloc)
                if last_chance:
                    break
            else:
                self._known.pop(netloc, None)
                return result
        raise failed or AssertionError("a NameNode was asked, and nothing was transferred")


def _addresses_of(netloc: str) -> List[str]:
    try:
        found = socket.getaddrinfo(urlsplit("//" + netloc).hostname, None, 0, socket.SOCK_STREAM)
    except (OSError, ValueError):
        return []
    return [str(address[0]) for *_, address in found]
