"""Azkaban's web server on the wire: what its API documentation says of login, lists and executions, for one flow.

The real one is not among the artefacts of Maven Central. Where the documentation is silent this follows the source
(3.90 and 4.0): ``ExecutorServlet`` for ``flowInfo``, errors and locked flows, ``ProjectManagerServlet`` for lists,
``LoginAbstractAzkabanServlet`` for the answers without a session, which differ for GET and POST, ``jobpage.vm`` and
``propertypage.vm`` for the pages.
"""

import html
import json
from contextlib import contextmanager
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlsplit

from support.http_server import Handler, running

USER, PASSWORD = "ann", "s3cret&more"
PROJECT, FLOW = "digits", "train"


JSON = {"Content-Type": "application/json"}


class FakeAzkaban:
    """The state of a web server; tests read and write it freely."""

    def __init__(self):
        self.executions = {}  # id: {"status", "parameters", "disabled"}
        self.jobs = {"train": {"type": "tensorflow-yarn", "tf.output": "/models/${date}"}}
        self.properties = {"common.properties": {"date": ""}, "jobs/models.properties": {"tf.output": "/models/${day}"}}
        self.session = None
        self.locked = False
        self.logins = 0
        self.requests = []  # (path with its query, parameters of query and body)
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

    def page(self, values):
        """Return a job's page, with links to the files of properties that it inherits, or the page of such a file."""
        if "prop" in values:
            rows = "".join(
                f'<td class="property-key">{name}</td>\n<td>{html.escape(text)}</td>'
                for name, text in self.properties[values["prop"]].items()
            )
            return f"<html>{rows}</html>"
        assert values["job"] in self.jobs and values["flow"] == "inner", values
        links = "".join(
            f'<a href="/manager?project={PROJECT}&flow=inner&job={values["job"]}&prop={file}&propNode=inner">{file}</a>'
            for file in self.properties
        )
        return f'<html><td class="property-key">type</td>{links}</html>'

    def answer(self, path, values):
        match path, values.get("ajax"):
            case "/executor", "executeFlow":
                told = {"project": values["project"]}
                if values["project"] != PROJECT:
                    return {**told, "error": f"Project '{values['project']}' doesn't exist."}
                told["flow"] = values["flow"]
                if values["flow"] != FLOW:
                    return {**told, "error": f"Flow '{values['flow']}' cannot be found in project {PROJECT}"}
                if self.locked:
                    return {**told, "message": f"Flow {FLOW} for project {PROJECT} is locked.", "execid": -1}
                if values.get("concurrentOption", "skip") == "skip" and any(
                    found["status"] == "RUNNING" for found in self.executions.values()
                ):
                    return {
                        **told,
                        "error": f"Error submitting flow {FLOW}. Flow {FLOW} is already running. Skipping execution.",
                        "execid": -1,
                    }
                parameters = {
                    name[len("flowOverride[") : -1]: value
                    for name, value in values.items()
                    if name.startswith("flowOverride[")
                }
                execution = self.add("PREPARING", **parameters)
                return {
                    **told,
                    "message": f"Execution queued successfully with exec id {execution}",
                    "execid": execution,
                }
            case "/manager", "fetchFlowExecutions":
                told = {"project": values["project"]}
                if values["project"] != PROJECT:
                    return {**told, "error": f"Project {values['project']} doesn't exist."}
                listed = [
                    {
                        "execId": number,
                        "flowId": FLOW,
                        "projectId": 7,
                        "status": found["status"],
                        "submitUser": USER,
                        "submitTime": 1700000000000,
                        "startTime": -1,
                        "endTime": -1,
                    }
                    for number, found in sorted(self.executions.items(), reverse=True)
                    if values["flow"] == FLOW
                ]
                start, length = int(values["start"]), int(values["length"])
                return {
                    **told,
                    "projectId": 7,
                    "flow": values["flow"],
                    "total": len(listed),
                    "from": start,
                    "length": length,
                    "executions": listed[start : start + length],
                }
            case "/manager", "fetchflowgraph":
                told = {"project": values["project"]}
                if values["project"] != PROJECT:
                    return {**told, "error": f"Project {values['project']} doesn't exist."}
                if values["flow"] != FLOW:
                    return {**told, "error": f"Flow {values['flow']} not found in project {PROJECT}"}
                nodes = [{"id": name, "type": "tensorflow-yarn"} for name in self.jobs]
                embedded = {"id": "inner", "type": "flow", "flowId": "inner", "flow": "inner", "nodes": nodes}
                return {**told, "flow": FLOW, "nodes": [embedded]}
            case "/manager", "fetchJobInfo":
                own = self.jobs[values["jobName"]]
                return {
                    "project": PROJECT,
                    "jobName": values["jobName"],
                    "jobType": own["type"],
                    "generalParams": own,
                    "overrideParams": own,
                }
            case "/executor", ("flowInfo" | "fetchexecflow") as name:
                found = self.executions.get(int(values["execid"]))
                if found is None:
                    return {"error": f"Cannot find execution '{values['execid']}'"}
                if name == "fetchexecflow":
                    return {
                        "execid": int(values["execid"]),
                        "project": PROJECT,
                        "projectId": 7,
                        "flowId": FLOW,
                        "id": FLOW,
                        "submitUser": USER,
                        "status": found["status"],
                        "attempt": 0,
                        "nodes": [],
                    }
                return {
                    "flowParam": found["parameters"],
                    "disabled": found["disabled"],
                    "nodeStatus": {},
                    "failureAction": "finishCurrent",
                    "concurrentOptions": "ignore",
                }
            case "/manager", name:
                return {"project": values.get("project"), "error": f"Cannot execute command {name}"}
        return {"project": values["project"]}


def _handler(azkaban):
    class AzkabanHandler(Handler):
        def handle_one(self):
            split = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            values = {
                key: found[-1] for key, found in parse_qs(f"{split.query}&{body}", keep_blank_values=True).items()
            }
            azkaban.requests.append((self.path, values))
            for fault in list(azkaban.faults):
                if told := fault(split.path, values):
                    status, text = told
                    return self.reply(status, JSON, text)
            if self.command == "POST" and split.path == "/":
                if "password=" in split.query:
                    return self.reply(200, JSON, "Login error. Must pass username and password in request body")
                return self.reply(200, JSON, json.dumps(azkaban.log_in(values)))
            cookie = SimpleCookie(self.headers.get("cookie", "")).get("azkaban.browser.session.id")
            if cookie is not None and cookie.value == azkaban.session:
                if split.path == "/manager" and "ajax" not in values:
                    return self.reply(200, {"Content-Type": "text/html"}, azkaban.page(values))
                return self.reply(200, JSON, json.dumps(azkaban.answer(split.path, values)))
            if self.command == "GET":
                return self.reply(200, JSON, json.dumps({"error": "session"}))
            if self.headers.get("x-requested-with") == "XMLHttpRequest":
                return self.reply(
                    200,
                    JSON,
                    json.dumps({"status": "error", "action": "login", "message": "Invalid Session. Need to re-login"}),
                )
            return self.reply(200, JSON, "<html>Enter username and password</html>")

        do_GET = do_POST = handle_one

    return AzkabanHandler


@contextmanager
def serving_azkaban():
    """Serve a `FakeAzkaban`; yields it, with its ``url``."""
    azkaban = FakeAzkaban()
    with running(_handler(azkaban)) as server:
        azkaban.url = f"http://127.0.0.1:{server.server_port}"
        yield azkaban
