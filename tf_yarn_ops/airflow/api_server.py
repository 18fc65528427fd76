"""`api_server_answers`: tell a supervisor that has lost the API server from a person who ends a task."""

import threading

import httpx

from .versions import execution_api_url

#: Seconds for the answer; a worker has five seconds from the signal to the end of its kill.
_PATIENCE = 0.7


def api_server_answers() -> bool:
    """Return whether the API server that the supervisor of this task talks to is there and well.

    An answer such as 404 counts: the server is there. 500 to 599 do not: a gateway, or a server without its database.
    Where Airflow has no such server (2.11), a signal is taken for a person's.
    """
    server = execution_api_url()
    if not server:
        return True
    answers: list[bool] = []
    # In a thread: the look-up of a name has no time limit.
    asking = threading.Thread(target=lambda: answers.append(_answers(f"{server.rstrip('/')}/health/ping")), daemon=True)
    asking.start()
    asking.join(2 * _PATIENCE)
    return bool(answers) and answers[0]


def _answers(url: str) -> bool:
    try:
        # Nothing is sent, so any certificate will do; without one of a known authority the server is there, too.
        return httpx.get(url, timeout=_PATIENCE, verify=False).status_code < 500
    except httpx.TransportError:
        return False
    except Exception:  # in doubt the application is killed: a person who ends a task expects that
        return True
