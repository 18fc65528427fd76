"""Write the tables of the documents, and the operator's stub, from the code: ``python docs/tables.py``.

A page has a table between ``<!-- table: NAME -->`` and ``<!-- end -->``. The stub shows each option of Airflow's
operator to editors and type checkers. ``--check`` writes nothing and fails when a file is stale; so does
tests/documents/test_tables.py.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tf_yarn_ops.airflow import _NAMES  # noqa: E402
from tf_yarn_ops.azkaban import keys, tony  # noqa: E402
from tf_yarn_ops.cli.parameters import ALL, names_of, value_of  # noqa: E402
from tf_yarn_ops.declaration import OPERATOR, OPTION_SECTIONS, Option, declared  # noqa: E402
from tf_yarn_ops.doctor.examination import CHECKS  # noqa: E402
from tf_yarn_ops.doctor.symptoms import Symptom  # noqa: E402
from tf_yarn_ops.hadoop.site import Site  # noqa: E402
from tf_yarn_ops.job.options import OPTIONS, options_of  # noqa: E402


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def options_of_section(section: str) -> str:
    """Return the list of a section's options, with their names on the command line and in a job's YAML."""
    lines = []
    for option in OPTIONS.values():
        if option.section == section and (option in ALL or option.path):
            default = f" Default: {option.default_with_unit}." if option.default_with_unit else ""
            in_yaml = f"YAML {key(option)}" if option.path else ""
            named = ", ".join(filter(None, (names(option), in_yaml)))
            lines.append(f"- {named}: {meaning(option)}{default}")
    return "\n".join(lines)


def names(option: Option) -> str:
    """Return an option as it is typed, with its value."""
    if option not in ALL:
        return "the last argument" if option.name == "task_command" else ""
    value = value_of(option).split(" | <type>")[0] if option.per_task else value_of(option)
    return f"`{', '.join(names_of(option))}`" + (f" `{value}`" if value else "")


def key(option: Option) -> str:
    """Return the key of an option in a job's YAML; empty where it has none."""
    return f"`{'.'.join(option.path)}`" if option.path else ""


def meaning(option: Option) -> str:
    """Return the help of an option, with how it may be given."""
    form = " Per task." if option.per_task else " Repeatable." if option.many else ""
    return option.help.replace("<", "\\<") + form


#: What differs between Azkaban's keys and their options.
NOTES = {
    "tf.command": "`${...}` is Azkaban's, so write `$NAME` for a variable of the node.",
    "tf.cluster_requirement": "tf.<type>.instances says the same of one type.",
    "tf.<type>.instances": "0 for none. A job has at least one type.",
    **{f"tf.<type>.<index>.{what}": "For a single task." for what in ("memory", "vcores", "gpus")},
    **{f"tf.task_{what}": "For every task, unless its type has another value."
       for what in ("memory", "vcores", "gpus")},
    "tf.node_label": "Of the application.", "tf.tags": "At most two, besides those of Azkaban. Comma-separated.",
    **dict.fromkeys(("tf.custom_types", "tf.file_systems", "tf.retry_exit_codes", "tf.fatal_exit_codes"),
                    "Comma-separated."),
    **dict.fromkeys(("tf.files.<n>", "tf.archives.<n>"), "Written as `[NAME=]path or URI`."),
    "tf.output": "It is also in tf.result.output_path.", "tf.spec": "A file of the project.",
}  # fmt: skip
#: Defaults of Azkaban's keys that differ from those of their options.
DEFAULTS = {
    "tf.name": "project.flow.job",
    "tf.lease": "900",
    "tf.<type>.memory": "8192; 2g for TonY's types",
    "tf.success": "all_workers; chief for a TonY job with a chief",
    "tf.<type>.instances": "",
}

#: TonY's keys without a row in the tables of `tony`, and ours.
OTHERS = (
    ("executes", "tf.command"),
    ("python_binary_path", "tf.command"),
    ("python_binary_path", "tf.environment"),
    ("python_venv", "tf.archives.<n>"),
    ("tony.docker.containers.image", "tf.docker_image"),
    ("tony.docker.<type>.image", "tf.<type>.environment"),
    *(
        (name, f"tf.{kind}.<n>")
        for kind in ("files", "archives")
        for name in ("tony.<type>.resources", "tony.containers.resources")
    ),
    ("hdfs_classpath", "tf.files.<n>"),
    ("tony.application.tensorboard-log-dir", "tf.tensorboard"),
    ("tony.application.tensorboard-log-dir", "tf.output"),
    ("tony.application.framework", "tf.framework"),
)


def azkaban_keys() -> str:
    """Return the keys of a ``.job``: with TonY's names and what differs from the option, then those without either."""
    rows, others = [], []
    for name, option in keys.ALL_KEYS:
        same = option in ALL and name == f"tf.{option.name}"
        tony = ", ".join(f"`{one}`" for one in tony_names(name))
        like = f"As `--{option.name}`." if option in ALL and not same else ""
        known = option in ALL or option.name == "task_command"
        default = DEFAULTS.get(name, "" if known else option.shown_default)
        help_ = "" if known else option.help
        text = " ".join(filter(None, (like, help_, NOTES.get(name), f"Default: {default}." if default else "")))
        if text or tony:
            known_as = f" (TonY: {tony})" if tony else ""
            shown = re.sub(r"<(?=\w+>)", r"\\<", text)
            rows.append(f"- `{name}`{known_as}: {shown}".removesuffix(": "))
        else:
            others.append(f"`{name}`")
    return "\n".join([*rows, f"- as the option of the same name: {', '.join(others)}"])


def tony_names(key: str) -> list[str]:
    """Return TonY's names of a key."""
    pairs = [
        *tony.OURS.items(),
        *tony.MILLISECONDS.items(),
        *((f"tony.<type>.{name}", f"tf.<type>.{ours}") for name, ours in tony.ROLE_FIELDS.items()),
        *((name, f"tf.<type>.{field}") for name, fields in tony.ROLE_LISTS.items() for field, _ in fields),
        *((name, "tf.env.<NAME>") for name in (f"{tony.WORKER_ENV}<NAME>", *tony.ENVIRONMENTS, *tony.DATASETS)),
        *((name, "tf.heartbeat_timeout") for name in tony.BEATS),
        *OTHERS,
    ]
    return [name for name, ours in pairs if ours == key]


def doctor_checks() -> str:
    """Return the checks of ``ytf doctor`` in their order, each with the symptoms that only it finds."""
    return table(
        ("check", "question", "symptoms in the JSON"),
        [
            (
                f"`{check.name}`",
                check.question,
                ", ".join(f"`{symptom.name}`" for symptom in Symptom if symptom.value.check == check.name),
            )
            for check in CHECKS
        ],
    )


def site_settings() -> str:
    """Return the settings of a site file, in their order."""
    return table(
        ("key", "default", "meaning"),
        [
            (f"`{row.path[0]}`", row.in_words or (f"`{row.default_with_unit}`" if row.shown_default else ""), row.help)
            for row in declared(Site)
        ],
    )


TABLES: dict[str, Callable[[], str]] = {
    **{f"options: {section}": (lambda section=section: options_of_section(section)) for section in OPTION_SECTIONS},
    "azkaban: keys": azkaban_keys,
    "doctor: checks": doctor_checks,
    "site: settings": site_settings,
}


def fill(text: str) -> str:
    """Return a page with its tables as the code has them."""
    return re.sub(
        r"<!-- table: (.+?) -->\n.*?<!-- end -->",
        lambda found: f"<!-- table: {found[1]} -->\n\n{TABLES[found[1]]()}\n\n<!-- end -->",
        text,
        flags=re.S,
    )


#: The module of the operator, and the types of its options by the words of their kinds. Each may be a template.
OPERATOR_FILE = DOCS.parent / "tf_yarn_ops" / "airflow" / "operator.py"
STUB_TYPES = {
    "text": "str", "count": "int | str", "seconds": "float | str", "factor": "float | str",
    "memory": "int | str", "flag": "bool | str",
    "texts": "str | Sequence[str]", "codes": "int | str | Sequence[int]", "variables": "str | Mapping[str, Any]",
    "sources": "str | Mapping[str, str]", "amounts": "str | Mapping[str, int | str]",
}  # fmt: skip


def stub_type(option: Option) -> str:
    """Return the annotation of an option in the operator's signature; XComArg is the result of another task."""
    plain = STUB_TYPES.get(option.kind.word) or f"Literal[{', '.join(map(repr, option.kind.choices))}] | str"
    several = " | Mapping[str, Any]" if option.name == "cluster_requirement" else ""
    several = " | Sequence[str] | Mapping[str, Any]" if option.many else several
    return " | ".join(dict.fromkeys(f"{plain}{several} | XComArg | None".split(" | ")))


def operator_stub() -> str:
    """Return the stub of the operator: the public names of its module, with every option in the signature."""
    tree = ast.parse(OPERATOR_FILE.read_text(encoding="utf-8"))
    values = {ast.unparse(node.target): node for node in tree.body if isinstance(node, ast.AnnAssign)}
    renamed = ast.literal_eval(values["RENAMED"].value)
    options = {
        renamed.get(name, name): stub_type(option) for name, option in options_of(OPERATOR, submission=False).items()
    }
    operator = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    attributes = list(options)

    def lines(body: list[ast.stmt]) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
                yield f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"
            elif isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
                if node.name == "__init__":
                    node.args.kwonlyargs += [ast.arg(name, ast.Name(kind)) for name, kind in options.items()]
                    node.args.kw_defaults += [ast.Constant(None)] * len(options)
                    attributes.extend(re.findall(r"self\.([a-z]\w*)(?:: .+?)? =", ast.unparse(node)))
                node.args.kw_defaults = [default and ast.Constant(...) for default in node.args.kw_defaults]
                yield f"def {node.name}({ast.unparse(node.args)}) -> {node.returns and ast.unparse(node.returns)}: ..."

    module, members = "\n".join(lines(tree.body)), "\n    ".join(lines(operator.body))
    declared = re.findall(r"^ *(\w+):", members, re.M)
    others = "\n    ".join(f"{name}: Any" for name in attributes if name not in declared)
    return f"""\
# Written by docs/tables.py from operator.py and the options of a job.
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from airflow.sdk import XComArg

from .versions import Asset, BaseOperator

{module}

class TensorFlowYarnOperator(BaseOperator):
    {others}
    {members}
"""


def written() -> dict[Path, str]:
    """Return all files that this program writes, with their text."""
    ruff = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", "operator.pyi"]
    stub = subprocess.run(
        ruff, input=operator_stub(), capture_output=True, text=True, check=True, cwd=DOCS.parent
    ).stdout
    names = "".join(
        f"from .{module} import {name} as {name}\n"
        for name, module in sorted(_NAMES.items(), key=lambda row: row[::-1])
    )
    pages = {page: fill(page.read_text(encoding="utf-8")) for page in sorted(DOCS.rglob("*.md"))}
    note = "# Written by docs/tables.py from the names that this package loads when they are used.\n"
    return {**pages, OPERATOR_FILE.with_suffix(".pyi"): stub, OPERATOR_FILE.with_name("__init__.pyi"): note + names}


def main() -> None:
    """Write the tables of all pages, and the stub."""
    stale = [path for path, text in written().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if stale and sys.argv[1:] == ["--check"]:
        sys.exit(f"stale: {', '.join(path.name for path in stale)}; run: python docs/tables.py")
    for path in stale:
        path.write_text(written()[path], encoding="utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
