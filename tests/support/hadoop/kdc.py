"""The KDC of a secured cluster, by MIT Kerberos: the databases of its two realms, keytabs, ``krb5.conf``, its process.

Everything lies in the folder ``kerberos`` of the cluster. The KDC is one of the cluster's daemons. The cluster's realm
trusts the other one, but not the other way round.
"""

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tf_yarn_ops.errors import MiniClusterError

from .kerberos import CORPORATE_REALM, CORPORATE_USERS, REALM, SERVICES, USERS
from .settings import HadoopSettings

PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_SECONDS = 60.0
_MIT = (
    "install MIT Kerberos: krb5-kdc, krb5-admin-server and krb5-user (apt-get),"
    " or krb5-server and krb5-workstation (dnf)"
)


def check_programs(environ: Mapping[str, str]) -> None:
    """Raise an error unless MIT's KDC and ``kinit``, which users and two NameNodes need, are installed.

    Raises
    ------
    MiniClusterError
        A program is neither on PATH nor in ``/usr/sbin``; the message names the packages.
    """
    missing = [program for program in PROGRAMS if not shutil.which(program, path=_search_path(environ))]
    if missing:
        raise MiniClusterError(f"a secured cluster needs {', '.join(missing)}: {_MIT}")


def make_realms(settings: HadoopSettings, environ: Mapping[str, str]) -> None:
    """Write the configuration of the realms; make their databases and the keytabs unless they exist.

    Raises
    ------
    MiniClusterError
        A program of MIT Kerberos failed; the message has its answer.
    """
    realm = settings.realm
    folder = realm.folder
    folder.mkdir(mode=0o700, exist_ok=True)
    realm.krb5_conf.write_text(_client_text(settings, REALM))
    realm.corporate_conf.write_text(_client_text(settings, CORPORATE_REALM))
    (folder / "kdc.conf").write_text(_kdc_text(settings))
    if not realm.web_secret.exists():
        _write_secret(realm.web_secret)
    variables = _variables(settings, environ)
    if not (folder / "complete").exists():
        for left in (*folder.glob("principal*"), *folder.glob("*.keytab")):
            left.unlink()
        # Both realms have the key by which one trusts the other.
        trust = f"addprinc -pw {secrets.token_hex()} krbtgt/{REALM}@{CORPORATE_REALM}"
        for name, users in ((REALM, (*USERS, *SERVICES)), (CORPORATE_REALM, CORPORATE_USERS)):
            _run(["kdb5_util", "create", "-s", "-r", name, "-P", secrets.token_hex()], variables)
            commands = [trust]
            for user in users:
                for principal in realm.principals(user):
                    commands += [f"addprinc -randkey {principal}", f"ktadd -k {realm.keytab(user)} {principal}"]
            answer = _run(["kadmin.local", "-r", name], variables, commands)
            if missing := [user for user in users if not realm.keytab(user).exists()]:
                raise MiniClusterError(f"kadmin.local made no keytab for {', '.join(missing)}: {answer}")
        (folder / "complete").touch()
    # A former start may have set another lifetime. Zero removes the limit.
    _run(
        ["kadmin.local"],
        variables,
        [f'modprinc -maxlife "{settings.ticket_lifetime or 0} seconds" {realm.principal(name)}' for name in USERS],
    )


def get_ticket(settings: HadoopSettings, environ: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the variables of a process that acts as a user or daemon: with a new ticket in a cache of its own.

    Raises
    ------
    MiniClusterError
        ``kinit`` is missing or failed.
    """
    realm = settings.realm
    cache = f"FILE:{realm.folder}/ticket-{name}"
    _run(
        ["kinit", "-k", "-t", str(realm.keytab(name)), "-c", cache, realm.principal(name)],
        _variables(settings, environ),
    )
    return {"KRB5_CONFIG": str(realm.krb5_conf), "KRB5CCNAME": cache}


def start_kdc(settings: HadoopSettings, environ: Mapping[str, str], marks: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start the KDC in a session of its own; its log is ``logs/kdc.log``.

    Parameters
    ----------
    settings : HadoopSettings
        The cluster.
    environ : mapping
        The caller's environment.
    marks : tuple of str
        Words by which the process is found on its command line.
    """
    # krb5kdc knows no free words, but takes the last -P, the file for its pid.
    named = [word for mark in (*marks, f"{settings.realm.folder}/kdc.pid") for word in ("-P", mark)]
    with (settings.logs / "kdc.log").open("ab") as log:
        return subprocess.Popen(
            ["krb5kdc", "-n", "-r", REALM, "-r", CORPORATE_REALM, *named],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=_variables(settings, environ),
            cwd=settings.realm.folder, start_new_session=True,
        )  # fmt: skip


def listens(settings: HadoopSettings) -> bool:
    """Return whether the KDC takes connections."""
    host, _, port = settings.kdc_address.partition(":")
    try:
        socket.create_connection((host, int(port)), 1.0).close()
    except OSError:
        return False
    return True


def _search_path(environ: Mapping[str, str]) -> str:
    # Distributions keep servers in folders that only root has on PATH.
    return os.pathsep.join([environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _variables(settings: HadoopSettings, environ: Mapping[str, str]) -> dict[str, str]:
    folder = settings.realm.folder
    return {
        "PATH": _search_path(environ),
        "LANG": "C.UTF-8",
        "TMPDIR": str(folder),
        "KRB5_CONFIG": str(settings.realm.krb5_conf),
        "KRB5_KDC_PROFILE": f"{folder}/kdc.conf",
        "KRB5RCACHENAME": f"dfl:{folder}/rcache",
    }


def _run(command: list[str], variables: Mapping[str, str], commands: list[str] | None = None) -> str:
    try:
        ran = subprocess.run(
            command, env=dict(variables), input="".join(f"{line}\n" for line in commands or ()), text=True,
            errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MiniClusterError(f"{command[0]} of MIT Kerberos did not run: {error}") from error
    if ran.returncode != 0:
        raise MiniClusterError(f"{command[0]} of MIT Kerberos failed (exit {ran.returncode}): {ran.stdout.strip()}")
    return ran.stdout.strip()


def _write_secret(path: Path) -> None:
    with open(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secrets.token_hex())


def _client_text(settings: HadoopSettings, default: str) -> str:
    # TCP only: a KDC that is away is then seen at once. On one host no lookup: its names are those of the URLs.
    host, *others = settings.realm.hosts
    domain = host[host.index(".") :] if others else host
    lookup = "" if others else "  dns_canonicalize_hostname = false\n  rdns = false\n"
    return f"""\
[libdefaults]
  default_realm = {default}
  dns_lookup_kdc = false
  dns_lookup_realm = false
{lookup}  udp_preference_limit = 1
  renew_lifetime = 7d
[realms]
  {REALM} = {{
    kdc = {settings.kdc_address}
  }}
  {CORPORATE_REALM} = {{
    kdc = {settings.kdc_address}
  }}
[domain_realm]
  {domain} = {REALM}
"""


def _kdc_text(settings: HadoopSettings) -> str:
    folder = settings.realm.folder
    return f"""\
[kdcdefaults]
  kdc_listen = {settings.kdc_address}
  kdc_tcp_listen = {settings.kdc_address}
[realms]
{"".join(_realm_text(folder, name) for name in (REALM, CORPORATE_REALM))}
[logging]
  kdc = FILE:{settings.logs}/kdc.log
"""


def _realm_text(folder: Path, name: str) -> str:
    return f"""\
  {name} = {{
    database_name = {folder}/principal-{name}
    key_stash_file = {folder}/stash-{name}
    acl_file = {folder}/kadm5.acl
    max_life = 1d
    max_renewable_life = 7d
  }}
"""
