"""Tests that time, randomness and threads come from the runtime, so that a simulation can control them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]

FORBIDDEN: Final = frozenset(
    {
        "asyncio.sleep",
        "asyncio.to_thread",
        "concurrent.futures.ProcessPoolExecutor",
        "concurrent.futures.ThreadPoolExecutor",
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "multiprocessing.Process",
        "os.urandom",
        "shared.timestamps.now",
        "threading.Thread",
        "threading.Timer",
        "time.monotonic",
        "time.monotonic_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.sleep",
        "time.time",
        "time.time_ns",
        "uuid.uuid1",
        "uuid.uuid4",
    }
)
FORBIDDEN_MODULES: Final = ("random.", "secrets.")
FORBIDDEN_METHODS: Final = frozenset({"run_in_executor"})

EXCEPTIONS: Final = {
    "shared/runtime.py": "defines the real sources",
    "shared/timestamps.py": "defines the real clock",
    "shared/interpreter.py": "the garbage collection belongs to the process, so its longest pause is real time",
    "shared/http/request_span.py": "the OpenTelemetry SDK ends spans at the real time, so they must begin at it",
    "shared/backends/azure/monitor.py": "the exporter of the process starts a real delay after the process",
    "shared/backends/embedded/durable_files.py": "names of drafts must differ between processes and are never stored",
    "shared/downloads/row_feed.py": "the results keep the order of the items, whatever the threads do",
    "shared/provenance/parallel_verification.py": "sleep(0) only lets other tasks run",
    "shared/provenance/records.py": "the placeholder must differ between processes and is never stored",
}
"""Modules that use a real source directly, with the reason."""


def list_modules() -> list[Path]:
    """Return the modules of the app."""
    return [path for package in ("functions", "shared") for path in sorted((ROOT / package).rglob("*.py"))]


def read_imports(tree: ast.Module) -> dict[str, str]:
    """Return the imported modules and members in a dictionary from the name in the module to the full name."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.name if each.asname else each.name.partition(".")[0]
                names[each.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return names


def resolve_name(node: ast.expr, imports: dict[str, str]) -> str:
    """Return the full name of an expression such as ``time.monotonic``, or an empty text if it is no name."""
    if isinstance(node, ast.Name):
        return imports.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = resolve_name(node.value, imports)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def find_direct_uses(code: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each use of time, randomness or threads that bypasses the runtime."""
    tree = ast.parse(code)
    imports = read_imports(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        name = resolve_name(node, imports)
        if name in FORBIDDEN or name.startswith(FORBIDDEN_MODULES):
            yield node.lineno, name
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_METHODS:
            yield node.lineno, node.attr


def test_only_the_runtime_reads_clocks_and_starts_threads() -> None:
    """Modules of the app use a Runtime for time, randomness and threads, except for the listed modules."""
    found = {
        f"{place}:{line}: {name}"
        for path in list_modules()
        if (place := str(path.relative_to(ROOT))) not in EXCEPTIONS
        for line, name in find_direct_uses(path.read_text(encoding="utf-8"))
    }
    assert found == set(), "use shared.runtime.Runtime, which constructors receive"


def test_each_listed_exception_is_needed() -> None:
    """Each module in the list of exceptions still uses real time, randomness or threads."""
    unused = {place for place in EXCEPTIONS if not any(find_direct_uses((ROOT / place).read_text(encoding="utf-8")))}
    assert unused == set()


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.monotonic()",
        "from time import perf_counter as clock\nclock()",
        "from datetime import datetime\ndatetime.now(tz)",
        "import datetime as d\nd.datetime.now()",
        "import uuid\ndef f(new=uuid.uuid4): ...",
        "import random\nrandom.uniform(0, 1)",
        "from secrets import token_bytes\ntoken_bytes(4)",
        "import asyncio\nsleep = asyncio.sleep",
        "import asyncio\nasyncio.get_running_loop().run_in_executor(None, f)",
        "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor(1)",
    ],
)
def test_every_direct_use_of_time_or_randomness_is_found(source: str) -> None:
    """The check finds direct use of time, randomness or threads under any imported name, even without a call."""
    assert any(find_direct_uses(source))


def list_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of a function's parameters."""
    arguments = node.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def find_runtime_receivers(tree: ast.Module) -> Iterator[str]:
    """Yield the names of those classes and functions of a module that have a parameter ``runtime``."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "runtime" in list_parameters(node):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                    yield from [node.name] if "runtime" in list_parameters(member) else []


def receives_runtime(call: ast.Call) -> bool:
    """Return whether a call passes a runtime."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(ast.unparse(value).rpartition(".")[2].lower().endswith("runtime") for value in values)


def test_the_runtime_is_passed_on() -> None:
    """The app passes its runtime to each callee with a parameter `runtime`; only tests use the default runtime."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in list_modules()}
    receivers = {
        f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}.{name}"
        for path, tree in trees.items()
        for name in find_runtime_receivers(tree)
    }
    missing = []
    for path, tree in trees.items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        own = {name: f"{module}.{name}" for name in find_runtime_receivers(tree)}
        imports = read_imports(tree) | own
        missing += [
            f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node.func)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and resolve_name(node.func, imports) in receivers
            and not receives_runtime(node)
        ]
    assert missing == []
