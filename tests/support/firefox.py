"""A headless Firefox of the distribution, driven by WebDriver BiDi, which Firefox speaks without a driver.

Playwright drives patched builds of Firefox only. Messages: https://w3c.github.io/webdriver-bidi/
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from websockets.sync.client import connect

from support.waiting import until

#: The names of the program in Debian, Fedora and others.
PROGRAMS = ("firefox-esr", "firefox")
#: Seconds for one step in the browser; a loaded machine needs some.
STEP = 60.0


class FirefoxPage:
    """One tab; `complaints` has the errors of its console so far."""

    def __init__(self, socket):
        self._socket, self._numbers = socket, itertools.count(1)
        self.complaints = []
        self._send("session.new", capabilities={})
        self._send("session.subscribe", events=["log.entryAdded"])
        self._context = self._send("browsingContext.create", type="tab")["context"]

    def _send(self, method, **parameters):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(STEP))
            if answer["type"] == "event" and answer["params"].get("level") == "error":
                self.complaints.append(answer["params"]["text"])
            elif answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def goto(self, url):
        """Load a page, with all that it names."""
        self._send("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, expression):
        """Return the value of a JavaScript expression: a string, a number, a boolean or None."""
        answer = self._send(
            "script.evaluate", expression=expression, target={"context": self._context}, awaitPromise=True
        )
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        return answer["result"].get("value")

    def press(self, key):
        """Press a key of the keyboard, by its code point of WebDriver or as a character."""
        self._send(
            "input.performActions",
            context=self._context,
            actions=[
                {
                    "type": "key",
                    "id": "keyboard",
                    "actions": [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}],
                }
            ],
        )


@contextlib.contextmanager
def firefox():
    """Yield a `FirefoxPage` of a fresh profile; raise AssertionError at the end if its console has an error."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert program, "no Firefox on PATH; install the package firefox-esr"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder, "log")
        with log.open("w") as stream:
            process = subprocess.Popen(
                [program, "--headless", "--no-remote", "--profile", folder, "--remote-debugging-port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        try:
            address = until(lambda: re.search(r"listening on (ws://\S+)", log.read_text()), what=log.read_text)[1]
            with connect(f"{address}/session", proxy=None, max_size=None) as socket:
                page = FirefoxPage(socket)
                yield page
                assert not page.complaints, f"errors in the browser's console: {page.complaints}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
