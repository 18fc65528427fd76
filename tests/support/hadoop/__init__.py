"""The Hadoop of this project's tests: `tf_yarn_ops.minicluster`, and what only tests need.

`HadoopCluster` is a `MiniCluster` that also runs with Kerberos, HTTPS, pairs of ResourceManagers and NameNodes, and in
other versions of Hadoop; `HostsCluster` runs on several hosts. Its JVMs take their classes from archives, which saves a third of the CPU of a start. From a
shell: ``./dev hadoop up|env|status|failover|on|down --dir DIR``.
"""

from .cluster import HadoopCluster
from .hosts import HostsCluster

__all__ = ["HadoopCluster", "HostsCluster"]
