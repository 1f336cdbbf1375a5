"""Crash points: positions in the code at which the simulation can crash a process."""

import dis
import gc
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
_PACKAGES: Final = tuple(str(ROOT / name) + "/" for name in ("shared", "functions"))
_GENERATOR_STEPS: Final = frozenset({"anext_awaitable", "async_generator_asend", "async_generator_athrow"})
_PASSED_THROUGH: Final = frozenset({"shared/runtime.py", "shared/backends/embedded/sqlite.py"})
"""Modules through which others submit jobs; the job belongs to the caller."""


@cache
def find_repository_path(file: str) -> str:
    """Return the path of a source file in the repository; empty for a file outside of the service."""
    return file.removeprefix(f"{ROOT}/") if file.startswith(_PACKAGES) else ""


_DESCRIBED: Final[dict[tuple[int, int], tuple[CodeType, str]]] = {}
"""Descriptions of instructions by the identity of their code object, which each entry keeps alive."""


def _describe_point(code: CodeType, offset: int) -> str:
    key = id(code), offset
    known = _DESCRIBED.get(key)
    if known is None:
        line, _, column, _ = list(code.co_positions())[offset // 2]
        place = find_repository_path(code.co_filename)
        known = _DESCRIBED[key] = code, f"{place}:{line}:{column} await" if place and column is not None else ""
    return known[1]


def list_suspended_awaits(coroutine: Any) -> Iterator[str]:
    """Yield the awaits in the service's code at which a coroutine is suspended, from the outermost to the innermost."""
    current = coroutine
    while current is not None:
        if type(current) is CoroutineType:
            frame, following = current.cr_frame, current.cr_await
        elif type(current) is AsyncGeneratorType:
            frame, following = current.ag_frame, current.ag_await
        else:
            # An awaited step of an asynchronous generator refers to its generator only in C; ``anext`` awaits a step.
            is_step = type(current).__name__ in _GENERATOR_STEPS
            current = next(filter(_is_generator_or_step, gc.get_referents(current)), None) if is_step else None
            continue
        if frame is not None and frame.f_lasti >= 0 and (place := _describe_point(frame.f_code, frame.f_lasti)):
            yield place
        current = following


def _is_generator_or_step(value: object) -> bool:
    return isinstance(value, AsyncGeneratorType) or type(value).__name__ in _GENERATOR_STEPS


def find_call_site(frame: FrameType | None) -> str:
    """Return the innermost line of the service's code on the stack of a call that submits a thread-pool job."""
    while frame is not None:
        place = find_repository_path(frame.f_code.co_filename)
        if place and place not in _PASSED_THROUGH:
            return f"{place}:{frame.f_lineno}"
        frame = frame.f_back
    return "-"


@dataclass(frozen=True)
class Await:
    """Await in the service's code.

    Attributes:
        path: path of its module in the repository.
        function: qualified name of its function.
        text: its source text, with single spaces.
        lines: its line numbers.
        point: name of its crash point.
    """

    path: str
    function: str
    text: str
    lines: range
    point: str


@cache
def list_awaits(module: str) -> tuple[Await, ...]:
    """Return all awaits of a module, in source order; ``async for`` and ``async with`` await, too.

    Args:
        module: path of the module in the repository.
    """
    path = ROOT / module
    source = path.read_text(encoding="utf-8")
    lines = source.encode().splitlines(keepends=True)
    found: dict[str, Await] = {}
    for code in _list_code(compile(source, str(path), "exec")):
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            for each in _list_suspensions(module, code, lines):
                found.setdefault(each.point, each)
    return tuple(found.values())


def _list_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_code(constant)


def _list_suspensions(module: str, code: CodeType, lines: list[bytes]) -> Iterator[Await]:
    """Yield the awaits of a compiled function, which are loops around the instruction ``SEND``."""
    for instruction in dis.get_instructions(code):
        place = instruction.positions
        if instruction.opname != "SEND" or place is None or place.lineno is None or place.end_lineno is None:
            continue
        covered = lines[place.lineno - 1 : place.end_lineno]
        covered[-1] = covered[-1][: place.end_col_offset]
        covered[0] = covered[0][place.col_offset :]
        yield Await(
            module,
            code.co_qualname,
            " ".join(b"".join(covered).decode().split()),
            range(place.lineno, place.end_lineno + 1),
            _describe_point(code, instruction.offset),
        )
