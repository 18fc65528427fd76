"""HTTP servers of tests, on the loopback; a client that goes away leaves no traceback in pytest's output."""

import ssl
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """A handler that prints nothing of its requests."""

    protocol_version = "HTTP/1.1"
    #: Else the content waits for 40 ms: it follows the headers, which the client acknowledges late.
    disable_nagle_algorithm = True

    def reply(self, status, headers, content):
        """Send an answer; `content` is text or bytes."""
        content = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    """A server that prints the errors of its handlers, unless a client has gone or refuses the certificate."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


@contextmanager
def running(handler, tls=None):
    """Run a server at a free port in a thread; yields it.

    Parameters
    ----------
    handler : type
        A subclass of `Handler`.
    tls : ssl.SSLContext, optional
        For https.
    """
    server = Server(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
