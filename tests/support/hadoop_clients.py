"""Clients of a ResourceManager, and the variables and files from which they learn about the cluster."""

from tf_yarn_ops.hadoop.resourcemanager import ResourceManager
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication


def client(*urls, user="ann", **options):
    options = {"patience": 0.5, "request_timeout": 10} | options
    return ResourceManager(urls, SimpleAuthentication("ann", user), **options)


def environ(tmp_path, **variables):
    return {"HOME": str(tmp_path), "HADOOP_USER_NAME": "ann", **variables}


def write_conf(folder, name="core-site.xml", **values):
    folder.mkdir(exist_ok=True)
    items = "".join(
        f"<property><name>{key.replace('__', '.')}</name><value>{value}</value></property>"
        for key, value in values.items()
    )
    (folder / name).write_text(f"<configuration>{items}</configuration>")
