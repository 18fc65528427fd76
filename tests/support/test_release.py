"""A release is built from its tag, has what git has, and says so in the documents; setup.py declares nothing."""

import re
import subprocess
import tarfile
import zipfile

import pytest

from support import release
from support.release import LICENCES, SWITCHES, ReleaseFault, check_content, find_commit, prepare, read_changes
from support.source import ROOT

CHANGES = "# Changes\n\n## 0.2.0 (not released)\n\n- two\n\n## 0.1.0 (2026-11-28)\n\n- one\n"


@pytest.fixture
def clone(tmp_path):
    """Return a checkout of what a release reads and writes, with one commit."""
    files = {"CHANGELOG.md": CHANGES, "tf_yarn_ops/__init__.py": '__version__ = "0.2.0"\n'}
    for name, text in {**files, **{name: f"# Page\n{before}more\n" for name, before, _ in SWITCHES}}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b.c", *words], check=True)


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Add it")


def test_section_of_a_version_is_read_to_the_next():
    assert read_changes(CHANGES, "0.2.0") == (None, "- two")
    assert read_changes(CHANGES, "0.1.0") == ("2026-11-28", "- one")
    with pytest.raises(ReleaseFault, match=r"no section '## 0\.3\.0 \(not released\)'"):
        read_changes(CHANGES, "0.3.0")


def test_prepared_documents_install_from_the_index_and_once_is_enough(clone):
    text = prepare(clone, "2026-11-28")
    assert text == "tf-yarn-ops 0.2.0 (2026-11-28)\n\n- two\n"
    assert "## 0.2.0 (2026-11-28)\n" in (clone / "CHANGELOG.md").read_text()
    assert all((clone / name).read_text() == f"# Page\n{after}more\n" for name, _, after in SWITCHES)
    assert prepare(clone, "2027-01-01") == text


def test_each_page_says_how_to_install_before_or_after_the_release():
    for name, before, after in SWITCHES:
        page = (ROOT / name).read_text(encoding="utf-8")
        assert page.count(before) + page.count(after) == 1, name
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert read_changes(changelog, release.read_version())[1]


def test_page_that_the_release_does_not_know_is_named(clone):
    (clone / "README.md").write_text("# other\n")
    with pytest.raises(ReleaseFault, match=r"README\.md has neither the text before a release nor that after it"):
        prepare(clone, "2026-11-28")


def test_release_needs_a_clean_checkout_of_its_tag(clone):
    with pytest.raises(ReleaseFault, match=r"the last commit has no tag v0\.2\.0"):
        find_commit(clone, "0.2.0", untagged=False)
    git(clone, "tag", "v0.2.0")
    with pytest.raises(ReleaseFault, match=r"CHANGELOG\.md calls 0\.2\.0 not released"):
        find_commit(clone, "0.2.0", untagged=False)
    prepare(clone, "2026-11-28")
    with pytest.raises(ReleaseFault, match=r"the checkout has changes; commit or remove them:\n M CHANGELOG\.md"):
        find_commit(clone, "0.2.0", untagged=True)
    commit(clone)
    git(clone, "tag", "-f", "v0.2.0")
    assert find_commit(clone, "0.2.0", untagged=False) == find_commit(clone, "0.2.0", untagged=True)


def test_archives_without_a_file_or_licence_and_with_another_are_refused(tmp_path):
    tracked = ["README.md", "tf_yarn_ops/__init__.py", "tf_yarn_ops/page.html"]

    def archives(*files):
        with tarfile.open(tmp_path / "s.tar.gz", "w:gz") as sdist, zipfile.ZipFile(tmp_path / "w.whl", "w") as wheel:
            for name in files:
                (tmp_path / "file").touch()
                sdist.add(tmp_path / "file", f"tf_yarn_ops-0.1.0/{name}")
                wheel.writestr(f"a.dist-info/licenses/{name}" if name in LICENCES else name, "")
        return tmp_path / "s.tar.gz", tmp_path / "w.whl", tracked

    check_content(*archives("tf_yarn_ops/__init__.py", "tf_yarn_ops/page.html", *LICENCES))
    with pytest.raises(ReleaseFault) as fault:
        check_content(*archives("tf_yarn_ops/__init__.py", "tests/x.py", "LICENSE"))
    assert str(fault.value).splitlines() == [
        "the sdist lacks tf_yarn_ops/oozie/schemas/NOTICE",
        "the sdist lacks tf_yarn_ops/page.html",
        "the wheel lacks tf_yarn_ops/page.html",
        "the wheel lacks the licence tf_yarn_ops/oozie/schemas/NOTICE",
        "the wheel has tests/x.py",
    ]


@pytest.mark.slow
def test_archives_of_the_last_commit_are_whole(tmp_path):
    listed = release.git(ROOT, "ls-tree", "-r", "--name-only", "HEAD").split("\n")
    sdist, wheel = release.build(ROOT, "HEAD", tmp_path)
    check_content(sdist, wheel, listed)
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"tf_yarn_ops-{release.read_version()}.dist-info/METADATA").decode()
    assert re.search("^License-Expression: Apache-2.0$", metadata, re.M)


def test_setup_py_declares_nothing_and_imports_no_package():
    code = [row for row in (ROOT / "setup.py").read_text().splitlines() if row and not row.startswith('"""')]
    assert code == ["from setuptools import setup", "setup()"]
