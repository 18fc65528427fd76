"""The facts of a machine that must be equal on all machines of one team, and their comparison."""

import json
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from .. import __version__
from ..errors import Fault, GeneralFault, SpecInvalid, why_unreadable
from ..hadoop.cluster import Cluster
from ..job.parts import values_that_differ
from ..runtime.common.clock import utc_time
from ..runtime.common.values import parse_json, plain_values, read_file
from .known import KnownFacts
from .symptoms import Finding, Symptom, ill, well


def machine_facts(cluster: Cluster) -> dict[str, Any]:
    """Return what must be equal on all machines, as values of JSON; a setting that has its default is not among it."""
    facts = {
        "tf-yarn-ops": __version__,
        "Python": "{}.{}".format(*sys.version_info),
        "resourcemanagers": sorted(cluster.resourcemanagers),
        "user": cluster.user,
        "login": cluster.login,
        "default_filesystem": cluster.storage.default,
        "filesystem": cluster.storage.filesystem,
        "staging_template": cluster.storage.staging_template,
        **{f"site.{name}": value for name, value in values_that_differ(cluster.site).items()},
    }
    return dict(json.loads(json.dumps(facts, default=dict)))


def differing_facts(machines: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the facts in which machines differ, each with its values and the machines that have them.

    Parameters
    ----------
    machines : mapping
        A host name to the machine's facts, with ``seen``, seconds since the epoch.
    """
    found = {}
    for name in sorted({name for facts in machines.values() for name in facts} - {"seen"}):
        hosts: dict[str, list[str]] = {}
        for host, facts in sorted(machines.items()):
            value = facts.get(name, "not set")
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            hosts.setdefault(text, []).append(f"{host} ({utc_time(facts['seen'])})")
        if len(hosts) > 1:
            found[name] = "; ".join(f"{value!r} on {', '.join(named)}" for value, named in hosts.items())
    return found


def check_machine(known: KnownFacts) -> Finding:
    """Compare this machine with those whose diagnoses are given."""
    host, others = socket.gethostname(), known.question.machines
    facts = {**machine_facts(known.session.cluster), "seen": int(time.time())}
    if differing := differing_facts({**others, f"{host}, this machine": facts}):
        return ill(
            Symptom.MACHINES_DIFFER,
            facts={"host": host, "machine": facts},
            differing="; ".join(f"{name}: {values}" for name, values in differing.items()),
        )
    return well(f"{host}{', as ' + ', '.join(sorted(others)) if others else ''}", host=host, machine=facts)


def read_machine(path: str) -> tuple[str, dict[str, Any]]:
    """Return the host name and the facts of the machine on which ``ytf doctor --json`` has made a file.

    Raises
    ------
    SpecInvalid
        The file can't be read, or is not such a document, or its check ``machine`` was skipped or failed.
    """
    try:
        document = plain_values(parse_json(read_file(path)))
        facts = next(check["facts"] for check in document["checks"] if check["check"] == "machine")
        host, machine = str(facts["host"]), dict(facts["machine"])
        utc_time(machine["seen"])
    except OSError as error:
        values = {"file": path, "error": why_unreadable(error)}
        raise SpecInvalid(Fault("", GeneralFault.UNREADABLE_FILE, values)) from error
    except (ValueError, TypeError, LookupError, StopIteration, OverflowError) as error:
        values = {"sentence": f"{path!r} is not what ytf doctor --json prints, or its check 'machine' was skipped"}
        raise SpecInvalid(Fault("", GeneralFault.SENTENCE, values)) from error
    return host, machine
