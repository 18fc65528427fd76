"""A real KDC, and a ResourceManager that accepts only clients of the real Kerberos library."""

import base64
import os
import re
import secrets
import socket
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from support import fake_yarn, gss_acceptor
from support.fake_yarn import FakeYarn
from support.http_server import running
from support.waiting import until
from tf_yarn_ops.hadoop.security.gssapi import GssError
from tf_yarn_ops.minicluster.ports import choose_ports

REALM = "EXAMPLE.COM"
#: What a standby answers itself; any other path leads to the active ResourceManager.
STANDBYS_OWN = ("/conf", "/ws/v1/cluster/info")
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class Kdc:
    """A realm with the user ann and the service HTTP/localhost.

    Parameters
    ----------
    folder : Path
        For the database, keytabs and tickets.
    realm : str, optional
    """

    def __init__(self, folder: Path, realm: str = REALM):
        self.folder, self.realm = folder, realm
        self.config = folder / "krb5.conf"
        self.service_keytab, self.user_keytab = folder / "http.keytab", folder / "ann.keytab"
        self.port = choose_ports(["kdc"])["kdc"]
        self.config.write_text(f"""
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{self.port}
  }}
""")
        (folder / "kdc.conf").write_text(f"""
[kdcdefaults]
  kdc_listen = 127.0.0.1:{self.port}
  kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
""")
        self.variables = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5RCACHENAME": f"dfl:{folder}/rcache",
            "PATH": SYSTEM_PATH,
            "TMPDIR": str(folder),
        }

    def tool(self, *command, **variables):
        """Run a program of MIT Kerberos."""
        subprocess.run(
            command,
            env=self.variables | variables,
            check=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )

    @contextmanager
    def running(self, **variables):
        """Make the realm and run its KDC, with further variables for its process."""
        self.tool("kdb5_util", "create", "-s", "-r", self.realm, "-P", secrets.token_hex())
        for name, keytab in (("ann", self.user_keytab), ("HTTP/localhost", self.service_keytab)):
            self.tool("kadmin.local", "-q", f"addprinc -randkey {name}")
            self.tool("kadmin.local", "-q", f"ktadd -k {keytab} {name}")
        kdc = subprocess.Popen(
            ["krb5kdc", "-n"],
            env=self.variables | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(self.listens)
            yield self
        finally:
            kdc.terminate()
            kdc.wait(60)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def cache(self, name):
        """Return the variables of a client whose tickets are in this cache."""
        return {"KRB5_CONFIG": str(self.config), "KRB5CCNAME": f"FILE:{self.folder / name}"}

    def kinit(self, name="ticket", lifetime="1h"):
        """Get ann's ticket; give the variables of a client that has it."""
        variables = self.cache(name)
        self.tool("kinit", "-k", "-t", str(self.user_keytab), "-l", lifetime, "ann", **variables)
        return variables

    def expired(self, variables):
        """Tell whether the tickets are of no use any more."""
        return subprocess.run(["klist", "-s"], env=self.variables | variables, check=False, timeout=60).returncode != 0


class SecureYarn(FakeYarn):
    """A ResourceManager, and a NameNode that deletes and creates files, behind Hadoop's authentication filter."""

    def __init__(self, keytab):
        super().__init__()
        self.keytab = str(keytab)
        self.offers = "Negotiate"
        self.location = ""  # as a standby: where the active one is
        self.content_at = ""  # the URL that takes the content of files
        self.content = []  # what came as the content of files
        self.cookie_uses = 10**9  # requests for which a cookie is good
        self.cookies = {}  # what is left of each
        self.mapped = {}  # the user of a principal, as by hadoop.security.auth_to_local
        self.false_proof = False  # answers a ticket with a token that proves nothing
        self.handshakes = []  # principals
        self.seen = []  # (principal, method, path, parameters), of those let in
        self.raw = []  # (path, parameters, headers), of all
        self.who = threading.local()
        self.owners = {}
        self.conf |= {"hadoop.security.authentication": "kerberos"}

    def answer(self, method, path, parameters, body):
        if path.endswith("/userinfo"):
            user = self.mapped.get(self.who.principal, self.who.principal)
            return 200, {"clusterUserInfo": {"requestedUser": parameters.get("doAs") or user}}
        status, document = super().answer(method, path, parameters, body)
        if self.location and path == STANDBYS_OWN[1]:
            document["clusterInfo"]["haState"] = "STANDBY"
        return status, document

    def enter(self, headers):
        """Return the principal (None when it is not let in) and the headers of the answer."""
        found = re.search(r'hadoop\.auth=("[^"]+")', headers.get("Cookie", ""))
        with self.lock:
            if found and self.cookies.get(found.group(1), 0) > 0:
                self.cookies[found.group(1)] -= 1
                return self.owners[found.group(1)], {}
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme != "Negotiate" or self.offers != "Negotiate":
            return None, {"WWW-Authenticate": self.offers, "Set-Cookie": "hadoop.auth=; Path=/; HttpOnly"}
        try:
            principal, token = gss_acceptor.accept(base64.b64decode(token), self.keytab)
        except GssError:
            return None, {"WWW-Authenticate": "Negotiate"}
        answer = base64.b64encode(token).decode()
        if principal is None:
            return None, {"WWW-Authenticate": f"Negotiate {answer}"}
        cookie = f'"u={principal.split("@")[0]}&p={principal}&t=kerberos&e=1&s={secrets.token_hex(8)}="'
        with self.lock:
            self.handshakes.append(principal)
            self.cookies[cookie], self.owners[cookie] = self.cookie_uses, principal
        if self.false_proof:
            answer = base64.b64encode(secrets.token_bytes(len(answer))).decode()
        return principal, {
            "WWW-Authenticate": f"Negotiate {answer}",
            "Set-Cookie": f"hadoop.auth={cookie}; Path=/; HttpOnly",
        }


def _guarded(yarn):
    class Guarded(fake_yarn._handler(yarn)):
        entry = {}

        def guard(self):
            split = urlsplit(self.path)
            parameters = {key: values[-1] for key, values in parse_qs(split.query).items()}
            yarn.raw.append((split.path, parameters, dict(self.headers)))
            self.entry = {}
            if yarn.location and split.path not in STANDBYS_OWN:
                self.drain()
                return self.reply(307, {"Location": yarn.location + self.path}, "This is standby RM")
            principal, self.entry = yarn.enter(self.headers)
            if principal is None:
                self.drain()
                return self.reply(401, {"Content-Type": "text/html"}, "<h2>Authentication required</h2>")
            yarn.who.principal = principal
            yarn.seen.append((principal, self.command, split.path, parameters))
            if split.path.startswith("/webhdfs/v1"):
                content = self.drain()
                if parameters.get("data"):
                    yarn.content.append(content)
                    return self.reply(201, {}, "")
                if parameters["op"] == "CREATE":
                    return self.reply(307, {"Location": f"{yarn.content_at}{split.path}?op=CREATE&data=true"}, "")
                return self.reply(200, {"Content-Type": "application/json"}, '{"boolean": true}')
            return self.handle_one()

        def drain(self):
            return self.rfile.read(int(self.headers.get("content-length") or 0))

        def reply(self, status, headers, text):
            super().reply(status, headers | self.entry, text)

        do_GET = do_POST = do_PUT = do_DELETE = guard

    return Guarded


@contextmanager
def serving(yarn):
    """Serve a `SecureYarn` as localhost, the name that the KDC knows; sets and gives its URL."""
    with running(_guarded(yarn)) as server:
        yarn.url = f"http://localhost:{server.server_port}"
        yarn.conf |= {"fs.defaultFS": "hdfs://localhost:8020", "dfs.namenode.http-address": yarn.url[len("http://") :]}
        yield yarn.url
