"""The calls of a store mean the same on a local folder and in HDFS, for a container and for a client."""

import pytest

from support.fake_webhdfs import serving_files
from tf_yarn_ops.hadoop.filesystem import MountedFileSystem
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.runtime.common.file_storage import LocalFolder, StorageRefused, put_whole
from tf_yarn_ops.runtime.common.hdfs import Hdfs


@pytest.fixture(params=["local folder", "mounted", "container", "client"])
def store(request, tmp_path):
    """Yield each store, and a function that returns the content of its file /d/x."""
    if request.param in ("local folder", "mounted"):
        files = {"local folder": LocalFolder, "mounted": MountedFileSystem}[request.param](str(tmp_path))
        files.makedirs("/d", 0o700)
        yield files, lambda: (tmp_path / "d/x").read_bytes()
    else:
        with serving_files() as served:
            files = (Hdfs([served.url], "ann", {}) if request.param == "container"
                     else WebHdfs((served.url,), SimpleAuthentication("ann"), 10.0))
            yield files, lambda: served.files["/d/x"]


def test_create_keeps_the_file_that_has_the_path(store):
    files, content = store
    assert files.create("/d/x", b"1", 0o600) is True
    assert files.create("/d/x", b"2", 0o600) is False
    assert content() == b"1"


def test_replace_writes_over_the_file(store):
    files, content = store
    for text in (b"1", b"2"):
        files.replace("/d/x", text, 0o600)
        assert content() == text


def test_put_whole_writes_once_and_leaves_no_other_file(store):
    files, content = store
    assert put_whole(files, "/d/x", b"1") is True
    assert put_whole(files, "/d/x", b"2") is False
    assert content() == b"1"
    assert files.delete("/d/x") is True and files.delete("/d/x") is False


def test_a_local_folder_names_what_the_system_refuses(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageRefused, match=r"writing /file/x: Not a directory"):
        LocalFolder(str(tmp_path)).create("/file/x", b"", 0o600)
