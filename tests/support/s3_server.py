"""An S3 of this machine: moto's server, a process of its own, and the file that leads boto3 to it."""

import subprocess
import sys
from contextlib import contextmanager

import boto3
import httpx

from support.waiting import until
from tf_yarn_ops.minicluster.ports import choose_ports

KEY = "AKIAONLYOFTHISTEST"
SECRET = "a-secret-that-no-page-may-show"


class S3Server:
    """The server's address, the configuration file that boto3 reads, and a client to look inside."""

    def __init__(self, folder):
        self.port = choose_ports(["s3"])["s3"]
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = folder / "moto.log"
        self.config = folder / "aws-config"
        settings = {
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "region": "us-east-1",
            "endpoint_url": self.address,
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        self.config.write_text("\n".join(["[default]", *lines, ""]))
        self.config.chmod(0o600)
        self.client = boto3.Session().client(
            "s3",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            endpoint_url=self.address,
        )

    def keys(self, bucket):
        return sorted(found["Key"] for found in self.client.list_objects_v2(Bucket=bucket).get("Contents", ()))

    def read(self, bucket, key):
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()


@contextmanager
def s3_server(folder):
    """Run the server; its files lie in the folder."""
    server = S3Server(folder)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(server.port)]
    with open(server.log, "ab") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=folder) as process:

        def answers():
            assert process.poll() is None, server.log.read_text()
            try:
                return httpx.get(f"{server.address}/moto-api/", trust_env=False).is_success
            except httpx.HTTPError:
                return False

        try:
            until(answers, 60, 0.1)
            yield server
        finally:
            process.kill()
