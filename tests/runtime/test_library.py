"""The runtime asks the standard library for nothing that came after Python 3.9."""

import ast

import pytest

from support.source import PACKAGE, name_of, tree_of

#: What Python 3.9 does not have yet, of the modules that the runtime uses or might: the differences between 3.9.18's
#: and 3.13's `dir()`, without what nobody would write there. A name with a dot is looked for as it stands.
NEWER_NAMES = """
    aiter anext BaseExceptionGroup EncodingWarning ExceptionGroup PythonFinalizationError add_note bit_count
    asyncio.timeout timeout_at TaskGroup asyncio.Runner asyncio.Barrier BrokenBarrierError EventLoop cancelling uncancel eager_task_factory
    sock_recvfrom sock_sendto abort_clients close_clients QueueShutDown
    getHandlerByName getHandlerNames getLevelNamesMapping getChildren
    os.eventfd os.splice os.setns os.unshare os.process_cpu_count os.timerfd_create os.login_tty os.posix_openpt is_junction
    sys.exception sys.orig_argv sys.stdlib_module_names sys.monitoring get_verified_chain get_unverified_chain
    security_level set_psk_client_callback OP_ENABLE_KTLS freedesktop_os_release PatternError NOFLAG
    Concatenate LiteralString Never NotRequired ParamSpec ReadOnly Required Self TypeAlias TypeAliasType TypeGuard TypeIs
    TypeVarTuple Unpack assert_never assert_type dataclass_transform typing.override reveal_type is_typeddict
    KW_ONLY StrEnum ReprEnum EnumCheck FlagBoundary enum.verify enum.member enum.nonmember enum.property global_enum
    pairwise batched tomllib UnionType NoneType EllipsisType aclosing contextlib.chdir file_digest datetime.UTC
    get_annotations hardlink_to math.cbrt math.exp2 sumprod
"""
NEWER = frozenset(NEWER_NAMES.split())
#: Keywords of calls that 3.9 refuses.
NEWER_KEYWORDS = {
    "zip": {"strict"}, "map": {"strict"}, "dataclass": {"slots", "kw_only", "match_args", "weakref_slot"},
    "field": {"kw_only"}, "Formatter": {"defaults"}, "Popen": {"process_group", "pipesize"},
    "run": {"process_group", "pipesize", "loop_factory"}, "create_server": {"all_errors", "keep_alive"},
    "create_connection": {"all_errors", "ssl_shutdown_timeout"}, "start_server": {"ssl_shutdown_timeout", "keep_alive"},
    "open_connection": {"ssl_shutdown_timeout", "all_errors"}, "create_task": {"context", "eager_start"},
    "ensure_future": {"context"}, "write_text": {"newline"}, "bisect": {"key"}, "bisect_left": {"key"},
}  # fmt: skip


def newer_than_3_9(tree):
    """Return what a module uses of the library that Python 3.9 does not have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            said = {
                part for alias in node.names for part in (alias.name, f"{getattr(node, 'module', None)}.{alias.name}")
            }
            said.add(getattr(node, "module", None))
        elif isinstance(node, ast.Attribute):
            said = {node.attr, ast.unparse(node)}
        elif isinstance(node, ast.Name):
            said = {node.id}
        elif isinstance(node, ast.Call):
            said = set()
            called = ast.unparse(node.func).rpartition(".")[2]
            given = {keyword.arg for keyword in node.keywords} & NEWER_KEYWORDS.get(called, set())
            yield from (f"line {node.lineno}: {called}({keyword}=)" for keyword in sorted(given))
        else:
            continue
        yield from (f"line {node.lineno}: {name}" for name in sorted(said & NEWER))


def test_runtime_uses_no_library_newer_than_python_3_9():
    paths = sorted((PACKAGE / "runtime").rglob("*.py"))
    assert paths and [f"{name_of(path)}: {found}" for path in paths for found in newer_than_3_9(tree_of(path))] == []


@pytest.mark.parametrize(
    "source, found",
    [
        ("for a, b in zip(x, y, strict=True): pass", "zip(strict=)"),
        ("import tomllib", "tomllib"),
        ("from itertools import pairwise", "pairwise"),
        ("from typing import Dict, Self", "Self"),
        ("from asyncio import timeout", "asyncio.timeout"),
        ("async with asyncio.timeout(3): pass", "asyncio.timeout"),
        ("error.add_note('x')", "add_note"),
        ("@dataclasses.dataclass(frozen=True, slots=True)\nclass A: pass", "dataclass(slots=)"),
        ("peer.timeout = zip(x, y); a = run(timeout=3); sys.exc_info()", ""),
    ],
)
def test_what_is_newer_would_be_seen(source, found):
    told = [text.partition(": ")[2] for text in newer_than_3_9(ast.parse(source))]
    assert told == ([found] if found else [])
