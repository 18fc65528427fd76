"""A staging directory on a folder of the test."""

import hashlib

from tf_yarn_ops.hadoop.cluster import Cluster, current_user
from tf_yarn_ops.hadoop.site import Site

USER = current_user({})


ID = "application_1_0001"


def cluster_at(root, **site):
    return Cluster(
        ("http://rm:8088",),
        USER,
        USER,
        "viewfs://mini",
        "viewfs://mini",
        "/user/{user}/.skein",
        local_root=str(root),
        site=Site(**site),
    )


def cached(staging, root, content, name):
    return root / f"user/{USER}/.skein/cache" / hashlib.sha256(content).hexdigest() / name
