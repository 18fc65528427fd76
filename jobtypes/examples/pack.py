"""Make the example projects as zips that Azkaban takes: python jobtypes/examples/pack.py [FOLDER].

Writes digits-flow1.zip, digits-flow2.zip and digits-tony.zip: the jobs of this folder with the programs of
examples/digits. --set NAME=VALUE changes what stands in their properties: data, environment, python.
"""

import argparse
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples" / "digits"
TRAINING = ("digits.py", "multi_worker.py")
#: Folder of the project, and where the programs of the training lie in it.
PROJECTS = {"flow1": "", "flow2": "", "tony": "src/"}


def project_files(project, settings):
    """Return the content of each file of a project, text or bytes, by its name in the zip."""
    files = {
        path.relative_to(HERE / project).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((HERE / project).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    for name, text in files.items():
        for key, value in settings.items():
            text = re.sub(rf"(?m)^(\s*{re.escape(key)}(?:=|: )).*$", lambda match, value=value: match[1] + value, text)
        files[name] = text
    for name in TRAINING:
        files[PROJECTS[project] + name] = (DIGITS / name).read_text(encoding="utf-8")
    if project != "tony":
        files["prepare.py"] = (DIGITS / "prepare.py").read_text(encoding="utf-8")
        files["digits.csv.gz"] = (DIGITS / "digits.csv.gz").read_bytes()
        for path in sorted((HERE / "programs").glob("*.py")):
            files[path.name] = path.read_text(encoding="utf-8")
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=".", type=Path, help="where the zips go")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="as data=/shared/digits")
    options = parser.parse_args()
    settings = dict(setting.split("=", 1) for setting in options.set)
    options.folder.mkdir(parents=True, exist_ok=True)
    for project in PROJECTS:
        path = options.folder / f"digits-{project}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in project_files(project, settings).items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
        print(path)


if __name__ == "__main__":
    main()
