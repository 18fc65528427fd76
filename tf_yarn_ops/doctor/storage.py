"""Checks of the staging directory's file system: NameNodes, writing and deleting, rights."""

import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath

from ..errors import ClusterUnreachable
from ..hadoop.security.delegation import TokensUnavailable, obtain
from ..hadoop.transport import RestUnavailable
from ..runtime.common.file_storage import FileStatus
from ..staging.staging_directory import PASSABLE
from .known import KnownFacts
from .probe import ProbeAnswer, probe_all
from .symptoms import Finding, Symptom, ill, skip, well

_WRITABLE_BY_OTHERS = 0o022
_OURS_ALONE = 0o600
_STANDBY = re.compile("standby", re.IGNORECASE)
#: Bytes of the file that is written and read back.
_LENGTH = 64
_UNSEEN = "Skein's Java client stages the files: the file system is closed over HTTP"


def check_filesystem(known: KnownFacts) -> Finding:
    """Ask each NameNode whether it is active."""
    cluster = known.session.cluster
    if cluster.storage.local_root is not None:
        return well(
            f"{cluster.storage.filesystem} is the folder {cluster.storage.local_root} of this machine",
            filesystem=cluster.storage.filesystem,
            folder=cluster.storage.local_root,
        )
    if not cluster.storage.webhdfs:
        try:
            cluster.open_filesystem()  # raises the error that says which setting is missing
        except RestUnavailable as error:
            if _skein_submits(known, refused=True):
                return ill(Symptom.NN_CLOSED, {"http_storage": False}, error=error)
            raise
    answers = probe_all(
        cluster.storage.webhdfs,
        "/webhdfs/v1/",
        cluster.storage_authentication,
        known.site,
        cluster.storage.webhdfs,
        op="GETFILESTATUS",
    )
    states = {url: _state(answer) for url, answer in answers.items()}
    shown = ", ".join(f"{url} {state}" for url, state in states.items())
    learned = {
        "clocks": {
            **known.clocks,
            **{url: answer.ahead for url, answer in answers.items() if answer.ahead is not None},
        }
    }
    facts = {"filesystem": cluster.storage.filesystem, "states": states}
    known_states = [state for state in states.values() if state in ("ACTIVE", "STANDBY")]
    if not known_states:
        if _skein_submits(known, refused=all(answer.status == 401 for answer in answers.values())):
            return ill(
                Symptom.NN_CLOSED,
                {**learned, "http_storage": False},
                facts=facts,
                error=ClusterUnreachable(f"no NameNode answers as one: {shown}"),
            )
        return ill(Symptom.NN_SILENT, learned, facts=facts, states=shown, url=cluster.storage.webhdfs[0])
    if "ACTIVE" not in known_states:
        return ill(Symptom.NN_NOT_ACTIVE, learned, facts=facts, states=shown)
    if len(known_states) < len(states):
        return ill(Symptom.NN_PARTLY_AWAY, learned, facts=facts, states=shown)
    return well(f"{cluster.storage.filesystem} over HTTP: {shown}", learned, **facts)


def _skein_submits(known: KnownFacts, refused: bool) -> bool:
    """Return whether jobs go through Skein's Java client, which reaches the file system without HTTP.

    With ``auto`` a launcher changes to it only after a refusal, not for a server that does not answer.
    """
    way = known.site.submit_with
    return way == "skein" or (way == "auto" and refused and not known.missing_for_skein)


def _state(answer: ProbeAnswer) -> str:
    if answer.status == 200 and "FileStatus" in answer.document:
        return "ACTIVE"
    if _STANDBY.search(answer.why):
        return "STANDBY"
    return answer.failure


def check_tokens(known: KnownFacts) -> Finding:
    """Get the delegation tokens of a submission, and cancel them."""
    session = known.session
    cluster = session.cluster
    if not cluster.security.kerberos:
        return skip("a cluster without Kerberos needs no tokens")
    if known.site.submit_with == "skein":
        return skip("Skein's Java client gets them itself (submit_with is skein)")
    if not known.http_storage:
        return skip("Skein's Java client gets them itself: the file system is closed over HTTP")
    try:
        credentials = obtain(cluster, session.yarn, session.staging().filesystem, (), [cluster.storage.default])
    except TokensUnavailable as error:
        if known.site.submit_with == "rest":
            return ill(Symptom.TOKENS_REFUSED, error=error)
        return ill(Symptom.TOKENS_UNAVAILABLE, {"tokens": False}, error=error)
    services = sorted(credentials.texts())
    credentials.cancel()
    return well(f"got for {', '.join(services)}, and cancelled", services=services)


def check_staging(known: KnownFacts) -> Finding:
    """Create, read back and delete a small file in the staging directory."""
    if not known.http_storage:
        return skip(_UNSEEN)
    staging = known.session.staging()
    filesystem, directory = staging.filesystem, staging.cluster.staging
    path, content = f"{directory}/doctor-{secrets.token_hex(8)}", secrets.token_bytes(_LENGTH)
    try:
        filesystem.makedirs(directory, PASSABLE)
        filesystem.replace(path, content, _OURS_ALONE)
        try:
            read = filesystem.read(path)
        finally:
            filesystem.delete(path)
    except ClusterUnreachable as error:
        return ill(Symptom.STAGING_NOT_NOW, error=error)
    if read != content:
        return ill(Symptom.STAGING_ALTERED, path=path, read=len(read or b""), written=_LENGTH)
    return well(f"wrote, read and deleted a file in {staging.cluster.storage.filesystem}{directory}", staging=directory)


def check_rights(known: KnownFacts) -> Finding:
    """Tell whether other users can change staged files, and whether the nodes may share a public one."""
    if not known.http_storage:
        return skip(_UNSEEN)
    staging = known.session.staging()
    with ThreadPoolExecutor(2) as pool:
        staging.prepare(pool)
    cluster = staging.cluster
    trusted = {cluster.user, *filter(None, [cluster.site.trusted_owner])}
    places = {path: staging.filesystem.status(path) for path in (cluster.staging, staging.cache)}
    facts = {"places": {path: _describe(status) for path, status in places.items()}}
    wrong = {
        path: status
        for path, status in places.items()
        if status is None or status.owner not in trusted or status.permission & _WRITABLE_BY_OTHERS
    }
    if wrong:
        shown = ", ".join(f"{path} ({_describe(status)})" for path, status in wrong.items())
        return ill(Symptom.STAGING_OPEN, facts=facts, user=cluster.user, places=shown, paths=" ".join(wrong))
    closed = [
        path
        for path in map(str, PurePosixPath(staging.cache).parents)
        if (status := staging.filesystem.status(path)) and not status.permission & 0o001
    ]
    note = f"; other users may not enter {closed[0]}, so each user's jobs bring their own skein.jar" if closed else ""
    return well(f"{cluster.staging}: {_describe(places[cluster.staging])}{note}", **facts)


def _describe(status: FileStatus | None) -> str:
    return "missing" if status is None else f"owner {status.owner}, mode {status.permission:o}"
