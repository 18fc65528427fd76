"""A whole job on a real YARN: N tasks of `sleep 2`, from a cold process, beside bare Skein."""

from pathlib import Path

from .hadoop import Hadoop, hadoop, times
from .samples import Figures, Samples, interleave

TITLE = "Job of N tasks of `sleep 2` from a cold process, against bare Skein without a coordinator"


def measure(runs: int, quick: bool) -> Samples:
    """Measure 1, 4 and 16 tasks, both ways."""
    sizes = (1,) if quick else (1, 4, 16)
    cases, against = {}, {}
    with hadoop() as cluster:
        warm(cluster)
        for size in sizes:
            cases[f"bare Skein, N={size}"] = lambda size=size: bare_figures(cluster, size)
            cases[f"ytf-submit, N={size}"] = lambda size=size: own_figures(cluster, size)
            against[f"ytf-submit, N={size}"] = f"bare Skein, N={size}"
        return interleave(cases, runs, Samples(against=against))


def warm(cluster: Hadoop) -> None:
    """Run both ways once: caches, keys and class files are there then."""
    own_figures(cluster, 1)
    bare_figures(cluster, 1)


def own_figures(cluster: Hadoop, size: int) -> Figures:
    """Return the figures of ``ytf-submit --wait``."""
    cluster.quieten()
    folder = cluster.marks()
    ended = cluster.submit(size, command(folder), "--wait")
    figures = _figures(cluster, ended.began, ended.answer, folder, size)
    report = cluster.launcher.report(ended.answer)
    submitted, launched = report.submitted_at or 0.0, report.started_at or 0.0
    return {
        **figures,
        "of this: accepted -> AM launched s": launched - submitted,
        "of this: AM launched -> cluster spec s": report.rounds[0].started_at - launched,
        "client's end s": ended.seconds,
    }


def bare_figures(cluster: Hadoop, size: int) -> Figures:
    """Return the figures of bare Skein."""
    cluster.quieten()
    folder = cluster.marks()
    ended = cluster.submit_bare(size, command(folder))
    return _figures(cluster, ended.began, ended.answer, folder, size)


def command(folder: Path) -> str:
    """Return the command of every task: it writes down its start and its end."""
    return (
        f"echo $EPOCHREALTIME > {folder}/start.$CONTAINER_ID; sleep 2; echo $EPOCHREALTIME > {folder}/end.$CONTAINER_ID"
    )


def _figures(cluster: Hadoop, began: float, application_id: str, folder: Path, size: int) -> Figures:
    found = cluster.finish(application_id)
    starts, ends = times(folder, "start"), times(folder, "end")
    if (len(starts), len(ends)) != (size, size):
        raise RuntimeError(f"{application_id}: {len(starts)} starts and {len(ends)} ends of {size} tasks")
    accepted, finished = found["startedTime"] / 1000, found["finishedTime"] / 1000
    return {
        "submit -> accepted s": accepted - began,
        "accepted -> all running s": max(starts) - accepted,
        "submit -> all running s": max(starts) - began,
        "last exit -> final status s": finished - max(ends),
        "whole job s": finished - began,
    }
