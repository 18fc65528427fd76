"""What the coordinator asks the ResourceManager itself, over REST: is it there; and, as the last resort, end us."""

import http.client
import json
import time
import urllib.error
import urllib.request
from typing import Sequence

#: How long YARN may take to end us once it has accepted the kill.
KILL_SECONDS = 20.0
#: For one look.
LOOK_SECONDS = 5.0
#: What a server that dies, or is none of YARN's, makes of a request.
_NO_ANSWER = (OSError, ValueError, TypeError, http.client.HTTPException)


def knows_us(resourcemanagers: Sequence[str], application_id: str) -> bool:
    """Tell whether a ResourceManager is at work and has recovered the application; one that wants to know who asks is.

    A standby redirects to the active one, which may have an address that nobody has told us.
    """
    for base in resourcemanagers:
        try:
            with _opener().open(f"{base}/ws/v1/cluster/apps/{application_id}/state", timeout=LOOK_SECONDS) as answer:
                if "state" in json.loads(answer.read()):
                    return True
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                return True
        except _NO_ANSWER:
            continue
    return False


def kill_by_rest(resourcemanagers: Sequence[str], application_id: str, user: str, diagnostics: str) -> None:
    """End the application without Skein: ask the ResourceManager to kill it, with our diagnostics.

    The last resort where the interpreter has no grpcio, where Skein does not take the verdict, and where the
    coordinator itself has failed: readers believe the report in the diagnostics. Works on unsecured clusters.
    Whoever gets back from here is alive: no ResourceManager took the kill, or the one that did has forgotten it.
    """
    body = json.dumps({"state": "KILLED", "diagnostics": diagnostics}).encode()
    for base in resourcemanagers:
        url = f"{base}/ws/v1/cluster/apps/{application_id}/state?user.name={user}"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json", "X-XSRF-HEADER": "ytf"},
                                         method="PUT")
        try:
            with _opener().open(request, timeout=10) as answer:
                if answer.status in (200, 202):
                    time.sleep(KILL_SECONDS)  # until we are killed: an exit of ours would be the first word in YARN
        except _NO_ANSWER:
            continue


def _opener() -> urllib.request.OpenerDirector:
    """An opener that takes no proxy from the environment."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
