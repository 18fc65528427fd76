"""Every link in the documents leads somewhere; the internet is not asked."""

import re
from urllib.parse import urlsplit

import pytest

from support.source import ROOT

PAGES = sorted({*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")})
SOURCES = [
    path
    for folder in ("tf_yarn_ops", "tests", "benchmarks", "examples", "dags_examples", "jobtypes")
    for path in (ROOT / folder).rglob("*.py")
] + [ROOT / "dev", ROOT / "CHANGELOG.md"]


def prose_of(page):
    """Return a page without its blocks of code and its comments."""
    text = re.sub(r"^(`{3,})[^`\n]*\n.*?^\1\s*$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", "", text, flags=re.S)


def anchors_of(page):
    """Return the anchors of a page's headings, as GitHub and MyST make them; a repeated one gets a number."""
    anchors = []
    for title in re.findall(r"^#{1,6} +(.+?)\s*$", prose_of(page), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        anchors.append(slug if slug not in anchors else f"{slug}-{anchors.count(slug)}")
    return {*anchors, *re.findall(r"^\(([\w-]+)\)=$", prose_of(page), re.M)}


def links_of(page):
    """Return the targets of a page's links and pictures."""
    return re.findall(r"\]\(<?([^)>\s]+)>?\)", re.sub(r"`[^`\n]*`", "`", prose_of(page)))


def leads_somewhere(page, link):
    """Return whether a link of a page is an address, or leads to a file and a heading."""
    target = urlsplit(link)
    if target.scheme:
        return target.scheme == "mailto" or (target.scheme in ("http", "https") and bool(target.netloc))
    file = (page.parent / target.path).resolve() if target.path else page
    return file.exists() and (not target.fragment or target.fragment in anchors_of(file))


def test_every_link_of_a_page_leads_to_a_file_and_a_heading():
    links = [(page, link) for page in PAGES for link in links_of(page)]
    assert links and [f"{page}: {link}" for page, link in links if not leads_somewhere(page, link)] == []


def test_every_page_of_the_documents_that_the_code_names_exists():
    wrong = [
        f"{path.relative_to(ROOT)}: {named}"
        for path in SOURCES
        for named in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
        if not (ROOT / named).is_file()
    ]
    assert not wrong


def test_a_broken_link_would_be_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `title`, twice\n\n[a](other.md) and [b](#a-title-twice)\n\n```\n[c](nowhere.md)\n```\n")
    assert links_of(page) == ["other.md", "#a-title-twice"] and anchors_of(page) == {"a-title-twice"}


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent.name == "development" or page.parent == ROOT or page.name == "design.md"],
    ids=lambda page: page.name,
)
def test_every_file_that_a_page_for_developers_names_exists(page):
    files = {f"/{path.relative_to(ROOT).as_posix()}" for path in [*SOURCES, *(ROOT / "docs").glob("*.py")]}
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", prose_of(page))
    own = {"setup.py", "train.py", "demo.py", "mnist.py"}
    assert [name for name in named if name not in own and not any(file.endswith("/" + name) for file in files)] == []
