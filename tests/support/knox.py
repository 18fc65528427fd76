"""A gateway that does what Apache Knox does to requests and answers, in front of the daemons of a cluster.

Its services are those of the topology ``default``: WEBHDFS, RESOURCEMANAGER and YARNUI. The rules come from Knox's
service definitions ``webhdfs/2.4.0``, ``yarn-rm/2.5.0`` and ``yarnui/2.7.0``:

- a user logs in with a password or a token; the cluster gets the gateway's word for the user's name, and never the
  ``user.name`` or ``doAs`` of the client;
- the NameNode gets no content; its redirect to a DataNode becomes one to the gateway, with the DataNode's address in
  an encrypted query;
- the REST service empties the addresses in the ResourceManager's answers, and encrypts that of the tracking page;
- YARNUI replaces each string of one line in JSON that looks like a path or an address of YARN (`_PATHS`).
"""

import base64
import json
import re
import secrets
from contextlib import contextmanager
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import httpx

from support.http_server import Handler, running

TOPOLOGY = "/gateway/default"
#: What a real Knox 1.6.1 replaces in JSON below ``/yarn``: pattern, and path at the gateway.
_PATHS = (
    (r"(?P<scheme>\w[^:/?#]*)://(?P<host>[^:/]+):(?P<port>\d+)(?P<path>/node/containerlogs/[^?]*)",
     "/yarn/nodemanager{path}?scheme={scheme}&host={host}&port={port}"),
    (r".*://[^:/]+:\d+(?P<path>/(?:proxy|cluster)/.*)", "/yarn{path}"),
    (r"[^:/?#]*://[^/?#]+/?", "/yarn/cluster"),
    (r"/?(?P<path>(?:logs|static|cluster|proxy)/.*|conf|logs|stacks|metrics|jmx)", "/yarn/{path}"),
    (r"/?(?P<path>node/.*)", "/yarn/nodemanager/{path}?scheme&host&port"),
)  # fmt: skip
_JSON_TYPES = ("application/json", "text/json", "application/hal+json")
_HOP = {
    "content-encoding",
    "connection",
    "transfer-encoding",
    "content-length",
    "keep-alive",
    "date",
    "server",
    "set-cookie",
}
_NOT_FORWARDED = {"host", "authorization", "cookie", "accept-encoding", "connection", "content-length"}


class Knox:
    """A gateway.

    Parameters
    ----------
    resourcemanager, namenode : str
        URLs of the daemons.
    user : str
        The cluster's name for whoever logs in.
    client : httpx.Client, optional
        Asks the daemons; one with Kerberos acts for the user as Knox does.

    Attributes
    ----------
    passwords, tokens : dict of str to str, set of str
        What it accepts.
    requests : list of tuple
        ``(method, path, status)`` of every request.
    login_page : str
        Where a request without a login is sent; empty: it is answered 401.
    standby : str
        The standby's URL, for a gateway that changes to the active one only when the standby does not answer itself.
    """

    def __init__(self, resourcemanager, namenode, user, client=None):
        self.resourcemanager, self.namenode, self.user = resourcemanager, namenode, user
        self.passwords, self.tokens = {"guest": "guest-password"}, {"a.b.c"}
        self.requests = []
        self.login_page = ""
        self.standby = ""
        self._asserted = "doAs" if client else "user.name"
        self._client = client or httpx.Client(trust_env=False, timeout=60)
        self._encrypted = {}
        self.url = ""

    def close(self):
        self._client.close()

    def ask(self, method, url, headers, content):
        """Return status, headers and content of a daemon's answer."""
        answer = self._client.request(method, url, headers=headers, content=content or None)
        kept = [(name.title(), value) for name, value in answer.headers.multi_items() if name.lower() not in _HOP]
        return answer.status_code, kept, answer.content

    def accepts(self, authorization):
        kind, _, value = authorization.partition(" ")
        if kind == "Basic":
            name, _, password = base64.b64decode(value).decode().partition(":")
            return self.passwords.get(name) == password
        return kind == "Bearer" and value in self.tokens

    def encrypt(self, **parameters):
        key = secrets.token_urlsafe(24)
        self._encrypted[key] = parameters
        return urlencode({"_": key})

    def target(self, path, query):
        """Return the URL inside the cluster, and how to rewrite its answer; None if no service has the path."""
        parameters = dict(query)
        inner = self._encrypted.get(parameters.pop("_", ""), {})
        if path.startswith("/webhdfs/data/v1/") and inner:
            where = {name: inner.pop(name) for name in ("scheme", "host", "port")}
            return self.joined(where, path.removeprefix("/webhdfs/data/v1"), {**parameters, **inner}), None
        if path.startswith("/webhdfs/v1/"):
            return self.namenode + self.tail(path, parameters), self.hide_datanode
        if path.startswith("/resourcemanager/v1/"):
            return self.resourcemanager + self.tail(
                f"/ws{path.removeprefix('/resourcemanager')}/", parameters
            ), self.hide_addresses
        if re.match(r"/resourcemanager/proxy/[^/]+/ws/v1/", path) and inner:
            where = {name: inner.pop(name) for name in ("scheme", "host", "port")}
            return self.joined(where, path.removeprefix("/resourcemanager"), {**parameters, **inner}), None
        if path.startswith("/yarn/nodemanager/node/containerlogs/") and {"scheme", "host", "port"} <= set(parameters):
            where = {name: parameters.pop(name) for name in ("scheme", "host", "port")}
            return self.joined(where, path.removeprefix("/yarn/nodemanager"), parameters), None
        if self.standby and path in ("/yarn/conf", "/yarn/ws/v1/cluster/info"):
            return self.standby + self.tail(path.removeprefix("/yarn"), parameters), None
        if re.match(r"/yarn/(ws/v1|proxy|cluster)/|/yarn/conf$", path):
            rewrite = None if path == "/yarn/conf" else self.rewrite_json
            return self.resourcemanager + self.tail(path.removeprefix("/yarn"), parameters), rewrite
        return None, None

    def tail(self, path, parameters):
        """Return a path with its query, in which the gateway alone names the user."""
        kept = {name: value for name, value in parameters.items() if name.lower() not in ("user.name", "doas")}
        return f"{quote(path, '/=:@')}?{urlencode({**kept, self._asserted: self.user})}"

    def joined(self, where, path, parameters):
        return f"{where['scheme']}://{where['host']}:{where['port']}{self.tail(path, parameters)}"

    def hide_datanode(self, headers, content):
        found = urlsplit(dict(headers).get("Location", ""))
        if found.netloc:
            query = self.encrypt(
                scheme=found.scheme, host=found.hostname, port=str(found.port), **dict(parse_qsl(found.query))
            )
            place = f"{self.url}{TOPOLOGY}/webhdfs/data/v1{quote(unquote(found.path), '/=')}?{query}"
            headers = [(name, place if name == "Location" else value) for name, value in headers]
        return headers, content

    def rewrite_json(self, headers, content):
        if dict(headers).get("Content-Type", "").partition(";")[0] in _JSON_TYPES and content:
            content = json.dumps(self.rewritten(json.loads(content))).encode()
        return headers, content

    def rewritten(self, value):
        if isinstance(value, dict):
            return {name: self.rewritten(item) for name, item in value.items()}
        if isinstance(value, list):
            return list(map(self.rewritten, value))
        for pattern, place in _PATHS if isinstance(value, str) else ():
            found = re.fullmatch(pattern, value)
            if found:
                return self.url + TOPOLOGY + place.format(**found.groupdict())
        return value

    def hide_addresses(self, headers, content):
        document = json.loads(content) if content else None
        if isinstance(document, dict):
            apps = (document.get("apps") or {}).get("app", []) + ([document["app"]] if "app" in document else [])
            for app in apps:
                app.update({name: "" for name in ("amContainerLogs", "amHostHttpAddress") if name in app})
                found = urlsplit(app.get("trackingUrl") or "")
                if app.get("trackingUI") == "ApplicationMaster" and found.netloc:
                    query = self.encrypt(scheme=found.scheme, host=found.hostname, port=str(found.port))
                    app["trackingUrl"] = f"{self.url}{TOPOLOGY}/resourcemanager/proxy/{app['id']}?{query}"
                elif app.get("trackingUI") == "History":
                    app["trackingUrl"] = ""
            for attempt in (document.get("appAttempts") or {}).get("appAttempt", []):
                attempt.update({"nodeHttpAddress": "", "logsLink": "", "nodeId": self.encrypt()})
            for node in (document.get("nodes") or {}).get("node", []):
                node.update({"nodeHTTPAddress": "", "nodeHostName": "", "id": self.encrypt()})
            content = json.dumps(document).encode()
        return headers, content


def _handler(knox):
    class Gateway(Handler):
        def serve(self):
            split = urlsplit(self.path)
            content = (
                self.rfile.read(int(self.headers.get("content-length") or 0))
                if "content-length" in self.headers
                else b"".join(self.chunks())
            )
            status, headers, answer = self.answered(split, content)
            knox.requests.append((self.command, split.path, status))
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def chunks(self):
            while "chunked" in self.headers.get("transfer-encoding", "") and (size := int(self.rfile.readline(), 16)):
                yield self.rfile.read(size)
                self.rfile.readline()

        def answered(self, split, content):
            if not knox.accepts(self.headers.get("authorization", "")):
                if knox.login_page:
                    return 302, [("Location", f"{knox.url}{knox.login_page}")], b""
                return 401, [("WWW-Authenticate", 'BASIC realm="application"')], b""
            path = unquote(split.path.removeprefix(TOPOLOGY))
            url, rewrite = knox.target(path, parse_qsl(split.query))
            if url is None or not split.path.startswith(f"{TOPOLOGY}/"):
                return 404, [("Content-Type", "text/html")], b"<html><h2>HTTP ERROR 404 Not Found</h2></html>"
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_FORWARDED}
            status, headers, answer = knox.ask(
                self.command, url, headers, b"" if path.startswith("/webhdfs/v1/") else content
            )
            return (status, *rewrite(headers, answer)) if rewrite else (status, headers, answer)

        do_GET = do_POST = do_PUT = do_DELETE = serve

    return Gateway


@contextmanager
def serving_knox(knox, tls):
    """Serve a gateway over https; gives the URL of its topology."""
    with running(_handler(knox), tls) as server:
        knox.url = f"https://127.0.0.1:{server.server_port}"
        try:
            yield knox.url + TOPOLOGY
        finally:
            knox.close()
