"""``ytf azkaban install-jobtype --check``: the checks of ``ytf doctor`` with the installed limits."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from ..doctor.examination import Diagnosis, Result, examine
from ..doctor.known import Question
from ..errors import SpecInvalid
from ..hadoop.site import find_site
from .inherited import allowed, plugin_variables, replace_own
from .install import JOBTYPE_NAME, fault_of_interpreter, limits_of, read_jobtype_command
from .limits import Limits, read_limits


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
    why = "" if words[0] == sys.executable else fault_of_interpreter(words[0])
    if why:
        raise SpecInvalid(f"the job type's interpreter {why}")
    limits = read_limits(limits_of(words))
    environ = {**allowed(os.environ, {}, plugin_variables(directory / name)), **limits.environ}
    replace_own(environ)
    site = limits.identify(find_site(environ)) if limits.keytab or limits.principal else None
    return examine(Question(environ, queue=_queue(limits), site=site), on_result)


def _queue(limits: Limits) -> str:
    """Return the queue to check: the usual one, or the first that the site allows."""
    usual = limits.defaults.get("tf.queue", "default")
    return usual if not limits.queues or usual in limits.queues else limits.queues[0]
