"""The application of ``ytf ui`` over a file system that is a folder, and a YARN on the wire."""

import httpx
import pytest

from support.records import DAY, keep, record
from support.records_served import serving_pages
from support.staging_place import USER
from support.ui_site import EVIL, NOW
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.staging.staging_directory import StagingDirectory


@pytest.fixture
def place(yarn, tmp_path):
    return Cluster(
        (yarn.url,),
        USER,
        USER,
        StorageFacts("viewfs://mini", "viewfs://mini", "/user/{user}/.skein", local_root=str(tmp_path)),
    )


@pytest.fixture
def pages(place):
    with serving_pages(place) as url:
        yield url


@pytest.fixture
def site(place, pages):
    """Return a function that gets a page; there are three records."""
    files = StagingDirectory(place).filesystem
    for made in (
        record(1, user=USER, ended=NOW - DAY),
        record(2, user=USER, name=EVIL, ended=NOW - 2 * DAY, loss=0.5),
        record(
            3,
            user="bob",
            reason=Reason.TASK_FAILED,
            ended=NOW - 40 * DAY,
            queue=EVIL,
            tail=EVIL,
            options={"env": {EVIL: EVIL}},
            metrics={EVIL: 1.0},
        ),
    ):
        keep(files, place.acting_for(made["user"]).history, made)
    with httpx.Client(base_url=pages.partition("?")[0], trust_env=False) as client:
        assert client.get(pages).status_code == 303
        yield lambda path, **options: client.get(path, **options)
