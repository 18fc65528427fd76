"""The request to YARN: Skein's specification with staged files, and the body of the submission.

Pure. Input: a Skein application and `LocalResource` values. Output: the bytes of ``.skein.proto`` and the JSON object
for ``POST /ws/v1/cluster/apps``. Both are what Skein's own Java driver would send.

References
----------
Skein 0.8.2, ``Driver.java``: ``submitApplicationInner``, ``setupAppDir``, ``finalizeService``.
Hadoop, "ResourceManager REST API", Cluster Applications API (Submit Application).
"""

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from ..follow.yarn_report import WITHOUT_FILES
from ..hadoop.cluster import Cluster
from ..runtime.common.contract import RUNTIME_FILE, VERDICT_SECRET
from ..runtime.common.report import verdict_tag
from ..staging.staging_directory import LocalResource

if TYPE_CHECKING:
    import skein

LANG = "C.UTF-8"
JAR, CERTIFICATE, KEY, PROTO, SCRIPT = ".skein.jar", ".skein.crt", ".skein.pem", ".skein.proto", ".skein.sh"
# YARN once started a master before it had localized any file.
_COMMAND = (
    "test -e .skein.jar || exit {without_files}; exec {{{{JAVA_HOME}}}}/bin/java -Xmx128M "
    "-Dskein.log.level={level} -Dskein.log.directory=<LOG_DIR> "
    "com.anaconda.skein.ApplicationMaster {directory} ><LOG_DIR>/application.master.log 2>&1"
)


@dataclass(frozen=True)
class Staged:
    """The staged files of one application.

    Attributes
    ----------
    jar, certificate, key : LocalResource
    scripts : mapping of str to LocalResource
        By Skein service.
    files : mapping of (str, str) to LocalResource
        By source and type, as the Skein application names them.
    """

    jar: LocalResource
    certificate: LocalResource
    key: LocalResource
    scripts: Mapping[str, LocalResource]
    files: Mapping[tuple[str, str], LocalResource]


def skein_jar() -> Path:
    """Return the path of the jar of Skein's application master."""
    found = importlib.util.find_spec("skein")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("skein is not installed; pip install skein")
    return Path(found.origin).parent / "java" / "skein.jar"


def sources(application: "skein.ApplicationSpec") -> list[tuple[str, str]]:
    """Return source and type (``FILE``, ``ARCHIVE``) of every file of an application, each once."""
    parts = [application.master, *application.services.values()]
    return list(dict.fromkeys((file.source, str(file.type)) for part in parts if part for file in part.files.values()))


def build_proto(application: "skein.ApplicationSpec", staged: Staged) -> bytes:
    """Return the content of ``.skein.proto``: every file resolved, every script wrapped so that it writes a log."""
    message = application.to_protobuf()
    for name, service in application.services.items():
        target = message.services[name]
        for key, file in service.files.items():
            _fill(target.files[key], staged.files[file.source, str(file.type)])
        for key, resource in ((SCRIPT, staged.scripts[name]), (CERTIFICATE, staged.certificate), (KEY, staged.key)):
            _fill(target.files[key], resource)
        target.script = f"exec bash {SCRIPT} ><LOG_DIR>/{name}.log 2>&1"
        if "LANG" not in target.env:
            target.env["LANG"] = LANG
    for key, file in application.master.files.items():
        _fill(message.master.files[key], staged.files[file.source, str(file.type)])
    _fill(message.master.security.cert_file, staged.certificate)
    _fill(message.master.security.key_file, staged.key)
    return bytes(message.SerializeToString())


def _fill(target: Any, resource: LocalResource) -> None:
    url = urlsplit(resource.url)
    host, _, port = url.netloc.partition(":")  # not url.hostname, which is in lower case: name services keep their case
    target.source.scheme, target.source.host = url.scheme, host
    target.source.port, target.source.file = int(port or 0), url.path
    target.type = target.Type.Value(resource.type)
    target.visibility = target.Visibility.Value(resource.visibility)
    target.size, target.timestamp = resource.size, resource.timestamp


def build_body(
    application: "skein.ApplicationSpec",
    staged: Staged,
    proto: LocalResource,
    *,
    application_id: str,
    cluster: Cluster,
    tags: Iterable[str],
    priority: int,
    verdict_secret: str,
    tokens: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the JSON object that submits an application.

    Parameters
    ----------
    application : skein.ApplicationSpec
    staged : Staged
    proto : LocalResource
        The staged ``.skein.proto``.
    application_id : str
        A reserved id.
    cluster : Cluster
    tags : iterable of str
        All tags, in lower case.
    priority : int
        Larger ones come first.
    verdict_secret : str
        The application master gets it, and the application a tag with its hash; see `runtime.common.report`.
    tokens : mapping of str to str, optional
        The text of each token by its service, for secured clusters. Default: none.
    """
    master = application.master
    resources = {key: staged.files[file.source, str(file.type)] for key, file in master.files.items()}
    resources |= {JAR: staged.jar, CERTIFICATE: staged.certificate, KEY: staged.key, PROTO: proto}
    environment = {
        "LANG": LANG,
        **master.env,
        "CLASSPATH": "<CPS>".join([RUNTIME_FILE, "./*", *cluster.nodes.classpath]),
        "SKEIN_APPLICATION_ID": application_id,
        VERDICT_SECRET: verdict_secret,
    }
    if not cluster.security.kerberos:
        environment["HADOOP_USER_NAME"] = cluster.user
    container: dict[str, Any] = {
        "local-resources": {"entry": [{"key": key, "value": _local(value)} for key, value in resources.items()]},
        "environment": {"entry": [{"key": key, "value": value} for key, value in environment.items()]},
        "commands": {
            "command": _COMMAND.format(
                without_files=WITHOUT_FILES,
                level=master.log_level,
                directory=cluster.storage.filesystem + cluster.directory(application_id),
            )
        },
    }
    if application.acls.enable:
        container["application-acls"] = {
            "entry": [
                {"key": "VIEW_APP", "value": _acl(application.acls.view_users, application.acls.view_groups)},
                {"key": "MODIFY_APP", "value": _acl(application.acls.modify_users, application.acls.modify_groups)},
            ]
        }
    if tokens:
        container["credentials"] = {"tokens": {"entry": [{"key": key, "value": text} for key, text in tokens.items()]}}
    body: dict[str, Any] = {
        "application-id": application_id,
        "application-name": application.name,
        "application-type": "skein",
        "queue": application.queue,
        "priority": priority,
        "max-app-attempts": application.max_attempts,
        "unmanaged-AM": False,
        "keep-containers-across-application-attempts": False,
        "resource": {"memory": master.resources.memory, "vCores": master.resources.vcores},
        "am-container-spec": container,
    }
    if cluster.tokens is not None:  # the container of this program uses them, too
        body["cancel-tokens-when-complete"] = False
    body["application-tags"] = {"tag": sorted({*tags, verdict_tag(verdict_secret)})}
    if application.node_label:
        body["app-node-label-expression"] = application.node_label
        body["am-container-node-label-expression"] = application.node_label  # 2.10.2 places the master by this alone
    return body


def _local(resource: LocalResource) -> dict[str, Any]:
    url = urlsplit(resource.url)
    return {
        "resource": f"{url.scheme}://{url.netloc}{quote(url.path)}",
        "type": resource.type,
        "visibility": resource.visibility,
        "size": resource.size,
        "timestamp": resource.timestamp,
    }


def _acl(users: Iterable[str], groups: Iterable[str]) -> str:
    """Return an access list as Hadoop reads it: users, a blank, groups; ``*`` alone means all users."""
    users, groups = list(users), list(groups)
    return "*" if "*" in (*users, *groups) else f"{','.join(users)} {','.join(groups)}"
