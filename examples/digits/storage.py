"""Folders and files that live on a shared disk or in HDFS, as local paths that every library can open.

TensorFlow's own ``hdfs://`` needs Hadoop's native library and a Java class path in the container. This module needs
neither: it speaks WebHDFS through the ``hdfs`` package, and only when a URL starts with ``hdfs://``.

The NameNode's HTTP address is the first that is found of ``$WEBHDFS_URL`` (several NameNodes: joined by ``;``),
``dfs.namenode.http-address`` in ``$HADOOP_CONF_DIR/hdfs-site.xml``, and port 9870 on the URL's own host.
"""

import getpass
import os
import tempfile
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree


def is_hdfs(url):
    """True for a URL in HDFS, False for a path on a local or shared disk."""
    return url.startswith("hdfs://")


def local_path(url):
    """The path that a ``file://`` URL or a plain path names."""
    return Path(unquote(urlsplit(url).path) if url.startswith("file://") else url)


def webhdfs_address(url, environ=os.environ):
    """The NameNodes' HTTP addresses for an ``hdfs://`` URL, as ``hdfs.InsecureClient`` takes them: joined by ``;``."""
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
            return ";".join(f"http://{address}" for address in found)
    if not host:
        raise ValueError(f"{url} names no NameNode: set WEBHDFS_URL to its HTTP address, such as http://namenode:9870")
    return f"http://{host}:9870"


def connect(url):
    """A WebHDFS client for the file system of an ``hdfs://`` URL, and the path inside it."""
    import hdfs  # only who uses HDFS needs the package

    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    client = hdfs.InsecureClient(webhdfs_address(url), user=user, timeout=60)
    return client, unquote(urlsplit(url).path)


def read_bytes(url):
    """The whole content of a file."""
    if not is_hdfs(url):
        return local_path(url).read_bytes()
    client, path = connect(url)
    with client.read(path) as reader:
        return reader.read()


def write_bytes(url, content):
    """Write a file, and its folders; a reader sees the old content or the new, never half of it."""
    if is_hdfs(url):
        client, path = connect(url)
        _put(client, path, content)
    else:
        path = local_path(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(content)
        part.replace(path)


def _put(client, path, content):
    """Write beside the file and rename: WebHDFS shows a file from the moment it is opened, and empty until its end."""
    name = PurePosixPath(path)
    part = str(name.with_name(f".{name.name}.part"))
    client.write(part, data=content, overwrite=True)
    client.delete(path)  # a rename in HDFS does not replace
    client.rename(part, path)


class Folder:
    """A folder that lives at `url` and is used at `path`.

    On a local or shared disk the two are one place, and `pull` and `push` have nothing to do. For HDFS `path` is a
    temporary copy: `pull` brings what is new at `url`, `push` sends what is new at `path`.

    Parameters
    ----------
    url : str
        A path, a ``file://`` URL or an ``hdfs://`` URL. It is created by the first push.
    """

    def __init__(self, url):
        self.url = url.rstrip("/")
        self.remote = is_hdfs(url)
        if self.remote:
            # In the container's own directory, which YARN removes even after a SIGKILL.
            self._temporary = tempfile.TemporaryDirectory(prefix="digits-", dir=os.getcwd())
            self._client, self._root = connect(self.url)
            self._here, self._there = {}, {}  # the stamps of each file on both sides when they last were equal
        self.path = Path(self._temporary.name) if self.remote else local_path(self.url)
        self.path.mkdir(parents=True, exist_ok=True)

    def pull(self):
        """Bring the files that are new or changed at `url`, and drop those that were brought and are gone there."""
        if not self.remote:
            return
        there = dict(self._walk_remote())
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
                _put(self._client, f"{self._root}/{name}", (self.path / name).read_bytes())
        for name in self._here.keys() - here.keys():
            self._client.delete(f"{self._root}/{name}")
        self._here, self._there = here, dict(self._walk_remote())

    def _bring(self, name):
        from hdfs import HdfsError

        try:
            with self._client.read(f"{self._root}/{name}") as reader:
                write_bytes(str(self.path / name), reader.read())
        except HdfsError as error:
            if error.exception != "FileNotFoundException":  # its owner removed it since it was listed
                raise

    def _walk_local(self):
        files = [path for path in self.path.rglob("*") if path.is_file() and not path.name.endswith(".part")]
        stats = {str(path.relative_to(self.path)): path.stat() for path in files}
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}

    def _walk_remote(self):
        if self._client.status(self._root, strict=False) is None:
            return
        for (folder, _), _, files in self._client.walk(self._root, status=True):
            for name, status in files:
                if not name.endswith(".part"):
                    relative = str(PurePosixPath(folder, name).relative_to(self._root))
                    yield relative, (status["length"], status["modificationTime"])
