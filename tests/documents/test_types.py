"""The Python blocks of README and the documents pass the type checker; a page's blocks are one program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "\n```python\n" in page.read_text()
]
#: What a reader's own functions and names lack is no fault of ours, and neither are libraries without types.
OPTIONS = [
    "--strict",
    "--allow-untyped-defs",
    "--allow-incomplete-defs",
    "--allow-untyped-calls",
    "--allow-subclassing-any",
    "--allow-any-generics",
    "--allow-untyped-decorators",
    "--follow-imports",
    "silent",
    *(f"--disable-error-code={code}" for code in ("name-defined", "import-untyped", "import-not-found", "no-redef")),
]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_python_blocks_pass_the_type_checker(tmp_path):
    files = []
    for number, page in enumerate(PAGES):
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        files.append(tmp_path / f"page_{number}_{re.sub('[^a-z]', '_', page.stem.lower())}.py")
        files[-1].write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *OPTIONS, "--cache-dir", ROOT / ".mypy_cache", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
