"""Columns computed over serialized rows, level by level, for the functions that look at neighbours."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.sessions import Chain

RUNNING = "OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
"""The window of everything up to a row."""

type Function = Callable[["Plan", ir.FunctionCall, int], tuple[str, int]]
"""Adds the columns of a call, whose arguments have a depth, to a plan; returns its value's column and depth."""


class Plan:
    """Nested subqueries, each of which adds columns computed over the one inside it.

    Args:
        prev: the rows.
        cols: their columns.
        partition: groups that are kept apart.
        functions: how the functions are written, by name.
    """

    def __init__(
        self, prev: str, cols: Sequence[str], partition: "Partition", functions: Mapping[str, Function]
    ) -> None:
        self._functions = functions
        self._prefix = free_prefix(cols)
        self._levels: list[list[str]] = []
        self._chains: dict[int, list[tuple[str, Chain]]] = {}
        self._known: dict[int, tuple[Any, int]] = {}
        self._count = 0
        self._sorts = False
        self.row = self._name()
        self._rows = numbered(prev, self.row, partition, f"{self._prefix}r")
        self.group: str | None = None
        if partition.columns:
            keys = (translate.quote_ident(each) for each in partition.columns)
            start = " OR ".join(f"{key} IS DISTINCT FROM lag({key}) OVER ()" for key in keys)
            begins = self.column(f"({start})", 1)
            self.group = self.column(f"count(*) FILTER (WHERE {begins}) {RUNNING}", 2)

    def source(self) -> str:
        """Return the rows with every column added so far, as they came."""
        sql = self._rows
        for depth, level in enumerate(self._levels, 1):
            added = f", {', '.join(level)}" if level else ""
            sql = f"(SELECT *{added} FROM {sql})"  # noqa: S608  generated names, rendered expressions
            for name, write in self._chains.get(depth, ()):
                sql = self._chained(sql, name, write)
        return f"(SELECT * FROM {sql} ORDER BY {self.row})" if self._sorts else sql  # noqa: S608

    def column(self, sql: str, depth: int) -> str:
        """Add a column that is computed over those of lower depth, and return its name."""
        while len(self._levels) < depth:
            self._levels.append([])
        name = self._name()
        self._levels[depth - 1].append(f"{sql} AS {name}")
        return name

    def chain(self, write: Chain, depth: int) -> str:
        """Add a column whose values a query of its own gives for row numbers; null where it gives none."""
        while len(self._levels) < depth:
            self._levels.append([])
        name = self._name()
        self._chains.setdefault(depth, []).append((name, write))
        return name

    def _chained(self, sql: str, name: str, write: Chain) -> str:
        rows = f"{name}m"
        return (
            f"(WITH {rows} AS MATERIALIZED (SELECT * FROM {sql}) SELECT {rows}.*, {name}j.v AS {name} "  # noqa: S608
            f"FROM {rows} LEFT JOIN ({write(rows)}) AS {name}j ON {name}j.r = {rows}.{self.row} ORDER BY {self.row})"
        )

    def sorts(self) -> None:
        """Note that a column's window does not keep the rows' order."""
        self._sorts = True

    def base_depth(self) -> int:
        """Return the depth that the grouping needs."""
        return 0 if self.group is None else 2

    def restarted(self, restart: str | None, depth: int) -> tuple[str | None, int]:
        """Return a column that tells where counting starts anew, None where it never does."""
        depth = max(depth, self.base_depth())
        starts = [f"coalesce({restart}, false)"] if restart else []
        starts += [f"{self.group} IS DISTINCT FROM lag({self.group}) OVER ()"] if self.group else []
        return (self.column(f"({' OR '.join(starts)})", depth + 1), depth + 1) if starts else (None, depth)

    def since(self, restart: str | None, depth: int) -> tuple[str, int]:
        """Return the row number at which counting last started."""
        begins, depth = self.restarted(restart, depth)
        if begins is None:
            return "1", depth
        return self.column(f"coalesce(max(CASE WHEN {begins} THEN {self.row} END) {RUNNING}, 1)", depth + 1), depth + 1

    def rewrite(self, node: Any) -> Any:
        """Return an operator with a column in the place of each window function."""
        return self._rewritten(node)[0]

    def _rewritten(self, node: Any) -> tuple[Any, int]:
        if id(node) not in self._known:
            self._known[id(node)] = self._fresh(node)
        return self._known[id(node)]

    def _fresh(self, node: Any) -> tuple[Any, int]:
        if isinstance(node, tuple):
            items = [self._rewritten(each) for each in node]
            return tuple(item for item, _ in items), max((depth for _, depth in items), default=0)
        if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
            return node, 0
        parts = {field.name: self._rewritten(getattr(node, field.name)) for field in dataclasses.fields(node)}
        depth = max((each for _, each in parts.values()), default=0)
        again: Any = dataclasses.replace(node, **{name: part for name, (part, _) in parts.items()}) if depth else node
        function = self._functions.get(again.name.lower()) if isinstance(again, ir.FunctionCall) else None
        if function is None:
            return again, depth
        column, depth = function(self, again, depth)
        return ir.RenderedAggregate(column), depth

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"


def free_prefix(cols: Sequence[str]) -> str:
    """Return a prefix of generated names that no column begins with."""
    prefix = "_w"
    while any(name.casefold().startswith(prefix) for name in cols):
        prefix = f"_{prefix}"
    return prefix


@dataclasses.dataclass(frozen=True)
class Partition:
    """Groups of rows that functions do not look across.

    Attributes:
        columns: that tell the groups apart; none where there is but one.
        contiguous: whether the rows of a group already follow each other.
    """

    columns: tuple[str, ...] = ()
    contiguous: bool = False


WHOLE = Partition()
"""All rows in one group."""


def numbered(prev: str, row: str, partition: Partition, scratch: str) -> str:
    """Return the rows with a number in their order, group by group where there are groups."""
    if not partition.columns or partition.contiguous:
        return f"(SELECT *, row_number() OVER () AS {row} FROM {prev})"  # noqa: S608  generated names
    keys = writer.quoted(list(partition.columns))
    once = f"(SELECT *, row_number() OVER () AS {scratch} FROM {prev})"  # noqa: S608
    grouped = f"(SELECT * FROM {once} ORDER BY {keys}, {scratch})"  # noqa: S608
    return f"(SELECT * EXCLUDE ({scratch}), row_number() OVER () AS {row} FROM {grouped})"  # noqa: S608
