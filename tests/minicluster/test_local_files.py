"""The local file system of YARN's daemons on a running cluster."""

import os
import re
import subprocess
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


@pytest.mark.cluster
def test_it_tells_of_files_what_hadoops_own_tells(minicluster, tmp_path):
    settings = minicluster.settings
    (tmp_path / "folder").mkdir(mode=0o710)
    (tmp_path / "file").write_text("content")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")

    def shell(*conf):
        """Return what Hadoop's shell tells of the files, with the configuration of clients or of YARN's daemons."""
        folders = [f"{settings.hadoop}/jars/*", *map(str, conf), str(settings.configuration)]
        said = []
        for words in (["-chmod", "1750", "folder"], ["-ls", "", "file/below", "missing"]):
            words = [word if word[:1] == "-" or word == "1750" else f"file://{tmp_path}/{word}" for word in words]
            ran = subprocess.run(
                [f"{settings.java_home}/bin/java", "-cp", os.pathsep.join(folders), "org.apache.hadoop.fs.FsShell", *words],
                capture_output=True, text=True, timeout=120, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
            said.append((ran.returncode, ran.stdout, re.findall(r"^(?:ls|chmod): .*", ran.stderr, re.M)))
        (tmp_path / "folder").chmod(0o710)
        return said

    ours = shell(settings.local_files, settings.yarn_configuration)
    assert ours == shell()
    (_, _, _), (code, listed, faults) = ours
    assert code == 1 and "drwxr-x--T" in listed and len(faults) == 2, ours
