"""Plugin ``dcount_intersect``: numbers of the values that several sets of ``hll()`` have in common."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import orjson
from duckdb_kql import ir

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.digests import count_distinct, merge_hash_sets
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.plugins import add_plugin, check_column
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import quote_name
from emulators.kusto.extensions.tree import get_source_position
from emulators.kusto.python_functions import FunctionFailure, PythonFunction

SUPPORTED: tuple[str, ...] = ("evaluate dcount_intersect (exact for at most 1,024 values)",)

macros: tuple[str, ...] = ()
_LEAST, _MOST = 2, 16
_MOST_ESTIMATED = 6
"""Maximum number of sets whose intersections are estimated, as the effort doubles with each set."""


def _count_intersections(sets: list[str | None] | None) -> list[int] | None:
    """Return the number of values common to the first set, the first two sets, and so on; None if a set is missing."""
    if sets is None or any(each is None for each in sets):
        return None
    found = [orjson.loads(each) for each in sets if each is not None]
    if not any(each[2] for each in found):
        hashes: list[set[str]] = [set(each[1]) for each in found]
        return [len(set.intersection(*hashes[: count + 1])) for count in range(len(hashes))]
    if len(found) > _MOST_ESTIMATED:
        raise FunctionFailure("EMB0001", f"dcount_intersect() of more than {_MOST_ESTIMATED} large sets")
    texts = [each for each in sets if each is not None]
    return [_estimate_intersection(texts[: count + 1]) for count in range(len(texts))]


def _merge_sets(sets: Sequence[str]) -> Any:
    merged = merge_hash_sets(sets)
    assert merged is not None  # noqa: S101  the caller has read the sets
    return orjson.loads(merged)


def _estimate_intersection(sets: Sequence[str]) -> int:
    """Return the number of common values by inclusion and exclusion of the unions."""
    total = 0
    for size in range(1, len(sets) + 1):
        for chosen in itertools.combinations(sets, size):
            total += (-1) ** (size + 1) * count_distinct(_merge_sets(chosen))
    return max(0, total)


functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_intersections", _count_intersections, ("VARCHAR[]",), "BIGINT[]"),
)


@dataclasses.dataclass(frozen=True)
class DistinctIntersections(UnorderedOutputOperator):
    """Plugin ``dcount_intersect``: adds a column for each set with the number of values of all sets up to it."""

    sets: tuple[str, ...]

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the plugin as SQL that adds the columns."""
        for name in self.sets:
            check_column(name, cols)
        listed = ", ".join(f"CAST({quote_name(name)} AS VARCHAR)" for name in self.sets)
        counts = [
            f"kql_intersections([{listed}])[{index}] AS {quote_name(name)}"
            for index, name in enumerate(self.infer_columns(cols)[len(cols) :], start=1)
        ]
        return f"SELECT *, {', '.join(counts)} FROM {prev}"  # noqa: S608  quoted names

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the input and one column for each set."""
        return [*cols, *(f"s{index}" for index in range(len(self.sets)))]


def _parse_plugin(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
    position = get_source_position(node)
    if clause is not None:
        raise unsupported_error("evaluate dcount_intersect with an output schema", position=position)
    lowered = [reader.lower_expr(each) for each in arguments]
    if not _LEAST <= len(lowered) <= _MOST or not all(isinstance(each, ir.ColumnRef) for each in lowered):
        fault = f"evaluate dcount_intersect() requires {_LEAST} to {_MOST} columns"
        raise semantic_error(fault, inner="SEM0219", position=position)
    return DistinctIntersections(tuple(each.name for each in lowered))


def install() -> None:
    """Add the plugin to the operator ``evaluate``."""
    add_plugin("dcount_intersect", _parse_plugin)
