"""The body of a submission over REST, and ``.skein.proto``: golden files of the whole request."""

import json
import os
from pathlib import Path

import pytest
from google.protobuf import text_format
from skein import proto as skein_proto

from submit.test_application import JOBS
from tf_yarn_ops.hadoop.cluster import Cluster, NodeFacts, StorageFacts
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.staging.staging_directory import LocalResource
from tf_yarn_ops.submit.application import build
from tf_yarn_ops.submit.yarn_request import Staged, build_body, build_proto, sources

GOLDEN = Path(__file__).parent / "golden"
ID = "application_1700000000000_0007"
CLUSTER = Cluster(("http://rm:8088",), "ann", "ann", StorageFacts("hdfs://nn:8020", "hdfs://nn:8020", "/user/{user}/.skein"), site=Site(docker_folders=("/opt/hadoop",)), nodes=NodeFacts(classpath=("/conf", "/share/*")))  # fmt: skip


def resource(name, type_="FILE"):
    return LocalResource(f"hdfs://nn:8020/user/ann/.skein/{name}", len(name), 1700000000000, type=type_)


def rendered(spec):
    application = build(spec, CLUSTER.site)
    files = {key: resource(f"files/{number}", key[1]) for number, key in enumerate(sources(application))}
    staged = Staged(
        resource("skein.jar"),
        resource("crt"),
        resource("pem"),
        {name: resource(f"{name}.sh") for name in application.services},
        files,
    )
    body = build_body(
        application,
        staged,
        resource("proto"),
        application_id=ID,
        cluster=CLUSTER,
        tags={"tfy-1", *application.tags},
        priority=spec.priority,
        verdict_secret="0123456789abcdef",
    )
    message = skein_proto.ApplicationSpec.FromString(build_proto(application, staged))
    return json.dumps(body, indent=1) + "\n---\n" + text_format.MessageToString(message)


@pytest.mark.parametrize("name", JOBS)
def test_request_to_yarn_equals_its_golden_file(name):
    golden, text = GOLDEN / f"{name}.request.txt", rendered(JOBS[name])
    if os.environ.get("ACCEPT_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text(), "accept an intended change with ACCEPT_GOLDEN=1, and read the diff"
