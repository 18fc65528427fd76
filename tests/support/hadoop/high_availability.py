"""Two ResourceManagers with ZooKeeper, and two NameNodes with one folder of shared edits: names and Hadoop properties."""

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from tf_yarn_ops.minicluster.daemon_settings import RESOURCEMANAGER_PORTS

#: Name of the pair of NameNodes in URLs, and of the pair of ResourceManagers.
SERVICE = "minicluster"
ZOOKEEPER = "zk"
#: The daemons of which a second one exists; their names are Hadoop's ids too.
RESOURCEMANAGERS, NAMENODES = ("rm", "rm2"), ("nn", "nn2")
#: After this time without a sign of life from the active ResourceManager the other one takes over. Hadoop: 10 s.
_SESSION_MILLISECONDS = 4000


def pair_yarn(values: dict[str, str], host: str, ports: Mapping[str, int]) -> None:
    """Replace the properties of one ResourceManager by those of two; ZooKeeper elects the active one, keeps the state."""
    prefix = "yarn.resourcemanager"
    for key in (*RESOURCEMANAGER_PORTS.values(), "hostname", "fs.state-store.uri"):
        del values[f"{prefix}.{key}"]
    values |= {
        f"{prefix}.{key}.{name}": f"{host}:{ports[name + end]}"
        for name in RESOURCEMANAGERS
        for end, key in RESOURCEMANAGER_PORTS.items()
    }
    values |= {
        f"{prefix}.ha.enabled": "true",
        f"{prefix}.cluster-id": SERVICE,
        f"{prefix}.ha.rm-ids": ",".join(RESOURCEMANAGERS),
        **{f"{prefix}.hostname.{name}": host for name in RESOURCEMANAGERS},
        f"{prefix}.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
        "hadoop.zk.address": f"127.0.0.1:{ports[ZOOKEEPER]}",
        "hadoop.zk.timeout-ms": str(_SESSION_MILLISECONDS),
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


def pair_hdfs(values: dict[str, str], host: str, ports: Mapping[str, int], directory: Path) -> None:
    """Replace the properties of one NameNode by those of two, of which a command makes one active."""
    for key in ("rpc-address", "http-address", "name.dir"):
        del values[f"dfs.namenode.{key}"]
    values |= {
        "dfs.nameservices": SERVICE,
        f"dfs.ha.namenodes.{SERVICE}": ",".join(NAMENODES),
        f"dfs.client.failover.proxy.provider.{SERVICE}":
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
        "dfs.namenode.shared.edits.dir": f"file://{directory}/nn-shared",
        # Nothing to do: `failover` kills the active NameNode before it makes the other one active.
        "dfs.ha.fencing.methods": "shell(/bin/true)",
    }  # fmt: skip
    for name in NAMENODES:
        values |= {
            f"dfs.namenode.rpc-address.{SERVICE}.{name}": f"{host}:{ports[name]}",
            f"dfs.namenode.http-address.{SERVICE}.{name}": f"{host}:{ports[f'{name}-web']}",
            f"dfs.namenode.name.dir.{SERVICE}.{name}": f"file://{directory}/{name}",
        }


def build_zookeeper_text(port: int, directory: Path) -> str:
    """Return ZooKeeper's configuration file."""
    return (
        f"tickTime=1000\ndataDir={directory}/zk\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
        "admin.enableServer=false\n"
    )
