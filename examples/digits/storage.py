"""Folders and files on a shared disk, in HDFS or in S3, as local paths that every library can open.

Outside a container of ours TensorFlow's ``hdfs://`` needs Hadoop's native library and a Java class path, and its
``s3://`` is gone. This module needs neither: it speaks WebHDFS with the standard library, and S3 through ``boto3``,
which is imported only when a URL asks for it.

HDFS: the NameNode's HTTP address is the first that is found of ``$WEBHDFS_URL`` (several NameNodes: joined by ``;``),
``dfs.namenode.http-address`` in ``$HADOOP_CONF_DIR/hdfs-site.xml`` (of it the port, if the URL names a host), and
port 9870 on the URL's own host.

S3: keys, region and endpoint are found as boto3 finds them: ``$AWS_...``, the file that ``$AWS_CONFIG_FILE`` names,
the identity of the machine.
"""

import getpass
import json
import os
import tempfile
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener
from xml.etree import ElementTree


def local_path(url):
    """The path that a ``file://`` URL or a plain path names."""
    return Path(unquote(urlsplit(url).path) if url.startswith("file://") else url)


def webhdfs_address(url, environ=os.environ):
    """The NameNodes' HTTP addresses for an ``hdfs://`` URL, joined by ``;``."""
    if environ.get("WEBHDFS_URL"):
        return environ["WEBHDFS_URL"]
    authority = urlsplit(url).netloc
    host = authority.rpartition(":")[0] or authority
    site = Path(environ.get("HADOOP_CONF_DIR", "."), "hdfs-site.xml")
    if site.exists():
        properties = ElementTree.parse(site).iter("property")
        addresses = {entry.findtext("name", ""): entry.findtext("value", "") for entry in properties}
        key = "dfs.namenode.http-address"
        of_nameservice = [value for name, value in addresses.items() if name.startswith(f"{key}.{authority}.")]
        found = of_nameservice or [value for name, value in addresses.items() if name == key]
        if found:
            if host and not of_nameservice:  # the site file may be that of another cluster
                found = [f"{host}:{address.rpartition(':')[2]}" for address in found]
            return ";".join(f"http://{address}" for address in found)
    if not host:
        raise ValueError(f"{url} names no NameNode: set WEBHDFS_URL to its HTTP address, such as http://namenode:9870")
    return f"http://{host}:9870"


class Hdfs:
    """The file or folder of an ``hdfs://`` URL; the names of its methods are relative to it, none is itself."""

    def __init__(self, url):
        self._addresses = webhdfs_address(url).split(";")
        self._user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self._root = unquote(urlsplit(url).path)

    def read(self, name=""):
        return self._ask("GET", self._path(name), "OPEN")

    def write(self, content, name=""):
        """Write beside the file and rename: WebHDFS shows a file from the moment it is opened, empty until its end."""
        path = PurePosixPath(self._path(name))
        part = str(path.with_name(f".{path.name}.part"))
        self._ask("PUT", part, "CREATE", content, overwrite="true")
        self._ask("DELETE", str(path), "DELETE")  # a rename in HDFS does not replace
        self._ask("PUT", part, "RENAME", destination=str(path))

    def delete(self, name):
        self._ask("DELETE", self._path(name), "DELETE")

    def walk(self, folder=""):
        """Each file below, and a stamp that changes with its content."""
        try:
            answer = self._ask("GET", self._path(folder), "LISTSTATUS")
        except FileNotFoundError:
            return
        for status in json.loads(answer)["FileStatuses"]["FileStatus"]:
            name = str(PurePosixPath(folder, status["pathSuffix"]))
            if status["type"] == "DIRECTORY":
                yield from self.walk(name)
            elif not name.endswith(".part"):
                yield name, (status["length"], status["modificationTime"])

    def _path(self, name):
        return f"{self._root}/{name}" if name else self._root

    def _ask(self, method, path, operation, content=None, **parameters):
        """The answer of the first NameNode that is active."""
        query = urlencode({"op": operation, "user.name": self._user, **parameters})
        for number, address in enumerate(self._addresses, 1):
            try:
                return self._send(method, f"{address.rstrip('/')}/webhdfs/v1{quote(path)}?{query}", content)
            except HTTPError as error:
                text = error.read().decode(errors="replace")
                if error.code == 404 and "FileNotFoundException" in text:
                    raise FileNotFoundError(f"there is no {path} in HDFS") from error
                if "StandbyException" not in text or number == len(self._addresses):
                    raise OSError(f"HDFS refuses {operation} of {path}: {text}") from error
            except URLError:
                if number == len(self._addresses):
                    raise

    def _send(self, method, url, content):
        """A NameNode redirects what has content to a DataNode, which gets the content."""
        headers = {"Content-Type": "application/octet-stream", "X-XSRF-HEADER": "digits"}
        opener = build_opener(ProxyHandler({}))
        try:
            with opener.open(Request(url, method=method, headers=headers), timeout=60) as answer:
                return answer.read()
        except HTTPError as error:
            if error.code != 307:
                raise
            place = error.headers["Location"]
        with opener.open(Request(place, method=method, data=content, headers=headers), timeout=60) as answer:
            return answer.read()


class S3:
    """The object of an ``s3://`` URL, or all below it as below a folder; methods as those of `Hdfs`."""

    def __init__(self, url):
        import boto3  # only who uses S3 needs the package

        self._client = boto3.Session().client("s3")
        parts = urlsplit(url, allow_fragments=False)  # keys are taken as they are typed, as the AWS tools do
        if not parts.netloc or parts.query:
            raise ValueError(f"{url} is no s3://bucket/key")
        self._bucket, self._root = parts.netloc, parts.path.strip("/")

    def read(self, name=""):
        key = self._key(name)
        try:
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except self._client.exceptions.NoSuchKey as error:
            raise FileNotFoundError(f"there is no s3://{self._bucket}/{key}") from error

    def write(self, content, name=""):
        """Put the object: S3 shows it when it is complete."""
        self._client.put_object(Bucket=self._bucket, Key=self._key(name), Body=content)

    def delete(self, name):
        self._client.delete_object(Bucket=self._bucket, Key=self._key(name))

    def walk(self):
        """Each object below, and a stamp that changes with its content."""
        prefix = f"{self._root}/" if self._root else ""
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
            for found in page.get("Contents", ()):
                if not found["Key"].endswith("/"):  # some tools mark folders by an empty object
                    yield found["Key"].removeprefix(prefix), (found["Size"], found["ETag"])

    def _key(self, name):
        return "/".join(part for part in (self._root, name) if part)


STORES = {"hdfs": Hdfs, "s3": S3}


def is_remote(url):
    """True for a URL in HDFS or S3, False for a path on a local or shared disk."""
    return urlsplit(url).scheme in STORES


def connect(url):
    """The store of a remote URL."""
    return STORES[urlsplit(url).scheme](url)


def read_bytes(url):
    """The whole content of a file."""
    return connect(url).read() if is_remote(url) else local_path(url).read_bytes()


def write_bytes(url, content):
    """Write a file, and its folders; a reader sees the old content or the new, never half of it."""
    if is_remote(url):
        connect(url).write(content)
    else:
        path = local_path(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(content)
        part.replace(path)


class Folder:
    """A folder that lives at `url` and is used at `path`.

    On a local or shared disk the two are one place, and `pull` and `push` have nothing to do. For HDFS and S3 `path`
    is a temporary copy: `pull` brings what is new at `url`, `push` sends what is new at `path`.

    Parameters
    ----------
    url : str
        A path, a ``file://``, ``hdfs://`` or ``s3://`` URL. It is created by the first push.
    """

    def __init__(self, url):
        self.url = url.rstrip("/")
        self.remote = is_remote(url)
        if self.remote:
            # In the container's own directory, which YARN removes even after a SIGKILL.
            self._temporary = tempfile.TemporaryDirectory(prefix="digits-", dir=os.getcwd())
            self._store = connect(self.url)
            self._here, self._there = {}, {}  # the stamps of each file on both sides when they last were equal
        self.path = Path(self._temporary.name) if self.remote else local_path(self.url)
        self.path.mkdir(parents=True, exist_ok=True)

    def pull(self):
        """Bring the files that are new or changed at `url`, and drop those that were brought and are gone there."""
        if not self.remote:
            return
        there = dict(self._store.walk())
        for name in self._there.keys() - there.keys():
            (self.path / name).unlink(missing_ok=True)
        for name, stamp in there.items():
            if self._there.get(name) != stamp:
                self._bring(name)
        self._here, self._there = self._walk_local(), there

    def push(self):
        """Send the files that are new or changed at `path`, oldest first, and drop those that were and are gone."""
        if not self.remote:
            return
        here = self._walk_local()
        for name in sorted(here, key=lambda name: here[name][1]):
            if self._here.get(name) != here[name]:
                self._store.write((self.path / name).read_bytes(), name)
        for name in self._here.keys() - here.keys():
            self._store.delete(name)
        self._here, self._there = here, dict(self._store.walk())

    def _bring(self, name):
        try:
            write_bytes(str(self.path / name), self._store.read(name))
        except FileNotFoundError:
            pass  # its owner removed it since it was listed

    def _walk_local(self):
        files = [path for path in self.path.rglob("*") if path.is_file() and not path.name.endswith(".part")]
        stats = {str(path.relative_to(self.path)): path.stat() for path in files}
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}
