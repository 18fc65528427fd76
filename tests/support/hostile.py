"""Texts that a shell, Java's paths, URLs, YARN's placeholders or a terminal read as something else."""

import re
import shlex

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.runtime.common.contract import dump_job, load_job
from tf_yarn_ops.submit.application import build, build_runtime_job
from tf_yarn_ops.submit.preflight import local_path

#: Each can be the name of a file. A shell that reads one of them makes a file ``pwned``.
HOSTILE = (
    "$(touch pwned)", "`touch pwned`", '"; touch pwned; "', "'; touch pwned; '", "$HOME", "${HOME}", "$$", "$'\\n'",
    "2026-01-01T00:00:00+00:00.json", "a:b", ":", '"', "'", "\\", '\\"$(touch pwned)\\"', "{{HOME}}",
    "{{(touch pwned)}}", "{{ ts }}", "<LOG_DIR>", "a<CPS>b", "%24(touch pwned)", "%2F", "%", "#x", "a?x", "a b", " ",
    " lead", "trail ", "-rf", "--help", "~", "~root", "*", "[a]", "{a,b}", "!x", "&", "|touch pwned", ";touch pwned",
    ">pwned", "<pwned", "a\nb", "\n", "\t", "a\rb", "\x1b[31m", "\x7f", "=", "a=b", ",", "@", "^", "(", ".hidden", "...",
    "\u00fc", "\u65e5\u672c", "\U0001f600", "\u202e", "\u2028", "n" * 255, "\u65e5" * 85,
)  # fmt: skip


def assert_plain(application):
    """Check that bash takes every text of a Skein application literally that YARN writes into a script."""
    for part in (application.master, *application.services.values()):
        for key, file in part.files.items():
            assert re.fullmatch(r"[A-Za-z0-9._][A-Za-z0-9._+-]*", key), key
            last = file.source.rpartition("/")[2]
            assert local_path(file.source) or not re.search(r'["$`\\:\x00-\x1f\x7f]', last), file.source
        for text in (*part.env.values(), application.user.removesuffix("$")):
            assert not re.search(r'["$`\\\x00-\x1f\x7f]|\{\{', text), text
        assert all(word.startswith("/") for word in shlex.split(part.script) if "pwned" in word), part.script


def request_is_plain(make):
    """Build the application of the job that a door makes, or None; return whether the door has refused it clearly."""
    try:
        spec = make()
    except SpecInvalid as error:
        assert error.faults and "Traceback" not in str(error)
        return False
    assert_plain(build(spec))
    job = build_runtime_job(spec)
    read = load_job(dump_job(job)).types
    assert {kind: plan.links for kind, plan in read.items()} == {kind: plan.links for kind, plan in job.types.items()}
    return True
