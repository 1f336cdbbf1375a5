"""The recursive query behind ``scan``: in each turn one row of every partition goes through the steps.

The state of step k ("Scan logic" in the Kusto documentation) are a flag that it has a sequence, the sequence's number,
and the values of steps 1 to k that some expression reads.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.nodes import nodes
from emulators.kusto.extensions.scan_steps import Declared, Step
from emulators.kusto.extensions.sql import render
from emulators.kusto.extensions.window_plan import Partition, free_prefix, numbered


class Machine:
    """Writes the query.

    Args:
        declared: the columns that steps assign.
        steps: in the order of the text.
        cols: the columns of the input.
        added: the names of the columns that the result has beside them.
    """

    def __init__(self, declared: Sequence[Declared], steps: Sequence[Step], cols: list[str], added: list[str]) -> None:
        self._declared = {each.name: each for each in declared}
        self._steps = steps
        self._index = {step.name: index for index, step in enumerate(steps)}
        self._cols = cols
        self._added = added
        self._p = free_prefix([*cols, *added])
        self._read = self._columns_read()
        self._used = sorted({name for names in self._read for name in names if name in cols} | self._columns_used())

    def sql(self, prev: str, partition: Partition) -> str:
        """Return a row for each match, in the order of the rows."""
        p = self._p
        states = ", ".join(f"{sql} AS {name}" for name, sql in self._initial())
        names = ", ".join(name for name, _ in self._initial())
        turn = f"(SELECT d.*, {', '.join(f'm.{name}' for name, _ in self._initial() if name != f'{p}o')}, [] AS {p}o "
        turn += f"FROM {p}m AS m JOIN {p}d AS d ON d.{p}r = m.{p}r + 1 AND (m.{p}b OR NOT d.{p}f))"
        for index in reversed(range(len(self._steps))):
            turn = self._step(index, turn)
        fields = [*(f"v{position}" for position in range(len(self._declared))), "q"]
        values = [f"e.{p}e.{name} AS {quoted(each)}" for name, each in zip(fields, self._added, strict=False)]
        result = ", ".join([*(f"i.{quoted(name)}" for name in self._cols), *values])
        return (
            f"WITH RECURSIVE {self._rows(prev, partition)}, "  # noqa: S608
            f"{p}m AS (SELECT {p}r - 1 AS {p}r, true AS {p}b, {states} FROM {p}d WHERE {p}f UNION ALL "
            f"SELECT {p}r, false, {names} FROM {turn}) "
            f"SELECT {result} FROM {p}i AS i JOIN (SELECT {p}r, unnest({p}o) AS {p}e, "
            f"generate_subscripts({p}o, 1) AS {p}n FROM {p}m) AS e ON e.{p}r = i.{p}r ORDER BY e.{p}r, e.{p}n"
        )

    def _rows(self, prev: str, partition: Partition) -> str:
        """Return the rows by number, with a flag at the first of each partition: whole, and what the steps read."""
        p = self._p
        begins = [f"lag({quoted(each)}) OVER () IS DISTINCT FROM {quoted(each)}" for each in partition.columns]
        first = " OR ".join([f"{p}r = 1", *begins])
        used = "".join(f", {quoted(name)} AS {self._input(name)}" for name in self._used)
        rows = numbered(prev, f"{p}r", partition, f"{p}x")
        return (
            f"{p}i AS MATERIALIZED (SELECT *, ({first}) AS {p}f FROM {rows}), "  # noqa: S608  generated names
            f"{p}d AS MATERIALIZED (SELECT {p}r, {p}f{used} FROM {p}i)"
        )

    def _step(self, index: int, turn: str) -> str:
        """Return the subquery ``turn`` after the row has been through one step."""
        p, step = self._p, self._steps[index]
        again = f"({'true' if index == 0 else f'{p}a{index}'}) AND coalesce({self._at(step.condition, index)}, false)"
        whens = f"WHEN {again} THEN 2 ELSE 0"
        if index:
            moved = f"{p}a{index - 1} AND coalesce({self._at(step.condition, index - 1)}, false)"
            whens = f"WHEN {moved} THEN 1 {whens}"
        turn = f"(SELECT *, CASE {whens} END AS {p}c FROM {turn})"  # noqa: S608
        values = ", ".join(f"{self._value(index, each)} AS {self._new(each.name)}" for each in self._declared.values())
        turn = f"(SELECT *{', ' if values else ''}{values} FROM {turn})"  # noqa: S608
        replaced = ", ".join(f"{sql} AS {name}" for name, sql in self._changes(index).items())
        dropped = ", ".join([f"{p}c", *map(self._new, self._declared)])
        return f"(SELECT * EXCLUDE ({dropped}) REPLACE ({replaced}) FROM {turn})"  # noqa: S608

    def _value(self, index: int, declared: Declared) -> str:
        """Return what a declared column holds in a row that matches a step."""
        assigned = [each.expr for each in self._steps[index].assignments if each.name == declared.name]
        if not assigned:
            return self._default(declared)
        moved = f"WHEN 1 THEN {self._at(assigned[-1], index - 1)} " if index else ""
        value = f"CASE {self._p}c {moved}WHEN 2 THEN {self._at(assigned[-1], index)} END"
        return f"CAST({value} AS {declared.sql_type})"

    def _changes(self, index: int) -> dict[str, str]:
        """Return the fields that a step changes, and to what."""
        p, c, before = self._p, f"{self._p}c", index - 1
        changes = {f"{p}a{index}": f"{p}a{index} OR {c} > 0"}
        if index:
            changes[f"{p}q{index}"] = f"CASE WHEN {c} = 1 THEN {p}q{before} ELSE {p}q{index} END"
            changes[f"{p}a{before}"] = f"{p}a{before} AND {c} <> 1"
        else:
            changes[f"{p}q0"] = f"{p}q0 + CASE WHEN {c} = 2 AND NOT {p}a0 THEN 1 ELSE 0 END"
        for owner in range(index + 1):
            for name in self._read[owner]:
                field = self._field(index, owner, name)
                when = (
                    f"{c} > 0 THEN {self._taken(name)}"
                    if owner == index
                    else f"{c} = 1 THEN {self._field(before, owner, name)}"
                )
                changes[field] = f"CASE WHEN {when} ELSE {field} END"
                if owner < index:
                    cleared = self._field(before, owner, name)
                    changes[cleared] = f"CASE WHEN {c} = 1 THEN {self._blank(name)} ELSE {cleared} END"
        if self._steps[index].shown:
            number = f"CASE WHEN {c} = 1 THEN {p}q{before} ELSE {p}q{index} END" if index else changes[f"{p}q0"]
            values = [f"'v{position}': {self._new(name)}" for position, name in enumerate(self._declared)]
            row = "{" + ", ".join([*values, f"'q': {number}"]) + "}"
            changes[f"{p}o"] = f"CASE WHEN {c} > 0 THEN list_append({p}o, {row}) ELSE {p}o END"
        return changes

    def _initial(self) -> list[tuple[str, str]]:
        """Return the fields of the state before the first row."""
        p = self._p
        fields = []
        for index in range(len(self._steps)):
            fields += [(f"{p}a{index}", "false"), (f"{p}q{index}", "CAST(-1 AS BIGINT)")]
            for owner in range(index + 1):
                fields += [(self._field(index, owner, name), self._blank(name)) for name in self._read[owner]]
        struct = "".join(f"v{position} {each.sql_type}, " for position, each in enumerate(self._declared.values()))
        return [*fields, (f"{p}o", f"CAST([] AS STRUCT({struct}q BIGINT)[])")]

    def _at(self, expr: ir.Expr, state: int) -> str:
        """Return an expression as it is over the state of one step."""
        return render(self._bound(expr, state))

    def _bound(self, node: Any, state: int) -> Any:
        if isinstance(node, tuple):
            return tuple(self._bound(each, state) for each in node)
        if isinstance(node, ir.ColumnRef):
            if node.name not in self._cols:
                raise semantic_error(f"Failed to resolve scalar expression named '{node.name[:100]}'")
            return ir.RenderedAggregate(self._input(node.name))
        if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
            return node
        reference = self._reference(node)
        if reference is not None and isinstance(node, ir.PathAccess):
            owner, name = reference
            value = ir.RenderedAggregate(self._field(state, owner, name) if owner <= state else self._blank(name))
            rest = self._bound(node.steps[1:], state)
            return ir.PathAccess(value, rest) if rest else value
        parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        changed = {name: self._bound(part, state) for name, part in parts.items()}
        return dataclasses.replace(node, **changed)

    def _reference(self, node: Any) -> tuple[int, str] | None:
        """Return the step and the column that ``step.column`` names; a column of the input wins over a step."""
        if not isinstance(node, ir.PathAccess) or not isinstance(node.base, ir.ColumnRef):
            return None
        index, name = self._index.get(node.base.name), node.steps[0].name
        if index is None or name is None or node.base.name in self._cols:
            return None
        if name not in self._declared and name not in self._cols:
            raise semantic_error(f"Failed to resolve column named '{name[:100]}'")
        return index, name

    def _columns_read(self) -> list[list[str]]:
        """Return, for each step, the columns of it that some expression reads."""
        read: list[list[str]] = [[] for _ in self._steps]
        for node in nodes(self._steps):
            reference = self._reference(node)
            if reference is not None and reference[1] not in read[reference[0]]:
                read[reference[0]].append(reference[1])
        return read

    def _columns_used(self) -> set[str]:
        return {node.name for node in nodes(self._steps) if isinstance(node, ir.ColumnRef) and node.name in self._cols}

    def _taken(self, name: str) -> str:
        """Return what a step keeps of a row that matches it."""
        return self._input(name) if name in self._cols else self._new(name)

    def _input(self, name: str) -> str:
        return f"{self._p}i{self._cols.index(name)}"

    def _new(self, name: str) -> str:
        return f"{self._p}v{list(self._declared).index(name)}"

    def _field(self, state: int, owner: int, name: str) -> str:
        position = [*self._cols, *self._declared].index(name)
        return f"{self._p}s{state}_{owner}_{position}"

    def _blank(self, name: str) -> str:
        declared = self._declared.get(name)
        return self._default(declared) if declared else f"CASE WHEN false THEN {self._input(name)} END"

    def _default(self, declared: Declared) -> str:
        value = "NULL" if declared.default is None else render(declared.default)
        return f"CAST({value} AS {declared.sql_type})"


def quoted(name: str) -> str:
    """Return an identifier in the quotes of SQL."""
    return str(translate.quote_ident(name))
