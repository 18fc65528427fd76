"""Checks of the way to the cluster: our versions, addresses, ResourceManagers, identity, security, clocks."""

import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from typing import Any

from .. import __version__
from ..errors import SpecInvalid
from ..follow.session import Session
from ..hadoop.cluster import current_user, discover, find_addresses, read_conf
from ..hadoop.fast_import import import_skein
from ..hadoop.resourcemanager import CLUSTER_PATH
from ..hadoop.security.authentication import (
    Authentication,
    GatewayAuthentication,
    KerberosAuthentication,
    SimpleAuthentication,
)
from ..hadoop.site import Site, find_site_file, read_site
from ..runtime.common.local_job import SCHEME
from .known import CHECK_PATIENCE, REQUEST_TIMEOUT, KnownFacts
from .probe import ProbeAnswer, probe_all
from .symptoms import Finding, Symptom, ill, skip, well

#: Seconds of difference between two clocks: reports look wrong.
CLOCK_DIFFERENCE = 30.0
#: Seconds: a ticket that ends sooner is too short for most trainings.
SHORT_TICKET = 3600.0
_PACKAGES = ("skein", "httpx")


def check_versions(known: KnownFacts) -> Finding:
    """Return the versions of this package and of what it needs on this machine."""
    found = {name: _version(name) for name in _PACKAGES}
    facts: dict[str, Any] = {"tf_yarn_ops": __version__, "python": platform.python_version(), **found}
    try:
        import_skein()
    except ImportError as error:
        return ill(Symptom.SKEIN_MISSING, error=error, facts=facts, python=sys.executable)
    return well(
        f"tf-yarn-ops {__version__}, Python {platform.python_version()}, skein {found['skein']}, "
        f"httpx {found['httpx']}",
        **facts,
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_configuration(known: KnownFacts) -> Finding:
    """Find the addresses of the ResourceManagers, as every command does."""
    question = known.question
    file = None if question.site else find_site_file(question.environ)
    site = question.site or (read_site(file) if file else Site())
    urls, source, _ = find_addresses(question.resourcemanager, question.environ, site)
    if urls[0].startswith(SCHEME):
        raise SpecInvalid(
            f"{urls[0]} from {source} is this machine, and ytf doctor examines a cluster: give --resourcemanager "
            "http://host:8088. To try a job here: ytf-submit --local"
        )
    where = {
        "site file": f"the site file {file}" if file else "the settings of the site",
        "HADOOP_CONF_DIR": f"HADOOP_CONF_DIR {question.environ.get('HADOOP_CONF_DIR')}",
    }.get(source, source)
    used = f"; site file {file}" if file and source != "site file" else ""
    hurried = replace(site, request_timeout=min(site.request_timeout, REQUEST_TIMEOUT))
    return well(
        f"{', '.join(urls)} from {where}{used}",
        {"site": hurried, "urls": urls},
        resourcemanagers=urls,
        source=source,
        site_file=str(file) if file else None,
    )


def check_resourcemanagers(known: KnownFacts) -> Finding:
    """Ask each address which daemon it is, and in which state."""
    login = current_user(known.question.environ)
    answers = _probe_resourcemanagers(known, _first_authentication(known, login))
    wants_ticket = any(answer.wants_ticket for answer in answers)
    if wants_ticket:
        with_tickets = _probe_resourcemanagers(
            known, KerberosAuthentication(login, known.question.user or login, known.site.tickets)
        )
        answers = [
            ticket if plain.wants_ticket and ticket.status == 200 else plain
            for plain, ticket in zip(answers, with_tickets, strict=True)
        ]
    states = {url: _state(answer) for url, answer in zip(known.urls, answers, strict=True)}
    versions = {str(info["hadoopVersion"]) for answer in answers if (info := _info(answer)).get("hadoopVersion")}
    clocks = {url: answer.ahead for url, answer in zip(known.urls, answers, strict=True) if answer.ahead is not None}
    learned = {"wants_ticket": wants_ticket, "clocks": clocks}
    facts = {"states": states, "versions": sorted(versions)}
    shown = ", ".join(f"{url} {state}" for url, state in states.items())
    lost = [answer for answer in answers if not (_info(answer) or answer.wants_ticket or _is_standby(answer))]
    if len(lost) == len(answers):
        silent = all(answer.status is None for answer in answers)
        return ill(Symptom.RM_SILENT if silent else Symptom.RM_OTHER, facts=facts, states=shown, url=known.urls[0])
    if not wants_ticket and "ACTIVE" not in states.values():
        return ill(Symptom.RM_NOT_ACTIVE, learned, facts=facts, states=shown)
    if all(state == "STANDBY" for state in states.values()):
        return ill(Symptom.RM_STANDBY_NAMED, learned, facts=facts, states=shown)
    if lost:
        return ill(Symptom.RM_PARTLY_AWAY, learned, facts=facts, states=shown)
    hadoop = f", Hadoop {' and '.join(sorted(versions))}" if versions else ""
    return well(f"{shown}{hadoop}", learned, **facts)


def _first_authentication(known: KnownFacts, login: str) -> Authentication:
    if (credentials := known.site.credentials) is not None:
        login = credentials.login()
        return GatewayAuthentication(login, known.question.user or login, credentials)
    return SimpleAuthentication(login, known.question.user or login)


def _probe_resourcemanagers(known: KnownFacts, authentication: Authentication) -> list[ProbeAnswer]:
    return list(probe_all(known.urls, f"{CLUSTER_PATH}/info", authentication, known.site, known.urls).values())


def _info(answer: ProbeAnswer) -> Mapping[str, object]:
    info = answer.document.get("clusterInfo")
    return info if isinstance(info, dict) else {}


def _is_standby(answer: ProbeAnswer) -> bool:
    return bool(answer.location) or "standby RM" in answer.why


def _state(answer: ProbeAnswer) -> str:
    if _info(answer):
        return str(_info(answer).get("haState") or "ACTIVE")
    if _is_standby(answer):
        return "STANDBY"
    if answer.wants_ticket:
        return "asks for a Kerberos ticket"
    return answer.failure


def check_ticket(known: KnownFacts) -> Finding:
    """Tell whose Kerberos ticket there is, where it comes from and when it ends."""
    if not known.wants_ticket:
        return skip("the cluster asks for no ticket")
    tickets = known.site.tickets
    principal, left = tickets.inquire()
    facts: dict[str, Any] = {"principal": principal, "seconds_left": left, "keytab": tickets.keytab}
    if tickets.keytab:  # a valid ticket cache wins over $KRB5_CLIENT_KTNAME
        return well(f"{principal}, from the keytab {tickets.keytab}, which renews it", **facts)
    if left < SHORT_TICKET:
        return ill(Symptom.TICKET_ENDS_SOON, facts=facts, principal=principal, left=_span(left))
    return well(f"{principal}, for {_span(left)}", **facts)


def _span(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def check_identity(known: KnownFacts) -> Finding:
    """Learn the cluster's facts and who we are there, as every command does."""
    question = known.question
    cluster = discover(question.resourcemanager, question.environ, question.user, known.site)
    session = Session(cluster, CHECK_PATIENCE)
    acting = f", impersonated by {cluster.login}" if cluster.login != cluster.user else ""
    return well(
        f"{cluster.user}{acting}; Hadoop {cluster.version or 'of unknown version'}, {cluster.storage.default}",
        {"opened": session, "configuration": read_conf(session.yarn)},
        user=cluster.user,
        login=cluster.login,
        hadoop=cluster.version,
        secure=cluster.security.kerberos,
        default_filesystem=cluster.storage.default,
        staging=f"{cluster.storage.filesystem}{cluster.staging}",
    )


def check_security(known: KnownFacts) -> Finding:
    """Tell whether the cluster believes a user name without a proof."""
    cluster = known.session.cluster
    if not cluster.security.kerberos:
        return ill(Symptom.UNSECURED)
    if isinstance(cluster.authentication, GatewayAuthentication):
        return well("Kerberos, behind a gateway with a login")
    if cluster.security.negotiates is False:
        return ill(Symptom.OPEN_PAGES)
    return well("Kerberos, for requests over HTTP too")


def check_clock(known: KnownFacts) -> Finding:
    """Compare the clocks of the daemons that have answered with ours."""
    if not known.clocks:
        return skip("no daemon has sent its time")
    ahead = {url: round(seconds, 1) for url, seconds in known.clocks.items()}
    facts = {"ahead_seconds": ahead}
    worst = max(map(abs, known.clocks.values()))
    if worst <= CLOCK_DIFFERENCE:
        return well("the same time, within 1 s" if worst < 1.5 else f"the same time, within {worst:.0f} s", **facts)
    shown = ", ".join(
        f"{url} is {abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"
        for url, seconds in ahead.items()
        if abs(seconds) > CLOCK_DIFFERENCE
    )
    return ill(Symptom.CLOCK_DIFFERS, facts=facts, differences=shown)
