"""The check of an archive that is named as the environment of jobs."""

from ..environments.check import check_archive
from ..submit.preflight import local_path
from .known import KnownFacts
from .symptoms import Finding, Symptom, ill, skip, well


def examine_environment(known: KnownFacts) -> Finding:
    """Read the whole archive; import nothing."""
    environment = known.question.environment
    archive = local_path(environment.location) if environment and environment.scheme == "archive" else None
    if archive is None:
        return skip("--environment names no archive of this machine")
    found = check_archive(archive)
    if found.faults:
        return ill(Symptom.ENVIRONMENT_UNFIT, archive=archive, why="; ".join(map(str, found.faults)))
    if found.doubts:
        return ill(Symptom.ENVIRONMENT_UNCERTAIN, archive=archive, why="; ".join(map(str, found.doubts)))
    return well(
        f"{archive} has Python {found.python} and {found.packages} packages",
        python=found.python,
        packages=found.packages,
    )
