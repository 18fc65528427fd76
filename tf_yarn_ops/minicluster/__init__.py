"""A real Hadoop on one machine: NameNode, DataNode, ResourceManager and NodeManagers on 127.0.0.1.

Input: options (nodes, labels, with or without HDFS). Output: a running cluster with its addresses and environment
variables. This room knows Hadoop only: it never imports what submits or follows jobs.

>>> from tf_yarn_ops.minicluster import MiniCluster
>>> with MiniCluster(directory="/tmp/hadoop") as cluster:      # doctest: +SKIP
...     subprocess.run(["yarn", "node", "-list"], env={**os.environ, **cluster.environ}, check=True)

On the command line the same cluster is ``ytf minicluster up|down|status|env``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .hadoop import MiniCluster

__all__ = ["MiniCluster"]


def __getattr__(name: str) -> Any:
    if name != "MiniCluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .hadoop import MiniCluster

    return MiniCluster
