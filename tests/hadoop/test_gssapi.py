"""GSSAPI as Python calls it, on a machine without Kerberos: threads and finalizers."""

import contextlib
import threading

import pytest

from tf_yarn_ops.hadoop.security import gssapi
from tf_yarn_ops.hadoop.security.tickets import Tickets


class Library:
    """The library of Kerberos on a machine without one; each of its functions succeeds and gives nothing."""

    def __init__(self, **functions):
        self.calls = []
        self.functions = functions

    def __getattr__(self, name):
        return lambda *words: self.calls.append(name) or self.functions.get(name, lambda: 0)()


def test_credentials_are_released_with_their_last_reference(monkeypatch):
    library = Library()
    monkeypatch.setattr(gssapi, "library", lambda: library)
    credentials = gssapi.GssCredentials()
    assert "gss_release_cred" not in library.calls
    del credentials
    assert library.calls[-1] == "gss_release_cred"


def test_the_library_is_opened_again_while_it_is_being_opened(monkeypatch):
    """The collector of garbage runs finalizers in any thread, within the opening too: a lock would wait for itself."""

    def open_library(name):
        monkeypatch.setattr(gssapi.ctypes, "CDLL", lambda name: Library())
        gssapi.library()
        return Library()

    monkeypatch.setattr(gssapi.ctypes, "CDLL", open_library)
    gssapi.library.cache_clear()
    try:
        thread = threading.Thread(target=gssapi.library, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        assert gssapi.library() is gssapi.library()
    finally:
        gssapi.library.cache_clear()


@pytest.mark.parametrize("other, at_once", [("/etc/ann.keytab", False), ("/etc/bob.keytab", True)])
def test_threads_with_one_keytab_get_its_credentials_one_after_the_other(monkeypatch, other, at_once):
    """They share a cache in memory, which the library empties before it puts new tickets in."""
    meeting, met = threading.Barrier(2), []

    def acquire():
        with contextlib.suppress(threading.BrokenBarrierError):
            met.append(meeting.wait(10 if at_once else 0.3))
        return 0

    library = Library(gss_acquire_cred_from=acquire)
    monkeypatch.setattr(gssapi, "library", lambda: library)
    threads = [threading.Thread(target=Tickets(keytab).inquire) for keytab in ("/etc/ann.keytab", other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert bool(met) == at_once
