"""pip's configuration for uv: the index, its certificates, proxies and folders of wheels.

uv reads neither ``pip.conf`` nor pip's variables. ``python pip_settings.py`` prints lines for a shell; the variables
may hold a password of an index, so nothing logs them.
"""

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: The variable of uv by the option of pip; uv separates several values by commas or blanks.
UV_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "no-index": ("UV_NO_INDEX", " "),  # uv has only the option, which whoever calls it must add
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
    "proxy": ("ALL_PROXY", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
}
#: Where pip looks for an option; the later wins.
_SECTIONS = ("global", "install", ":env:")


def read_pip_settings(environ: Mapping[str, str], python: str | Path = sys.executable) -> dict[str, str]:
    """Return the variables of uv that say what pip's files and variables say, except those that are set."""
    # An environment that uv made has no pip; the Python of which it was made has.
    pythons = dict.fromkeys((python, Path(sys.base_prefix, "bin", "python3")))
    lines: list[str] = []
    for one in pythons:
        command = [one, "-m", "pip", "--disable-pip-version-check", "config", "list"]
        ran = subprocess.run(command, env=environ, capture_output=True, text=True)
        if ran.returncode == 0:
            lines = ran.stdout.splitlines()
            break
    lines += [
        f":env:.{name[4:].lower().replace('_', '-')}={value!r}" for name, value in environ.items() if name[:4] == "PIP_"
    ]
    found: dict[str, str] = {}
    for section in _SECTIONS:
        for name, mark, value in (line.partition("=") for line in lines):
            where, _, option = name.rpartition(".")
            if mark and where == section and option in UV_VARIABLES:
                variable, separator = UV_VARIABLES[option]
                found[variable] = separator.join(ast.literal_eval(value).split())
    if "UV_INDEX_URL" in environ:
        found.pop("UV_DEFAULT_INDEX", None)
    return {name: value for name, value in found.items() if name not in environ}


if __name__ == "__main__":
    for name, value in read_pip_settings(os.environ).items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
