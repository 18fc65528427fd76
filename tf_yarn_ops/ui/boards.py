"""`Boards`: the TensorBoards of ended jobs that readers of the pages have started; one process per job."""

import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from ..errors import TfYarnError
from ..hadoop.cluster import Cluster
from ..history.local_board import LocalBoard, Shown

#: Seconds without a request after which a TensorBoard is ended: it takes some hundred MiB.
IDLE_SECONDS = 900.0
#: Seconds that TensorBoard may take for an answer: a large log takes its time.
_TIMEOUT = 300.0
#: The most at the same time; one more ends that which nobody has looked at for the longest time.
_MOST = 4


@dataclass
class Board:
    """The TensorBoard of one job.

    Attributes
    ----------
    local : LocalBoard
    seen_at : float
        The last request, by the monotonic clock.
    listens : bool
        Whether it answers.
    fault : str
        Why it could not start; empty if it could.
    readers : set of str
        Who may see the job, as far as that has been found out.
    """

    local: LocalBoard
    seen_at: float
    listens: bool = False
    fault: str = ""
    readers: set[str] = field(default_factory=set)


class Boards:
    """Starts, finds, asks and ends them; safe for several threads.

    Parameters
    ----------
    cluster : Cluster
    team : bool, optional
        Whether event files are read as the owner of the job, and only out of the cluster's HDFS, which checks that
        user's rights: the owner names the path, and other readers may see it. Default: as ourselves, wherever they are.
    idle_seconds : float, optional
        Default: `IDLE_SECONDS`.
    """

    def __init__(self, cluster: Cluster, team: bool = False, idle_seconds: float = IDLE_SECONDS):
        self._cluster, self._team, self._idle_seconds = cluster, team, idle_seconds
        self._boards: dict[str, Board] = {}
        self._changing = threading.Lock()
        self._client = httpx.Client(trust_env=False, timeout=_TIMEOUT)

    def shows(self, owner: str, place: str) -> bool:
        """Return whether TensorBoard can be started on a path or URL of a job of this user."""
        try:
            storage, split = self._cluster.storage, urlsplit(place)
        except ValueError:  # a record may have any text
            return False
        own = not split.netloc or f"{split.scheme}://{split.netloc}" in (storage.filesystem, storage.default)
        # A gateway may name the user of its password instead of the owner.
        checked = storage.webhdfs and not storage.local_root and self._cluster.site.credentials is None
        return bool(place) and (not self._team or bool(owner and own and checked and split.scheme == "hdfs"))

    def start(self, application_id: str, owner: str, place: str, prefix: str) -> None:
        """Start TensorBoard on a path or URL below the path ``prefix``, unless that of the job runs; do not wait."""
        cluster = self._cluster.acting_for(owner) if self._team else self._cluster
        with self._changing:
            known = self._boards.get(application_id)
            if known and not known.fault:
                return
            self._boards.pop(application_id, None)
            if len(self._boards) >= _MOST:
                oldest = min(self._boards, key=lambda key: self._boards[key].seen_at)
                threading.Thread(target=self._boards.pop(oldest).local.end, daemon=True).start()
            local = LocalBoard(
                [Shown(application_id, place)],
                cluster.open_path,
                0,
                ["--path_prefix", prefix],
                plugins=not self._team,
            )
            board = self._boards[application_id] = Board(local, time.monotonic())
        threading.Thread(target=self._keep, args=(application_id, board), daemon=True).start()

    def _keep(self, application_id: str, board: Board) -> None:
        """Start TensorBoard, bring it new events, and end it; the kernel ends it with this thread."""
        try:
            board.local.start()
            board.listens = True
            while (
                board.local.wait(min(board.local.refresh(), self._idle_seconds)) is None
                and time.monotonic() - board.seen_at < self._idle_seconds
            ):
                pass
        except (TfYarnError, OSError) as error:
            board.fault = str(error)
        board.local.end()
        with self._changing:
            if not board.fault and self._boards.get(application_id) is board:
                del self._boards[application_id]

    def find(self, application_id: str) -> Board | None:
        """Return the TensorBoard of a job; None if it does not run."""
        with self._changing:
            if found := self._boards.get(application_id):
                found.seen_at = time.monotonic()
            return found

    def forward(self, board: Board, method: str, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """Return TensorBoard's answer; raise httpx.TransportError if there is none."""
        return self._client.request(method, f"http://127.0.0.1:{board.local.port}{path}", content=body, headers=headers)

    def close(self) -> None:
        """End all; it is the last call."""
        with self._changing:
            boards, self._boards = list(self._boards.values()), {}
        for board in boards:
            board.local.end()
        self._client.close()
