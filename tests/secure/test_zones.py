"""A kerberized KMS: the home directory of gateway is an encryption zone, and so are all files that his jobs stage."""

import re

import pytest

from support.access import by_keytab
from support.cluster_jobs import job
from support.two_nodes import launcher_by
from support.waiting import until
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_job_in_a_zone_reads_its_files_by_a_token_of_the_kms(secure_cluster, tmp_path):
    audit = secure_cluster.settings.logs / "kms.log"
    (tmp_path / "data").write_text("from the zone")
    with by_keytab(secure_cluster, tmp_path, "gateway") as access, launcher_by(access) as launcher:
        report = launcher.run(job("cat data && sleep 1", files={"data": str(tmp_path / "data")}))
        assert report.reason is Reason.SUCCEEDED, report
        assert until(lambda: "from the zone" in "".join(launcher.log(report.application_id, "worker:0")), 60, 0.2)
    users = {
        (operation, user.split("/")[0].split("@")[0])
        for operation, user in re.findall(r"OK\[op=(\w+), (?:key=zone, )?user=([^],]+)", audit.read_text())
    }
    # Without the job's token a NodeManager reads the files as yarn.
    assert ("DECRYPT_EEK", "gateway") in users and "yarn" not in {user for _, user in users}, users
