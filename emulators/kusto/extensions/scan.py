"""Query operator ``scan``: passes sorted rows, one after the other, through steps that match sequences of rows.

The result of a row depends on earlier rows, so the SQL is a recursive query that processes one row of every partition
in each iteration. See "scan operator" of the Kusto documentation.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import Substitute, add_operator
from emulators.kusto.extensions.scan_sql import DeclaredColumn, ScanSql, ScanStep, SingleStepScanSql
from emulators.kusto.extensions.serialized import SerializedInputOperator
from emulators.kusto.extensions.sql import SQL_TYPES, quote_name
from emulators.kusto.extensions.tree import find_rules, get_child_rules, get_rule_name, get_source_position
from emulators.kusto.extensions.window_plan import WHOLE, RowPartition

SUPPORTED: tuple[str, ...] = ("scan (declare, several steps, output=all, last and none, with_match_id)",)

macros: tuple[str, ...] = ()
_MAX_STEPS = 16
_HIDDEN = " assigned"
"""End of the name of the hidden column for an input column that a step assigns; no column of a query has it."""
_OUTPUTS = ("all", "last", "none")


@dataclasses.dataclass(frozen=True)
class ScanOperator(SerializedInputOperator):
    """Query operator ``scan``, which matches sequences of rows.

    Attributes:
        declared: columns of the clause ``declare``, to which the steps assign values.
        steps: steps of the operator, in order.
        match_id: name of the column with the number of the matching sequence; empty for no such column.
        partition: groups of rows; each group is scanned separately.
    """

    declared: tuple[DeclaredColumn, ...]
    steps: tuple[ScanStep, ...]
    match_id: str = ""
    partition: RowPartition = WHOLE
    keyword: ClassVar[str] = "scan"
    reads_input_only: ClassVar[bool] = True

    def copy_with_partition(self, partition: RowPartition) -> "ScanOperator":
        """Return a copy that scans each group of rows separately."""
        return dataclasses.replace(self, partition=partition)

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields one row for each match of an input row, in the order of the input."""
        assigned = self._find_assigned_inputs(cols)
        steps, declared = self.steps, self.declared
        for name in assigned:
            hidden = f"{name}{_HIDDEN}"
            steps = tuple(_assign_hidden(step, name, hidden, [each.name for each in steps]) for step in steps)
            declared = (*declared, DeclaredColumn(hidden, _find_type(name), None))
        added = [each.name for each in declared] + ([self.match_id] if self.match_id else [])
        self.infer_columns(cols)
        machine = SingleStepScanSql if len(steps) == 1 and not steps[0].only_last else ScanSql
        sql = machine(declared, steps, cols, added).render(prev, self.partition)
        return sql if not assigned else _select_assigned(sql, assigned)

    def _find_assigned_inputs(self, cols: list[str]) -> list[str]:
        """Return the columns of the input to which a step assigns values.

        Raises:
            QueryError: a step assigns a column that is neither declared nor part of the input.
        """
        declared = {each.name for each in self.declared}
        names = list(dict.fromkeys(each.name or "" for step in self.steps for each in step.assignments))
        for name in names:
            if name not in declared and name not in cols:
                raise semantic_error(
                    f"scan: a step assigns the column '{name[:100]}', which is neither declared nor in the input"
                )
        return [name for name in names if name not in declared]

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the input, the declared columns and the column with the number of the sequence."""
        added = [each.name for each in self.declared] + ([self.match_id] if self.match_id else [])
        for name in added:
            if name in cols:
                raise unsupported_error(
                    "scan with a declared column that its input also has", f"rename the declared column '{name[:100]}'"
                )
        return [*cols, *added]

    def replace_expressions(self, substitute: Substitute) -> "ScanOperator":
        """Return a copy in which the function ``substitute`` has replaced conditions and assignments of the steps."""
        return dataclasses.replace(self, steps=tuple(_replace_in_step(step, substitute) for step in self.steps))


def _replace_in_step(step: ScanStep, substitute: Substitute) -> ScanStep:
    assignments = tuple(dataclasses.replace(each, expr=substitute(each.expr)) for each in step.assignments)
    return dataclasses.replace(step, condition=substitute(step.condition), assignments=assignments)


def _assign_hidden(step: ScanStep, name: str, hidden: str, steps: Sequence[str]) -> ScanStep:
    """Return a step that assigns an input column's value to a hidden column, even if the step does not change it.

    References such as ``s1.name`` read the hidden column.
    """
    assigned = [each for each in step.assignments if each.name == name]
    others = tuple(each for each in step.assignments if each.name != name)
    value = assigned[-1].expr if assigned else ir.ColumnRef(name)
    assignments = (*others, ir.NamedExpr(value, hidden))
    renamed: ScanStep = _rename_references(
        dataclasses.replace(step, assignments=assignments), name, hidden, frozenset(steps)
    )
    return renamed


def _rename_references(node: Any, name: str, hidden: str, steps: frozenset[str]) -> Any:
    if isinstance(node, tuple):
        return tuple(_rename_references(each, name, hidden, steps) for each in node)
    if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
        return node
    if isinstance(node, ir.PathAccess) and isinstance(node.base, ir.ColumnRef) and node.steps[0].name == name:
        return (
            dataclasses.replace(node, steps=(ir.PathStep(hidden), *node.steps[1:])) if node.base.name in steps else node
        )
    parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    return dataclasses.replace(
        node, **{field: _rename_references(part, name, hidden, steps) for field, part in parts.items()}
    )


def _find_type(name: str) -> str:
    kind = infer_type(ir.ColumnRef(name))
    if kind not in SQL_TYPES:
        raise unsupported_error("scan that assigns a column of unknown type", f"convert '{name[:100]}' before")
    return SQL_TYPES[kind]


def _select_assigned(sql: str, assigned: Sequence[str]) -> str:
    hidden = {name: quote_name(f"{name}{_HIDDEN}") for name in assigned}
    replaced = ", ".join(f"{hidden[name]} AS {quote_name(name)}" for name in assigned)
    return f"SELECT * EXCLUDE ({', '.join(hidden.values())}) REPLACE ({replaced}) FROM ({sql})"  # noqa: S608  quoted names


def install() -> None:
    """Add the operator ``scan`` to the KQL translator library."""
    add_operator("ScanOperator", _parse_scan)


def _parse_scan(node: Any) -> ir.Operator:
    match_id = ""
    for parameter in find_rules(node, "RelaxedQueryOperatorParameter"):
        name, _, value = parameter.getText().partition("=")
        if name != "with_match_id":
            raise unsupported_error(f"scan with the parameter {name[:100]}", position=get_source_position(parameter))
        match_id = value
    declared = tuple(_parse_declaration(each) for each in find_rules(node, "ScalarParameter"))
    steps = tuple(_parse_step(each) for each in find_rules(node, "ScanOperatorStep"))
    if len({step.name for step in steps}) != len(steps) or not 0 < len(steps) <= _MAX_STEPS:
        raise semantic_error(
            f"scan requires 1 to {_MAX_STEPS} steps with different names", position=get_source_position(node)
        )
    return ScanOperator(declared, steps, match_id)


def _parse_declaration(node: Any) -> DeclaredColumn:
    name, kind, *default = get_child_rules(node)
    sql_type = SQL_TYPES.get(kind.getText())
    if sql_type is None:
        raise unsupported_error(
            f"scan declaring a column of type {kind.getText()[:50]}", position=get_source_position(kind)
        )
    value = reader.lower_expr(get_child_rules(default[0])[0]) if default else None
    return DeclaredColumn(_read_identifier(name), sql_type, value)


def _parse_step(node: Any) -> ScanStep:
    name, *rest = get_child_rules(node)
    output = "all"
    if get_rule_name(rest[0]) == "ScanOperatorStepOutputClause":
        output = rest.pop(0).getText().partition("=")[2]
        if output not in _OUTPUTS:
            raise semantic_error(
                f"scan: output must be {', '.join(_OUTPUTS)}, not {output[:50]}", position=get_source_position(node)
            )
    assignments = [_parse_assignment(each) for part in rest[1:] for each in find_rules(part, "ScanOperatorAssignment")]
    condition = reader.lower_expr(rest[0])
    has_output, only_last = output != "none", output == "last"
    return ScanStep(_read_identifier(name), has_output, condition, tuple(assignments), only_last)


def _parse_assignment(node: Any) -> ir.NamedExpr:
    name, value = get_child_rules(node)
    return ir.NamedExpr(reader.lower_expr(value), _read_identifier(name))


def _read_identifier(node: Any) -> str:
    text = reader.name_text(reader.collapse(node))
    return str(node.getText() if text is None else text)
