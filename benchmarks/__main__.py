"""``python -m benchmarks [NAME ...]``: run benchmarks, print a table of each, keep the values as JSON."""

import importlib
import logging
import sys
from pathlib import Path

import click

from .against import measure as compare
from .samples import describe_machine, write

NAMES = (
    "rendezvous",
    "heartbeats",
    "agent",
    "watcher",
    "triggerer",
    "submission",
    "secure_submission",
    "burst",
    "job",
    "scale",
    "restart",
    "lease",
    "history",
    "page",
    "environment",
    "data",
    "commit",
    "fuzz",
    "doors",
)
FOLDER = Path(".ytf/bench")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[NAME]...")
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="Runs of each case.")
@click.option("--quick", is_flag=True, help="The smallest case of each benchmark, for a look at whether it works.")
@click.option("--against", metavar="COMMIT", help="Run them in a checkout of this commit, too, in turn, and compare.")
@click.option("--soak", type=click.FloatRange(0), metavar="MINUTES", help="Run the soak of commits instead.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the soak.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=FOLDER,
    show_default=True,
    help="Folder of the JSON files, one a benchmark.",
)
def main(
    names: tuple[str, ...], runs: int, quick: bool, against: str | None, soak: float | None, seed: int, output: Path
) -> None:
    """Run benchmarks by name; all without one.

    NAME: rendezvous, heartbeats, agent, watcher, triggerer (no Java), submission, secure_submission, burst, job,
    scale, restart, lease, history, page, environment, data, commit, fuzz, doors.
    """
    logging.basicConfig(level=logging.WARNING)
    if soak is not None:
        from .commit_soak import run

        for name, count in run(60 * soak, seed).items():
            click.echo(f"{name:<32} {count:>8,}")
        return
    for name in names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        before = describe_machine()
        samples = compare(name, runs, quick, against) if against else module.measure(runs, quick)
        path = write(samples, output / f"{name}.json", name, before)
        click.echo(
            f"\n{module.TITLE}\n{samples.table()}\n{before['load']} at the start, "
            f"{describe_machine()['load']} at the end; values in {path}"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main(prog_name="benchmarks")
