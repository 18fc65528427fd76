"""The staging directory: cache, visibility, secrets, folders, what is refused. On a real local file system."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from support.staging_place import ID, USER, cached, cluster_at, staged_at
from tf_yarn_ops.errors import SpecInvalid, SubmissionRejected
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts
from tf_yarn_ops.hadoop.filesystem import MountedFileSystem
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.hadoop.transport import RestUnavailable
from tf_yarn_ops.staging.staging_directory import StagingDirectory


def test_a_file_is_uploaded_once_under_its_content(staging, directory, root, caplog):
    caplog.set_level("INFO")
    first = staging.store(directory, b"jar", "skein.jar", public=True)
    place = cached(staging, root, b"jar", "skein.jar")
    written = place.stat().st_mtime_ns
    assert place.read_bytes() == b"jar"
    assert first.url == f"viewfs://mini/user/{USER}/.skein/cache/{place.parent.name}/skein.jar"
    assert (first.size, first.timestamp, first.type) == (3, written // 1_000_000, "FILE")
    assert staging.store(directory, b"jar", "skein.jar", public=True) == first
    assert (
        StagingDirectory(staging.cluster).store(directory, b"jar", "skein.jar", public=True).timestamp
        == first.timestamp
    )
    assert place.stat().st_mtime_ns == written
    assert caplog.text.count("uploading") == 1


def test_public_only_where_everybody_can_read(staging, directory, root):
    assert staging.store(directory, b"a", "a.jar", public=True).visibility == "PUBLIC"
    (root / "user" / USER).chmod(0o700)
    assert StagingDirectory(staging.cluster).store(directory, b"a", "a.jar", public=True).visibility == "PRIVATE"


def test_the_users_files_are_private(staging, directory, root):
    assert staging.store(directory, b"secret", "data.csv").visibility == "PRIVATE"
    place = cached(staging, root, b"secret", "data.csv")
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_cached_file_that_others_can_write_is_not_used(staging, directory, root, caplog):
    staging.store(directory, b"code", "code.py")
    place = cached(staging, root, b"code", "code.py")
    place.chmod(0o666)
    resource = staging.store(directory, b"code", "code.py")
    assert f"/{ID}/" in resource.url and resource.visibility == "APPLICATION"
    assert "not using the cached file" in caplog.text


@pytest.mark.parametrize("content", [b"", b"cod", b"codes"])
def test_a_cached_file_of_another_length_is_not_used(staging, directory, root, content):
    staging.store(directory, b"code", "code.py")
    cached(staging, root, b"code", "code.py").write_bytes(content)
    assert f"/{ID}/" in staging.store(directory, b"code", "code.py").url


def test_cached_file_of_the_trusted_owner_alone_is_used(staging, directory, root):
    staging.store(directory, b"code", "code.py")
    others = cluster_at(root).acting_for("somebody")
    stranger = StagingDirectory(staged_at(others, staging.cluster.staging))
    folder = f"{staging.cluster.staging}/{ID}"
    assert folder in stranger.store(stranger.directory(ID), b"code", "code.py").url
    site = Site(trusted_owner=USER, shared_cache=f"{staging.cluster.staging}/cache")
    friend = StagingDirectory(replace(others, site=site))
    assert friend.store(friend.directory(ID), b"code", "code.py").visibility == "PRIVATE"


def test_a_folder_that_others_can_write_makes_the_hit_worthless(staging, directory, root):
    staging.store(directory, b"code", "code.py")
    cached(staging, root, b"code", "code.py").parent.chmod(0o777)
    assert f"/{ID}/" in StagingDirectory(staging.cluster).store(directory, b"code", "code.py").url


@pytest.fixture
def edited(staging, monkeypatch):
    """Return a function: the file gets the next content each time it is opened to be uploaded."""
    create = staging.filesystem.create

    def edit(file, contents):
        def edit_and_create(path, data, permission):
            content = next(contents, None)
            if content is not None:
                file.write_bytes(content)
            return create(path, data, permission)

        monkeypatch.setattr(staging.filesystem, "create", edit_and_create)

    return edit


def test_file_edited_during_the_upload_never_has_a_wrong_digest(staging, directory, root, tmp_path, edited, caplog):
    file = tmp_path / "train.py"
    file.write_bytes(b"old")
    edited(file, iter([b"new", b"more"]))
    resource = staging.store(directory, file, "train.py")
    assert resource.url.endswith(f"/{hashlib.sha256(b'more').hexdigest()}/train.py")
    assert cached(staging, root, b"more", "train.py").read_bytes() == b"more"
    assert not any(list(cached(staging, root, other, "x").parent.iterdir()) for other in (b"old", b"new"))
    assert caplog.text.count("train.py has changed while it was uploaded") == 2


def test_a_file_that_never_comes_to_rest_is_a_fault_of_the_request(staging, directory, tmp_path, edited):
    file = tmp_path / "log"
    file.write_bytes(os.urandom(16))
    edited(file, iter(lambda: os.urandom(16), None))
    with pytest.raises(SpecInvalid, match=r"log was changed or removed 3 times while it was uploaded"):
        staging.store(directory, file, "log")


def test_growing_file_is_cut_and_a_shrinking_one_read_again(staging, directory, root, tmp_path, edited, caplog):
    """Its length has been announced: the other side would wait for the rest."""
    file = tmp_path / "log"
    file.write_bytes(b"1234")
    edited(file, iter([b"12345678", b"1"]))
    assert staging.store(directory, file, "log").url.endswith(f"/{hashlib.sha256(b'1234').hexdigest()}/log")
    assert cached(staging, root, b"1234", "log").read_bytes() == b"1234" and "has changed" not in caplog.text
    file.write_bytes(b"12")
    assert staging.store(directory, file, "log").url.endswith(f"/{hashlib.sha256(b'1').hexdigest()}/log")
    assert caplog.text.count("log has changed while it was uploaded") == 1
    assert list(cached(staging, root, b"12", "log").parent.iterdir()) == []


def test_racing_uploads_of_one_file_give_one_file(root):
    stagings = [StagingDirectory(cluster_at(root)) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for staging in stagings:
            staging.prepare(pool)
        directories = [staging.directory(f"application_1_{n:04d}") for n, staging in enumerate(stagings)]
        for directory in directories:
            directory.make()
        content = os.urandom(1 << 20)
        results = list(
            pool.map(lambda pair: pair[0].store(pair[1], content, "big.bin"), zip(stagings, directories, strict=True))
        )
    assert len(set(results)) == 1
    assert [path.name for path in cached(staging, root, content, "big.bin").parent.iterdir()] == ["big.bin"]


def test_names_are_made_fit_for_hdfs(staging, directory):
    assert staging.store(directory, b"x", "a:b c?.tar.gz").url.endswith("/a_b_c_.tar.gz")


def test_the_applications_directory_is_ours_alone(staging, directory, root):
    planned = directory.planned("key.pem", b"secret")
    directory.put("key.pem", b"secret")
    folder = root / f"user/{USER}/.skein/{ID}"
    assert folder.stat().st_mode & 0o777 == 0o700
    written = next(folder.rglob("key.pem"))
    assert (planned.visibility, planned.size) == ("APPLICATION", 6)
    assert planned.timestamp * 1_000_000 == written.stat().st_mtime_ns
    assert planned.url.endswith(f"{ID}/{written.parent.name}/key.pem")
    assert (written.parent.stat().st_mode & 0o777, written.stat().st_mode & 0o777) == (0o700, 0o600)
    assert staging.delete(ID) and not folder.exists()
    assert not staging.delete(ID)


def test_a_directory_that_lies_there_open_is_refused(staging, root):
    (root / f"user/{USER}/.skein/{ID}").mkdir(mode=0o755)
    with pytest.raises(SubmissionRejected, match="is not ours alone"):
        staging.directory(ID).make()


@pytest.mark.parametrize(
    "mode, user, message",
    [
        (0o755, "carol", rf"belongs to {USER}, who could exchange .*-chown carol /user/.*staging: /path"),
        (0o777, USER, r"every user can write the staging directory .* hdfs dfs -chmod go-w /user"),
        (0o1777, USER, ""),
        (0o775, USER, ""),
    ],
)
def test_staging_directory_that_another_user_controls_is_refused(root, mode, user, message):
    place = f"/user/{USER}/.skein"
    (root / place[1:]).mkdir(parents=True, exist_ok=True)
    (root / place[1:]).chmod(mode)
    check = StagingDirectory(staged_at(replace(cluster_at(root), user=user), place)).check_owner
    if not message:
        return check()
    with pytest.raises(SubmissionRejected, match=message):
        check()


def test_two_submitters_of_one_id_do_not_touch_each_other(staging, root):
    first, second = staging.directory(ID), staging.directory(ID)
    first.make()
    second.make()
    first.put("key.pem", b"one")
    second.put("key.pem", b"two")
    first.discard()
    assert [path.read_bytes() for path in (root / f"user/{USER}/.skein/{ID}").rglob("key.pem")] == [b"two"]
    second.discard()
    assert not (root / f"user/{USER}/.skein/{ID}").exists()


def test_a_file_that_is_in_the_cluster_is_used_as_it_is(staging, root):
    (root / "data").mkdir()
    (root / "data/env.tar.gz").write_bytes(b"12345")
    for uri in ("viewfs://mini/data/env.tar.gz", "viewfs:///data/env.tar.gz"):
        resource = staging.locate(uri, "ARCHIVE")
        assert (resource.url, resource.size, resource.type) == ("viewfs://mini/data/env.tar.gz", 5, "ARCHIVE")
    assert staging.locate("https://host/x.zip", "ARCHIVE").url == "https://host/x.zip"


@pytest.mark.parametrize(
    "uri, says",
    [
        ("viewfs://mini/none.zip", "there is no such file on viewfs://mini"),
        ("viewfs://mini/", "is a directory, not a file"),
        ("s3a://bucket/x.zip", "can't be asked over HTTP; copy the file to viewfs://mini"),
        ("viewfs://other/x.zip", "can't be asked over HTTP"),
        ("viewfs://other", "can't be asked over HTTP"),
    ],
)
def test_a_file_that_is_not_to_be_had(staging, uri, says):
    with pytest.raises(SpecInvalid, match=says):
        staging.locate(uri, "FILE")


def test_a_home_that_can_not_be_made_says_what_to_do(tmp_path):
    file = tmp_path / "user"
    file.write_text("not a folder")
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(SubmissionRejected, match=r"ask the administrator.*staging: /path"),
    ):
        StagingDirectory(cluster_at(tmp_path)).prepare(pool)


def test_no_http_address_names_the_lines_for_the_site_file():
    cluster = Cluster(("http://rm",), "ann", "ann", StorageFacts("s3a://bucket", "s3a://bucket", "/user/{user}/.skein"))
    with pytest.raises(RestUnavailable, match=r"webhdfs: http://namenode:9870.*staging_url: hdfs://"):
        cluster.open_filesystem()


def test_file_of_the_default_file_system_is_not_sought_in_staging(root):
    """A path there would be another file, or none."""
    cluster = cluster_at(root)
    cluster = replace(cluster, storage=replace(cluster.storage, default="hdfs://a:8020", filesystem="hdfs://b:8020"))
    (root / "x.zip").write_bytes(b"1")
    staging = StagingDirectory(cluster)
    for uri in ("hdfs://a:8020/x.zip", "hdfs:///x.zip"):
        with pytest.raises(
            SpecInvalid, match=f"{uri} is on a file system that can't be asked .* copy the file to hdfs://b:8020"
        ):
            staging.locate(uri, "ARCHIVE")
    assert staging.locate("hdfs://b:8020/x.zip", "ARCHIVE").size == 1


def test_a_directory_in_the_users_home_is_deleted_too(staging, root):
    """There Skein's own client has put it, whatever the site's staging directory is."""
    elsewhere = StagingDirectory(staged_at(staging.cluster, "/scratch/{user}"))
    (root / f"user/{USER}/.skein/{ID}").mkdir()
    assert elsewhere.delete(ID) and not elsewhere.delete(ID)
    assert not (root / f"user/{USER}/.skein/{ID}").exists()


def test_the_local_file_system_never_overwrites(root):
    files = MountedFileSystem(str(root))
    assert files.create("/a", b"1", 0o600) and not files.create("/a", b"2", 0o600)
    assert files.create("/b", [b"", b"3"], 0o600) and not files.rename("/b", "/a")
    assert files.read("/a") == b"1" and files.read("/none") is None
    assert files.rename("/b", "/c") and files.read("/c") == b"3"
    assert files.list("/none") == [] and files.status("/a/b") is None
    assert files.delete("/c") and not files.delete("/c")


def test_what_was_never_begun_is_not_discarded(staging, root):
    directory = staging.directory(ID)
    (root / directory.path.lstrip("/")).mkdir(parents=True)
    directory.discard()
    assert (root / directory.path.lstrip("/")).exists(), "it is another submitter's"
