"""A healthy cluster to examine, and a server that does not answer."""

import threading

import pytest

from support.doctor_site import LEAF


@pytest.fixture
def healthy(yarn, tmp_path):
    """Return a fake cluster on which every check is ok, but for those that only a real one passes."""
    program = tmp_path / "bin" / "yarn"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    files = tmp_path / "files"
    files.mkdir()
    yarn.program, yarn.files = program, files
    yarn.conf |= {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{files}"}
    yarn.rights = {"SUBMIT_APPLICATIONS": True, "ADMINISTER_QUEUE": False}
    yarn.queues = [dict(LEAF)]
    yarn.nodes = [{**yarn.nodes[0], "nodeHTTPAddress": yarn.url.removeprefix("http://"), "version": "3.4.3"}]
    return yarn


@pytest.fixture
def silence():
    """Return an event for which a server waits that does not answer."""
    over = threading.Event()
    yield over
    over.set()
