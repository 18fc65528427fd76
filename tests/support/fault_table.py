"""Print the tables of docs/operations/reliability.md: ``PYTHONPATH=tests python -m support.fault_table``."""

from faults import test_client, test_cluster, test_container, test_program

#: Heading in the page and the rows below it.
PARTS = {
    "The user's program": test_program.MATRIX.rows,
    "Containers, connections, coordinator and application master": test_container.MATRIX.rows,
    "YARN and HDFS": test_cluster.MATRIX.rows,
    "The client, and time": test_client.MATRIX.rows,
}


def table_below(heading):
    """Return the table below a heading of the page."""
    return "| fault | ends as |\n|---|---|\n" + "\n".join(f"| {row.fault} | `{row.reason.value}` |" for row in PARTS[heading])


if __name__ == "__main__":
    print("\n\n".join(f"### {heading}\n\n{table_below(heading)}" for heading in PARTS))
