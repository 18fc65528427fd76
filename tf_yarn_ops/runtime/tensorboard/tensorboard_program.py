"""The program ``tensorboard`` on the loopback: in the cluster that of its task, elsewhere that of a reader."""

import socket
import subprocess
import time

#: Seconds between two looks whether TensorBoard listens.
POLL_SECONDS = 0.2


def until_it_listens(board: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until TensorBoard listens; return False if it ends before."""
    while board.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return True
        except OSError:
            time.sleep(POLL_SECONDS)
    return False


def with_relative_fonts(page: bytes) -> bytes:
    """Return TensorBoard's page with relative paths of its fonts: an absolute one leaves the folder of a proxy."""
    return page.replace(b"url(/font-roboto/", b"url(font-roboto/")
