"""Submission on a secured cluster: a cold process until YARN has accepted the application, over HTTP and by Skein."""

import os
import subprocess
import tempfile
from pathlib import Path

from support.hadoop import HadoopCluster

from .hadoop import Ended, Hadoop
from .samples import Figures, Samples, interleave

TITLE = "Submission on a secured cluster from a cold process, with a warm cache and a ticket"
USER = "alice"


def measure(runs: int, quick: bool) -> Samples:
    """Measure both ways."""
    with tempfile.TemporaryDirectory(prefix="ytf-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with HadoopCluster(folder / "hadoop", kerberos=True) as cluster:
            # libkrb5 reads them from this process's environment
            os.environ.update({name: cluster.environ[name] for name in ("KRB5_CONFIG", "KRB5CCNAME")})
            subprocess.run(["kinit", "-k", "-t", str(cluster.keytab(USER)), cluster.principal(USER)], check=True)
            hadoop = Hadoop(cluster, folder)
            cases = {
                f"ytf-submit --submit_with {way}": lambda way=way: _figures(
                    hadoop, hadoop.submit(1, "sleep 60", "--submit_with", way)
                )
                for way in ("skein", "rest")
            }
            for case in cases.values():
                case()
            old, new = cases
            return interleave(cases, runs, Samples(against={new: old}))


def _figures(hadoop: Hadoop, ended: Ended) -> Figures:
    accepted = hadoop.launcher.session.resourcemanager.get(ended.answer)["startedTime"] / 1000
    hadoop.launcher.kill(ended.answer, "measured")
    hadoop.quieten()
    return {"start -> accepted s": accepted - ended.began, "whole process s": ended.seconds, "peak MiB": ended.peak_mib}
