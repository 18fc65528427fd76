"""A real ResourceManager behind a counting proxy, with the surface of `fake_yarn.FakeYarn`.

The applications are unmanaged: YARN keeps them as ACCEPTED and starts nothing for them, so that
hundreds cost nothing. They end by a kill whose diagnostics hold a report, which readers believe.
"""

from contextlib import contextmanager

import httpx
import pytest

from support.fake_yarn import LIVE, FakeYarn, serving
from support.waiting import until

#: Parameters of a fixture that gives `one_of`.
WIRE_AND_REAL = ["wire", pytest.param("real", marks=pytest.mark.cluster)]


def _forget_who_asked(request):
    """A cookie of Hadoop's counts for more than the name in the query."""
    request.headers.pop("cookie", None)


class RealYarn(FakeYarn):
    """Counts what is asked, plays the faults of a test, and passes the rest on.

    Parameters
    ----------
    resourcemanager : str
        URL.
    """

    def __init__(self, resourcemanager):
        super().__init__()
        self.in_vain = 0  # answers of a ResourceManager that recovers its applications
        self.client = httpx.Client(
            base_url=resourcemanager,
            trust_env=False,
            timeout=30,
            headers={"X-XSRF-HEADER": "x", "Accept": "application/json"},
            event_hooks={"request": [_forget_who_asked]},
        )

    def answer(self, method, path, parameters, body):
        try:
            answer = self.client.request(method, path, params=parameters, json=body)
        except httpx.TransportError as error:  # it is not there
            raise ConnectionResetError from error
        self.in_vain += answer.status_code == 404 or '"INITIALIZING"' in answer.text
        return answer.status_code, answer.json() if answer.content else None

    def ask(self, method, path, body=None, user="ann"):
        return self.client.request(method, f"/ws/v1/cluster/apps{path}", params={"user.name": user}, json=body)

    def add(self, document):
        """Submit an application with the document's name, tags and user; one that has ended is ended at once."""
        user = document["user"]
        name = self.ask("POST", "/new-application", user=user).json()["application-id"]
        tags = [tag for tag in document["applicationTags"].split(",") if tag]
        body = {
            "application-id": name,
            "application-name": document["name"],
            "application-type": "skein",
            "unmanaged-AM": True,
            "queue": "default",
            "max-app-attempts": 1,
            "am-container-spec": {"commands": {"command": "true"}},
            "resource": {"memory": 64, "vCores": 1},
        }
        answer = self.ask("POST", "", body | ({"application-tags": {"tag": tags}} if tags else {}), user)
        assert answer.status_code == 202, answer.text
        until(lambda: self.state(name) == "ACCEPTED")
        if document["state"] not in LIVE:
            self.end(name, document["diagnostics"])
        return name

    def reserve(self):
        return self.ask("POST", "/new-application").json()["application-id"]

    def end(self, name, diagnostics, *_):
        # It answers 404 after a restart until it has recovered its applications.
        application = until(lambda: self.ask("GET", f"/{name}").json().get("app"), 60)
        self.ask("PUT", f"/{name}/state", {"state": "KILLED", "diagnostics": diagnostics}, application["user"])
        until(lambda: self.state(name) == "KILLED")

    def state(self, name):
        return self.ask("GET", f"/{name}/state").json()["state"]

    def close(self):
        """End what a test has left."""
        listed = self.client.get("/ws/v1/cluster/apps", params={"states": ",".join(LIVE)}).json()["apps"] or {}
        for application in listed.get("app", []):
            self.ask("PUT", f"/{application['id']}/state", {"state": "KILLED"}, application["user"])
        self.client.close()


@contextmanager
def one_of(request):
    """Serve what the parameter names: the ResourceManager on the wire, or that of the `minicluster`."""
    real = request.param == "real"
    place = RealYarn(request.getfixturevalue("minicluster").resourcemanager_url) if real else FakeYarn()
    with serving(place) as url:
        place.url = url
        yield place
    if real:
        place.close()
