"""Azkaban's web server on the wire: what its API documentation says of login, lists and executions, for one flow.

The real one is not among the artefacts of Maven Central; `ExecutorServlet` and `ProjectManagerServlet` of its source
(3.90) are what this follows where the documentation is silent: the answers to ``flowInfo``, and ``{"error": "session"}``.
"""

import json
import threading
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

USER, PASSWORD = "ann", "s3cret&more"
PROJECT, FLOW = "digits", "train"


class FakeAzkaban:
    """The state of a web server; tests read and write it freely."""

    def __init__(self):
        self.executions = {}  # id: {"status", "parameters", "disabled"}
        self.session = None
        self.logins = 0
        self.requests = []  # (path, parameters)
        self.faults = []  # callables (path, parameters) -> (status, text) or None

    def add(self, status, disabled=(), **parameters):
        execution = len(self.executions) + 1
        self.executions[execution] = {"status": status, "parameters": parameters, "disabled": list(disabled)}
        return execution

    def end(self, execution, status="SUCCEEDED"):
        self.executions[execution]["status"] = status

    def log_in(self, values):
        if values.get("action") != "login" or (values.get("username"), values.get("password")) != (USER, PASSWORD):
            return {"error": "Incorrect Login. Username/Password not found."}
        self.logins += 1
        self.session = f"session-{self.logins}"
        return {"status": "success", "session.id": self.session}

    def answer(self, path, values):
        match path, values.get("ajax"):
            case "/executor", "executeFlow":
                if (values["project"], values["flow"]) != (PROJECT, FLOW):
                    return {"project": values["project"], "error": f"Project '{values['project']}' doesn't exist."}
                parameters = {name[len("flowOverride["):-1]: value for name, value in values.items()
                              if name.startswith("flowOverride[")}
                execution = self.add("PREPARING", **parameters)
                return {"message": f"Execution queued successfully with exec id {execution}", "project": PROJECT,
                        "flow": FLOW, "execid": execution}
            case "/manager", "fetchFlowExecutions":
                listed = [{"execId": number, "status": found["status"], "flowId": FLOW, "projectId": 7}
                          for number, found in sorted(self.executions.items(), reverse=True)]
                start, length = int(values["start"]), int(values["length"])
                return {"executions": listed[start:start + length], "total": len(listed), "from": start,
                        "length": length, "project": PROJECT, "flow": FLOW}
            case "/executor", ("flowInfo" | "fetchexecflow") as name:
                found = self.executions.get(int(values["execid"]))
                if found is None:
                    return {"error": f"Cannot find execution '{values['execid']}'"}
                if name == "fetchexecflow":
                    return {"execid": int(values["execid"]), "status": found["status"], "nodes": []}
                return {"flowParam": found["parameters"], "disabled": found["disabled"], "nodeStatus": {}}
        return {"error": "Cannot execute command"}


def _handler(azkaban):
    class Handler(BaseHTTPRequestHandler):
        def handle_one(self):
            split = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            values = {key: found[-1] for key, found in parse_qs(f"{split.query}&{body}", keep_blank_values=True).items()}
            azkaban.requests.append((self.path, values))
            for fault in list(azkaban.faults):
                if told := fault(split.path, values):
                    return self.reply(*told)
            if self.command == "POST" and split.path == "/":
                return self.reply(200, json.dumps(azkaban.log_in(values)))
            cookie = SimpleCookie(self.headers.get("cookie", "")).get("azkaban.browser.session.id")
            known = cookie is not None and cookie.value == azkaban.session
            return self.reply(200, json.dumps(azkaban.answer(split.path, values) if known else {"error": "session"}))

        def reply(self, status, text):
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_one

        def log_message(self, *words):
            pass

    return Handler


@contextmanager
def serving_azkaban(azkaban):
    """Serve a `FakeAzkaban`; gives its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(azkaban))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
