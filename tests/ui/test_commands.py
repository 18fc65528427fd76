"""ytf ui: its port, its extra, its warnings."""

import logging
import sys

import pytest
from click.testing import CliRunner

from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.ui.commands import LOOPBACK, listen_at


def test_taken_port_is_reported():
    with (
        listen_at(LOOPBACK, 0) as listener,
        pytest.raises(SpecInvalid, match=r"can't be used .*; give another one with --port"),
    ):
        listen_at(LOOPBACK, listener.getsockname()[1])


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "tf_yarn_ops.ui.serving", raising=False)
    done = CliRunner().invoke(ytf, ["ui", "--no-browser"])
    assert "install the extra ui: pip install 'tf-yarn-ops[ui]'" in str(done.exception)


def test_listening_for_others_without_tls_is_warned_about(yarn, monkeypatch):
    import uvicorn

    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    warned = CliRunner().invoke(
        ytf, ["ui", "--resourcemanager", yarn.url, "--host", "0.0.0.0", "--user-header", "X-User", "--no-browser"]
    )
    assert warned.exit_code == 0 and "without TLS" in warned.stderr and "can name any user in X-User" in warned.stderr
    quiet = CliRunner().invoke(ytf, ["ui", "--resourcemanager", yarn.url, "--no-browser"])
    assert "TLS" not in quiet.stderr


def test_handlers_of_other_libraries_stay_open(yarn, monkeypatch):
    """Uvicorn's own configuration of logging closes all handlers, and abseil's closes its stream."""
    import uvicorn

    closed, handler = [], logging.StreamHandler()
    monkeypatch.setattr(handler, "close", lambda: closed.append(True))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    assert CliRunner().invoke(ytf, ["ui", "--resourcemanager", yarn.url, "--no-browser"]).exit_code == 0
    assert not closed
