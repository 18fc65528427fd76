"""The Hadoop of this project's tests: `tf_yarn_ops.minicluster`, and what only tests need.

`HadoopCluster` is a `MiniCluster` that also runs with Kerberos, HTTPS, pairs of ResourceManagers and NameNodes, and in
other versions of Hadoop. Its JVMs take their classes from archives, which saves a third of the CPU of a start. From a
shell: ``./dev hadoop up|env|status|failover|down --dir DIR``.
"""

from .cluster import HadoopCluster

__all__ = ["HadoopCluster"]
