"""``ytf azkaban install-jobtype --check``: the checks of ``ytf doctor`` with the installed limits."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..doctor.examination import Diagnosis, Result, examine
from ..doctor.known import Question
from ..errors import SpecInvalid
from ..hadoop.site import find_site
from .inherited import allowed, plugin_variables, replace_own
from .install import JOBTYPE_NAME, MODULE, limits_of, read_jobtype_command
from .limits import Limits, read_limits

#: Seconds for the start of the interpreter.
_START = 60


def check_installation(
    directory: Path,
    name: str = JOBTYPE_NAME,
    on_result: Callable[[Result], object] = lambda result: None,
) -> Diagnosis:
    """Make the checks with the limits and the environment of a launcher; tell whether its interpreter can start it.

    The checks run in this process. Another interpreter of the job type only imports the launcher's module.

    Parameters
    ----------
    directory : Path
        ``azkaban.jobtype.plugin.dir`` of the executor.
    name : str, optional
        The value of ``type=`` in jobs.
    on_result : callable, optional
        As for `examine`.

    Raises
    ------
    SpecInvalid
        The job type is not installed, its interpreter lacks this package, or the limits have faults.
    """
    words = read_jobtype_command(directory, name)
    _check_interpreter(words[0])
    limits = read_limits(limits_of(words))
    environ = {**allowed(os.environ, {}, plugin_variables(directory / name)), **limits.environ}
    replace_own(environ)
    site = limits.identify(find_site(environ)) if limits.keytab or limits.principal else None
    return examine(Question(environ, queue=_queue(limits), site=site), on_result)


def _check_interpreter(python: str) -> None:
    if python == sys.executable:
        return
    try:
        run = subprocess.run([python, "-I", "-X", "utf8", "-c", f"import {MODULE}.jobtype"], capture_output=True,
                             text=True, timeout=_START, check=False, cwd="/", stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SpecInvalid(f"the job type's interpreter {python} can't be started: {error}; install the job type again "
                          "with another --python") from error
    if run.returncode:
        last = (run.stderr.strip().splitlines() or ["no message"])[-1]
        raise SpecInvalid(f"the job type's interpreter {python} can't import {MODULE}: {last}; install tf-yarn-ops "
                          "for it")


def _queue(limits: Limits) -> str:
    """Return the queue to check: the usual one, or the first that the site allows."""
    usual = limits.defaults.get("tf.queue", "default")
    return usual if not limits.queues or usual in limits.queues else limits.queues[0]
