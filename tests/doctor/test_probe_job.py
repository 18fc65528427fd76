"""The check of the environment's archive, against YARN on the wire."""

import tarfile

import pytest

from support.doctor_site import diagnose, of
from tf_yarn_ops.doctor.symptoms import CheckOutcome
from tf_yarn_ops.job.parts import Environment


@pytest.mark.parametrize(
    "member, outcome, message",
    [
        ("env/bin/python", CheckOutcome.FAULT, "has no bin/python; it is in env"),
        ("bin/python", CheckOutcome.WARNING, "bin/python leads to /usr/bin/python3.11, which every node needs"),
    ],
)
def test_archive_of_the_environment_is_checked(healthy, tmp_path, member, outcome, message):
    archive = tmp_path / "tf.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo(member)
        link.type, link.linkname = tarfile.SYMTYPE, "/usr/bin/python3.11"
        tar.addfile(link)
    diagnosis = diagnose(healthy, environment=Environment.parse(str(archive)))
    finding = of(diagnosis, "environment")
    assert (finding.outcome, message in finding.message) == (outcome, True)
    assert diagnosis.exit_code == (2 if outcome is CheckOutcome.FAULT else 0)
