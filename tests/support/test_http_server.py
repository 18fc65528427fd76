"""The servers of tests: a client that goes away is no error of a test, a bug of a handler is."""

import ssl

import pytest

from support.http_server import Handler, running


@pytest.mark.parametrize(
    "error, printed",
    [(BrokenPipeError(), False), (ConnectionResetError(), False), (ssl.SSLError(), False), (KeyError("bug"), True)],
    ids=repr,
)
def test_only_errors_of_handlers_are_printed(capsys, error, printed):
    with running(Handler) as server:
        try:
            raise error
        except type(error):
            server.handle_error(None, ("127.0.0.1", 1))
    assert ("Traceback" in capsys.readouterr().err) is printed
