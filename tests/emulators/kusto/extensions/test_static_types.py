"""Tests of the types that are inferred before DuckDB checks the SQL."""

import pytest
from duckdb_kql import ir

from emulators.kusto.extensions.static_types import accepts_argument_types, find_signatures, infer_static_type

INT, LONG, REAL = ir.Literal(1, "int"), ir.Literal(1, "long"), ir.Literal(1.5, "real")
DATE, SPAN, TEXT = ir.Literal("2024-01-02", "datetime"), ir.Literal("1h", "timespan"), ir.Literal("a", "string")
ARRAY, BAG = ir.Literal("[1]", "dynamic"), ir.Literal('{"a":1}', "dynamic")
UNKNOWN = ir.ColumnRef("unknown")

TYPES = [
    (ir.BinaryOp("+", INT, INT), "long"),
    (ir.BinaryOp("*", LONG, REAL), "real"),
    (ir.BinaryOp("-", DATE, DATE), "timespan"),
    (ir.BinaryOp("+", DATE, SPAN), "datetime"),
    (ir.BinaryOp("/", SPAN, SPAN), "real"),
    (ir.BinaryOp("*", SPAN, LONG), "timespan"),
    (ir.BinaryOp("+", DATE, UNKNOWN), None),
    (ir.BinaryOp("has", TEXT, UNKNOWN), "bool"),
    (ir.UnaryOp("-", REAL), "real"),
    (ARRAY, "array"),
    (BAG, "bag"),
    (ir.Literal("1", "dynamic"), "dynamic"),
    (ir.FunctionCall("pack_array", (UNKNOWN,)), "array"),
    (ir.FunctionCall("bag_pack", (TEXT, LONG)), "bag"),
    (ir.FunctionCall("range", (LONG, LONG)), "array"),
    (ir.FunctionCall("abs", (INT,)), "long"),
    (ir.FunctionCall("abs", (SPAN,)), "timespan"),
    (ir.FunctionCall("abs", (UNKNOWN,)), None),
    (ir.FunctionCall("iff", (UNKNOWN, LONG, REAL)), "real"),
    (ir.FunctionCall("coalesce", (TEXT, TEXT)), "string"),
    (ir.FunctionCall("percentile_tdigest", (UNKNOWN, LONG)), "dynamic"),
    (ir.FunctionCall("no_such_function", ()), None),
]


@pytest.mark.parametrize(("expr", "kind"), TYPES)
def test_static_types_follow_from_operands_and_signatures(expr: ir.Expr, kind: str | None) -> None:
    """The static type of an expression follows from its operands and signatures; None is an unknown type."""
    assert infer_static_type(expr) == kind


@pytest.mark.parametrize(
    ("function", "types", "is_accepted"),
    [
        ("hll", ["long"], True),
        ("hll", ["bool"], False),
        ("hll", ["long", "long", "long"], False),
        ("hll", [], False),
        ("hll", [None], True),
        ("percentiles", ["long", "real", "real"], True),
        ("make_bag", ["array"], False),
        ("make_bag", ["dynamic"], True),
    ],
)
def test_a_function_signature_accepts_arguments_of_unknown_type(
    function: str, types: list[str | None], *, is_accepted: bool
) -> None:
    """A signature checks the number and types of arguments; an unknown type is always accepted."""
    (signature,) = find_signatures("aggregates", function)
    assert accepts_argument_types(signature["parameters"], types) is is_accepted
