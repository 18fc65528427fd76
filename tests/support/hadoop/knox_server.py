"""A real Apache Knox before a cluster: its home folder, topologies, certificate and users."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from xml.sax.saxutils import escape

from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster.daemon_settings import render_xml

from .kms import QUICK_STORE
from .server_jars import fetch_jars

KNOX, VERSION = "knox", os.environ.get("YTF_TEST_KNOX", "1.6.1")
MAIN_CLASS = "org.apache.knox.gateway.GatewayServer"
#: Services by topology.
TOPOLOGIES = {"default": ("YARNUI", "RESOURCEMANAGER", "WEBHDFS"), "rest": ("RESOURCEMANAGER", "WEBHDFS")}
_MODULES = (
    "server", "service-definitions", "service-webhdfs", "service-rm", "provider-rewrite",
    "provider-rewrite-step-secure-query", "provider-rewrite-step-encrypt-uri", "provider-rewrite-func-hostmap-static",
    "provider-rewrite-func-service-registry", "provider-rewrite-func-inbound-query-param", "provider-security-shiro",
    "provider-identity-assertion-common", "provider-identity-assertion-pseudo", "topology-simple",
)  # fmt: skip
_SECRET = "minicluster"
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.audit=OFF
"""


@dataclass(frozen=True)
class KnoxHome:
    """The home folder of a Knox.

    Attributes
    ----------
    folder : Path
    host : str
    port : int
    """

    folder: Path
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}/gateway"

    @property
    def ca_file(self) -> Path:
        """The certificate of the gateway, which clients trust."""
        return self.folder / "knox.pem"

    @property
    def password_file(self) -> Path:
        """The user and password of the gateway, as ``gateway_password_file`` names it."""
        return self.folder / "password"

    @property
    def site_file(self) -> Path:
        """The ``site.yaml`` for clients behind the gateway."""
        return self.folder / "site.yaml"

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of its JVM."""
        log = f"-Dlog4j.configuration={self.folder}/conf/log4j.properties"
        return (f"-DGATEWAY_HOME={self.folder}", log, "--add-opens=java.base/java.lang=ALL-UNNAMED", QUICK_STORE)

    @property
    def class_path(self) -> tuple[str, ...]:
        return (f"{self.folder}/conf", f"{knox_jars()}/*")

    def write(self, java_home: Path, user: str, services: Mapping[str, str]) -> None:
        """Write the files; those of an earlier start are replaced.

        Parameters
        ----------
        java_home : Path
        user : str
            The user of the cluster that logs in.
        services : mapping of str to str
            URLs of the daemons by Knox's service.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        names = ("conf/topologies", "conf/descriptors", "conf/shared-providers", "conf/META-INF/services", "logs",
                 "data/security/keystores", "data/deployments", "data/applications")  # fmt: skip
        for name in names:
            (self.folder / name).mkdir(parents=True)
        with zipfile.ZipFile(knox_jars() / f"gateway-service-definitions-{VERSION}.jar") as jar:
            wanted = ("services/yarnui/", "services/yarn-rm/", "services/webhdfs/")
            jar.extractall(self.folder / "data", [name for name in jar.namelist() if name.startswith(wanted)])
        files = {
            "conf/log4j.properties": _LOG4J,
            # Knox's own distribution has this file beside its jars.
            "conf/META-INF/services/org.apache.knox.gateway.services.GatewayServices":
                "org.apache.knox.gateway.services.DefaultGatewayServices\n",
            "conf/gateway-site.xml": render_xml({
                "gateway.host": self.host, "gateway.port": str(self.port), "gateway.path": "gateway",
                "gateway.dispatch.whitelist": "^.*$",
            }),
            "password": f"{user}:{_SECRET}\n",
            "site.yaml": f"resourcemanager: {self.url}/default/yarn\nca_file: {self.ca_file}\n"
                         f"gateway_password_file: {self.password_file}\n",
        }  # fmt: skip
        files |= {f"conf/topologies/{name}.xml": _topology(user, {role: services[role] for role in roles})
                  for name, roles in TOPOLOGIES.items()}  # fmt: skip
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.password_file.chmod(0o600)
        self._write_certificate()
        self._write_master(java_home)

    def _write_certificate(self) -> None:
        """Write the key of the gateway: Java 17 lacks what Knox makes its own with, and Knox wants RSA."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import rsa
        from cryptography.hazmat.primitives.serialization import pkcs12
        from cryptography.x509.oid import NameOID

        key, now = rsa.generate_private_key(65537, 2048), datetime.now(timezone.utc)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.host)])
        where = x509.IPAddress(ip_address(self.host)) if self.host[0].isdigit() else x509.DNSName(self.host)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=3650))
            .add_extension(x509.SubjectAlternativeName([where]), critical=False)
            .sign(key, hashes.SHA256())
        )  # fmt: skip
        protected = serialization.BestAvailableEncryption(_SECRET.encode())
        store = pkcs12.serialize_key_and_certificates(b"gateway-identity", key, certificate, None, protected)
        (self.folder / "data/security/keystores/gateway.jks").write_bytes(store)
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _write_master(self, java_home: Path) -> None:
        """Write Knox's master secret; Knox's own tool makes it once, beside the jars."""
        master, made = knox_jars() / "master", self.folder / "data/security/master"
        if not master.exists():
            command = [f"{java_home}/bin/java", *self.flags, "-cp", ":".join(self.class_path),
                       "org.apache.knox.gateway.util.KnoxCLI", "create-master", "--master", _SECRET]  # fmt: skip
            ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
            if ran.returncode != 0 or not made.exists():
                raise MiniClusterError(f"Knox's tool made no master secret: {ran.stdout[-1000:]}{ran.stderr[-1000:]}")
            copy = master.with_name(f"master-{os.getpid()}")
            shutil.copy(made, copy)
            copy.rename(master)
        shutil.copy(master, made)


def knox_jars() -> Path:
    """Return the folder with the jars of Knox."""
    modules = [f"org.apache.knox:gateway-{module}:{VERSION}" for module in _MODULES]
    return fetch_jars(f"knox-{VERSION}", modules, transitive=True)


def _topology(user: str, services: Mapping[str, str]) -> str:
    login = {"sessionTimeout": "30", f"users.{user}": _SECRET, "urls./**": "authcBasic"}
    params = "".join(
        f"<param><name>{escape(name)}</name><value>{value}</value></param>" for name, value in login.items()
    )
    roles = "".join(f"<service><role>{role}</role><url>{url}</url></service>" for role, url in services.items())
    return (
        "<topology><gateway><provider><role>authentication</role><name>ShiroProvider</name><enabled>true</enabled>"
        f"{params}</provider><provider><role>identity-assertion</role><name>Default</name><enabled>true</enabled>"
        f"</provider></gateway>{roles}</topology>"
    )
