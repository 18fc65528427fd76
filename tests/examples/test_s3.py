"""The copies of the digits example: moto's server is on the wire, boto3 finds it as on a cluster's node."""

import os
from importlib import import_module
from pathlib import Path

import pytest

from support.s3_server import s3_server

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        server.client.create_bucket(Bucket="lake")
        yield server


@pytest.fixture
def copy_of(monkeypatch, tmp_path, server):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(server.config))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.chdir(tmp_path)
    return lambda url: import_module("s3_copy").S3Copy(url)


def files_of(copy):
    return {
        path.relative_to(copy.path).as_posix(): path.read_text()
        for path in Path(copy.path).rglob("*")
        if path.is_file()
    }


def test_an_object_is_copied_and_a_missing_one_is_not_there(server, copy_of):
    server.client.put_object(Bucket="lake", Key="data/the digits#1.npz", Body=b"digits")
    assert Path(copy_of("s3://lake/data/the digits#1.npz").path).read_bytes() == b"digits"
    assert not Path(copy_of("s3://lake/data/the").path).exists()


def test_a_folder_is_copied_and_its_changes_are_uploaded(server, copy_of):
    url = "s3://lake/out/checkpoints/"
    for key, body in {
        "checkpoints/ckpt-1.index": b"one",
        "checkpoints/variables/part": b"old",
        "checkpoints/of-others": b"kept",
        "checkpoints/marked/": b"",
        "checkpoints-2/of-a-neighbour": b"not ours",
    }.items():
        server.client.put_object(Bucket="lake", Key=f"out/{key}", Body=body)
    copy = copy_of(url)
    assert files_of(copy) == {"ckpt-1.index": "one", "variables/part": "old", "of-others": "kept"}
    server.client.put_object(Bucket="lake", Key="out/checkpoints/of-others", Body=b"newer")
    folder = Path(copy.path)
    (folder / "ckpt-1.index").unlink()
    (folder / "variables" / "part").write_text("new")
    (folder / "ckpt-2.index").write_text("two")
    copy.push()
    assert files_of(copy_of(url)) == {"ckpt-2.index": "two", "variables/part": "new", "of-others": "newer"}
    assert server.read("lake", "out/checkpoints-2/of-a-neighbour") == b"not ours"
