"""What the coordinator asks the ResourceManager itself, over REST: is it there; and, as the last resort, end us."""

import json
import time
import urllib.error
import urllib.request
from typing import Sequence

#: How long YARN may take to end us once it has accepted the kill.
KILL_SECONDS = 20.0
#: For one look.
LOOK_SECONDS = 5.0


def is_active(resourcemanagers: Sequence[str]) -> bool:
    """Tell whether a ResourceManager is at work; one that wants to know who asks is."""
    for base in resourcemanagers:
        try:
            with _opener().open(f"{base}/ws/v1/cluster/info", timeout=LOOK_SECONDS) as answer:
                info = json.loads(answer.read())["clusterInfo"]
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                return True
        except (OSError, ValueError, KeyError, TypeError):
            continue
        else:
            if info.get("haState", "ACTIVE") == "ACTIVE":
                return True
    return False


def kill_by_rest(resourcemanagers: Sequence[str], application_id: str, user: str, diagnostics: str) -> bool:
    """End the application without Skein: ask the ResourceManager to kill it, with our diagnostics.

    The last resort where the application master's interpreter has no grpcio; works on
    unsecured clusters.
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
                    return True
        except OSError:
            continue
    return False


def _opener() -> urllib.request.OpenerDirector:
    """An opener that takes no proxy from the environment."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
