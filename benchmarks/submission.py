"""Submission alone: a cold process until YARN has accepted the application, over HTTP and through Skein's JVM."""

from .hadoop import Ended, Hadoop, hadoop
from .samples import Figures, Samples, interleave

TITLE = "Submission from a cold process, with a warm cache: at most 0.8 s and 80 MB are wanted over HTTP"


def measure(runs: int, quick: bool) -> Samples:
    """Measure both ways."""
    with hadoop() as cluster:
        cases = {
            "skein.Client": lambda: _figures(cluster, cluster.submit_bare(1, "sleep 60")),
            "ytf-submit (REST)": lambda: _figures(cluster, cluster.submit(1, "sleep 60")),
        }
        for case in cases.values():
            case()
        return interleave(cases, runs, Samples(against={"ytf-submit (REST)": "skein.Client"}))


def _figures(cluster: Hadoop, ended: Ended) -> Figures:
    accepted = cluster.launcher.session.resourcemanager.get(ended.answer)["startedTime"] / 1000
    cluster.launcher.kill(ended.answer, "measured")
    cluster.quieten()
    return {"start -> accepted s": accepted - ended.began, "whole process s": ended.seconds, "peak MiB": ended.peak_mib}
