"""Strict JSON (RFC 8259): rejects each text that two parsers could read differently."""

import json
import math
import re
from collections import Counter
from typing import Any

from shared.worker_threads import run_in_worker

MAX_DEPTH = 100
MAX_CONTAINERS = 100_000
"""Arrays and objects in one text. Making and freeing them holds the interpreter, so more of them would delay others."""

# The closing quote is optional: without that, each quote of an unclosed string would start another search to the end.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


async def parse_body(body: bytes) -> Any:
    """Return the JSON value of a body, read outside the event loop where it is large.

    Raises:
        ValueError: as ``parse_json``.
    """
    return await run_in_worker(len(body), parse_json, body)


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        ValueError: not UTF-8, not JSON, a duplicate key, NaN or Infinity, a number beyond a double's range, a lone
            surrogate, nested deeper than 100 levels, or more than 100,000 arrays and objects.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    _limit_containers(text)
    value = _load(text)
    _check(value)
    if _SURROGATE.search(text):
        _refuse_lone_surrogates(value)
    return value


def _limit_containers(text: str) -> None:
    """Count brackets before parsing; only where they are many does it matter which of them are inside strings."""
    found = _count_brackets(text)
    if found > MAX_CONTAINERS:
        found -= sum(_count_brackets(string[0]) for string in _STRING.finditer(text))
    if found > MAX_CONTAINERS:
        raise ValueError(f"more than {MAX_CONTAINERS} arrays and objects")


def _count_brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _load(text: str) -> Any:
    try:
        # The hooks are Python functions, so that the parser lets other threads run at each number and each object.
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_whole_number,
            parse_float=_number,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        # CPython's own limit on the digits of an integer; its message names an interpreter setting.
        raise ValueError("a number has too many digits") if "digits" in str(error) else error from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in members if counts[name] > 1)
        raise ValueError(f"the key {twice[:64]!r} stands twice in one object")
    return members


def _whole_number(text: str) -> int:
    return int(text)


def _number(text: str) -> float:
    return float(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = _below(level)
        if not level:
            return
    if any(isinstance(item, dict | list) for item in level):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    _below(level)


def _below(level: list[Any]) -> list[Any]:
    below: list[Any] = []
    for item in level:
        if isinstance(item, dict):
            below.extend(item.values())
        elif isinstance(item, list):
            below.extend(item)
        elif isinstance(item, float) and math.isinf(item):
            raise ValueError("a number lies beyond the range of a double")
    return below


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate is not a character") from None
