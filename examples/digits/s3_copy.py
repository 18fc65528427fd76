"""Copies of what lies in S3, because TensorFlow does not open ``s3://``; boto3 finds keys, region and endpoint."""

import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import boto3


class S3Copy:
    """The object of an ``s3://bucket/key`` URL, or all objects below it, as a local file or folder at `path`."""

    def __init__(self, url):
        parts = urlsplit(url, allow_fragments=False)
        key = parts.path.strip("/")
        prefix = key and f"{key}/"
        self._bucket = boto3.resource("s3").Bucket(parts.netloc)
        # In the container's own directory, which YARN removes even after a SIGKILL.
        self._root = Path(tempfile.mkdtemp(prefix="s3-", dir=os.getcwd()))
        self.path = str(self._root / key)
        for found in self._bucket.objects.filter(Prefix=key):
            if f"{found.key}/".startswith(prefix) and not found.key.endswith("/"):  # no neighbours, no folder marks
                target = self._root / found.key
                target.parent.mkdir(parents=True, exist_ok=True)
                self._bucket.download_file(found.key, target)
        self._seen = self._stamps()

    def push(self):
        """Upload what is new or changed, oldest first: a checkpoint's data before its index. Delete what is gone."""
        stamps = self._stamps()
        for key in sorted(stamps, key=stamps.get):
            if self._seen.get(key) != stamps[key]:
                self._bucket.upload_file(self._root / key, key)
        for key in self._seen.keys() - stamps.keys():
            self._bucket.Object(key).delete()
        self._seen = stamps

    def _stamps(self):
        files = (path for path in self._root.rglob("*") if path.is_file())
        return {path.relative_to(self._root).as_posix(): path.stat().st_mtime_ns for path in files}
