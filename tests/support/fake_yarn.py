"""A ResourceManager on the wire: as much of YARN's REST interface as the clients speak, and faults on demand."""

import json
import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

from support.http_server import Handler, running
from support.tokens import token_text
from tf_yarn_ops.runtime.common.report import compose_diagnostics, verdict_tag

STAMP = 1700000000000
#: The secret of the coordinators of all applications here.
SECRET = "0123456789abcdef"
CONF = {
    "fs.defaultFS": "hdfs://namenode:8020",
    "dfs.namenode.http-address": "namenode:9870",
    "yarn.application.classpath": "/etc/hadoop/conf, /opt/hadoop/*",
    "hadoop.security.authentication": "simple",
}
#: Requests that cancel a token.
CANCELS = (("DELETE", "/ws/v1/cluster/delegation-token"), ("PUT", "/webhdfs/v1/"), ("PUT", "/kms/v1/"))
LIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")


def amount(memory, vcores, gpus=0):
    values = {"memory-mb": memory, "vcores": vcores, "yarn.io/gpu": gpus}
    return {
        "memory": memory,
        "vCores": vcores,
        "resourceInformations": {
            "resourceInformation": [{"name": name, "value": value} for name, value in values.items()]
        },
    }


def application(number=1, state="RUNNING", **fields):
    document = {
        "id": f"application_{STAMP}_{number:04d}",
        "user": "ann",
        "name": "digits",
        "queue": "root.default",
        "state": state,
        "finalStatus": "UNDEFINED",
        "trackingUrl": "",
        "diagnostics": "",
        "applicationType": "skein",
        "applicationTags": "",
        "startedTime": STAMP,
        "launchTime": 0,
        "finishedTime": 0,
        "elapsedTime": 1000,
    }
    document |= fields
    if "tfy" in document["applicationTags"] or not document["applicationTags"]:  # it is an application of ours
        document["applicationTags"] = ",".join(filter(None, [document["applicationTags"], verdict_tag(SECRET)]))
    return document


def verdict_text(report):
    """Return the diagnostics with which the coordinator of an application here ends it."""
    return compose_diagnostics(report, secret=SECRET)


def killed_text(application_id, text, user="ann"):
    """Return YARN's diagnostics of an application that a client has killed with a text."""
    return f"Application {application_id} was killed by user {user} with diagnostic message: {text}"


class FakeYarn:
    """The state of a ResourceManager; tests read and write it freely."""

    def __init__(self):
        self.conf = dict(CONF)
        self.apps = {}
        self.requests = []  # (method, path, parameters, headers, body)
        self.faults = []  # callables (method, path) -> (status, headers, body) or None, asked first
        self.pages = {}  # further paths: (content type, text, and headers, each with its value)
        self.maximum = amount(16384, 32, 2)
        self.nodes = [{"state": "RUNNING", "totalResource": amount(16384, 32, 2)}]
        self.queues = [
            {"type": "capacitySchedulerLeafQueueInfo", "queueName": name, "queuePath": f"root.{name}", "state": state}
            for name, state in (("default", "RUNNING"), ("low", "RUNNING"), ("closed", "STOPPED"))
        ]
        self.labels = {}  # name: whether it is exclusive
        self.user_seen = None
        self.rights = {}  # of SUBMIT_APPLICATIONS and ADMINISTER_QUEUE, what the question for a user's right answers
        self.ahead = 0.0  # seconds by which the clock is ahead
        self.started_on, self.ha_state = STAMP, "ACTIVE"
        self.next_number = 1
        self.tokens = []  # texts of those that are good, in the order in which they were given
        self.tokens_given = 0
        self.tokens_refused = {}  # by the kind: status and RemoteException
        self.token_services = {"RM_DELEGATION_TOKEN": "", "WEBHDFS delegation": "127.0.0.1:8020", "kms-dt": ""}
        self.key_provider = ""  # URI of the KMS, which is this server too
        self.lock = threading.Lock()

    def add(self, document):
        self.apps[document["id"]] = document
        return document["id"]

    def end(self, name, diagnostics, state="KILLED", final="KILLED"):
        """Let an application end."""
        self.apps[name].update(state=state, finalStatus=final, diagnostics=diagnostics)

    def launch_after(self, name, looks):
        """Let an application's master be launched when it has been looked at so often; gives the list of the looks."""
        early = []

        def fault(method, path):
            app = self.apps.get(name)
            if app and method == "GET" and path.endswith(name):
                app["launchTime"] = STAMP if len(early) >= looks else 0
                early.append(path)

        self.faults.append(fault)
        return early

    def reserve(self):
        """Return an id that nobody submits."""
        return f"application_{STAMP}_9999"

    def count(self, method, start):
        return sum(m == method and path.startswith(start) for m, path, *_ in self.requests)

    def answer(self, method, path, parameters, body):
        """Return status and document."""
        part = path.removeprefix("/ws/v1/cluster")
        if path == "/conf":
            return 200, {"properties": [{"key": key, "value": value} for key, value in self.conf.items()]}
        if part == "/delegation-token":
            return self.give("RM_DELEGATION_TOKEN", body["renewer"], lambda text: {"token": text})
        if path == "/webhdfs/v1/" and parameters.get("op") == "GETDELEGATIONTOKEN":
            return self.give("WEBHDFS delegation", parameters["renewer"], lambda text: {"Token": {"urlString": text}})
        if path == "/webhdfs/v1/" and parameters.get("op") == "GETSERVERDEFAULTS":
            return 200, {"FsServerDefaults": {"keyProviderUri": self.key_provider}}
        if path == "/kms/v1/" and parameters.get("op") == "GETDELEGATIONTOKEN":
            return self.give("kms-dt", parameters["renewer"], lambda text: {"Token": {"urlString": text}})
        if part == "/info":
            return 200, {
                "clusterInfo": {"hadoopVersion": "3.4.3", "haState": self.ha_state, "startedOn": self.started_on}
            }
        if part == "/userinfo":
            return 200, {"rmLoginUser": "yarn", "requestedUser": self.user_seen or parameters.get("user.name")}
        if part == "/scheduler":
            return 200, {
                "scheduler": {
                    "schedulerInfo": {
                        "type": "capacityScheduler",
                        "queueName": "root",
                        "queuePath": "root",
                        "maximumAllocation": self.maximum,
                        "queues": {"queue": self.queues},
                    }
                }
            }
        if part.endswith("/access"):
            allowed = self.rights.get(parameters["queue-acl-type"])
            return (
                (404, {}) if allowed is None else (200, {"allowed": str(allowed).lower(), "user": parameters["user"]})
            )
        if part == "/nodes":
            return 200, {"nodes": {"node": self.nodes}}
        if part == "/get-node-labels":
            found = [{"name": name, "exclusivity": str(own).lower()} for name, own in self.labels.items()]
            return 200, {"nodeLabelInfo": found[0] if len(found) == 1 else found} if found else {}
        if part == "/apps/new-application":
            with self.lock:
                number, self.next_number = self.next_number, self.next_number + 1
            return 200, {
                "application-id": f"application_{STAMP}_{number:04d}",
                "maximum-resource-capability": self.maximum,
            }
        if part == "/apps" and method == "POST":
            if body.get("application-tags") == {"tag": []}:  # as Hadoop 2.10 answers
                return 400, {"RemoteException": {"message": "a list of tags is empty"}}
            tags = ",".join(body.get("application-tags", {"tag": []})["tag"])
            known = self.apps.setdefault(
                body["application-id"],
                application(
                    int(body["application-id"][-4:]),
                    "ACCEPTED",
                    user=parameters["user.name"],
                    applicationTags=tags,
                    name=body["application-name"],
                    queue=body["queue"],
                    launchTime=STAMP,
                ),
            )
            known.setdefault("body", body)
            return 202, None
        if part == "/apps":
            return 200, {"apps": {"app": [self.shown(app) for app in self.apps.values() if self.fits(app, parameters)]}}
        if part.startswith("/apps/"):
            return self.about(method, part.split("/")[2:], body, parameters.get("user.name", "dr.who"))
        return 404, {"RemoteException": {"message": "no such page"}}

    def give(self, kind, renewer, shown):
        """Return status and document of a request for a token."""
        if kind in self.tokens_refused:
            status, exception = self.tokens_refused[kind]
            return status, {"RemoteException": exception}
        with self.lock:
            self.tokens_given += 1
            text = token_text(kind, self.token_services[kind], self.tokens_given, renewer)
            self.tokens.append(text)
        return 200, shown(text)

    def cancel(self, text):
        if text not in self.tokens:
            return 403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "token not found"}}'
        self.tokens.remove(text)
        return 200, {}, ""

    def shown(self, app):
        return {key: value for key, value in app.items() if key != "body"}

    def fits(self, app, parameters):
        tags = set(filter(None, parameters.get("applicationTags", "").split(",")))
        states = list(filter(None, parameters.get("states", "").split(",")))
        return (
            (not tags or tags & set(app["applicationTags"].split(",")))
            and (not states or app["state"] in states)
            and app["finishedTime"] >= int(parameters.get("finishedTimeBegin", 0))
            and parameters.get("user", app["user"]) == app["user"]
        )

    def about(self, method, words, body, user):
        app = self.apps.get(words[0])
        if app is None:
            return 404, {
                "RemoteException": {
                    "exception": "NotFoundException",
                    "message": f"java.lang.Exception: app with id: {words[0]} not found",
                }
            }
        if words[1:] == ["state"] and method == "PUT":
            if app["state"] in LIVE:
                app.update(
                    state="KILLED",
                    finalStatus="KILLED",
                    finishedTime=STAMP + 5000,
                    diagnostics=killed_text(words[0], body.get("diagnostics", ""), user),
                )
            return 202, {"state": app["state"]}
        if words[1:] == ["state"]:
            return 200, {"state": app["state"]}
        if words[1:] == ["priority"]:
            app["priority"] = body["priority"]
            return 200, body
        if words[1:] == ["timeout"]:
            app["lifetime"] = body["timeout"]
            app["timeouts"] = {"timeout": [body["timeout"]]}
            return 200, body
        return 200, {"app": self.shown(app)}


def stand_by(yarn, active=""):
    """Let a `FakeYarn` answer as a standby: /info and /conf by itself, every other request by a redirect."""

    def fault(method, path):
        if path.endswith("/info"):
            return (
                200,
                {"Content-Type": "application/json"},
                '{"clusterInfo": {"haState": "STANDBY", "hadoopVersion": "3.4.3"}}',
            )
        if path == "/conf":
            return None
        if active:
            return 307, {"Location": active + path}, "This is standby RM. The redirect url is: ..."
        return 307, {"Refresh": "5"}, "Can not find any active RM. Will retry in next 5 seconds."

    yarn.faults[:] = [fault]


def _handler(yarn):
    class FakeResourceManager(Handler):
        def handle_one(self):
            split = urlsplit(self.path)
            path = unquote(split.path)
            length = int(self.headers.get("content-length") or 0)
            raw = self.rfile.read(length)
            body = json.loads(raw) if raw else None
            parameters = {key: values[-1] for key, values in parse_qs(split.query).items()}
            yarn.requests.append((self.command, path, parameters, dict(self.headers), body))
            named = self.headers.get("Hadoop-YARN-RM-Delegation-Token") or parameters.get("token")
            if named and (self.command, path) in CANCELS:
                return self.reply(*yarn.cancel(named))
            for fault in list(yarn.faults):
                answer = fault(self.command, path)
                if answer:
                    return self.reply(*answer)
            if path in yarn.pages:
                kind, text, *headers = yarn.pages[path]
                return self.reply(200, {"Content-Type": kind, **dict(headers)}, text)
            status, document = yarn.answer(self.command, path, parameters, body)
            self.reply(status, {"Content-Type": "application/json"}, "" if document is None else json.dumps(document))

        do_GET = do_POST = do_PUT = do_DELETE = handle_one

        def date_time_string(self, timestamp=None):
            return super().date_time_string((timestamp or time.time()) + yarn.ahead)

    return FakeResourceManager


def slowly(seconds, *methods):
    """Return a fault that delays each answer, or those to requests of some methods, by some seconds."""
    return lambda method, path: time.sleep(seconds) if method in methods or not methods else None


@contextmanager
def serving(yarn, tls=None):
    """Serve a `FakeYarn`; sets and yields its ``url``."""
    with running(_handler(yarn), tls) as server:
        yarn.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        yield yarn.url


_HELD = []


def closed_address():
    """Return an address on which nobody listens; its port stays bound, so that no other server gets it."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    _HELD.append(holder)
    return f"http://127.0.0.1:{holder.getsockname()[1]}"
