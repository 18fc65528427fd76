"""The example's storage in S3: moto's server is on the wire, boto3 finds it as on a cluster's node."""

import os
import subprocess
import sys
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
def storage(monkeypatch, tmp_path, server):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(server.config))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.chdir(tmp_path)
    return import_module("storage")


def test_data_is_prepared_in_s3_and_read_from_there(storage, server, tmp_path):
    target = tmp_path / "digits.npz"
    for place in ("s3://lake/data/the digits#1.npz", str(target)):
        subprocess.run([sys.executable, EXAMPLE / "prepare.py", place], check=True, timeout=120)
    assert server.keys("lake") == ["data/the digits#1.npz"]
    assert storage.read_bytes("s3://lake/data/the digits#1.npz") == target.read_bytes()


def test_a_folder_in_s3_is_the_same_on_both_sides(storage, server):
    url = "s3://lake/out/checkpoints/"
    writer, reader = storage.Folder(url), storage.Folder(url)
    reader.pull()  # nothing is there yet
    for name, content in ("ckpt-1.index", "one"), ("variables/part", "old"):
        (writer.path / name).parent.mkdir(exist_ok=True)
        (writer.path / name).write_text(content)
    writer.push()
    assert {"out/checkpoints/ckpt-1.index", "out/checkpoints/variables/part"} <= set(server.keys("lake"))
    reader.pull()
    assert (reader.path / "ckpt-1.index").read_text() == "one"
    (writer.path / "ckpt-1.index").unlink()
    (writer.path / "variables" / "part").write_text("newer")
    server.client.put_object(Bucket="lake", Key="out/checkpoints/of-others", Body=b"kept")
    server.client.put_object(Bucket="lake", Key="out/checkpoints/marked/", Body=b"")
    server.client.put_object(Bucket="lake", Key="out/checkpoints-2/of-a-neighbour", Body=b"not ours")
    writer.push()
    reader.pull()
    found = {path.relative_to(reader.path).as_posix(): path.read_text()
             for path in reader.path.rglob("*") if path.is_file()}
    assert found == {"variables/part": "newer", "of-others": "kept"}
    assert server.read("lake", "out/checkpoints-2/of-a-neighbour") == b"not ours"


def test_a_folder_of_more_objects_than_one_page_comes_whole(storage, server):
    server.client.create_bucket(Bucket="many")
    for number in range(1003):
        server.client.put_object(Bucket="many", Key=f"{number}", Body=b"")
    folder = storage.Folder("s3://many")
    assert len(dict(folder._store.walk())) == 1003


def test_missing_object_is_reported_with_its_url(storage):
    with pytest.raises(FileNotFoundError, match="there is no s3://lake/no/such"):
        storage.read_bytes("s3://lake/no/such")


@pytest.mark.parametrize("url", ["s3:///data/digits.npz", "s3://lake/data?versionId=1"])
def test_url_of_another_scheme_is_refused_by_s3(storage, url):
    with pytest.raises(ValueError, match="is no s3://bucket/key"):
        storage.read_bytes(url)
