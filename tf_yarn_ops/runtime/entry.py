"""The entry point of the runtime zip: run the coordinator or the agent, or say which Python is missing.

The zip holds it as ``__main__.py``. Every release of Python can read it: an old one then says that it needs 3.9.
"""

import gc
import os
import sys

#: The modules whose `main` runs a part, by the first argument.
PARTS = {
    "coordinator": "master.driver",
    "local": "master.local_containers",
    "client": "agent.client_task",
    "exec": "agent.exec_process",
    "mirror": "agent.mirror_task",
    "tensorboard": "tensorboard.tensorboard_task",
    "function": "agent.function_task",
    "server": "agent.server_task",
}


def newer():  # type: ignore[no-untyped-def]  # readable by Python 2
    """Return the path of a Python of 3.9 or later; None if there is none."""
    for minor in range(14, 8, -1):
        for folder in os.environ.get("PATH", "").split(":"):
            path = os.path.join(folder, "python3.%d" % minor)
            if os.access(path, os.X_OK):
                return path
    return None


def main():  # type: ignore[no-untyped-def]
    """Run the part that the first argument names: an agent unless it is another one."""
    if sys.version_info < (3, 9):
        path = newer()
        if path:
            os.execv(path, [path] + sys.argv)
        sys.stderr.write("tf_yarn_ops needs Python 3.9, found %s on %s\n" % (sys.version.split()[0], os.uname()[1]))
        return 127  # as a shell does for an interpreter that is missing
    import importlib  # Python 2.6 has none

    gc.disable()  # imports leave no garbage: looking for it costs each agent 2 ms
    module = importlib.import_module("tf_yarn_ops.runtime." + PARTS.get(sys.argv[1], "agent.agent"))
    gc.enable()
    return module.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[no-untyped-call]
