"""Conditions over all columns, such as ``* has "text"``, in ``where`` and ``find``."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, lower, schema

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.pipeline import PipelineOperator
from emulators.kusto.extensions.tree import IrNode, ParseNode, get_child_rules, get_rule_name

SUPPORTED: tuple[str, ...] = ("where * has, contains, startswith, endswith, ...",)

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class StarCondition(ir.Expr):
    """Condition over all columns: true if the comparison is true for the text of at least one column.

    Attributes:
        op: comparison operator between the text of a column and the right operand.
        right: the right operand.
    """

    op: str
    right: ir.Expr

    def to_condition(self, input_columns: Sequence[str]) -> ir.Expr:
        """Convert the condition to an expression over the input columns."""
        tests = [
            ir.BinaryOp(self.op, ir.FunctionCall("tostring", (ir.ColumnRef(name),)), self.right)
            for name in input_columns
        ]
        condition: ir.Expr = tests[0]
        for test in tests[1:]:
            condition = ir.BinaryOp("or", condition, test)
        return condition


def replace_nodes(root: IrNode, replace_node: Callable[[ir.Expr], ir.Expr]) -> IrNode:
    """Return a copy of an expression in which ``replace_node`` has replaced nodes.

    The function calls ``replace_node`` for a node. If the result is a new node, the new node replaces the old node. If
    the result is the same node, the function continues with the nodes inside it.
    """
    if isinstance(root, tuple):
        return tuple(replace_nodes(each, replace_node) for each in root)
    if not isinstance(root, ir.Expr | ir.NamedExpr | ir.PathStep):
        return root
    replaced = replace_node(root) if isinstance(root, ir.Expr) else root
    if replaced is not root:
        return replaced
    node: Any = root
    fields = {each.name: getattr(node, each.name) for each in dataclasses.fields(node) if each.init}
    changed = {name: new for name, old in fields.items() if (new := replace_nodes(old, replace_node)) is not old}
    return dataclasses.replace(node, **changed) if changed else node


def _patch_expressions_for_star_conditions(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    def convert_expression(node: ParseNode) -> ir.Expr:
        inner = reader.collapse(node)
        if get_rule_name(inner) != "StringStarOperatorExpression":
            return library_function(node)
        operator, right = get_child_rules(inner)
        if operator.getText() == ":":
            return StarCondition("has", library_function(right))
        return StarCondition(operator.getText(), library_function(right))

    return convert_expression


def _patch_let_references_to_expand_stars(library_function: Callable[..., ir.Operator]) -> Callable[..., ir.Operator]:
    """Patch the resolution of ``let`` references so that it also replaces each `StarCondition`."""

    def resolve_let_references(op: ir.Operator, input_columns: list[str] | None) -> ir.Operator:
        resolved = library_function(op, input_columns)
        if isinstance(resolved, PipelineOperator):
            return resolved

        def expand_star(node: ir.Expr) -> ir.Expr:
            if not isinstance(node, StarCondition):
                return node
            if input_columns is None:
                raise unsupported_error("* in a condition", "the columns of the operator's input depend on the data")
            return node.to_condition(input_columns)

        return resolved if not isinstance(resolved, ir.Where) else _expand_stars_in_where(resolved, expand_star)

    return resolve_let_references


def _expand_stars_in_where(where: ir.Where, expand_star: Callable[[ir.Expr], ir.Expr]) -> ir.Where:
    predicate = replace_nodes(where.predicate, expand_star)
    return where if predicate is where.predicate else ir.Where(predicate)


def install_into_translator() -> None:
    """Add conditions over all columns to the KQL translator library."""
    replace_attribute(lower, "_lower_expr", _patch_expressions_for_star_conditions)
    replace_attribute(schema, "resolve_let_refs", _patch_let_references_to_expand_stars)
