"""``scan``: a machine of steps that reads serialized rows one after the other.

What a row does depends on what the rows before it did, so there is no set of rows to work on at once; a recursive query
takes one row of every partition in each turn. See "scan operator" of the Kusto documentation for the logic.
"""

import dataclasses
from typing import Any, ClassVar

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import Substitute, add_operator
from emulators.kusto.extensions.scan_machine import Machine
from emulators.kusto.extensions.scan_single import SingleStep
from emulators.kusto.extensions.scan_steps import Declared, Step
from emulators.kusto.extensions.serialized import NeedsSerialized
from emulators.kusto.extensions.sql_types import SQL_TYPES
from emulators.kusto.extensions.tree import children, find, kind_of, position
from emulators.kusto.extensions.window_plan import WHOLE, Partition

SUPPORTED: tuple[str, ...] = ("scan (declare, several steps, output=all and none, with_match_id)",)

macros: tuple[str, ...] = ()
_MOST_STEPS = 16


@dataclasses.dataclass(frozen=True)
class Scan(NeedsSerialized):
    """The operator.

    Attributes:
        declared: the columns that steps assign.
        steps: in the order of the text.
        match_id: the name of the column that numbers sequences, empty for none.
        partition: groups that are scanned apart.
    """

    declared: tuple[Declared, ...]
    steps: tuple[Step, ...]
    match_id: str = ""
    partition: Partition = WHOLE
    keyword: ClassVar[str] = "scan"

    def partitioned(self, partition: Partition) -> "Scan":
        """Return the operator that scans each group apart."""
        return dataclasses.replace(self, partition=partition)

    def render(self, prev: str, cols: list[str]) -> str:
        """Return a row for each match of an input row, in the order of the input."""
        machine = SingleStep if len(self.steps) == 1 else Machine
        return machine(self.declared, self.steps, cols, self.columns(cols)[len(cols) :]).sql(prev, self.partition)

    def columns(self, cols: list[str]) -> list[str]:
        """Return the input's columns, the declared ones and the match's number."""
        added = [each.name for each in self.declared] + ([self.match_id] if self.match_id else [])
        for name in added:
            if name in cols:
                raise unsupported("scan declaring a column of its input", f"'{name[:100]}' is there already")
        return [*cols, *added]

    def substituted(self, substitute: Substitute) -> "Scan":
        """Return the operator with its expressions replaced; a step's name stays what it is."""
        return dataclasses.replace(self, steps=tuple(_substituted(step, substitute) for step in self.steps))


def _substituted(step: Step, substitute: Substitute) -> Step:
    assignments = tuple(dataclasses.replace(each, expr=substitute(each.expr)) for each in step.assignments)
    return dataclasses.replace(step, condition=substitute(step.condition), assignments=assignments)


def install() -> None:
    """Teach the translator the operator."""
    add_operator("ScanOperator", _scan)


def _scan(node: Any) -> ir.Operator:
    match_id = ""
    for parameter in find(node, "RelaxedQueryOperatorParameter"):
        name, _, value = parameter.getText().partition("=")
        if name != "with_match_id":
            raise unsupported(f"scan {name[:100]}", position=position(parameter))
        match_id = value
    declared = tuple(_declared(each) for each in find(node, "ScalarParameter"))
    steps = tuple(_step(each) for each in find(node, "ScanOperatorStep"))
    if len({step.name for step in steps}) != len(steps) or not 0 < len(steps) <= _MOST_STEPS:
        raise semantic_error(f"scan takes 1 to {_MOST_STEPS} steps of different names", position=position(node))
    names = {each.name for each in declared}
    for step in steps:
        for each in step.assignments:
            if each.name not in names:
                raise semantic_error(f"scan: '{(each.name or '')[:100]}' is not declared", position=position(node))
    return Scan(declared, steps, match_id)


def _declared(node: Any) -> Declared:
    name, kind, *default = children(node)
    sql_type = SQL_TYPES.get(kind.getText())
    if sql_type is None:
        raise unsupported(f"scan declaring {kind.getText()[:50]}", position=position(kind))
    value = reader.lower_expr(children(default[0])[0]) if default else None
    return Declared(_name(name), sql_type, value)


def _step(node: Any) -> Step:
    name, *rest = children(node)
    shown = True
    if kind_of(rest[0]) == "ScanOperatorStepOutputClause":
        output = rest.pop(0).getText().partition("=")[2]
        if output not in ("all", "none"):
            raise unsupported(f"scan output={output[:50]}", position=position(node))
        shown = output == "all"
    assignments = [_assignment(each) for part in rest[1:] for each in find(part, "ScanOperatorAssignment")]
    return Step(_name(name), shown, reader.lower_expr(rest[0]), tuple(assignments))


def _assignment(node: Any) -> ir.NamedExpr:
    name, value = children(node)
    return ir.NamedExpr(reader.lower_expr(value), _name(name))


def _name(node: Any) -> str:
    text = reader.name_text(reader.collapse(node))
    return str(node.getText() if text is None else text)
