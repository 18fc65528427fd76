"""Daemons that serve https with certificates of a private CA: what a refusal says, and a gateway in front of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.knox import Knox, serving_knox
from support.secure_clients import call_as
from support.tls import Authority
from tf_yarn_ops.cli import main
from tf_yarn_ops.hadoop.security.authentication import KerberosAuthentication
from tf_yarn_ops.hadoop.security.tickets import Tickets
from tf_yarn_ops.hadoop.transport import open_client

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

WORDS = ["--environment", f"venv://{sys.prefix}", "-m", "256", "-r", "worker:1"]


def run(environ, program, *words):
    return subprocess.run(
        [Path(sys.executable).with_name(program), *words], env=environ, capture_output=True, text=True, timeout=180
    )


def test_faulty_certificate_or_address_is_reported(secure_cluster, as_alice, tmp_path):
    def said(address, authority):
        (tmp_path / "site.yaml").write_text(f"ca_file: {authority}\n")
        environ = as_alice | {"YTF_SITE": str(tmp_path / "site.yaml"), "YTF_RESOURCEMANAGER": address}
        return call_as(environ, main, "list").stderr.replace("\n", " ")

    own, address = secure_cluster.ca_file, secure_cluster.resourcemanager_url
    text = said(address, Authority(tmp_path / "other").file)
    assert "its certificate is not trusted (" in text and "set ca_file in site.yaml" in text
    assert f"it speaks https, not plain HTTP; write {address}" in said(address.replace("https:", "http:"), own)
    other_name = re.sub("//[^:]+:", "//127.1:", address)  # the same address, as no certificate has it
    assert "its certificate is for localhost, 127.0.0.1, and not for 127.1; write a name of the certificate" in said(
        other_name, own
    )


def test_knox_in_front_of_a_secured_cluster(secure_cluster, as_gateway, tmp_path):
    """The gateway acts for alice with its own ticket; the client has a token of the gateway, and no Kerberos."""
    authority, ca_file = Authority(tmp_path / "knox"), tmp_path / "ca.pem"
    ca_file.write_bytes(authority.file.read_bytes() + Path(secure_cluster.ca_file).read_bytes())
    (tmp_path / "token").write_text("a.b.c")
    (tmp_path / "token").chmod(0o600)
    daemons = [secure_cluster.settings.web_address(secure_cluster.active(kind)) for kind in ("rm", "nn")]
    others = [secure_cluster.settings.web_address(name) for name in ("dn", "nm")]
    tickets = Tickets(str(secure_cluster.keytab("gateway")), secure_cluster.principal("gateway"))
    client = open_client(KerberosAuthentication("gateway", tickets=tickets), (*daemons, *others), 60, str(ca_file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", as_gateway["KRB5_CONFIG"])
        with serving_knox(Knox(*daemons, "alice", client), authority.server("127.0.0.1")) as topology:  # type: ignore[call-arg]
            (tmp_path / "site.yaml").write_text(
                f"resourcemanager: {topology}/yarn\nca_file: {ca_file}\ngateway_token_file: {tmp_path / 'token'}\n"
                f"staging: '/user/{{user}}/by-knox'\nsubmit_with: rest\n"
            )
            environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "YTF_SITE": str(tmp_path / "site.yaml")}
            done = run(environ, "ytf-submit", "--wait", *WORDS, "echo hello")
            assert done.returncode == 0, done.stderr
            assert "alice" in run(environ, "ytf", "report", re.search(r"application_\d+_\d+", done.stdout)[0]).stdout
