"""How the clients of a test reach a real cluster: by its address, or by its address and a keytab, with nothing installed."""

import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
import yaml

from support.hadoop import HadoopCluster
from support.programs import ROOT
from support.waiting import PATIENCE
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site, find_site
from tf_yarn_ops.launch.launcher import Launcher

#: Seconds for one request: a DataNode of a loaded machine may need ten for a handshake.
REQUEST_TIMEOUT = Site().request_timeout * PATIENCE
#: What a client process keeps of this process's environment, where neither Java nor a compiler is on PATH.
_KEPT = ("HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_START")


@dataclass(frozen=True)
class Access:
    """The clients of one user of a cluster.

    Attributes
    ----------
    hadoop : HadoopCluster
    site : Site
        For clients in this process.
    environ : mapping of str to str
        The whole environment of a client process; it finds the cluster by it.
    """

    hadoop: HadoopCluster
    site: Site
    environ: Mapping[str, str]

    def discover(self, url=None, **site):
        """Return the cluster as its first ResourceManager, or the one at this address, tells it."""
        return discover(url or self.hadoop.resourcemanager_url, environ={}, site=replace(self.site, **site))

    def launcher(self, url=None, **site):
        return Launcher(self.discover(url, **site))


def plain(hadoop):
    """Return the access to a cluster without Kerberos, as the user of the tests."""
    return Access(
        hadoop, Site(), {**os.environ, **hadoop.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    )


@contextmanager
def by_keytab(hadoop, folder, user="alice"):
    """Give the access of a user of a secured cluster who has the address, the CA and a keytab, and neither Java nor gcc."""
    file = folder / "site.yaml"
    settings = {
        "resourcemanager": hadoop.resourcemanager_url,
        "keytab": str(hadoop.keytab(user)),
        "request_timeout": REQUEST_TIMEOUT,
        **({"ca_file": str(hadoop.ca_file)} if hadoop.ca_file else {}),
    }
    file.write_text(yaml.safe_dump(settings))
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ = {
        **kept,
        "PATH": "/nowhere",
        "KRB5_CONFIG": str(hadoop.krb5_conf),
        "YTF_SITE": str(file),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", environ["KRB5_CONFIG"])  # for clients in this process
        yield Access(hadoop, find_site({"YTF_SITE": str(file)}), environ)
