"""Two ResourceManagers with ZooKeeper, and two NameNodes with shared edits: names and Hadoop properties."""

from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

from tf_yarn_ops.minicluster.daemon_settings import RESOURCEMANAGER_PORTS

#: Name of the pair of NameNodes in URLs, and of the pair of ResourceManagers.
SERVICE = "minicluster"
ZOOKEEPER = "zk"
#: The daemons of which a second one exists; their names are Hadoop's ids too.
RESOURCEMANAGERS, NAMENODES = ("rm", "rm2"), ("nn", "nn2")


def pair_yarn(values: dict[str, str], address: Callable[[str], str], zookeeper: str) -> None:
    """Replace the properties of one ResourceManager by those of two.

    Parameters
    ----------
    values : dict
        Changed in place.
    address : callable
        Return the ``host:port`` of a port, such as ``rm2-web``.
    zookeeper : str
        The ``host:port`` of ZooKeeper, which elects the active one and keeps the state.
    """
    prefix = "yarn.resourcemanager"
    for key in (*RESOURCEMANAGER_PORTS.values(), "hostname", "fs.state-store.uri"):
        del values[f"{prefix}.{key}"]
    values |= {
        f"{prefix}.{key}.{name}": address(name + end)
        for name in RESOURCEMANAGERS
        for end, key in RESOURCEMANAGER_PORTS.items()
    }
    values |= {
        f"{prefix}.ha.enabled": "true",
        f"{prefix}.cluster-id": SERVICE,
        f"{prefix}.ha.rm-ids": ",".join(RESOURCEMANAGERS),
        **{f"{prefix}.hostname.{name}": address(name).partition(":")[0] for name in RESOURCEMANAGERS},
        f"{prefix}.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
        "hadoop.zk.address": zookeeper,
    }


def build_yarn_site(name: str, configuration: Path) -> str:
    """Return a ResourceManager's own ``yarn-site.xml``: the cluster's, and which one of the pair it is.

    An argument of the command line is not enough: the proxy for applications' pages reads the files again, finds two
    addresses of this machine, and answers 404.
    """
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n'
        f"  <property><name>yarn.resourcemanager.ha.id</name><value>{name}</value></property>\n"
        f'  <xi:include href="{escape(str(configuration / "yarn-site.xml"))}"/>\n</configuration>\n'
    )


def pair_hdfs(values: dict[str, str], address: Callable[[str], str], directory: Path, edits: str) -> None:
    """Replace the properties of one NameNode by those of two, of which a command makes one active.

    Parameters
    ----------
    values : dict
        Changed in place.
    address : callable
        Return the ``host:port`` of a port, such as ``nn2-web``.
    directory : Path
        The cluster's folder.
    edits : str
        URI of the edits that both share.
    """
    for key in ("rpc-address", "http-address", "name.dir"):
        del values[f"dfs.namenode.{key}"]
    values |= {
        "dfs.nameservices": SERVICE,
        f"dfs.ha.namenodes.{SERVICE}": ",".join(NAMENODES),
        f"dfs.client.failover.proxy.provider.{SERVICE}":
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
        "dfs.namenode.shared.edits.dir": edits,
        # Nothing to do: `failover` kills the active NameNode before it makes the other one active.
        "dfs.ha.fencing.methods": "shell(/bin/true)",
    }  # fmt: skip
    for name in NAMENODES:
        values |= {
            f"dfs.namenode.rpc-address.{SERVICE}.{name}": address(name),
            f"dfs.namenode.http-address.{SERVICE}.{name}": address(f"{name}-web"),
            f"dfs.namenode.name.dir.{SERVICE}.{name}": f"file://{directory}/{name}",
        }


def build_zookeeper_text(address: str, directory: Path) -> str:
    """Return ZooKeeper's configuration file. A slow disk must not cost the active ResourceManager its session."""
    host, _, port = address.partition(":")
    return (
        f"tickTime=1000\ndataDir={directory}/zk\nclientPort={port}\nclientPortAddress={host}\nmaxClientCnxns=0\n"
        "admin.enableServer=false\nforceSync=no\n"
    )
