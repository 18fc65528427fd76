"""The table of checks, in the order in which they run."""

from collections.abc import Callable
from typing import NamedTuple

from . import probe_job as application
from . import reach, scheduling, storage
from .known import KnownFacts
from .machine import check_machine
from .symptoms import Finding, Symptom


class Check(NamedTuple):
    """One check.

    Attributes
    ----------
    name : str
    question : str
        What it finds out, for the documents.
    run : callable
        Returns the finding. It leaves at most the empty staging and cache directories; the check of the application
        also what every job leaves in the cache.
    needs : tuple of str
        Checks without whose success it can't be made.
    failure : Symptom
        For an error of ours that it raises.
    seconds : float
        After this time it counts as failed. The check of the application has its own limit besides.
    """

    name: str
    question: str
    run: Callable[[KnownFacts], Finding]
    needs: tuple[str, ...] = ()
    failure: Symptom = Symptom.REQUEST_FAILED
    seconds: float = 20.0


CHECKS = (
    Check("versions", "Are this package and Skein whole on this machine?", reach.check_versions),
    Check(
        "configuration",
        "Which ResourceManagers are asked, and what names them?",
        reach.check_configuration,
        failure=Symptom.NO_ADDRESS,
    ),
    Check(
        "resourcemanager",
        "Does each ResourceManager answer, which one is active, which Hadoop is it?",
        reach.check_resourcemanagers,
        ("configuration",),
        Symptom.NO_ADDRESS,
    ),
    Check(
        "ticket",
        "On a secured cluster: whose Kerberos ticket is there, and when does it end?",
        reach.check_ticket,
        ("resourcemanager",),
        Symptom.TICKET_MISSING,
        40.0,
    ),
    Check(
        "identity",
        "Who are we for the cluster, and can its facts be learned?",
        reach.check_identity,
        ("resourcemanager", "ticket"),
        Symptom.REFUSED,
    ),
    Check(
        "machine",
        "Has this machine the cluster, the user, the settings and the versions of other ones (`--compare`)?",
        check_machine,
        ("identity",),
    ),
    Check("security", "Does the cluster demand a proof of the user's name?", reach.check_security, ("identity",)),
    Check(
        "filesystem",
        "Does each NameNode answer, and which one is active?",
        storage.check_filesystem,
        ("identity",),
        Symptom.NN_UNKNOWN,
    ),
    Check("clock", "Do the daemons' clocks agree with ours?", reach.check_clock, ("resourcemanager",)),
    Check(
        "tokens",
        "On a secured cluster: can the tokens of a job be had?",
        storage.check_tokens,
        ("filesystem",),
        Symptom.TOKENS_REFUSED,
    ),
    Check(
        "staging",
        "Can a file be written, read and deleted in the staging directory?",
        storage.check_staging,
        ("filesystem",),
        Symptom.STAGING_REFUSED,
        60.0,
    ),
    Check(
        "rights", "Can other users change staged files?", storage.check_rights, ("staging",), Symptom.STAGING_REFUSED
    ),
    Check(
        "submission",
        "Are applications submitted over HTTP, and how large may a container be?",
        scheduling.check_submission,
        ("identity", "tokens"),
    ),
    Check(
        "queue",
        "Does the queue exist, may we submit to it, what are its limits?",
        scheduling.check_queue,
        ("identity",),
    ),
    Check("queue_acl", "May any user kill applications in the queue?", scheduling.check_queue_acl, ("queue",)),
    Check(
        "nodes",
        "Are there running nodes, and does this machine reach the NodeManagers?",
        scheduling.examine_nodes,
        ("identity",),
    ),
    Check(
        "environment",
        "Can the archive of `--environment` run on the nodes?",
        application.examine_environment,
        seconds=300.0,
    ),
    Check(
        "application",
        "With `--submit`, or an image as `--environment`: does a tiny application run, and which Python, TensorFlow "
        "and GPUs has it?",
        application.check_application,
        ("tokens", "staging", "submission", "queue", "nodes", "environment"),
        Symptom.APPLICATION_REFUSED,
        180.0,
    ),
    Check("logs", "Can logs be read while a job runs and after its end?", scheduling.check_logs, ("nodes",)),
)
