"""What a program finds around itself, by the table of `docs/concepts/program.md`; the same on YARN and locally."""

import re

#: Leaves a socket in the temporary folder, as multiprocessing does, prints what it finds, and is killed.
PROGRAM = """\
import json, os, resource, signal, socket, tempfile
folder = tempfile.mkdtemp()
socket.socket(socket.AF_UNIX).bind(os.path.join(folder, "listener-12345678"))
found = {name: os.environ.get(name) for name in ("HOME", "USER", "LOGNAME", "LANG")}
found.update(
    folder=folder, place=os.path.realpath(folder), work=os.getcwd(), umask=os.umask(0),
    files=resource.getrlimit(resource.RLIMIT_NOFILE), uid=os.getuid(), parent=os.environ["TMPDIR"],
)
print("found:", json.dumps(found))
os.kill(os.getpid(), signal.SIGKILL)
"""


def check_temporary_folder(found):
    """Assert that the temporary folder is the container's own, by a short name."""
    assert re.fullmatch(r"/proc/\d+/cwd/tmp", found["parent"]) and found["folder"].startswith(found["parent"])
    assert found["place"].startswith(f"{found['work']}/tmp/")
