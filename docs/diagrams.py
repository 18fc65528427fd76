"""Draw docs/pictures/NAME.svg for each docs/diagrams/NAME.mmd: ``python docs/diagrams.py``.

Mermaid draws them in the Chromium of the tests, once, so that no reader's browser fetches a script.
"""

import hashlib
import re
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.browser import chromium  # noqa: E402

VERSION = "11.12.0"
SHA256 = "93492e4d609be83653a41c435f4cbd7e74419f7fa6b4fc90a8c983195f64af82"
SCRIPT = "package/dist/mermaid.min.js"
#: Text stays text of the picture: HTML in it is shown by browsers only.
SETTINGS = {
    "startOnLoad": False,
    "theme": "neutral",
    "themeVariables": {"xyChart": {"plotColorPalette": "#4a7ab5"}},
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False},
    "fontFamily": "Helvetica, Arial, sans-serif",
    "deterministicIds": True,
}
DRAW = """async ([source, settings]) => {
    mermaid.initialize(settings);
    const drawn = (await mermaid.render("diagram", source)).svg;
    const svg = new DOMParser().parseFromString(drawn, "image/svg+xml").documentElement;
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Math.ceil);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("style", "background: white");
    return new XMLSerializer().serializeToString(svg);
}"""


def stamp(source: Path) -> str:
    """Return the comment of a picture that names the source it was drawn from."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return f"<!-- drawn by docs/diagrams.py from diagrams/{source.name}, SHA-256 {digest} -->\n"


def fetch_script() -> str:
    """Return the text of mermaid's script; npm fetches it once, into .ytf."""
    folder = HERE.parent / ".ytf" / "mermaid"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"mermaid-{VERSION}.tgz"
    if not archive.exists():
        subprocess.run(["npm", "pack", "--silent", f"mermaid@{VERSION}"], cwd=folder, check=True)
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{archive} is not mermaid {VERSION}; delete it")
    with tarfile.open(archive) as opened, opened.extractfile(SCRIPT) as file:
        return file.read().decode()


def main() -> None:
    """Draw all diagrams."""
    script = fetch_script()
    with chromium() as browser:
        page = browser.new_page()
        page.add_script_tag(content=script)
        for source in sorted((HERE / "diagrams").glob("*.mmd")):
            drawn = page.evaluate(DRAW, [source.read_text(encoding="utf-8"), SETTINGS])
            short = re.sub(r"(\.\d\d)\d+", r"\1", drawn)
            (HERE / "pictures" / f"{source.stem}.svg").write_text(stamp(source) + short + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
