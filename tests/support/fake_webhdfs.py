"""WebHDFS on the wire over a dictionary: as much of it as the coordinator's writer speaks, and faults on demand."""

import json
import threading
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from support.http_server import Handler, running

#: The query of a request that only shows that this NameNode answers.
PROBE = {"op": "GETFILESTATUS"}


class FakeWebHdfs:
    """A NameNode with one DataNode at the same address; tests read and write it freely."""

    def __init__(self):
        self.url = ""
        self.files = {}  # path: content
        self.modes = {}  # path: mode as text
        self.times = {}  # path: number of the write that made its content
        self.acls = {}  # path: aclspec
        self.folders = {}  # path: mode as text
        self.requests = []  # (method, operation, path, parameters)
        self.httpfs = False  # which renames over no file, and leaves out no DataNode
        self.redirects = 0
        self.datanodes = {}  # IP address by name: content is redirected to them in turn, by their names
        self.pause = 0.0  # seconds that a DataNode takes for a write
        self.tokens = None  # the good ones; None asks for no token
        self.faults = []  # callables (operation, path) -> (status, exception) or None, asked first
        self.released = threading.Event()
        self.released.set()  # a test clears it to let every request hang

    def answer(self, method, path, parameters, body):
        operation = parameters.get("op", "")
        if parameters != PROBE:
            self.requests.append((method, operation, path, parameters))
        self.released.wait(60)
        if path == "/jmx":
            return 200, {}, {"beans": [{"HostAndPort": "nn2:8020"}]}
        for fault in self.faults:
            if found := fault(operation, path):
                return found[0], {}, remote(*found[1:])
        if self.tokens is not None and "step" not in parameters and parameters.get("delegation") not in self.tokens:
            return 403, {}, remote("InvalidToken", "token is unknown")
        if self.datanodes and operation in ("OPEN", "CREATE", "APPEND") and "step" not in parameters:
            return self.redirect(operation, path, parameters)
        if operation == "MKDIRS":
            self.folders[path] = parameters["permission"]
            return 200, {}, {"boolean": True}
        if operation == "CREATE" and path in self.files and parameters.get("overwrite") == "false":
            return 403, {}, remote("FileAlreadyExistsException")
        if operation == "CREATE" and "step" not in parameters:
            self.modes[path] = parameters["permission"]
            return 307, {"Location": f"{self.url}/webhdfs/v1{path}?op=CREATE&step=2"}, {}
        if operation in ("CREATE", "APPEND"):
            time.sleep(self.pause)
            self.times[path] = len(self.requests)
        if operation == "CREATE":
            self.files[path] = body
            return 201, {}, {}
        if operation == "APPEND" and path not in self.files:
            return 404, {}, remote("FileNotFoundException")
        if operation == "APPEND" and "step" not in parameters:
            return 307, {"Location": f"{self.url}/webhdfs/v1{path}?op=APPEND&step=2"}, {}
        if operation == "APPEND":
            self.files[path] += body
            return 200, {}, {}
        if operation == "MODIFYACLENTRIES":
            self.acls[path] = parameters["aclspec"]
            return 200, {}, {}
        if operation == "RENAME":
            target = parameters["destination"]
            over = parameters.get("renameoptions") == "OVERWRITE" and not self.httpfs
            if over and path not in self.files:
                return 404, {}, remote("FileNotFoundException")
            if path not in self.files or (target in self.files and not over):
                return 200, {}, {"boolean": False}
            for kept in (self.files, self.modes, self.times, self.acls):
                if path in kept:
                    kept[target] = kept.pop(path)
            return 200, {}, {} if over else {"boolean": True}
        if operation == "GETFILESTATUS" and path in self.files:
            return 200, {}, {"FileStatus": self.status(path)}
        if operation == "GETFILESTATUS" and any(name.startswith(f"{path}/") for name in self.files):
            return 200, {}, {"FileStatus": {**self.status(path), "type": "DIRECTORY"}}
        if operation == "LISTSTATUS":
            below = {name[len(path) + 1 :].partition("/") for name in self.files if name.startswith(f"{path}/")}
            entries = {name: {"type": "DIRECTORY"} if slash else {} for name, slash, _ in below}
            return (
                200,
                {},
                {
                    "FileStatuses": {
                        "FileStatus": [
                            {**self.status(f"{path}/{name}"), "pathSuffix": name, **changes}
                            for name, changes in entries.items()
                        ]
                    }
                },
            )
        if operation == "OPEN" and path in self.files:
            offset = int(parameters["offset"])
            return 200, {}, self.files[path][offset : offset + int(parameters.get("length", 1 << 30))]
        if operation in ("OPEN", "GETFILESTATUS"):
            return 404, {}, remote("FileNotFoundException")
        if operation == "DELETE":
            return 200, {}, {"boolean": self.files.pop(path, None) is not None}
        return 400, {}, remote("UnsupportedOperationException", operation)

    def redirect(self, operation, path, parameters):
        excluded = [] if self.httpfs else parameters.get("excludedatanodes", "").split(",")
        left = [name for name, address in self.datanodes.items() if address not in excluded]
        if not left:
            return 403, {}, remote("IOException", "Failed to find datanode, suggest to check cluster health.")
        if operation == "CREATE" and path in self.files and parameters.get("overwrite") == "false":
            return 403, {}, remote("FileAlreadyExistsException")
        self.redirects += 1
        host = left[self.redirects % len(left)]
        port = self.url.rpartition(":")[2]
        query = urlencode({**parameters, "namenoderpcaddress": "pair", "step": "2"})
        return 307, {"Location": f"http://{host}:{port}/webhdfs/v1{path}?{query}"}, {}

    def status(self, path):
        return {
            "pathSuffix": "",
            "type": "FILE",
            "length": len(self.files.get(path, b"")),
            "accessTime": 1,
            "owner": "ann",
            "modificationTime": self.times.get(path, 1),
            "permission": self.modes.get(path, "644"),
        }


def remote(exception, message="no"):
    return {"RemoteException": {"exception": exception, "message": message}}


@contextmanager
def serving_files():
    """Serve a new file system; yields it, with its URL."""
    files = FakeWebHdfs()

    class NameNode(Handler):
        def handle_any(self):
            split = urlsplit(self.path)
            chunked = self.headers.get("Transfer-Encoding") == "chunked"
            body = b"".join(self.chunks()) if chunked else self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parameters = {name: values[0] for name, values in parse_qs(split.query).items()}
            status, headers, document = files.answer(
                self.command, unquote(split.path).removeprefix("/webhdfs/v1"), parameters, body
            )
            self.reply(
                status,
                headers | {"Content-Type": "application/json"},
                document if isinstance(document, bytes) else json.dumps(document),
            )

        def chunks(self):
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        do_GET = do_PUT = do_POST = do_DELETE = handle_any

    with running(NameNode) as server:
        files.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield files
        finally:
            files.released.set()
