"""A kerberized KMS: the home directory of gateway is an encryption zone, and so are all files that his jobs stage."""

import re

import pytest

from support.access import by_keytab
from support.cluster_jobs import job, until_its_log_is_stored
from support.two_nodes import launcher_by
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_job_in_a_zone_reads_its_files_by_a_token_of_the_kms(secure_cluster, tmp_path):
    audit = secure_cluster.settings.logs / "kms.log"
    (tmp_path / "data").write_text("from the zone")
    command = 'cat data "$DTF_INPUT_PATH/rows"; echo written > "$DTF_OUTPUT_PATH/result"; sleep 1'
    with by_keytab(secure_cluster, tmp_path, "gateway") as access, launcher_by(access) as launcher:
        files = launcher.cluster.open_filesystem()
        files.create("/user/gateway/input/rows", b", rows too", 0o644)
        spec = job(
            command,
            files={"data": str(tmp_path / "data")},
            input="hdfs:///user/gateway/input",
            mirror_input="1 MiB",
            output="hdfs:///user/gateway/output",
            mirror="all",
        )
        report = launcher.run(spec)
        assert report.reason is Reason.SUCCEEDED, report
        until_its_log_is_stored(launcher, report.application_id)
        assert "from the zone, rows too" in "".join(launcher.log(report.application_id, "worker:0"))
        # Without --commit the program's files lie where it writes them, encrypted too.
        assert files.read("/user/gateway/output/result") == b"written\n"
    users = {
        (operation, user.split("/")[0].split("@")[0])
        for operation, user in re.findall(r"OK\[op=(\w+), (?:key=zone, )?user=([^],]+)", audit.read_text())
    }
    # Without the job's token a NodeManager reads the files as yarn.
    assert ("DECRYPT_EEK", "gateway") in users and "yarn" not in {user for _, user in users}, users
