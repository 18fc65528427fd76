"""The pages of ``ytf ui``, served as the command does."""

import contextlib
import threading

from tf_yarn_ops.ui.commands import LOOPBACK, listen_at
from tf_yarn_ops.ui.job_store import JobStore
from tf_yarn_ops.ui.pages import build_application
from tf_yarn_ops.ui.serving import build_server

#: Of the readers.
KEY, FOLDER = "of-the-tests", "/room"


@contextlib.contextmanager
def serving_pages(cluster, user_header="", boards=None):
    """Serve the pages as ``ytf ui`` does; yields their address."""
    store, listener = JobStore(cluster), listen_at(LOOPBACK, 0)
    server = build_server(build_application(store, KEY, user_header, boards, cluster.site.ui_realms, FOLDER))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{'' if user_header else FOLDER}/?key={KEY}"
    finally:
        server.should_exit = True
        thread.join(30)
        store.close()
