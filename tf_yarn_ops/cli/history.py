"""``ytf history`` and ``ytf compare``: jobs that have ended, long after YARN has forgotten them."""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import click

from ..errors import ApplicationNotFound, TfYarnError, did_you_mean
from ..hadoop.cluster import Cluster
from ..history.compare import ComparedRow, compare
from ..history.histories import Histories
from ..history.query import STATES, Query, parse_states
from ..history.record_summary import total_costs
from ..runtime.common.clock import duration, local_time
from ..runtime.common.report import COSTS, describe_cost, run_seconds
from ..terminal.output import align, echo, format_number
from .command_line import ClusterCall, application_ids_only, parse_time, reading_options

#: The most jobs that a table shows, unless ``--limit`` says more.
MOST_ROWS = 50
#: Hours for which YARN is asked about jobs without a record, and seconds for which it may not answer.
_HOURS, _PATIENCE = 7 * 24, 2.0
#: Metrics in a row of the table.
_METRICS = 3
#: Keys of ``--by``.
GROUPS = ("user", "queue", "name", "reason")
#: Characters of a value in a comparison.
_WIDTH = 60


def _read_states(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return parse_states(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, option) from error


def _read_keys(ctx: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...]:
    keys = tuple(part.strip().lower() for part in (value or "").split(",") if part.strip())
    if unknown := next((key for key in keys if key not in GROUPS), ""):
        raise click.BadParameter(
            f"{unknown!r} is no key{did_you_mean(unknown, GROUPS)}; give one or more of {', '.join(GROUPS)}",
            ctx,
            option,
        )
    return tuple(dict.fromkeys(keys))


@click.command()
@click.option("--name", default="*", metavar="<glob>", help="Jobs with such a name, such as 'digits*'.")
@click.option(
    "--since",
    callback=parse_time,
    metavar="<age | day>",
    help="Jobs that ended in the last 30m, 12h, 7d or 2w, or since a day or a local time (2026-11-22T17:05).",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    callback=_read_states,
    metavar="<state>",
    help=f"{', '.join(STATES[:3])}, or a reason such as TASK_FAILED. Repeatable, and comma-separated.",
)
@click.option(
    "--user",
    "owners",
    metavar="<glob>",
    help="The jobs of another user, or of all whose records you may read: '*'.  [default: yourself]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="<n>",
    help=f"At most so many, the latest first.  [default: {MOST_ROWS}; all with --by]",
)
@click.option(
    "--by",
    callback=_read_keys,
    metavar="<key,...>",
    help=f"Add up what the jobs have cost, one row for each {', '.join(GROUPS)}, or several of these: user,queue.",
)
@reading_options
def history(name: str, since: float | None, states: tuple[str, ...], owners: str | None, limit: int | None,
            by: tuple[str, ...], call: ClusterCall) -> None:  # fmt: skip
    """List jobs that have ended, the latest first, with what YARN has counted of each.

    Records in HDFS tell of them, also when YARN has forgotten them.
    """
    limit = limit or (None if by else MOST_ROWS)
    with closing(Histories(call.discover(), owners)) as histories:
        if owners is None:
            _complete(histories.cluster)
        found = list(itertools.islice(histories.find(Query(name, since or 0.0, states)), limit and limit + 1))
    shown = found[:limit]
    totals = total_costs(shown, by) if by else []
    lines = cost_table(totals, by) if by else table(shown)
    call.print_result(totals if by else shown, lines if shown else [])
    if not shown:
        chosen = name != "*" or since or states or owners
        echo("no such jobs in the history" if chosen else "no job of yours has ended yet")
    if limit and len(found) > limit:
        echo(f"there are more; give --limit {limit * 10}, or less with --since 7d, --name, --state")


def _complete(cluster: Cluster) -> None:
    """Write the records of jobs that died before they could, as long as YARN knows them; without YARN do nothing."""
    from ..follow.sweep import keep_missing_records
    from ..staging.staging_directory import StagingDirectory

    with closing(cluster.backend(_PATIENCE)) as resourcemanager:
        try:
            keep_missing_records(StagingDirectory(cluster), resourcemanager, _HOURS)
        except TfYarnError as error:
            echo(f"jobs that ended without a record are not listed: {error}")


def table(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of jobs: when each ended, its reason, how long it took, its last metrics."""
    several = len({summary.get("user") for summary in summaries}) > 1
    costs = [describe_cost(summary) for summary in summaries]
    units = [unit for unit, _ in COSTS.values() if any(cost[unit] for cost in costs)]
    rows = [
        [
            "APPLICATION",
            "ENDED",
            "REASON",
            "TOOK",
            "QUEUED",
            *map(str.upper, units),
            *(["USER"] if several else []),
            "NAME",
            "METRICS",
        ]
    ]
    rows += [
        [
            summary["application_id"],
            local_time(summary.get("finished_at")),
            str(summary.get("reason") or "-"),
            duration(run_seconds(summary)),
            duration(summary.get("queue_seconds")),
            *(cost[unit] or "-" for unit in units),
            *([str(summary.get("user"))] if several else []),
            str(summary.get("name") or ""),
            ", ".join(
                f"{name} {value:.4g}"
                for name, value in itertools.islice((summary.get("metrics") or {}).items(), _METRICS)
            ),
        ]
        for summary, cost in zip(summaries, costs, strict=True)
    ]
    return align(rows)


def cost_table(totals: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[str]:
    """Return the lines of a table of `total_costs`."""
    rows = [[*map(str.upper, by), "JOBS", "TOOK", *(unit.upper() for unit, _ in COSTS.values())]]
    rows += [
        [
            *(total[key] for key in by),
            str(total["jobs"]),
            duration(total["run_seconds"]),
            *(value or "-" for value in describe_cost(total).values()),
        ]
        for total in totals
    ]
    return align(rows)


@click.command("compare")
@click.argument("application_ids", metavar="APP APP...", nargs=-1, required=True, callback=application_ids_only)
@click.option("--all", "everything", is_flag=True, help="Print values that are equal, too.")
@reading_options
def compare_command(application_ids: tuple[str, ...], everything: bool, call: ClusterCall) -> None:
    """Show results, metrics, options and environments of ended jobs side by side.

    What differs comes first.
    """
    if len(application_ids) < 2:
        raise click.UsageError("give at least two applications; ytf history lists them")
    records = []
    with closing(Histories(call.discover(), "*")) as histories:
        for application_id in application_ids:
            if (record := histories.read(application_id)) is None:
                raise ApplicationNotFound(
                    f"there is no record of {application_id} in the history that you may read; ytf "
                    f"history{call.next_options} lists those of your jobs"
                )
            records.append(record)
    rows = compare(records)
    document = {"applications": list(application_ids), "rows": [row._asdict() for row in rows]}
    call.print_result(document, comparison(application_ids, records, rows, everything))


def comparison(
    application_ids: Sequence[str], records: Sequence[Mapping[str, Any]], rows: Sequence[ComparedRow], everything: bool
) -> list[str]:
    """Return the lines of a comparison: a column for each job, a block for each section, equal values last."""
    lines = [["", *application_ids], ["name", *(str(record.get("name") or "") for record in records)]]
    shown = [row for row in rows if row.differs or everything]
    for title, block in itertools.groupby(shown, lambda row: f"{row.section}{'' if row.differs else ' (equal)'}"):
        lines.append([f"-- {title}", *([""] * len(records))])
        lines += [[row.name, *(_short(value) for value in row.values)] for row in block]
    hidden = len(rows) - len(shown)
    return [*align(lines), *([f"{hidden} values are equal; --all prints them"] if hidden else [])]


def _short(value: Any) -> str:
    text = format_number(value, 6)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
