"""Print the tables of docs/operations/reliability.md: ``PYTHONPATH=tests python -m support.fault_table``."""

from faults import test_client, test_cluster, test_container, test_hosts, test_pair_hosts, test_program

#: Heading in the page and the rows below it.
PARTS = {
    "The user's program": test_program.MATRIX.rows,
    "Containers, connections, coordinator and application master": test_container.MATRIX.rows,
    "YARN and HDFS": test_cluster.MATRIX.rows,
    "The client, and time": test_client.MATRIX.rows,
    "The network between hosts": test_hosts.MATRIX.rows,
    "Pairs of masters on hosts of their own": test_pair_hosts.MATRIX.rows,
}


def table_below(heading):
    """Return the table below a heading of the page: the faults by the reason as which they end."""
    faults = {}
    for row in PARTS[heading]:
        faults.setdefault(row.reason.value, []).append(row.fault)
    return "| ends as | faults |\n|---|---|\n" + "\n".join(
        f"| `{reason}` | {'; '.join(found)} |" for reason, found in faults.items()
    )


if __name__ == "__main__":
    print("\n\n".join(f"### {heading}\n\n{table_below(heading)}" for heading in PARTS))
