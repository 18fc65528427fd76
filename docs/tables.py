"""Write the tables of the documents that come from the code: ``python docs/tables.py``.

A page has a table between ``<!-- table: NAME -->`` and ``<!-- end -->``. tests/documents/test_tables.py fails when a
table is not what this program would write.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tf_yarn_ops.azkaban import keys  # noqa: E402
from tf_yarn_ops.cli.parameters import ALL, names_of, value_of  # noqa: E402
from tf_yarn_ops.doctor.symptoms import Symptom  # noqa: E402
from tf_yarn_ops.doctor.table import CHECKS  # noqa: E402
from tf_yarn_ops.job.defaults import default_of  # noqa: E402
from tf_yarn_ops.job.options import COMMAND_LINE, OPTION_SECTIONS, OPTIONS, Option, options_of  # noqa: E402


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def options_of_section(section: str) -> str:
    """Return the options of a section, with their names on the command line and in a job's YAML."""
    rows = []
    for option in OPTIONS.values():
        if option.section == section and (option in ALL or option.path):
            rows.append((names(option), key(option), default(option), meaning(option)))
    return table(("command line", "YAML", "default", "meaning"), rows)


def names(option: Option) -> str:
    """Return an option as it is typed, with its value."""
    if option not in ALL:
        return "the last argument" if option.name == "task_command" else ""
    value = value_of(option).split(" | <type>")[0] if option.per_task else value_of(option)
    return f"`{', '.join(names_of(option))}`" + (f" `{value}`" if value else "")


def key(option: Option) -> str:
    """Return the key of an option in a job's YAML; empty where it has none."""
    return f"`{'.'.join(option.path)}`" if option.path else ""


def default(option: Option) -> str:
    """Return the default with its unit."""
    value = default_of(option)
    return f"{value} {option.unit}".strip() if value and value[0].isdigit() and " " not in value else value


def meaning(option: Option) -> str:
    """Return the help of an option, with how it may be given."""
    form = " Per task." if option.per_task else " Repeatable." if option.many else ""
    return option.help.replace("<", "\\<") + form


def azkaban_keys(rows: tuple[keys.Key, ...]) -> str:
    """Return keys of a ``.job``, with the option, TonY's names, and what differs from the option."""
    typed = options_of(COMMAND_LINE)
    lines = []
    for row in rows:
        option = typed.get(row.option)
        named = "the command" if row.option == "task_command" else f"`--{row.option}`" if option else ""
        help_text = row.help.replace(option.help, "").strip() if option else row.help
        lines.append((f"`{row.name}`", named, ", ".join(f"`{name}`" for name in row.alias.split()), row.default,
                      re.sub(r"<(?=\w+>)", r"\\<", help_text)))
    return table(("key", "`ytf-submit`", "TonY", "default", "meaning"), lines)


def doctor_checks() -> str:
    """Return the checks of ``ytf doctor`` in their order."""
    return table(("check", "question"), [(f"`{check.name}`", check.question) for check in CHECKS])


def doctor_symptoms() -> str:
    """Return everything that ``ytf doctor`` may find; it prints the advice itself. Values are in angle brackets."""
    return table(("symptom", "outcome", "message", "usual cause"), [
        (f"`{symptom.name}`", row.outcome.value, _shown(row.text), _shown(row.cause))
        for symptom in Symptom for row in [symptom.value]])


def _shown(text: str) -> str:
    return re.sub(r"\{(\w+)(?:[:!]\w+)?\}", r"\\<\1>", text).replace("*", r"\*")


TABLES: dict[str, Callable[[], str]] = {
    **{f"options: {section}": (lambda section=section: options_of_section(section)) for section in OPTION_SECTIONS},
    **{f"azkaban: {section}": (lambda rows=rows: azkaban_keys(rows)) for section, rows in keys.KEY_SECTIONS.items()},
    "doctor: checks": doctor_checks,
    "doctor: symptoms": doctor_symptoms,
}


def fill(text: str) -> str:
    """Return a page with its tables as the code has them."""
    return re.sub(r"<!-- table: (.+?) -->\n.*?<!-- end -->",
                  lambda found: f"<!-- table: {found[1]} -->\n\n{TABLES[found[1]]()}\n\n<!-- end -->", text, flags=re.S)


def main() -> None:
    """Write the tables of all pages."""
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        if (new := fill(old)) != old:
            page.write_text(new, encoding="utf-8")
            print(f"wrote the tables of {page.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
