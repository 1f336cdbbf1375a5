"""Tests of KQL conditions over all columns, such as ``* has 'x'``."""

from duckdb_kql import ir

from emulators.kusto.extensions.star_conditions import StarCondition, replace_nodes

TEXT = ir.Literal("a", "string")


def _build_has_condition(name: str) -> ir.Expr:
    return ir.BinaryOp("has", ir.FunctionCall("tostring", (ir.ColumnRef(name),)), TEXT)


def test_a_star_condition_tests_each_column_as_text() -> None:
    """A condition on `*` becomes an OR over all columns, each converted to a string."""
    star = StarCondition("has", TEXT)
    assert star.to_condition(["x"]) == _build_has_condition("x")
    both = ir.BinaryOp(
        "or", ir.BinaryOp("or", _build_has_condition("x"), _build_has_condition("y")), _build_has_condition("z")
    )
    assert star.to_condition(["x", "y", "z"]) == both


def _expand_star(node: ir.Expr) -> ir.Expr:
    return node.to_condition(["x"]) if isinstance(node, StarCondition) else node


def test_a_nested_expression_node_is_replaced() -> None:
    """A node of an expression is replaced at any depth, also in arguments of calls."""
    nested = ir.FunctionCall("not", (ir.BinaryOp("and", StarCondition("has", TEXT), TEXT),))
    assert replace_nodes(nested, _expand_star) == ir.FunctionCall(
        "not", (ir.BinaryOp("and", _build_has_condition("x"), TEXT),)
    )
    assert replace_nodes((nested, ir.NamedExpr(nested)), _expand_star)[1].expr == replace_nodes(nested, _expand_star)


def test_an_expression_without_the_replaced_node_does_not_change() -> None:
    """An expression without the node is returned unchanged."""
    comparison = ir.BinaryOp("==", ir.ColumnRef("x"), TEXT)
    assert replace_nodes(comparison, _expand_star) is comparison
    call = ir.FunctionCall("not", (comparison,))
    assert replace_nodes(call, _expand_star) == call
    assert replace_nodes("text", _expand_star) == "text"
