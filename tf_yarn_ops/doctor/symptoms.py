"""`Symptom`: the table of everything that a check may complain about, with what to do; `Finding`: what one has found.

docs/operations/doctor.md shows the table.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import TfYarnError
from ..runtime.common.reasons import Reason


class CheckOutcome(str, enum.Enum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"
    SKIPPED = "skipped"


class SymptomRow(NamedTuple):
    """The row of a symptom.

    Attributes
    ----------
    check : str
        Name of the check that finds it.
    outcome : CheckOutcome
        WARNING if jobs work all the same, FAULT if they do not.
    text : str
        Template for `str.format`: what was found.
    advice : str
        Template: what to do.
    reason : Reason or None
        Decides the exit code of a fault, unless an error of ours says more. None for a warning.
    """

    check: str
    outcome: CheckOutcome
    text: str
    advice: str
    reason: Reason | None = None


def _warning(check: str, text: str, advice: str) -> SymptomRow:
    return SymptomRow(check, CheckOutcome.WARNING, text, advice)


def _fault(check: str, text: str, advice: str, reason: Reason = Reason.CLUSTER_UNREACHABLE) -> SymptomRow:
    return SymptomRow(check, CheckOutcome.FAULT, text, advice, reason)


class Symptom(enum.Enum):
    """What a check may find. A member's value is its `SymptomRow`."""

    SKEIN_MISSING = _fault(
        "versions",
        "Skein can't be imported: {error}",
        "Install it for {python}: pip install --upgrade tf-yarn-ops",
        Reason.SUBMISSION_REJECTED,
    )

    NO_ADDRESS = _fault(
        "configuration",
        "{error}",
        "Ask the administrator for the address of the ResourceManager's web pages (usually port 8088, with https 8090) "
        "and set it in one of these places",
    )

    RM_SILENT = _fault(
        "resourcemanager",
        "no ResourceManager answers: {states}",
        "Check host, port and http or https: it is the address of the web pages (8088, with https 8090), not of RPC "
        "(8032). Check that the daemon runs and no firewall stands between: curl {url}/ws/v1/cluster/info",
    )
    RM_OTHER = _fault(
        "resourcemanager",
        "the address is not that of a ResourceManager: {states}",
        "Give the address of the ResourceManager's web pages (8088, with https 8090), not that of RPC (8032), of a "
        "NameNode (9870) or of a proxy. Read the answer: curl {url}/ws/v1/cluster/info",
    )
    RM_NOT_ACTIVE = _fault(
        "resourcemanager",
        "no ResourceManager is active: {states}",
        "Name all ResourceManagers, separated by commas. If these are all, the administrator has to make one of them "
        "active (yarn rmadmin -getAllServiceState)",
    )
    RM_STANDBY_NAMED = _warning(
        "resourcemanager",
        "only a standby is named: {states}",
        "Name all ResourceManagers, separated by commas: jobs depend on what the standby's /conf says about the others",
    )
    RM_PARTLY_AWAY = _warning(
        "resourcemanager",
        "not every ResourceManager answers: {states}",
        "Jobs work now, but not after a fail-over to one that does not answer: start it, or correct its address",
    )

    TICKET_MISSING = _fault(
        "ticket",
        "the cluster wants a Kerberos ticket: {error}",
        "Run kinit as the user who submits, or set keytab and principal in site.yaml; look with klist, which shows the "
        "end of a ticket",
    )
    TICKET_ENDS_SOON = _warning(
        "ticket",
        "the ticket of {principal} ends in {left}",
        "Run kinit again, or set keytab in site.yaml, so that waiting clients renew it; a running job goes on without",
    )

    REFUSED = _fault(
        "identity",
        "{error}",
        "Without Kerberos set HADOOP_USER_NAME to a user of the cluster; with Kerberos run kinit as this user. "
        "To act for another user (--user) you need hadoop.proxyuser.YOU.hosts and .users, from the administrator",
        Reason.SUBMISSION_REJECTED,
    )

    MACHINES_DIFFER = _fault(
        "machine",
        "machines differ in {differing}",
        "Make them equal: the files and variables that name the cluster, site.yaml, the user, and the versions of this "
        "package and of Python. A retry on a machine that finds another cluster can neither follow nor kill its job",
        Reason.SPEC_INVALID,
    )

    UNSECURED = _warning(
        "security",
        "the cluster has no Kerberos: it believes every user name",
        "Only the network protects this cluster: everybody who reaches its ports can act as any user. The "
        "administrator can set hadoop.security.authentication to kerberos",
    )
    OPEN_PAGES = _warning(
        "security",
        "Hadoop's RPC wants Kerberos, but the ResourceManager's web interface believes every user name",
        "The administrator can set hadoop.http.authentication.type to kerberos, and "
        "hadoop.http.filter.initializers to org.apache.hadoop.security.AuthenticationFilterInitializer",
    )

    NN_UNKNOWN = _fault(
        "filesystem",
        "{error}",
        "Ask the administrator for the HTTP address of the NameNodes (usually port 9870) or of an HttpFS (14000)",
        Reason.SUBMISSION_REJECTED,
    )
    NN_SILENT = _fault(
        "filesystem",
        "no NameNode answers as one: {states}",
        "Check webhdfs in site.yaml (default: the addresses of the cluster's configuration), that this machine may "
        "reach them, and that dfs.webhdfs.enabled is not false: curl {url}/webhdfs/v1/?op=GETFILESTATUS"
        " (if HTTP has to stay closed: submit_with: skein in site.yaml; Skein's Java client then stages and submits)",
    )
    NN_CLOSED = _warning(
        "filesystem",
        "the file system can't be reached over HTTP, so Skein's Java client has to stage and submit: {error}",
        "Jobs work, but staged files that a killed client leaves stay, and logs in HDFS can't be read without 'yarn'. "
        "To submit over HTTP set webhdfs in site.yaml to the NameNodes (usually port 9870) or to an HttpFS (14000)",
    )
    NN_NOT_ACTIVE = _fault(
        "filesystem",
        "no NameNode is active: {states}",
        "Name all NameNodes in site.yaml (webhdfs). If these are all, the administrator has to make one of them active "
        "(hdfs haadmin -getAllServiceState)",
    )
    NN_PARTLY_AWAY = _warning(
        "filesystem",
        "not every NameNode answers: {states}",
        "Jobs work now, but not after a fail-over to one that does not answer: start it, or correct its address",
    )

    CLOCK_DIFFERS = _warning(
        "clock",
        "this machine's clock differs: {differences}",
        "Let both machines get their time by NTP: times in reports are wrong, YARN may end a job too early, and from "
        "300 s on Kerberos may refuse tickets",
    )

    TOKENS_UNAVAILABLE = _warning(
        "tokens",
        "the cluster gives no tokens over HTTP, so Skein's Java client will submit: {error}",
        "Set what the message names in site.yaml; Skein's client starts a JVM and needs Hadoop's client here",
    )
    TOKENS_REFUSED = _fault(
        "tokens",
        "{error}",
        "Ask the administrator of Hadoop: jobs on a secured cluster need delegation tokens",
        Reason.SUBMISSION_REJECTED,
    )

    STAGING_REFUSED = _fault(
        "staging",
        "{error}",
        "The user needs a directory {staging}: the administrator makes /user/{user}, or set 'staging:' in "
        "site.yaml. A quota may also be exceeded",
        Reason.SUBMISSION_REJECTED,
    )
    STAGING_NOT_NOW = _fault(
        "staging",
        "{error}",
        "A file's content goes to the DataNodes: hdfs dfsadmin -report shows which are alive. This machine has to "
        "reach them, or set 'webhdfs:' to an HttpFS",
    )
    STAGING_ALTERED = _fault(
        "staging",
        "{path} was read back with {read} bytes, not with the {written} that were written",
        "Check what stands between this machine and HDFS: a proxy or gateway alters files",
    )

    STAGING_OPEN = _warning(
        "rights",
        "users other than {user} can write: {places}",
        "Cached files are not used, and each job uploads its own. Correct it: hdfs dfs -chmod go-w {paths} (and "
        "hdfs dfs -chown {user} by the administrator), or name the owner as trusted_owner in site.yaml",
    )

    REST_CLOSED = _warning(
        "submission",
        "applications can't be submitted over HTTP ({error}); Skein's Java client will submit them",
        "Let the administrator allow it (yarn.webapp.ui-actions / REST submission); Skein's client starts a JVM, "
        "and can't keep two clients from training at the same moment",
    )
    REST_NEEDED = _fault(
        "submission",
        "applications can't be submitted over HTTP, and submit_with is rest: {error}",
        "Ask the administrator to allow it, or set submit_with: auto in site.yaml",
        Reason.SUBMISSION_REJECTED,
    )
    SKEIN_UNUSABLE = _fault(
        "submission",
        "Skein's Java client has to submit ({why}), and this machine lacks {missing}",
        "Install Java and Hadoop's client with the cluster's configuration, and put 'yarn' on PATH",
        Reason.SUBMISSION_REJECTED,
    )

    QUEUE_CLOSED = _fault("queue", "{error}", "Give another queue: ytf doctor --queue NAME", Reason.SUBMISSION_REJECTED)
    QUEUE_MAPPED = _warning(
        "queue",
        "{error}",
        "YARN's placement rules may move jobs of queue default; if they do not, give another queue: --queue NAME",
    )
    QUEUE_FORBIDDEN = _fault(
        "queue",
        "{user} may not submit to queue {queue!r}{who}",
        "Give another queue (--queue NAME), or ask the administrator for the right SUBMIT_APPLICATIONS",
        Reason.SUBMISSION_REJECTED,
    )
    QUEUE_FULL = _warning(
        "queue",
        "queue {queue!r} has {number} applications, and takes {most}",
        "Submissions are refused until some end; wait, or give another queue",
    )

    ANYBODY_KILLS = _warning(
        "queue_acl",
        "any user may administer queue {queue!r}, and so kill every application in it",
        "The administrator can set yarn.acl.enable to true, and the ACLs acl_administer_queue of the queue and of the "
        "queues above it, root too, to the right users (a blank for none; * is the default)",
    )

    NO_NODES = _fault(
        "nodes",
        "the cluster has no running node",
        "Every job waits in the queue: start NodeManagers, or look why those that run are unhealthy",
        Reason.ALLOCATION_TIMEOUT,
    )
    NODE_UNREACHABLE = _warning(
        "nodes",
        "{number} of {asked} NodeManagers do not answer this machine: {states}",
        "Logs of running tasks can't be read from here until this machine reaches the NodeManagers' web ports "
        "(usually 8042); jobs run all the same",
    )

    ENVIRONMENT_UNFIT = _fault(
        "environment",
        "{archive} {why}",
        "Pack it again: ytf env pack",
        Reason.ENVIRONMENT_INVALID,
    )
    ENVIRONMENT_UNCERTAIN = _warning(
        "environment", "{archive} {why}", "Make sure that every node has them, or pack it again: ytf env pack"
    )

    APPLICATION_FAILED = _fault(
        "application", "{application} ended as {reason}: {message}", "{hint} {next}", Reason.AM_FAILED
    )
    APPLICATION_SLOW = _fault(
        "application",
        "{application} was still {state} after {seconds:g} s, and was killed: {message}",
        "The queue may be full, at its limit for application masters, or no node has room: look at the queue in YARN, "
        "or wait longer with --timeout",
        Reason.QUEUE_TIMEOUT,
    )
    APPLICATION_REFUSED = _fault(
        "application",
        "{error}",
        "Correct what the message names, then run ytf doctor --submit again",
        Reason.SUBMISSION_REJECTED,
    )
    IMAGE_BROKEN = _fault(
        "application",
        "{python}: {errors}",
        "Put what the message names into the image",
        Reason.ENVIRONMENT_INVALID,
    )
    NO_GPU = _fault(
        "application",
        "{python} on {host}: nvidia-smi shows {found} of {given} GPUs",
        "The nodes need YARN's GPU plugin; with an image also NVIDIA's container toolkit, which brings nvidia-smi",
        Reason.ENVIRONMENT_INVALID,
    )
    NO_TENSORFLOW = _warning(
        "application",
        "{python} on {host} has no TensorFlow ({application})",
        "Name an environment that has it: ytf doctor --submit --environment venv:///PATH (or an archive in HDFS)",
    )

    NO_AGGREGATION = _warning(
        "logs",
        "log aggregation is off: the log of a container is lost for users when the container ends",
        "The administrator can set yarn.log-aggregation-enable to true; until then reports keep the last lines of "
        "failed tasks",
    )
    LOG_SERVER_SILENT = _warning(
        "logs",
        "the log server does not answer: {states}",
        "After the end of a job only the report has the last lines of its logs. Start the log server, set log_server "
        "in site.yaml, or put Hadoop's client on PATH",
    )
    NO_LOG_SERVER = _warning(
        "logs",
        "no log server is known, the directory of aggregated logs is not in HDFS, and this machine has no program "
        "'yarn'",
        "After the end of a job only the report has the last lines of its logs. Set log_server in site.yaml to the job "
        "history server's http://HOST:19888/ws/v1/history, or put Hadoop's client on PATH",
    )
    LOG_MISSING = _warning(
        "logs",
        "the log of {application} can't be read: {error}",
        "Check that this machine reaches the NodeManagers' web ports and the log server",
    )

    REQUEST_FAILED = _fault(
        "every check",
        "{error}",
        "Read each request and its answer: ytf doctor -v. Ask the administrator of Hadoop with this message, or "
        "look into the server's log",
    )
    TOO_SLOW = _fault(
        "every check",
        "no result within {seconds:g} s",
        "A server accepts the connection and does not answer, or a firewall drops it: try the address of the check "
        "with curl from this machine",
    )
    UNEXPECTED_ANSWER = _fault(
        "every check",
        "the answer can't be read ({error})",
        "A proxy may answer in place of Hadoop; if not, report this with the output of ytf doctor --json",
    )


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    outcome : CheckOutcome
    message : str
        What was found.
    advice : str
        What to do; empty if nothing.
    symptom : Symptom or None
        None if the check is ok or was skipped.
    reason : Reason or None
        Decides the exit code, for a fault.
    facts : mapping of str to object
        What was found, for programs.
    learned : mapping of str to object
        Fields of `KnownFacts` for the checks that follow.
    because_of : str or None
        The check on which a skipped one depends.
    """

    outcome: CheckOutcome
    message: str
    advice: str = ""
    symptom: Symptom | None = None
    reason: Reason | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    learned: Mapping[str, Any] = field(default_factory=dict)
    because_of: str | None = None


def well(message: str, learned: Mapping[str, Any] | None = None, **facts: Any) -> Finding:
    """Return the finding of a check that is ok."""
    return Finding(CheckOutcome.OK, message, facts=facts, learned=learned or {})


def ill(
    symptom: Symptom,
    learned: Mapping[str, Any] | None = None,
    error: Exception | None = None,
    facts: Mapping[str, Any] | None = None,
    **values: Any,
) -> Finding:
    """Return the finding of a symptom.

    Parameters
    ----------
    symptom : Symptom
    learned : mapping, optional
        As in `Finding`.
    error : Exception, optional
        The cause. It gives the value ``error`` of the templates, and an error of ours the reason of a fault, and the
        advice if it knows the command that helps.
    facts : mapping, optional
        As in `Finding`. Default: the values.
    **values
        For the templates of the symptom.
    """
    row = symptom.value
    if error is not None:
        values["error"] = str(error)
    ours = error if isinstance(error, TfYarnError) else None
    reason = ours.reason if ours and row.reason else row.reason
    advice = f"{ours.hint} Next: {ours.command}" if ours and ours.command else row.advice.format(**values)
    return Finding(
        row.outcome,
        row.text.format(**values),
        advice,
        symptom,
        reason,
        dict(values) if facts is None else facts,
        learned or {},
    )


def skip(why: str, because_of: str | None = None) -> Finding:
    """Return the finding of a check that was not made."""
    return Finding(CheckOutcome.SKIPPED, why, because_of=because_of)
