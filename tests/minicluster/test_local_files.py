"""The local file system of YARN's daemons on a running cluster."""

import xml.etree.ElementTree

import httpx
import pytest

from tf_yarn_ops.minicluster import additions


@pytest.mark.cluster
def test_real_daemons_use_it_and_set_permissions(minicluster):
    url = minicluster.resourcemanager_url
    for name, value in additions.LOCAL_FILES.items():
        told = xml.etree.ElementTree.fromstring(httpx.get(f"{url}/conf", params={"name": name, "format": "xml"}).text)
        assert told.findtext("property/value") == value
    folders = {name: (minicluster.directory / "nm" / "local" / name).stat().st_mode & 0o7777 for name in ("nmPrivate", "usercache", "filecache")}
    assert folders == {"nmPrivate": 0o700, "usercache": 0o755, "filecache": 0o755}
