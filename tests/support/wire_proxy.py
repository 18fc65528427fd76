"""Proxies on the wire in front of a ResourceManager and a NameNode: they count, and they stop a client in a gap.

``/conf`` of the ResourceManager is answered with the address of the NameNode's proxy, so that a
client which was given the first proxy finds the second one by itself.
"""

import http.client
import json
import threading
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import parse_qs, urlsplit

from support.http_server import Handler, running

_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "date", "server"}
#: Longer than any test; a client that is held has died or was let go before.
_HELD = 120.0


class Proxy:
    """One HTTP proxy in front of one daemon.

    Attributes
    ----------
    requests : list of tuple
        ``(monotonic seconds, method, path, parameters)`` of every request that came.
    replaced : dict of str to str
        JSON texts of the answers to `rewritten` paths, and what stands there instead.
    rewritten : set of str
        Only ``/conf``, unless a test says more.
    stop_at : callable or None
        Is asked with ``("before" or "after", method, path, parameters)`` of the daemon's work; when it
        says yes, the client is held, once.
    edit : callable or None
        Gets method, path and body of a request, and returns the body that the daemon gets.
    hangs : bool
        Answer nothing at all from now on.
    away : bool
        End each connection without an answer, as where the daemon is not there.
    """

    def __init__(self, url):
        split = urlsplit(url)
        self.target = split.hostname, split.port
        self.requests = []
        self.replaced, self.rewritten = {}, {"/conf"}
        self.stop_at = self.edit = None
        self.hangs = self.away = False
        self.held, self.freed = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._server = ExitStack()
        self.address = f"127.0.0.1:{self._server.enter_context(running(_handler(self))).server_port}"
        self.url = f"http://{self.address}"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.freed.set()
        self._server.close()

    def count(self, method, path, since=0.0):
        """Return the number of requests for exactly this path since a moment."""
        return sum(when >= since and (m, p) == (method, path) for when, m, p, _ in list(self.requests))

    def moment(self, when, method, path, parameters):
        """Hold the client here, if it is to be held."""
        with self._lock:
            stopping = (
                self.stop_at is not None and not self.held.is_set() and self.stop_at(when, method, path, parameters)
            )
            if stopping:
                self.held.set()
        if stopping or self.hangs:
            self.freed.wait(_HELD)


def _handler(proxy):
    class Forwarder(Handler):
        def forward(self):
            split = urlsplit(self.path)
            parameters = {key: values[-1] for key, values in parse_qs(split.query).items()}
            words = self.command, split.path, parameters
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if proxy.away:
                self.close_connection = True
                return
            if proxy.edit is not None:
                body = proxy.edit(self.command, split.path, body)
            proxy.requests.append((time.monotonic(), *words))
            proxy.moment("before", *words)
            try:
                status, headers, content = self.ask(body)
            except OSError:
                self.close_connection = True  # the daemon is down, and so are we
                return
            proxy.moment("after", *words)
            try:
                self.reply(status, headers, content)
            except OSError:
                self.close_connection = True  # the client died while it was held

        def ask(self, body):
            connection = http.client.HTTPConnection(*proxy.target, timeout=60)
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in {*_HOP, "host", "accept-encoding"}
            }
            connection.request(self.command, self.path, body=body or None, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if urlsplit(self.path).path in proxy.rewritten:
                text = content.decode()
                for old, new in proxy.replaced.items():
                    text = text.replace(json.dumps(old), json.dumps(new))
                content = text.encode()
            return answer.status, [item for item in answer.getheaders() if item[0].lower() not in _HOP], content

        def reply(self, status, headers, content):
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = forward

    return Forwarder


@contextmanager
def fronting(hadoop):
    """Put proxies in front of a MiniCluster's ResourceManager and NameNode; gives both."""
    with Proxy(hadoop.resourcemanager_url) as resourcemanager, Proxy(hadoop.namenode_url) as namenode:
        resourcemanager.replaced = {namenode_address(hadoop): namenode.address}
        yield resourcemanager, namenode


def namenode_address(hadoop):
    return urlsplit(hadoop.namenode_url).netloc


#: The gaps of a submission: at which daemon, and where. After each, the client knows more than before.
GAPS = {
    "reserved": (
        "nn",
        lambda when, method, path, said: when == "before" and said.get("op") == "MKDIRS" and "/claims/" in path,
    ),
    "claimed": (
        "nn",
        lambda when, method, path, said: when == "after" and said.get("op") == "RENAME" and "/claims/" in path,
    ),
    "staging": (
        "nn",
        lambda when, method, path, said: when == "after" and said.get("op") == "MKDIRS" and "/application_" in path,
    ),
    "submitted": (
        "rm",
        lambda when, method, path, said: (when, method, path) == ("after", "POST", "/ws/v1/cluster/apps"),
    ),
    "marked": (
        "rm",
        lambda when, method, path, said: when == "before" and method == "PUT" and path.endswith("/timeout"),
    ),
}


def hold_in(gap, resourcemanager, namenode):
    """Let the proxies of `fronting` hold the next client that comes to a gap; return the one that holds it."""
    daemon, where = GAPS[gap]
    holder = resourcemanager if daemon == "rm" else namenode
    holder.held, holder.freed, holder.stop_at = threading.Event(), threading.Event(), where
    return holder
