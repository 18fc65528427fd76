"""A staging directory on a folder of the test."""

import hashlib
from dataclasses import replace

from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts, current_user
from tf_yarn_ops.hadoop.site import Site

USER = current_user({})


ID = "application_1_0001"


def cluster_at(root, **site):
    return Cluster(
        ("http://rm:8088",),
        USER,
        USER,
        StorageFacts("viewfs://mini", "viewfs://mini", "/user/{user}/.skein", local_root=str(root)),
        site=Site(**site),
    )


def staged_at(cluster, template):
    """Return a cluster with another staging directory."""
    return replace(cluster, storage=replace(cluster.storage, staging_template=template))


def cached(staging, root, content, name):
    return root / f"user/{USER}/.skein/cache" / hashlib.sha256(content).hexdigest() / name
