"""The cache as its owner sees it. On a real local file system."""

import os
import time

from support.staging_place import cached
from tf_yarn_ops.staging.prune import list_cache, prune_cache


def test_files_are_listed_the_longest_unused_first(staging, directory, root):
    for content in (b"one", b"second"):
        staging.store(directory, content, f"{content.decode()}.bin")
    os.utime(cached(staging, root, b"second", "second.bin"), (1000, 1000))
    assert [(file.name, file.size, file.abandoned) for file in list_cache(staging)] == [
        ("second.bin", 6, False),
        ("one.bin", 3, False),
    ]
    assert list_cache(staging)[0].used_at == 1000


def test_prune_deletes_the_unused_and_the_abandoned_with_their_folders(staging, directory, root):
    now = time.time()
    for name, age in (("new", 1), ("old", 31)):
        staging.store(directory, name.encode(), name)
        os.utime(cached(staging, root, name.encode(), name), (now - age * 86400,) * 2)
    left = cached(staging, root, b"new", ".0123")
    left.write_bytes(b"ne")
    os.utime(left, (now - 2 * 86400,) * 2)
    assert sorted(file.name for file in prune_cache(staging)) == [".0123", "old"]
    assert [file.name for file in list_cache(staging)] == ["new"]
    assert not cached(staging, root, b"old", "old").parent.exists()
    assert prune_cache(staging) == []


def test_an_empty_cache(staging):
    assert list_cache(staging) == [] and prune_cache(staging) == []
