"""Print the tables of docs/operations/reliability.md: ``python tests/support/fault_table.py FILE``, FILE as $YTF_FAULTS_MEASURED."""

import json
import sys
from pathlib import Path

from faults import test_client, test_cluster, test_container, test_program

#: Heading in the page and the rows below it.
PARTS = {
    "The user's program": test_program.MATRIX.rows,
    "Containers, connections, coordinator and application master": test_container.MATRIX.rows,
    "YARN and HDFS": test_cluster.MATRIX.rows,
    "The client, and time": test_client.MATRIX.rows,
}
HEAD = "| fault | ends as | after |\n|---|---|---|"


def line(row, seconds):
    """Return a row as a line of the page."""
    return f"| {row.fault} | `{row.reason.value}` | {seconds:.1f} s |"


def main(path):
    measured = {entry["fault"]: entry["seconds"] for entry in map(json.loads, Path(path).read_text().splitlines())}
    for heading, rows in PARTS.items():
        print(f"### {heading}\n\n{HEAD}")
        print("\n".join(line(row, measured[row.fault]) for row in rows), end="\n\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
