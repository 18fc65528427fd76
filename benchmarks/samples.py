"""`Samples`: the values of a benchmark by case and figure, as a table and as JSON."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

#: What a case's run gives: a figure's name, with its unit, and its value.
Figures = Mapping[str, float]


@dataclass
class Samples:
    """All values of one benchmark.

    Attributes
    ----------
    values : dict
        Case, then figure, then one value a run.
    against : dict of str to str
        The case with which a case is compared, for the column of ratios.
    """

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    against: dict[str, str] = field(default_factory=dict)

    def add(self, case: str, figures: Figures) -> None:
        """Keep the figures of one run."""
        for figure, value in figures.items():
            self.values.setdefault(case, {}).setdefault(figure, []).append(value)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each case and figure: median, least, greatest, ratio of the medians, values."""
        return [
            {
                "case": case,
                "figure": figure,
                "median": statistics.median(values),
                "min": min(values),
                "max": max(values),
                "ratio": self._ratio(case, figure),
                "values": values,
            }
            for case, figures in self.values.items()
            for figure, values in figures.items()
        ]

    def table(self) -> str:
        """Return the rows for people."""
        lines = [("case", "figure", "median", "min - max", "ratio", "runs")]
        for row in self.rows():
            ratio = f"{row['ratio']:.2f} x {self.against[row['case']]}" if row["ratio"] is not None else ""
            lines.append(
                (
                    row["case"],
                    row["figure"],
                    _number(row["median"]),
                    f"{_number(row['min'])} - {_number(row['max'])}",
                    ratio,
                    str(len(row["values"])),
                )
            )
        widths = [max(len(line[column]) for line in lines) for column in range(6)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def _ratio(self, case: str, figure: str) -> float | None:
        base = self.values.get(self.against.get(case, ""), {}).get(figure)
        if not base or not statistics.median(base):
            return None
        return statistics.median(self.values[case][figure]) / statistics.median(base)


def interleave(cases: Mapping[str, Callable[[], Figures]], runs: int, samples: Samples) -> Samples:
    """Run all cases in turn, every other round backwards, and keep what they give; Ctrl-C keeps what is there."""
    try:
        for number in range(runs):
            order = list(cases) if number % 2 == 0 else list(reversed(list(cases)))
            for case in order:
                figures = cases[case]()
                samples.add(case, figures)
                text = ", ".join(f"{figure} {_number(value)}" for figure, value in figures.items())
                sys.stderr.write(f"run {number + 1} of {runs}, {case}: {text}\n")
    except KeyboardInterrupt:
        if not all(case in samples.values for case in cases):
            raise
    samples.values = {case: samples.values[case] for case in cases}
    return samples


def describe_machine() -> dict[str, Any]:
    """Return what the figures depend on: cores, memory, load, versions, the time."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "load": "load " + " ".join(f"{value:.1f}" for value in os.getloadavg()),
    }


def write(samples: Samples, path: Path, name: str, machine: Mapping[str, Any]) -> Path:
    """Write the values as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"benchmark": name, "machine": machine, "ended": describe_machine(), "rows": samples.rows()}
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"
