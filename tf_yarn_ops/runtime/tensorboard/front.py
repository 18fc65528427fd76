"""The front of TensorBoard: an HTTP server that passes requests on to the TensorBoard on the loopback interface.

It stands between YARN's proxy and TensorBoard, and turns each PUT of the page's script back into the POST that it was.
In the usual case it speaks mutual TLS and answers the coordinator only; with the site's ``tensorboard_direct`` it
speaks plain HTTP to everybody.

References
----------
Hadoop, WebAppProxyServlet: GET and PUT only; redirects are followed there; compressed answers arrive uncompressed.
"""

import http.client
import http.server
import posixpath
import socketserver
import ssl
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlsplit

from ..common.contract import DOCUMENT_TYPE
from . import page_script

#: Seconds that a client may take for a request, and TensorBoard for each piece of an answer.
FRONT_SECONDS = 300.0
#: Longest body of a request, bytes.
MAX_BODY = 64 * 1024 * 1024
_PIECE = 64 * 1024
#: Headers that hold for one connection only, or that the front writes itself.
_OWN = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
        "date",
        "server",
    )
)
#: Of each answer, unless TensorBoard has sent another value; its pages have a content security policy of their own.
_OWN_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}


class Front(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """The server; each connection has a thread.

    Parameters
    ----------
    address : tuple of str and int
        Host and port on which to listen.
    target : int
        TensorBoard's port on the loopback interface.
    context : ssl.SSLContext, optional
        Default: plain HTTP.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: Tuple[str, int], target: int, context: Optional[ssl.SSLContext] = None):
        self.target = target
        self._context = context
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind the address; do not look up the name of this host."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection, after the handshake if there is one."""
        request.settimeout(FRONT_SECONDS)
        if self._context is not None:
            request = self._context.wrap_socket(request, server_side=True)
        try:
            super().finish_request(request, client_address)
        finally:
            if self._context is not None:
                request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a lost or refused client is no fault of the front."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Front
    protocol_version = "HTTP/1.1"
    server_version = sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: TensorBoard's requests are many."""

    def _pass(self) -> None:
        self.close_connection = True
        path = urlsplit(self.path).path
        if posixpath.basename(path) == page_script.PATH:
            self._answer(200, {"Content-Type": "text/javascript; charset=utf-8"}, page_script.SCRIPT.encode())
            return
        length = self.headers.get("Content-Length") or "0"
        if not length.isdigit() or int(length) > MAX_BODY or "Transfer-Encoding" in self.headers:
            self._answer(413, {}, b"")
            return
        body = self.rfile.read(int(length))
        method, kind = self.command, self.headers.get("Content-Type")
        post = page_script.decode_post(body) if method == "PUT" else None
        if post is not None:
            method = "POST"
            kind, body = post
        is_page = path in ("/", "/index.html")
        left_out = {*_OWN, "content-type"}
        if is_page:
            left_out.add("accept-encoding")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
        if kind:
            headers["Content-Type"] = kind
        connection = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=FRONT_SECONDS)
        try:
            connection.request(method, self.path, body or None, headers)
            self._pass_back(connection.getresponse(), is_page)
        except (ConnectionRefusedError, http.client.HTTPException) as error:
            self._answer(502, {"Content-Type": "text/plain"}, ("TensorBoard does not answer: %s\n" % error).encode())
        finally:
            connection.close()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = _pass

    def _pass_back(self, answer: http.client.HTTPResponse, is_page: bool) -> None:
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _OWN}
        if headers.get("Content-Type", "").partition(";")[0].strip().lower() == "application/json":
            headers["Content-Type"] = DOCUMENT_TYPE  # TensorBoard's page reads it as JSON all the same
        if "Location" in headers:
            headers["Location"] = self._relative(headers["Location"])
        if is_page and answer.status == 200:
            self._answer(200, headers, page_script.add_script(answer.read()))
            return
        if answer.length is None:
            self._answer(answer.status, headers, answer.read())
            return
        self._begin(answer.status, headers, answer.length)
        while piece := answer.read(_PIECE):
            self.wfile.write(piece)

    def _relative(self, location: str) -> str:
        """Return a redirect to TensorBoard itself relative to the request, because a proxy serves other paths."""
        split = urlsplit(location)
        if split.netloc not in ("", "127.0.0.1:%d" % self.server.target):
            return location
        slash = "/" if split.path.endswith("/") else ""
        path = posixpath.relpath(split.path or "/", posixpath.dirname(urlsplit(self.path).path) or "/")
        return path + slash + ("?" + split.query if split.query else "")

    def _answer(self, status: int, headers: Dict[str, str], body: bytes) -> None:
        self._begin(status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: int, headers: Dict[str, str], length: int) -> None:
        self.send_response(status)
        own = {**_OWN_HEADERS, "Content-Length": str(length), "Connection": "close"}
        for name, value in {**own, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
