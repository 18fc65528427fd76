"""What tests on a cluster of two nodes share: launchers whose jobs end with them, and what jobs leave."""

import contextlib

from support.access import plain


def launcher_on(hadoop):
    """A launcher whose live jobs are killed at the end."""
    return launcher_by(plain(hadoop))


@contextlib.contextmanager
def launcher_by(access):
    """A launcher of a user, whose live jobs are killed at the end."""
    with contextlib.closing(access.launcher()) as made:
        yield made
        for report in made.list():
            made.kill(report.application_id, "the test is over")


def directories(launcher):
    files = launcher.session.staging(launcher.cluster.user).filesystem
    return [status.name for status in files.list(launcher.cluster.staging) if status.name.startswith("application_")]
