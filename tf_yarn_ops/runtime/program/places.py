"""`find_hdfs`: the client for a file system of HDFS, by what the job file says about its NameNodes."""

import functools
import os
from typing import Tuple
from urllib.parse import urlsplit

from ..common.contract import Job, read_job
from ..common.hdfs import Hdfs

HDFS_SCHEME = "hdfs://"
#: The port of a NameNode's pages, where the job file does not name it.
_PORT = 9870
#: Seconds for which a program waits for NameNodes that change over, or DataNodes that die.
PATIENCE = 60.0


def split_url(url: str) -> Tuple[str, str]:
    """Return the authority of an ``hdfs://`` URL, or of a bare path, which has none, and the path."""
    authority, slash, path = url[len(HDFS_SCHEME) :].partition("/") if url.startswith(HDFS_SCHEME) else ("", "", url)
    return authority, os.path.normpath("/" + path.lstrip("/")) if slash or path else "/"


@functools.lru_cache(maxsize=None)
def find_hdfs(authority: str = "", user: str = "") -> Hdfs:
    """Return the client of a file system.

    Parameters
    ----------
    authority : str, optional
        ``host:port`` of a NameNode, or the name of a pair. Default: the cluster's default file system.
    user : str, optional
        Who asks, on a cluster without Kerberos. Default: HADOOP_USER_NAME, else the job's user.
    """
    job = _read_job()
    urls = job.namenodes.get(authority) or ["http://%s:%d" % (urlsplit("//" + authority).hostname, _PORT)]
    return Hdfs(
        urls, user or os.environ.get("HADOOP_USER_NAME") or job.user, os.environ, job.authorities, patience=PATIENCE
    )


@functools.lru_cache(maxsize=None)
def _read_job() -> Job:
    # This module lies in the runtime zip, beside which is the job file.
    return read_job(os.path.dirname(__file__.partition("/tf_yarn_ops/runtime/")[0]))
