"""`RestSubmitter`: submit over plain HTTP: reserve an id, stage the files, send the request.

The slow parts run side by side: importing Skein, asking the ResourceManager, writing to the file system.
"""

import logging
import secrets
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import (
    ApplicationNotFound,
    Cancelled,
    ClusterUnreachable,
    ResourcesImpossible,
    SubmissionRejected,
)
from ..follow.session import Session
from ..follow.sweep import sweep_ended
from ..follow.yarn_report import read_yarn_report
from ..hadoop.fast_import import import_skein
from ..hadoop.security.delegation import DelegationTokens, obtain
from ..job.spec import JobSpec
from ..runtime.common.contract import JOB_TAG, dump_job
from ..runtime.common.reasons import Reason
from ..runtime.common.tokens import encode_token
from ..staging.archive import pack
from ..staging.staging_directory import ARCHIVE, JOB_NAME, ApplicationDirectory, LocalResource, StagingDirectory
from .application import JOB_SOURCE, RUNTIME_SOURCE, build, plan_runtime_job, renamed_resources
from .certificate import mint
from .placement import check_placement, read_surroundings
from .preflight import check_environment, check_maximum, local_path, with_absolute_sources
from .registry_login import find_logins
from .runtime_zip import runtime_zip
from .yarn_request import CERTIFICATE, KEY, PROTO, Staged, build_body, build_proto, skein_jar, sources

logger = logging.getLogger(__name__)

#: Threads that write files; with more of them a NameNode is not faster.
_WORKERS = 8
#: Seconds without an answer about a submission that YARN answered with 202.
_ACCEPT_TIMEOUT = 30.0
#: Seconds after which the log mentions a submission that YARN still examines.
_SLOW = 10.0
#: Seconds between two lines about it.
_NEXT_LINE = 60.0


class RestSubmitter:
    """Submits one application to a cluster over HTTP.

    Parameters
    ----------
    session : Session
    user : str or None
        The user of the job. None: the cluster's user.
    strict_placement : bool, optional
        Refuse a container that no running node could hold.
    """

    reserves = True

    def __init__(self, session: Session, user: str | None, strict_placement: bool = False):
        self._session = session
        self._cluster = session.cluster.acting_for(user or session.cluster.user)
        self._resourcemanager = session.yarn if self._cluster is session.cluster else self._cluster.resourcemanager()
        self._strict_placement = strict_placement
        self._checkpoint = session.checkpoint
        self._credentials = DelegationTokens()

    @property
    def _staging(self) -> StagingDirectory:
        return self._session.staging(self._cluster.user)

    def close(self) -> None:
        """Cancel the tokens of a secured cluster that no application has got."""
        self._credentials.cancel()
        self._credentials = DelegationTokens()

    def check(self, spec: JobSpec) -> None:
        """Raise an error when YARN could not run the job; reserve nothing.

        Raises
        ------
        SubmissionRejected, ResourcesImpossible
            With every obstacle.
        TokensUnavailable
            The cluster is secured, and gives no tokens for the application.
        """
        check_environment(spec)
        find_logins(spec, "")
        check_placement(spec, read_surroundings(spec, self._resourcemanager), self._strict_placement)
        self._get_tokens(spec)

    def _get_tokens(self, spec: JobSpec) -> None:
        """Get the tokens of a secured cluster, once."""
        if self._cluster.security.kerberos and not self._credentials.texts():
            needed = [
                *spec.file_systems,
                *spec.files.values(),
                *spec.archives.values(),
                spec.script or "",
                *(environment.location for environment in spec.environments.values()),
            ]
            # NodeManagers write the logs to the default file system; the program may know how to reach the others.
            wished = [self._cluster.storage.default, spec.input or "", spec.output or ""]
            self._credentials = obtain(self._cluster, self._resourcemanager, self._staging.filesystem, needed, wished)

    def reserve(self, spec: JobSpec) -> str:
        """Reserve an application id.

        Raises
        ------
        ResourcesImpossible
            A container is larger than the maximum allocation that YARN returns with the id.
        """
        application_id, maximum = self._resourcemanager.new_application()
        check_maximum(spec, maximum)
        return application_id

    def submit(self, spec: JobSpec, application_id: str, tags: Iterable[str] = ()) -> str:
        """Stage and submit a job under a reserved id; return the id when YARN has accepted it.

        A client may repeat it, also while another client submits the same id: YARN accepts one of them.

        Raises
        ------
        SubmissionRejected
            YARN or the file system refused it. The staged files are deleted.
        ClusterUnreachable
            YARN or the file system did not answer, or YARN refused to show the application. YARN may have accepted
            it, so its files and tokens stay.
        TokensUnavailable
            As `check`; nothing is staged.
        """
        self._get_tokens(spec)
        directory = self._staging.directory(application_id)
        try:
            body = self._stage(with_absolute_sources(spec), application_id, directory, tags)
            self._checkpoint()
            outrun = self._cluster.security.kerberos and self._is_known(application_id)
        except BaseException:
            _discard(directory)
            raise
        if outrun:  # another client has submitted it, with its own files and tokens
            _discard(directory)
            self.close()
            self._await_acceptance(application_id, None)
            return application_id
        credentials, self._credentials = self._credentials, DelegationTokens()
        with closing(credentials):
            try:
                self._resourcemanager.submit(body)
                self._await_acceptance(application_id, body)
            except SubmissionRejected:
                # YARN has refused, so it does not use the files.
                _discard(directory)
                credentials.cancel()
                raise
        return application_id

    def _is_known(self, application_id: str) -> bool:
        try:
            self._resourcemanager.get(application_id)
        except ApplicationNotFound:
            return False
        return True

    def _stage(
        self, spec: JobSpec, application_id: str, directory: ApplicationDirectory, tags: Iterable[str]
    ) -> dict[str, Any]:
        """Write all files; return the body of the submission."""
        logins = find_logins(spec, application_id)
        job = plan_runtime_job(self._cluster, spec, int(application_id.rsplit("_", 1)[-1]), tags)
        ended = threading.Event()

        def checkpoint() -> None:
            if ended.is_set():
                raise Cancelled("the submission has ended")
            self._checkpoint()

        with ThreadPoolExecutor(_WORKERS) as pool, ExitStack() as stack:
            stack.callback(ended.set)  # the pool waits for its threads: a transfer must not outlast a failure
            importing = pool.submit(import_skein)
            own = {
                CERTIFICATE: (credentials := mint()).certificate,
                KEY: credentials.key,
                JOB_NAME: dump_job(job),
            }
            self._staging.prepare(pool)
            self._staging.check_owner()
            directory.make()
            self._checkpoint()
            writes = [pool.submit(directory.put, name, data) for name, data in own.items()]
            pool.submit(sweep_ended, self._staging, self._resourcemanager, application_id)
            jar = pool.submit(self._staging.store, directory, skein_jar(), "skein.jar", public=True)
            importing.result()
            application = build(spec, self._cluster.site, job)
            runtime = runtime_zip(renamed_resources(spec))
            names: Counter[str] = Counter()
            shared = {
                (source, kind): pool.submit(
                    self._file, directory, source, kind, _unique(names, source), runtime, checkpoint
                )
                for source, kind in sources(application)
                if source != JOB_SOURCE
            }
            scripts = {
                name: pool.submit(self._staging.store, directory, service.script.encode(), "service.sh")
                for name, service in application.services.items()
            }
            planned = {name: directory.planned(name, data) for name, data in own.items()}
            located = {key: planned[JOB_NAME] for key in sources(application) if key[0] == JOB_SOURCE}
            located |= {key: future.result() for key, future in shared.items()}
            staged = Staged(
                jar.result(),
                planned[CERTIFICATE],
                planned[KEY],
                {name: future.result() for name, future in scripts.items()},
                located,
            )
            self._checkpoint()
            proto = build_proto(application, staged)
            directory.put(PROTO, proto)
            for write in writes:
                write.result()
        return build_body(
            application,
            staged,
            directory.planned(PROTO, proto),
            application_id=application_id,
            cluster=self._cluster,
            tags={*application.tags, *(tags or (JOB_TAG,))},
            priority=spec.priority,
            verdict_secret=secrets.token_hex(16),
            tokens={
                **self._credentials.texts(),
                **{service: encode_token(login) for service, login in logins.items()},
            },
        )

    def _file(
        self,
        directory: ApplicationDirectory,
        source: str,
        kind: str,
        name: str,
        runtime: bytes,
        checkpoint: Callable[[], None],
    ) -> LocalResource:
        if source == RUNTIME_SOURCE:
            return replace(self._staging.store(directory, runtime, "runtime.zip", public=True), type=kind)
        if (path := local_path(source)) is None:
            return self._staging.locate(source, kind)
        checkpoint()
        if not path.is_dir():
            return replace(self._staging.store(directory, path, name, checkpoint=checkpoint), type=kind)
        with tempfile.TemporaryDirectory(prefix="ytf-") as folder:
            packed = Path(folder, f"{name}.tar.gz")
            pack(path, packed)
            return replace(self._staging.store(directory, packed, packed.name, checkpoint=checkpoint), type=ARCHIVE)

    def _await_acceptance(self, application_id: str, body: Mapping[str, Any] | None) -> None:
        """Wait until the scheduler has accepted or refused the application: YARN answers 202 before that.

        Hadoop's own client waits in the same way. A ResourceManager that restarts meanwhile may forget the submission;
        then submit ``body`` again. None: another client has submitted it, and our files and tokens are gone.

        A refused look shows nothing about the application, so it is repeated like a look without an answer, for
        `_ACCEPT_TIMEOUT` seconds. A ResourceManager that answers may take longer: it accepts an application only
        after it has renewed its tokens, and it asks the NameNodes for that. Wait for it as for an outage.
        """
        began = answered = time.monotonic()
        patience, log_at = max(_ACCEPT_TIMEOUT, self._cluster.site.unreachable_timeout), _SLOW
        pause = 0.005
        while True:
            try:
                found = self._resourcemanager.get(application_id)
                state, answered = found["state"], time.monotonic()
                if state not in ("NEW", "NEW_SAVING", "SUBMITTED"):
                    break
            except ApplicationNotFound as error:
                if body is None:
                    raise ClusterUnreachable(
                        f"YARN has forgotten {application_id}, which another client has submitted; submit it again"
                    ) from error
                state = "unknown to the ResourceManager"
                self._resourcemanager.submit(body, sent=True)
            except (ClusterUnreachable, SubmissionRejected) as error:
                state = f"in an unknown state ({error})"
            waited = time.monotonic() - began
            if waited > patience or time.monotonic() - answered > _ACCEPT_TIMEOUT:
                raise ClusterUnreachable(
                    f"{application_id} is {state} {waited:.3g} s after it was submitted, neither "
                    "accepted nor refused; the ResourceManager's log says what it waits for"
                )
            if waited > log_at:
                log_at = waited + _NEXT_LINE
                logger.warning(
                    "%s is %s for %.0f s: YARN has not accepted it yet; the log of the ResourceManager says why",
                    application_id,
                    state,
                    waited,
                )
            self._session.pause(pause)
            pause = min(0.5, pause * 2)
        if found["user"] != self._cluster.user:
            # An old Hadoop has no request that shows the user before the submission.
            self._resourcemanager.kill(application_id, "Submitted as another user")
            raise SubmissionRejected(
                f"{application_id} ran as {found['user']!r}, not as {self._cluster.user!r}, and "
                "was killed: the web interface ignores user.name"
            )
        report = read_yarn_report(found)
        if report.reason is Reason.RESOURCES_IMPOSSIBLE:
            raise ResourcesImpossible(report.message)
        if report.reason is Reason.SUBMISSION_REJECTED:
            raise SubmissionRejected(report.message)


def _unique(names: Counter[str], source: str) -> str:
    """Return a name in the cache for a file; equal files of one name would be one, which YARN links only once."""
    name = Path(source).name
    names[name] += 1
    return name if names[name] == 1 else f"{names[name]}.{name}"


def _discard(directory: ApplicationDirectory) -> None:
    """Delete staged files during error handling; a second error is only logged."""
    try:
        directory.discard()
    except (SubmissionRejected, ClusterUnreachable) as error:
        logger.warning("deleting the staged files in %s failed: %s", directory.path, error)
