"""Which variables the launcher has."""

import json
import os
import subprocess
import sys

import pytest

from support.azkaban_keys import limits
from support.azkaban_process import finish, submitted
from tf_yarn_ops.azkaban.inherited import DROPPED

pytestmark = pytest.mark.slow


def test_variables_of_a_job_are_replaced_by_those_of_the_executor(tmp_path):
    """The job type's own test shows it on Azkaban; this one names the variables."""
    (tmp_path / "props").write_text(
        "tf.que=x\nenv.HOME=/evil\nenv.PATH=/evil\nENV.KRB5_CONFIG=/evil\nenv.LD_PRELOAD=/evil\n"
    )
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (tmp_path / "common.properties").write_text("env.JAVA_HOME=/java\nenv.SITE=common\n")
    (plugin / "plugin.properties").write_text("env.SITE=plugin\n")
    script = (
        "import json, os, sys\nfrom tf_yarn_ops.azkaban import console, jobtype\n"
        "from tf_yarn_ops.terminal.signals import Interruption\n"
        "jobtype.run_job(console.Console(), Interruption(), ['--plugin', sys.argv[1]], os.environ)\n"
        "print(json.dumps(dict(os.environ)))"
    )
    evil = dict.fromkeys(["HOME", "PATH", "KRB5_CONFIG", *DROPPED], "/evil")
    environ = {"KRB5CCNAME": "/c", "OWN": "kept", "JOB_PROP_FILE": str(tmp_path / "props"), **evil}
    done = subprocess.run([sys.executable, "-I", "-c", script, plugin], env=environ, capture_output=True, text=True,
                          timeout=60, check=True, stdin=subprocess.DEVNULL)  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ENV.KRB5_CONFIG, env.HOME, env.LD_PRELOAD, env.PATH: ignored, because")
    kept = json.loads(lines[-1])
    assert "/evil" not in kept.values()
    assert {"KRB5CCNAME": "/c", "OWN": "kept", "JAVA_HOME": "/java", "SITE": "plugin"}.items() <= kept.items()


def test_the_sites_variables_win_over_the_jobs(azkaban, yarn, tmp_path):
    """With another ResourceManager, or another site file, a job would have another cluster's word for who it is."""
    evil = tmp_path / "evil.yaml"
    evil.write_text("submit_with: skein\nresourcemanager: http://127.0.0.1:1\n")
    (tmp_path / "site.yaml").write_text("{}\n")
    path = limits(tmp_path, f"environ: {{YTF_RESOURCEMANAGER: '{yarn.url}', YTF_SITE: '{tmp_path}/site.yaml'}}\n")
    job = azkaban()
    job.environ |= {"YTF_RESOURCEMANAGER": "http://127.0.0.1:1", "YTF_SITE": str(evil)}
    job.start("--limits", path)
    submitted(yarn)
    finish(yarn)
    assert job.end() == 0


def test_the_sites_variables_reach_the_libraries(tmp_path):
    """The Kerberos library asks the process's environment."""
    (tmp_path / "props").write_text("tf.que=x\n")
    path = limits(tmp_path, "environ: {KRB5_CLIENT_KTNAME: /etc/azkaban.keytab}\n")
    script = (
        "import os, sys\nfrom tf_yarn_ops.azkaban import console, jobtype\n"
        "from tf_yarn_ops.terminal.signals import Interruption\n"
        "jobtype.run_job(console.Console(), Interruption(), ['--limits', sys.argv[1]], os.environ)\n"
        "print(os.environ['KRB5_CLIENT_KTNAME'])"
    )
    environ = {"PATH": os.environ["PATH"], "KRB5_CLIENT_KTNAME": "/evil", "JOB_PROP_FILE": str(tmp_path / "props")}
    done = subprocess.run([sys.executable, "-I", "-c", script, path], env=environ, capture_output=True, text=True,
                          timeout=60, check=True, stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.stdout.splitlines()[-1] == "/etc/azkaban.keytab"
