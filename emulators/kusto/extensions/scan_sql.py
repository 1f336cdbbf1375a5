"""Recursive SQL query for the query operator ``scan``.

Each iteration passes one row of every partition (group of rows) through the steps. The state of step k ("Scan logic" in
the Kusto documentation) consists of a flag for an active sequence of rows, the number of this sequence, and the columns
of steps 1 to k that an expression reads. This module is separate from the module ``scan``, which parses and
checks the operator.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.sql import Sql, quote_name, render_expression
from emulators.kusto.extensions.tree import IrNode, iterate_nodes
from emulators.kusto.extensions.window_plan import RowPartition, choose_unused_prefix, render_numbered_rows


@dataclasses.dataclass(frozen=True)
class DeclaredColumn:
    """Column in the clause ``declare`` of a scan: name, DuckDB type and default value (None for null)."""

    name: str
    sql_type: str
    default: ir.Expr | None


@dataclasses.dataclass(frozen=True)
class ScanStep:
    """Step of a scan.

    Attributes:
        name: name of the step.
        has_output: True if rows that match the step are part of the result.
        condition: the condition that a row must meet to match the step.
        assignments: the values that the step assigns to declared columns.
        only_last: True if only the last row of a series of repeated matches is part of the result.
    """

    name: str
    has_output: bool
    condition: ir.Expr
    assignments: tuple[ir.NamedExpr, ...]
    only_last: bool = False


class ScanSql:
    """Builder of the recursive SQL query for a scan.

    Args:
        declared: columns of the clause ``declare``, to which the steps assign values.
        steps: steps of the scan, in order.
        input_columns: names of the input columns.
        added: names of the output columns that the input does not have.
    """

    def __init__(
        self, declared: Sequence[DeclaredColumn], steps: Sequence[ScanStep], input_columns: list[str], added: list[str]
    ) -> None:
        self._declared = {each.name: each for each in declared}
        self._steps = steps
        self._index = {step.name: index for index, step in enumerate(steps)}
        self._cols = input_columns
        self._added = added
        self._p = choose_unused_prefix([*input_columns, *added])
        self._has_last = any(step.only_last for step in steps)
        self._read = self._list_columns_read_from_each_step()
        self._used = sorted(
            {name for names in self._read for name in names if name in input_columns}
            | self._collect_used_input_columns()
        )

    def render(self, input_sql: Sql, partition: RowPartition) -> Sql:
        """Return SQL that yields one row for each match of a row with a step, in the order of the input rows."""
        p = self._p
        states = ", ".join(f"{sql} AS {name}" for name, sql in self._render_initial_state_fields())
        names = ", ".join(name for name, _ in self._render_initial_state_fields())
        carried = ", ".join(f"m.{name}" for name, _ in self._render_initial_state_fields() if name != f"{p}o")
        turn = f"(SELECT d.*, {carried}, [] AS {p}o "
        turn += f"FROM {p}m AS m JOIN {p}d AS d ON d.{p}r = m.{p}r + 1 AND (m.{p}b OR NOT d.{p}f))"
        for index in reversed(range(len(self._steps))):
            turn = self._render_step(index, turn)
        fields = [*(f"v{position}" for position in range(len(self._declared))), "q"]
        values = [f"e.{p}e.{name} AS {quote_name(each)}" for name, each in zip(fields, self._added, strict=False)]
        result = ", ".join([*(f"i.{quote_name(name)}" for name in self._cols), *values])
        return (
            f"WITH RECURSIVE {self._render_input_subqueries(input_sql, partition)}, "  # noqa: S608
            f"{p}m AS (SELECT {p}r - 1 AS {p}r, true AS {p}b, {states} FROM {p}d WHERE {p}f UNION ALL "
            f"SELECT {p}r, false, {names} FROM {turn}) "
            f"SELECT {result} FROM {self._render_partitioned_input()} AS i JOIN (SELECT {p}r, unnest({p}o) AS {p}e, "
            f"generate_subscripts({p}o, 1) AS {p}n FROM {p}m) AS e ON e.{p}r = i.{p}r"
            f"{self._render_last_match_filter()} ORDER BY e.{p}r, e.{p}n"
        )

    def _render_partitioned_input(self) -> Sql:
        """Return SQL for the input rows, with their partition numbers if a step outputs only its last match."""
        p = self._p
        if not self._has_last:
            return f"{p}i"
        return f"(SELECT *, count(*) FILTER (WHERE {p}f) OVER (ORDER BY {p}r) AS {p}g FROM {p}i)"  # noqa: S608

    def _render_last_match_filter(self) -> Sql:
        """Return SQL that removes each match that is followed by another match of the same step."""
        p = self._p
        if not self._has_last:
            return ""
        following = f"lead(e.{p}e.z) OVER (PARTITION BY i.{p}g, e.{p}e.k ORDER BY e.{p}r)"
        return f" QUALIFY NOT coalesce({following}, false)"

    def _render_input_subqueries(self, input_sql: Sql, partition: RowPartition) -> Sql:
        """Return SQL for two subqueries: the numbered input rows, and these rows with only the columns that steps read.

        Both subqueries have a column that is true in the first row of each partition.
        """
        p = self._p
        begins = [f"lag({quote_name(each)}) OVER () IS DISTINCT FROM {quote_name(each)}" for each in partition.columns]
        first = " OR ".join([f"{p}r = 1", *begins])
        used = "".join(f", {quote_name(name)} AS {self._get_input_column_name(name)}" for name in self._used)
        rows = render_numbered_rows(input_sql, f"{p}r", partition, f"{p}x")
        return (
            f"{p}i AS MATERIALIZED (SELECT *, ({first}) AS {p}f FROM {rows}), "  # noqa: S608  generated names
            f"{p}d AS MATERIALIZED (SELECT {p}r, {p}f{used} FROM {p}i)"
        )

    def _render_step(self, step_index: int, next_rows: Sql) -> Sql:
        """Return SQL that applies a step to ``next_rows``, a subquery with the next row of every partition."""
        p, step = self._p, self._steps[step_index]
        active = "true" if step_index == 0 else f"{p}a{step_index}"
        again = f"({active}) AND coalesce({self._render_expression_for_state(step.condition, step_index)}, false)"
        whens = f"WHEN {again} THEN 2 ELSE 0"
        if step_index:
            condition = self._render_expression_for_state(step.condition, step_index - 1)
            moved = f"{p}a{step_index - 1} AND coalesce({condition}, false)"
            whens = f"WHEN {moved} THEN 1 {whens}"
        next_rows = f"(SELECT *, CASE {whens} END AS {p}c FROM {next_rows})"  # noqa: S608
        values = ", ".join(
            f"{self._render_assigned_value(step_index, each)} AS {self._get_assigned_value_column_name(each.name)}"
            for each in self._declared.values()
        )
        next_rows = f"(SELECT *{', ' if values else ''}{values} FROM {next_rows})"  # noqa: S608
        replaced = ", ".join(f"{sql} AS {name}" for name, sql in self._render_state_changes(step_index).items())
        dropped = ", ".join([f"{p}c", *map(self._get_assigned_value_column_name, self._declared)])
        return f"(SELECT * EXCLUDE ({dropped}) REPLACE ({replaced}) FROM {next_rows})"  # noqa: S608

    def _render_assigned_value(self, step_index: int, declared: DeclaredColumn) -> Sql:
        """Return SQL for the value of a declared column after a row has matched a step."""
        assigned = [each.expr for each in self._steps[step_index].assignments if each.name == declared.name]
        if not assigned:
            return self._render_default_value(declared)
        moved = f"WHEN 1 THEN {self._render_expression_for_state(assigned[-1], step_index - 1)} " if step_index else ""
        value = f"CASE {self._p}c {moved}WHEN 2 THEN {self._render_expression_for_state(assigned[-1], step_index)} END"
        return f"CAST({value} AS {declared.sql_type})"

    def _render_state_changes(self, step_index: int) -> dict[str, Sql]:
        """Return SQL for the new value of each state field that a step changes, by name of the field."""
        p, c, before = self._p, f"{self._p}c", step_index - 1
        changes = {f"{p}a{step_index}": f"{p}a{step_index} OR {c} > 0"}
        if step_index:
            changes[f"{p}q{step_index}"] = f"CASE WHEN {c} = 1 THEN {p}q{before} ELSE {p}q{step_index} END"
            changes[f"{p}a{before}"] = f"{p}a{before} AND {c} <> 1"
        else:
            changes[f"{p}q0"] = f"{p}q0 + CASE WHEN {c} = 2 AND NOT {p}a0 THEN 1 ELSE 0 END"
        for owner in range(step_index + 1):
            for name in self._read[owner]:
                field = self._get_state_field_name(step_index, owner, name)
                when = (
                    f"{c} > 0 THEN {self._render_value_stored_in_state(name)}"
                    if owner == step_index
                    else f"{c} = 1 THEN {self._get_state_field_name(before, owner, name)}"
                )
                changes[field] = f"CASE WHEN {when} ELSE {field} END"
                if owner < step_index:
                    cleared = self._get_state_field_name(before, owner, name)
                    changes[cleared] = (
                        f"CASE WHEN {c} = 1 THEN {self._render_value_before_first_match(name)} ELSE {cleared} END"
                    )
        if self._steps[step_index].has_output:
            number = (
                f"CASE WHEN {c} = 1 THEN {p}q{before} ELSE {p}q{step_index} END" if step_index else changes[f"{p}q0"]
            )
            values = [
                f"'v{position}': {self._get_assigned_value_column_name(name)}"
                for position, name in enumerate(self._declared)
            ]
            values.append(f"'q': {number}")
            if self._has_last:
                repeats = (
                    (f"{c} = 2" if step_index else f"{c} = 2 AND {p}a0")
                    if self._steps[step_index].only_last
                    else "false"
                )
                values += [f"'k': {step_index}", f"'z': {repeats}"]
            row = "{" + ", ".join(values) + "}"
            changes[f"{p}o"] = f"CASE WHEN {c} > 0 THEN list_append({p}o, {row}) ELSE {p}o END"
        return changes

    def _render_initial_state_fields(self) -> list[tuple[str, Sql]]:
        """Return the name and the initial SQL value of each field of the scan's state."""
        p = self._p
        fields = []
        for index in range(len(self._steps)):
            fields += [(f"{p}a{index}", "false"), (f"{p}q{index}", "CAST(-1 AS BIGINT)")]
            for owner in range(index + 1):
                fields += [
                    (self._get_state_field_name(index, owner, name), self._render_value_before_first_match(name))
                    for name in self._read[owner]
                ]
        struct = "".join(f"v{position} {each.sql_type}, " for position, each in enumerate(self._declared.values()))
        flags = ", k INTEGER, z BOOLEAN" if self._has_last else ""
        return [*fields, (f"{p}o", f"CAST([] AS STRUCT({struct}q BIGINT{flags})[])")]

    def _render_expression_for_state(self, expr: ir.Expr, step_index: int) -> Sql:
        """Return SQL for an expression; references such as ``s1.column`` read the state of step ``step_index``."""
        return render_expression(self._replace_column_references(expr, step_index))

    def _replace_column_references(self, node: IrNode, step_index: int) -> IrNode:
        """Return a copy of an expression with the SQL names of input columns and of fields of the state of a step."""
        if isinstance(node, tuple):
            return tuple(self._replace_column_references(each, step_index) for each in node)
        if isinstance(node, ir.ColumnRef):
            if node.name in self._declared:
                raise unsupported_error(
                    f"scan that reads the declared column {node.name[:50]} without the name of a step",
                    f"write the name of a step before it, for instance {self._steps[0].name[:50]}.{node.name[:50]}",
                )
            if node.name not in self._cols:
                raise semantic_error(f"Failed to resolve scalar expression named '{node.name[:100]}'")
            return ir.RenderedAggregate(self._get_input_column_name(node.name))
        if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
            return node
        reference = self._find_referenced_step_index_and_column(node)
        if reference is not None and isinstance(node, ir.PathAccess):
            owner, name = reference
            value = ir.RenderedAggregate(
                self._get_state_field_name(step_index, owner, name)
                if owner <= step_index
                else self._render_value_before_first_match(name)
            )
            rest = self._replace_column_references(node.steps[1:], step_index)
            return ir.PathAccess(value, rest) if rest else value
        parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        changed = {name: self._replace_column_references(part, step_index) for name, part in parts.items()}
        return dataclasses.replace(node, **changed)

    def _find_referenced_step_index_and_column(self, node: IrNode) -> tuple[int, str] | None:
        """Return the step number and the column of an expression ``step.column``; None for any other expression.

        If an input column has the same name as a step, the expression refers to the column.
        """
        if not isinstance(node, ir.PathAccess) or not isinstance(node.base, ir.ColumnRef):
            return None
        index, name = self._index.get(node.base.name), node.steps[0].name
        if index is None or name is None or node.base.name in self._cols:
            return None
        if name not in self._declared and name not in self._cols:
            raise semantic_error(f"Failed to resolve column named '{name[:100]}'")
        return index, name

    def _list_columns_read_from_each_step(self) -> list[list[str]]:
        """Return, for each step, the columns that any expression of the scan reads as ``step.column``."""
        read: list[list[str]] = [[] for _ in self._steps]
        for node in iterate_nodes(self._steps):
            reference = self._find_referenced_step_index_and_column(node)
            if reference is not None and reference[1] not in read[reference[0]]:
                read[reference[0]].append(reference[1])
        return read

    def _collect_used_input_columns(self) -> set[str]:
        return {
            node.name
            for node in iterate_nodes(self._steps)
            if isinstance(node, ir.ColumnRef) and node.name in self._cols
        }

    def _render_value_stored_in_state(self, column_name: str) -> Sql:
        """Return SQL for the value that a step stores in its state for a column when a row matches the step.

        For an input column, this is the row's value. For a declared column, it is the value that the step assigns.
        """
        return (
            self._get_input_column_name(column_name)
            if column_name in self._cols
            else self._get_assigned_value_column_name(column_name)
        )

    def _get_input_column_name(self, column_name: str) -> str:
        """Return the name that the SQL of the scan uses for an input column."""
        return f"{self._p}i{self._cols.index(column_name)}"

    def _get_assigned_value_column_name(self, column_name: str) -> str:
        """Return the name of the SQL column with the value that a step assigns to a declared column."""
        return f"{self._p}v{list(self._declared).index(column_name)}"

    def _get_state_field_name(self, step_index: int, owner_step_index: int, column_name: str) -> str:
        """Return the name of a field in the state of step ``step_index``: a column of step ``owner_step_index``."""
        position = [*self._cols, *self._declared].index(column_name)
        return f"{self._p}s{step_index}_{owner_step_index}_{position}"

    def _render_value_before_first_match(self, column_name: str) -> Sql:
        """Return SQL for ``step.column`` before any row matches the step: null, or the default of a declared column."""
        declared = self._declared.get(column_name)
        return (
            self._render_default_value(declared)
            if declared
            else f"CASE WHEN false THEN {self._get_input_column_name(column_name)} END"
        )

    def _render_default_value(self, declared: DeclaredColumn) -> Sql:
        value = "NULL" if declared.default is None else render_expression(declared.default)
        return f"CAST({value} AS {declared.sql_type})"


class SingleStepScanSql(ScanSql):
    """Builder of the SQL for a scan with one step, which is simpler and faster.

    Each row has at most one match, and all matches belong to one sequence. The state therefore needs neither a list of
    matches nor flags, which take most of the time of an iteration.
    """

    def render(self, input_sql: Sql, partition: RowPartition) -> Sql:
        """Return SQL that yields one row for each row that matches the step, in the order of the input rows."""
        p = self._p
        state = {self._get_state_field_name(0, 0, name): name for name in self._read[0]}
        nothing = {
            self._get_assigned_value_column_name(each.name): f"CAST(NULL AS {each.sql_type})"
            for each in self._declared.values()
        }
        initial = _render_column_list(
            nothing | {field: self._render_value_before_first_match(name) for field, name in state.items()}
        )
        begun = f", true AS {p}b" if partition.columns else ""
        values = [
            f"e.{name} AS {quote_name(each)}" for name, each in zip([*nothing, f"{p}q"], self._added, strict=False)
        ]
        result = ", ".join([*(f"i.{quote_name(name)}" for name in self._cols), *values])
        shown = f"e.{p}h" if self._steps[0].has_output else "false"
        return (
            f"WITH RECURSIVE {self._render_input_subqueries(input_sql, partition)}, "  # noqa: S608  generated names, rendered expressions
            f"{p}m AS (SELECT {p}r - 1 AS {p}r, false AS {p}h{initial}{begun} FROM {p}d WHERE {p}f UNION ALL "
            f"{self._render_next_row_query(state, partition)}) SELECT {result} FROM {p}i AS i "
            f"JOIN (SELECT *, CAST(0 AS BIGINT) AS {p}q FROM {p}m) AS e ON e.{p}r = i.{p}r WHERE {shown} "
            f"ORDER BY e.{p}r"
        )

    def _render_next_row_query(self, columns_by_state_field: Mapping[str, str], partition: RowPartition) -> Sql:
        """Return SQL for one iteration of the recursive query, which processes the next row of every partition."""
        p = self._p
        before = "".join(f", m.{field}" for field in columns_by_state_field)
        follows = f"d.{p}r = m.{p}r + 1" + (f" AND (m.{p}b OR NOT d.{p}f)" if partition.columns else "")
        matched = f"coalesce({self._render_expression_for_state(self._steps[0].condition, 0)}, false) AS {p}h"
        values = _render_column_list(
            {
                self._get_assigned_value_column_name(each.name): self._render_assigned_value(0, each)
                for each in self._declared.values()
            }
        )
        after = {
            field: f"CASE WHEN {p}h THEN {self._render_value_stored_in_state(name)} ELSE {field} END"
            for field, name in columns_by_state_field.items()
        }
        begun = ", false" if partition.columns else ""
        columns = "".join(f", {self._get_assigned_value_column_name(each)}" for each in self._declared)
        joined = f"SELECT d.*{before} FROM {p}m AS m JOIN {p}d AS d ON {follows}"  # noqa: S608
        tested = f"SELECT *, {matched}, CASE WHEN {p}h THEN 2 END AS {p}c FROM ({joined})"  # noqa: S608
        return f"SELECT {p}r, {p}h{columns}{_render_column_list(after)}{begun} FROM (SELECT *{values} FROM ({tested}))"  # noqa: S608


def _render_column_list(sql_by_column: Mapping[str, Sql]) -> Sql:
    return "".join(f", {sql} AS {name}" for name, sql in sql_by_column.items())
