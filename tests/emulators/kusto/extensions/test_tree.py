"""Tests of functions that read parse trees and the translator's intermediate form."""

from duckdb_kql import ir, parser

from emulators.kusto.extensions.tree import (
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    iterate_nodes,
    list_nodes_by_rule,
)

QUERY = "T\n| where f(g(1)) == 2\n| where h(3) > 1"
CALL = "NamedFunctionCallExpression"


def test_grammar_rules_are_found_in_the_order_of_the_query() -> None:
    """The nodes of a grammar rule are found in query order; nodes inside a found node are left out."""
    calls = list_nodes_by_rule(parser.parse(QUERY).tree, CALL)
    assert [call.getText() for call in calls] == ["f(g(1))", "h(3)"]
    assert {get_rule_name(call) for call in calls} == {CALL}


def test_parse_tree_positions_count_from_one() -> None:
    """The position of a parse tree node is the line and column of its first character, counted from 1."""
    calls = list_nodes_by_rule(parser.parse(QUERY).tree, CALL)
    assert [get_line_and_column(call) for call in calls] == [(2, 9), (3, 9)]


def test_children_of_a_call_node_exclude_parentheses_and_commas() -> None:
    """The children of a call node are its name and arguments, without parentheses and commas."""
    [call] = list_nodes_by_rule(parser.parse("print f(a, 1)").tree, CALL)
    assert [child.getText() for child in get_child_rules(call)] == ["f", "a", "1"]


def test_each_node_of_an_expression_is_returned_once() -> None:
    """A node that occurs twice in an expression is returned once; nodes of a subquery are not returned."""
    column = ir.ColumnRef("a")
    subquery = ir.Query(ir.TableRef("T"), [ir.Where(ir.ColumnRef("b"))])
    root = ir.BinaryOp("==", column, ir.FunctionCall("f", (column, ir.Literal("1", "long"))))
    found = list(iterate_nodes([root, subquery]))
    assert found[0] is root
    assert sorted(type(node).__name__ for node in found) == ["BinaryOp", "ColumnRef", "FunctionCall", "Literal"]
