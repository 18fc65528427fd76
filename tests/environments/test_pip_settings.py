"""pip's configuration for uv, on the real programs."""

import os
import subprocess
import sys
import zipfile

import pytest

from support.http_server import Handler, running
from support.tls import Authority
from tf_yarn_ops.environments.pip_settings import read_pip_settings

pytestmark = pytest.mark.slow


@pytest.fixture
def environ(tmp_path):
    """The environment of a user whose ``pip.conf`` is the test's, and who says nothing to pip and uv by variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "SSL_CERT"))}
    return kept | {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
    }


def test_files_and_variables_of_pip_become_variables_of_uv(environ, tmp_path):
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://one.example/simple\nextra-index-url = https://two.example/a\n  https://two.example/b\n"
        "cert = /etc/company.pem\ntimeout = 7\n[install]\nindex-url = https://user:secret@three.example/it's\n"
    )
    environ |= {"PIP_PROXY": "http://proxy.example:1", "UV_HTTP_TIMEOUT": "9"}
    assert read_pip_settings(environ) == {
        "UV_DEFAULT_INDEX": "https://user:secret@three.example/it's",
        "UV_INDEX": "https://two.example/a https://two.example/b",
        "SSL_CERT_FILE": "/etc/company.pem",
        "ALL_PROXY": "http://proxy.example:1",
    }


def test_uv_installs_from_an_index_that_only_pip_knows(environ, tmp_path):
    """The index has a certificate of a company's own authority."""
    wheel = tmp_path / "ytf_probe-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ytf_probe.py", "")
        archive.writestr("ytf_probe-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ytf-probe\nVersion: 1.0\n")
        archive.writestr(
            "ytf_probe-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("ytf_probe-1.0.dist-info/RECORD", "")

    class Index(Handler):
        def do_GET(self):
            if self.path.endswith(".whl"):
                self.reply(200, {"Content-Type": "application/octet-stream"}, wheel.read_bytes())
            else:
                self.reply(
                    200, {"Content-Type": "text/html"}, f'<!DOCTYPE html><a href="/{wheel.name}">{wheel.name}</a>'
                )

        def do_HEAD(self):
            self.reply(200, {}, b"")

    authority = Authority(tmp_path / "authority")
    with running(Index, authority.server("127.0.0.1")) as server:
        port = server.server_address[1]
        (tmp_path / "pip.conf").write_text(
            f"[global]\nindex-url = https://127.0.0.1:{port}/simple\ncert = {authority.file}\n"
        )
        command = [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "--no-cache",
            "--target",
            tmp_path / "target",
            "ytf-probe",
        ]
        aware = subprocess.run(
            command, env=environ | read_pip_settings(environ), capture_output=True, text=True, timeout=120
        )
    assert aware.returncode == 0, aware.stderr
    assert (tmp_path / "target" / "ytf_probe.py").is_file()
