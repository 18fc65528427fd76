"""The application of ``ytf ui`` over a file system that is a folder, and a YARN on the wire."""

import contextlib
import threading

import pytest
import uvicorn

from support.staging_place import USER
from tf_yarn_ops.hadoop.cluster import Cluster
from tf_yarn_ops.ui.application import build_application
from tf_yarn_ops.ui.commands import _listen
from tf_yarn_ops.ui.library import Library


@pytest.fixture
def place(yarn, tmp_path):
    return Cluster((yarn.url,), USER, USER, "viewfs://mini", "viewfs://mini", "/user/{user}/.skein", local_root=str(tmp_path))


@contextlib.contextmanager
def serving_pages(cluster):
    """Serve the pages as ``ytf ui`` does; yields their address."""
    library, listener = Library(cluster), _listen(0)
    server = uvicorn.Server(uvicorn.Config(build_application(library), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        library.close()


@pytest.fixture
def pages(place):
    with serving_pages(place) as url:
        yield url
