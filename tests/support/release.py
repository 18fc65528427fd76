"""``./dev release``: build sdist and wheel from the tag of the version, check them, install them; nothing is uploaded.

``prepare`` comes first: it writes what a release changes in the documents, and the text of the tag.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from support.framework_environments import pinned_python
from tf_yarn_ops.environments.pip_settings import read_pip_settings

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "tf_yarn_ops"
#: What a release switches on in the documents: file, text before, text after. The only places that know of it.
SWITCHES = [
    (
        "README.md",
        "From a clone, until the first release (`.` stands for `tf-yarn-ops` in every command of the documents):\n\n```sh\n"
        "pip install .              # command line, Azkaban, Python; needs Linux and Python 3.10 or later\n"
        'pip install ".[airflow]"   # and the Airflow provider; other extras: env, functions, oozie, ui, tensorflow, s3\n',
        "```sh\n"
        "pip install tf-yarn-ops              # command line, Azkaban, Python; needs Linux and Python 3.10 or later\n"
        'pip install "tf-yarn-ops[airflow]"   # and the Airflow provider; other extras: env, functions, oozie, ui, tensorflow, s3\n',
    ),
    (
        "docs/quickstart.md",
        'pip install "/path/to/clone[tensorflow]"      # after the first release: tf-yarn-ops[tensorflow]\n',
        'pip install "tf-yarn-ops[tensorflow]"\n',
    ),
]
#: Licences that both archives hold: ours, and that of Oozie's schemas.
LICENCES = {"LICENSE", f"{PACKAGE}/oozie/schemas/NOTICE"}
BUILD = "import os, setuptools.build_meta as build; build.build_{kind}(os.environ['RELEASE'])"


class ReleaseFault(Exception):
    """Why there is no release, and what to do."""


def read_version(root=ROOT):
    """Return the version of the package, which is not imported."""
    return re.search(r'^__version__ = "(.+?)"', (root / PACKAGE / "__init__.py").read_text(), re.M)[1]


def read_changes(changelog, version):
    """Return the date and the text of a version's section of the CHANGELOG; the date is None before the release."""
    found = re.search(rf"^## {re.escape(version)} \((.+?)\)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if not found:
        raise ReleaseFault(f"CHANGELOG.md has no section '## {version} (not released)'; write one")
    return None if found[1] == "not released" else found[1], found[2].strip()


def prepare(root, today):
    """Write what a release of the version changes: CHANGELOG's date, the commands of an installation. Return the tag's text."""
    version = read_version(root)
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    date, changes = read_changes(text, version)
    changelog.write_text(text.replace(f"## {version} (not released)", f"## {version} ({today})"), encoding="utf-8")
    for name, before, after in SWITCHES:
        page = (root / name).read_text(encoding="utf-8")
        if (before in page) == (after in page):
            raise ReleaseFault(
                f"{name} has neither the text before a release nor that after it; see SWITCHES in {__file__}"
            )
        (root / name).write_text(page.replace(before, after), encoding="utf-8")
    return f"tf-yarn-ops {version} ({date or today})\n\n{changes}\n"


def find_commit(root, version, untagged):
    """Return the commit of the version's tag, which must be the one that is checked out, with nothing changed."""
    if left := git(root, "status", "--porcelain").rstrip():
        raise ReleaseFault(f"the checkout has changes; commit or remove them:\n{left}")
    head, tag = git(root, "rev-parse", "HEAD").strip(), f"v{version}"
    if not untagged:
        if tag not in git(root, "tag", "--points-at", head).split():
            raise ReleaseFault(
                f"the last commit has no tag {tag}. ./dev release prepare, commit, then: git tag -a {tag} -F .ytf/release/tag.txt"
            )
        if read_changes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)[0] is None:
            raise ReleaseFault(f"CHANGELOG.md calls {version} not released: ./dev release prepare, then move the tag")
    return head


def git(root, *words):
    """Return what a command of git prints."""
    return run(["git", "-C", root, *words])


def run(words, **options):
    """Return what a command prints; a failure is a `ReleaseFault` with its words."""
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, **options)
    if ran.returncode:
        raise ReleaseFault(f"{' '.join(map(str, words))} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def build(root, commit, folder):
    """Build the sdist of a commit, and the wheel from that sdist; return both files."""
    source = folder / "source"
    source.mkdir(parents=True)
    git(root, "archive", "--output", folder / "source.tar", commit)
    run(["tar", "-xf", folder / "source.tar", "-C", source])
    environ = {
        **os.environ,
        "RELEASE": str(folder),
        "SOURCE_DATE_EPOCH": git(root, "show", "-s", "--format=%ct", commit).strip(),
    }
    run([sys.executable, "-c", BUILD.format(kind="sdist")], cwd=source, env=environ)
    (sdist,) = folder.glob("*.tar.gz")
    run(["tar", "-xf", sdist, "-C", folder])
    run(
        [sys.executable, "-c", BUILD.format(kind="wheel")], cwd=folder / sdist.name.removesuffix(".tar.gz"), env=environ
    )
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def check_content(sdist, wheel, tracked):
    """Raise `ReleaseFault` unless both archives hold each tracked file of the package and the licences, and no other."""
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    package = {name for name in tracked if name.startswith(f"{PACKAGE}/")}
    licences = {
        f"{licence}" for name in shipped for licence in LICENCES if name.endswith(f".dist-info/licenses/{licence}")
    }
    faults = [
        *(f"the sdist lacks {name}" for name in sorted((package | LICENCES) - inside)),
        *(f"the wheel lacks {name}" for name in sorted(package - LICENCES - shipped)),
        *(f"the wheel lacks the licence {name}" for name in sorted(LICENCES - licences)),
        *(f"the wheel has {name}" for name in sorted(shipped - package) if ".dist-info/" not in name),
    ]
    if faults:
        raise ReleaseFault("\n".join(faults))


def check_installation(root, sdist, folder):
    """Install the sdist into an empty environment, run a job of this machine, then let Airflow list its provider."""
    venv, settings = folder / "venv", os.environ | read_pip_settings(os.environ)
    home = folder / "home"
    home.mkdir(parents=True)
    pins = folder / "constraints.txt"  # hashes would have to be there for the sdist, too
    pins.write_text(
        "\n".join(row.rstrip("\\") for row in (root / "constraints.txt").read_text().splitlines() if "==" in row)
    )
    uv = [sys.executable, "-m", "uv"]
    run([*uv, "venv", "--quiet", "--python", sys.executable, venv])
    install = [*uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python", "--constraint", pins]
    run([*install, sdist], env=settings)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("YTF_", "PYTHON", "AIRFLOW"))}
    environ = {
        **kept,
        "HOME": str(home),
        "PATH": f"{venv}/bin:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(home / "airflow"),
    }
    run(["ytf-submit", "--local", "--wait", "-m", "64", "-r", "worker:1", "true"], env=environ, cwd=home)
    run([*install, f"tf-yarn-ops[airflow] @ {sdist.as_uri()}"], env=settings)
    listed = json.loads(
        run(["airflow", "providers", "list", "--output", "json"], env=environ, cwd=home).splitlines()[-1]
    )
    if "tf-yarn-ops" not in {row["package_name"] for row in listed}:
        raise ReleaseFault("airflow providers list does not show tf-yarn-ops")


def release(root, folder, untagged):
    """Build, check and install a release; return its files."""
    version = read_version(root)
    commit = find_commit(root, version, untagged)
    run(["rm", "-rf", folder])
    sdist, wheel = build(root, commit, folder)
    check_content(sdist, wheel, git(root, "ls-tree", "-r", "--name-only", commit).split("\n"))
    tools = [pinned_python("release"), "-m"]
    run([*tools, "twine", "check", "--strict", sdist, wheel])
    run([*tools, "check_wheel_contents", wheel])
    check_installation(root, sdist, folder / "installed")
    return sdist, wheel


def main():
    """Do what the words of the command line say."""
    words = argparse.ArgumentParser(prog="./dev release", description=__doc__)
    words.add_argument("step", nargs="?", choices=["prepare"])
    words.add_argument("--try", action="store_true", dest="untagged", help="the last commit, tagged or not")
    given = words.parse_args()
    folder = ROOT / ".ytf" / "release"
    try:
        if given.step:
            text = prepare(ROOT, datetime.date.today().isoformat())
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "tag.txt").write_text(text, encoding="utf-8")
            print(
                f"the tag's text is in {folder / 'tag.txt'}; commit, then: git tag -a v{read_version()} -F .ytf/release/tag.txt"
            )
        else:
            print(*release(ROOT, folder, given.untagged), sep="\n")
    except ReleaseFault as fault:
        raise SystemExit(f"./dev release: {fault}") from None


if __name__ == "__main__":
    main()
