"""Translation of decimals, comparisons and arithmetic to SQL, depending on the types of the operands.

SQL silently converts operands of different types; Kusto rejects them. The accepted types follow the signatures of the
operators in Kusto's published language definition: texts and dynamic (JSON) values have no order, ``==`` does not
compare a number with a text, and two dynamic values cannot be compared. Division depends on the types, and timespans
have operators that SQL lacks.

A decimal has nine digits after the decimal point. A quotient with more digits is rounded; Data Explorer's decimals have
34 digits.
"""

import dataclasses
import decimal
from collections.abc import Callable, Sequence

from duckdb_kql import ir, lower, translate

from emulators.kusto.decimals import FRACTION_DIGITS, format_decimal, is_representable_in_duckdb
from emulators.kusto.errors import QueryError, semantic_error, syntax_error, unsupported_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.not_a_number import WHOLE_MACRO
from emulators.kusto.extensions.sql import KustoType, Sql, render_expression, render_with_arguments_evaluated_once
from emulators.kusto.extensions.static_types import DYNAMICS as DYNAMIC_KINDS
from emulators.kusto.extensions.static_types import infer_static_type
from emulators.kusto.extensions.tree import ParseNode, get_line_and_column, get_rule_name, iterate_nodes
from emulators.kusto.extensions.type_checks import (
    DYNAMICS,
    TEXTS,
    add_type_guard,
    join_tests_with_and,
    join_tests_with_or,
    render_error,
    render_number_test,
    render_type_test,
)
from emulators.kusto.python_functions import PythonFunction
from emulators.kusto.stop_events import EXECUTION

SUPPORTED: tuple[str, ...] = ("decimal() literals with nine digits after the point",)

_DECIMAL = "DECIMAL(38, 9)"
_DECIMAL_CONTEXT = decimal.Context(prec=60)
_DECIMAL_STEP = decimal.Decimal(1).scaleb(-FRACTION_DIGITS)
_NUMBER_TYPES = ("DOUBLE", "BIGINT", "INTEGER", "HUGEINT")
_BINS = frozenset({"bin", "floor"})
_BIN_ARGUMENTS = 2
_ARITHMETIC_OPERATORS = frozenset({"+", "-", "*", "/", "%"})


def _divide_decimals(dividend: str | None, divisor: str | None) -> str | None:
    """Divide two decimals and round to nine digits after the point; None if one is null or the divisor is 0."""
    if dividend is None or divisor is None or not decimal.Decimal(divisor):
        return None
    quotient = _DECIMAL_CONTEXT.divide(decimal.Decimal(dividend), decimal.Decimal(divisor))
    return format(quotient.quantize(_DECIMAL_STEP, decimal.ROUND_HALF_UP, _DECIMAL_CONTEXT), "f")


def _normalize_decimal_text(text: str | None) -> str | None:
    return None if text is None else format_decimal(decimal.Decimal(text))


functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_decimal_divided", _divide_decimals, ("VARCHAR", "VARCHAR"), "VARCHAR"),
    PythonFunction("kql_decimal_text", _normalize_decimal_text, ("VARCHAR",), "VARCHAR"),
)


def _patch_expressions_for_decimal_literals(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    def convert_expression(node: ParseNode) -> ir.Expr:
        inner = reader.collapse(node)
        if get_rule_name(inner) != "DecimalLiteralExpression":
            return library_function(node)
        return _convert_decimal_literal(inner)

    return convert_expression


def _convert_decimal_literal(node: ParseNode) -> ir.Expr:
    text = node.getText().partition("(")[2].rpartition(")")[0].strip()
    if text.lower() in ("null", ""):
        return ir.FunctionCall("todecimal", (ir.Literal(None, "string"),))
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise syntax_error(f"'{text[:60]}' is not a decimal", get_line_and_column(node)) from None
    if not value.is_finite() or not is_representable_in_duckdb(value):
        raise unsupported_error(
            "decimals with more than nine digits after the point or 29 digits before it",
            position=get_line_and_column(node),
        )
    return ir.FunctionCall("todecimal", (ir.Literal(format(value, "f"), "string"),))


def _patch_arithmetic_for_decimals(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    def render_expr(node: ir.Expr) -> Sql:
        if isinstance(node, ir.FunctionCall) and node.name in _BINS and infer_type_with_decimals(node) == "decimal":
            operands = [f"CAST({render_expression(arg)} AS {_DECIMAL})" for arg in node.args]
            bound = render_with_arguments_evaluated_once(
                operands, lambda value, size: f"kql_decimal_bin({value}, {size})"
            )
            return f"CAST({bound} AS {_DECIMAL})"
        if not isinstance(node, ir.BinaryOp) or node.op not in _ARITHMETIC_OPERATORS:
            return library_function(node)
        types = infer_type_with_decimals(node.left), infer_type_with_decimals(node.right)
        if "decimal" not in types:
            return library_function(node)
        left, right = (
            ir.FunctionCall("todecimal", (operand,)) if kind == "real" else operand
            for operand, kind in zip((node.left, node.right), types, strict=True)
        )
        if node.op == "/":
            return f"kql_decimal_quotient({render_expression(left)}, {render_expression(right)})"
        return f"CAST({library_function(dataclasses.replace(node, left=left, right=right))} AS {_DECIMAL})"

    return render_expr


def infer_type_with_decimals(expr: ir.Expr) -> KustoType | None:
    """Return the Kusto type of an expression, or None if it is unknown; unlike `infer_type`, also find decimals."""
    if isinstance(expr, ir.LetRef):
        return infer_type_with_decimals(expr.value)
    if isinstance(expr, ir.BinaryOp) and expr.op in _ARITHMETIC_OPERATORS:
        kinds = infer_type_with_decimals(expr.left), infer_type_with_decimals(expr.right)
        return "decimal" if "decimal" in kinds else None
    if isinstance(expr, ir.FunctionCall) and expr.name in _BINS and len(expr.args) == _BIN_ARGUMENTS:
        return infer_type_with_decimals(expr.args[0])
    return "decimal" if isinstance(expr, ir.FunctionCall) and expr.name == "todecimal" else infer_type(expr)


def _patch_tostring_for_decimals(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    def render_tostring(node: ir.Expr) -> Sql:
        if infer_type_with_decimals(node) != "decimal":
            return library_function(node)
        return f"coalesce(kql_decimal_text({EXECUTION}, CAST({render_expression(node)} AS VARCHAR)), '')"

    return render_tostring


_COMPARISONS_MACROS: tuple[str, ...] = (
    # A dynamic that is compared with a whole number: other values are null. Fractions are an error, because their
    # conversion is not documented: a wrong guess would silently drop rows such as 80.5 from a filter like d.x > 80.
    (
        f"CREATE OR REPLACE MACRO {WHOLE_MACRO}(j) AS CASE WHEN json_type(to_json(j)) = 'DOUBLE' AND "
        "TRY_CAST(to_json(j) AS DOUBLE) <> trunc(TRY_CAST(to_json(j) AS DOUBLE)) THEN "
        "{fraction} ELSE TRY_CAST(to_json(j) AS BIGINT) END"
    ).replace(
        "{fraction}",
        render_error(
            "EMB0001",
            "comparing a fraction inside a dynamic with a whole number is not supported by the embedded query engine "
            "(convert the value first, for instance with todouble(...) or tolong(...))",
        ),
    ),
    "CREATE OR REPLACE MACRO kql_json_real(j) AS TRY_CAST(to_json(j) AS DOUBLE)",
    (
        "CREATE OR REPLACE MACRO kql_is_number(t) AS t IN ('BIGINT', 'INTEGER', 'DOUBLE', 'HUGEINT', 'UBIGINT', "
        "'SMALLINT', 'FLOAT', 'TINYINT', 'UINTEGER') OR starts_with(t, 'DECIMAL')"
    ),
    (
        "CREATE OR REPLACE MACRO kql_joinable(l, r) AS l = r OR '\"NULL\"' IN (l, r) OR "
        "(kql_is_number(l) AND kql_is_number(r))"
    ),
)

_EQUALITIES = frozenset({"==", "!=", "<>"})
_ORDERS = frozenset({"<", "<=", ">", ">="})
_WHOLE = frozenset({"int", "long"})
_NUMBERS = frozenset({"int", "long", "real", "decimal"})
_UNORDERED = frozenset({"string", "dynamic", "guid"})


def _make_translator_check_compared_types() -> None:
    """Make the translator library check the operand types of comparisons and the key types of joins."""
    replace_attribute(translate, "render_expr", _patch_comparisons_to_check_types)
    replace_attribute(translate, "render_in_list", _patch_in_lists_to_check_types)
    replace_attribute(translate, "render_between", _patch_between_to_check_types)
    replace_attribute(translate, "render_key_equality", _patch_join_keys_to_check_types)


def _patch_comparisons_to_check_types(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    def render_expr(node: ir.Expr) -> Sql:
        if not isinstance(node, ir.BinaryOp) or node.op not in _EQUALITIES | _ORDERS:
            return library_function(node)
        return _render_comparison_with_type_checks(library_function, node)

    return render_expr


def _render_comparison_with_type_checks(library_function: Callable[[ir.Expr], Sql], node: ir.BinaryOp) -> Sql:
    kinds = infer_type(node.left), infer_type(node.right)
    if None not in kinds:
        _check_operand_types(node.op, str(kinds[0]), str(kinds[1]))
        return library_function(_convert_dynamic_operand_to_number(node, kinds))
    sql = library_function(_convert_dynamic_operand_to_number(node, kinds))
    for known, unknown in ((0, 1), (1, 0)):
        expr = (node.left, node.right)[unknown]
        if isinstance(expr, ir.ColumnRef):
            sql = _add_column_type_guard(library_function, node, sql, kinds[known], unknown)
            break
    return sql


def _check_operand_types(operator: str, left_type: KustoType, right_type: KustoType) -> None:
    """Check that a comparison operator accepts operands of the types ``left_type`` and ``right_type``.

    Raises:
        QueryError: the operator does not accept these types, or the emulator does not support the comparison.
    """
    kinds = {left_type, right_type}
    if "null" in kinds:
        return
    if "string" in kinds and kinds & (_NUMBERS | {"bool"}):
        raise _build_incomparable_types_error(left_type, right_type)
    if operator in _EQUALITIES:
        return
    if kinds == {"string"} or "guid" in kinds or ("dynamic" in kinds and not kinds & _NUMBERS and kinds != {"dynamic"}):
        raise semantic_error(
            f"The operator '{operator}' is not defined for the operand types {left_type} and {right_type}",
            inner="SEM0065",
        )
    if kinds == {"dynamic"}:
        raise unsupported_error(
            f"{operator} between two dynamic values", "convert the values first, for instance with tolong(...)"
        )


def _build_incomparable_types_error(left_type: KustoType, right_type: KustoType) -> QueryError:
    return semantic_error(
        f"Cannot compare values of types {left_type} and {right_type}. Try adding explicit casts", inner="SEM0064"
    )


def _convert_dynamic_operand_to_number(
    node: ir.BinaryOp, operand_types: tuple[KustoType | None, KustoType | None]
) -> ir.BinaryOp:
    """Return a comparison in which a dynamic operand is converted to a number, if the other operand is a number."""
    left, right = operand_types
    if left == "dynamic" and right in _NUMBERS:
        return dataclasses.replace(node, left=_convert_dynamic_to_number(node.left, right))
    if right == "dynamic" and left in _NUMBERS:
        return dataclasses.replace(node, right=_convert_dynamic_to_number(node.right, left))
    return node


def _convert_dynamic_to_number(expr: ir.Expr, number_type: KustoType | None) -> ir.Expr:
    macro = WHOLE_MACRO if number_type in _WHOLE else "kql_json_real"
    return ir.RenderedAggregate(f"{macro}({render_expression(expr)})")


def _add_column_type_guard(
    library_function: Callable[[ir.Expr], Sql],
    node: ir.BinaryOp,
    comparison_sql: Sql,
    known_type: KustoType | None,
    column_side_index: int,
) -> Sql:
    """Add checks to the SQL of a comparison, which reject the query if DuckDB finds a wrong type for a column.

    ``column_side_index`` is 0 if this column is the left operand, and 1 if it is the right operand. ``known_type`` is
    the type of the opposite operand; None if that type is also unknown.
    """
    sides = [node.left, node.right]
    column, other = sides[column_side_index], sides[1 - column_side_index]
    name = render_expression(column)
    operator = node.op
    dynamic, text = render_type_test(name, DYNAMICS), render_type_test(name, TEXTS)
    if known_type in _NUMBERS:
        sides[column_side_index] = _convert_dynamic_to_number(column, known_type)
        converted = library_function(ir.BinaryOp(operator, sides[0], sides[1]))
        comparison_sql = f"CASE WHEN {dynamic} THEN {converted} ELSE {comparison_sql} END"
        return add_type_guard(text, _render_type_mismatch_error("string", str(known_type)), comparison_sql)
    if known_type == "string":
        unordered = join_tests_with_or(text, dynamic) if operator in _ORDERS else ""
        comparison_sql = add_type_guard(unordered, _render_undefined_operator_error(operator), comparison_sql)
        return add_type_guard(
            join_tests_with_or(render_number_test(name), render_type_test(name, ("BOOLEAN",))),
            _render_type_mismatch_error("string", "long"),
            comparison_sql,
        )
    if known_type is None and isinstance(other, ir.ColumnRef):
        return _add_column_pair_type_guard(operator, name, render_expression(other), comparison_sql)
    if operator in _ORDERS and known_type != "null":
        comparison_sql = add_type_guard(dynamic, _render_undefined_operator_error(operator), comparison_sql)
    return comparison_sql


def _add_column_pair_type_guard(operator: str, left_sql: Sql, right_sql: Sql, comparison_sql: Sql) -> Sql:
    """Add checks to the SQL of a comparison of two columns, which reject the query if the column types do not match."""
    dynamics = join_tests_with_and(render_type_test(left_sql, DYNAMICS), render_type_test(right_sql, DYNAMICS))
    comparison_sql = add_type_guard(
        dynamics, render_error("SEM0001", "Cannot compare dynamic values without explicit cast"), comparison_sql
    )
    mixed = join_tests_with_or(
        join_tests_with_and(render_type_test(left_sql, TEXTS), render_number_test(right_sql)),
        join_tests_with_and(render_number_test(left_sql), render_type_test(right_sql, TEXTS)),
    )
    if operator in _ORDERS:
        texts = join_tests_with_or(
            join_tests_with_and(render_type_test(left_sql, TEXTS), render_type_test(right_sql, TEXTS)),
            render_type_test(left_sql, DYNAMICS),
            render_type_test(right_sql, DYNAMICS),
        )
        comparison_sql = add_type_guard(texts, _render_undefined_operator_error(operator), comparison_sql)
    return add_type_guard(mixed, _render_type_mismatch_error("string", "long"), comparison_sql)


def _render_type_mismatch_error(left_type: KustoType, right_type: KustoType) -> Sql:
    return render_error(
        "SEM0064", f"Cannot compare values of types {left_type} and {right_type}. Try adding explicit casts"
    )


def _render_undefined_operator_error(operator: str) -> Sql:
    return render_error("SEM0065", f"The operator '{operator}' is not defined for operands of type string or dynamic")


def _patch_in_lists_to_check_types(library_function: Callable[[ir.InList], Sql]) -> Callable[[ir.InList], Sql]:
    def render_in_list(node: ir.InList) -> Sql:
        sql = library_function(node)
        kinds = {infer_type(item) for item in node.items} - {None, "null", "dynamic"}
        value = infer_type(node.value)
        texts, numbers = "string" in kinds, bool(kinds & _NUMBERS)
        if value is not None:
            for kind in kinds:
                _check_operand_types("==", value, str(kind))
        if value is not None or not isinstance(node.value, ir.ColumnRef) or not (texts or numbers):
            return sql
        name = render_expression(node.value)
        test = render_number_test(name) if texts else render_type_test(name, TEXTS)
        return add_type_guard(test, _render_type_mismatch_error("string", "long"), sql)

    return render_in_list


def _patch_between_to_check_types(library_function: Callable[[ir.Between], Sql]) -> Callable[[ir.Between], Sql]:
    def render_between(node: ir.Between) -> Sql:
        sql = library_function(node)
        for operand in (node.value, node.low, node.high):
            kind = infer_type(operand)
            if kind in _UNORDERED:
                raise unsupported_error(
                    "between over a string or a dynamic value",
                    "convert the value and the bounds first, for example with todouble(...)",
                )
            if kind is None and isinstance(operand, ir.ColumnRef):
                test = render_type_test(render_expression(operand), (*TEXTS, *DYNAMICS))
                sql = add_type_guard(test, _render_dynamic_operand_error("between"), sql)
        return sql

    return render_between


def _render_dynamic_operand_error(operator: str) -> Sql:
    return render_error(
        "EMB0001",
        f"'{operator}' over a string or a dynamic value is not supported by the embedded query engine "
        "(convert the operand first, for instance with todouble(...))",
    )


def _patch_join_keys_to_check_types(
    library_function: Callable[[Sequence[ir.JoinKey]], Sql],
) -> Callable[[Sequence[ir.JoinKey]], Sql]:
    def render_key_equality(keys: Sequence[ir.JoinKey]) -> Sql:
        return " AND ".join([library_function(keys), *(_render_join_key_type_check(key) for key in keys)])

    return render_key_equality


def _render_join_key_type_check(key: ir.JoinKey) -> Sql:
    left, right = (infer_type(ir.ColumnRef(name)) for name in (key.left, key.right))
    if left is not None and left == right:
        return "true"
    sides = f"typeof(_l.{translate.quote_ident(key.left)}), typeof(_r.{translate.quote_ident(key.right)})"
    failure = render_error("SEM0031", "join: the types of the attributes that are joined on do not match")
    return f"CASE WHEN kql_joinable({sides}) THEN true ELSE {failure} END"


_WHOLE_TYPES = ("BIGINT", "HUGEINT")
_QUOTIENTS = (
    # A division by 0 is null for integers, and infinite or NaN for reals.
    *(f"(a {left}, b {right}) AS a // nullif(b, 0)" for left in _WHOLE_TYPES for right in _WHOLE_TYPES),
    "(a DOUBLE, b DOUBLE) AS a / b",
    *(f"(a {_DECIMAL}, b {right}) AS kql_decimal_quotient(a, b)" for right in (*_WHOLE_TYPES, _DECIMAL)),
    *(f"(a {left}, b {_DECIMAL}) AS kql_decimal_quotient(a, b)" for left in _WHOLE_TYPES),
    *(f"(a INTERVAL, b {right}) AS kql_span_divided(a, b)" for right in ("INTERVAL", "BIGINT", "DOUBLE")),
)

_ARITHMETIC_MACROS: tuple[str, ...] = (
    # Overloads, because often only DuckDB knows the type of the divisor.
    (
        "CREATE OR REPLACE MACRO kql_span_divided(a, b INTERVAL) AS epoch_us(a) / epoch_us(b), "
        "(a, b BIGINT) AS to_microseconds(epoch_us(a) // b), (a, b INTEGER) AS to_microseconds(epoch_us(a) // b), "
        "(a, b DOUBLE) AS to_microseconds(CAST(trunc(epoch_us(a) / b) AS BIGINT))"
    ),
    (
        "CREATE OR REPLACE MACRO kql_span_rest(a, b) AS to_microseconds((epoch_us(a) % epoch_us(b) + "
        "abs(epoch_us(b))) % abs(epoch_us(b)))"
    ),
    f"CREATE OR REPLACE MACRO kql_quotient{', '.join(_QUOTIENTS)}",
    "CREATE OR REPLACE MACRO kql_span_times(a, n) AS to_microseconds(CAST(trunc(epoch_us(a) * n) AS BIGINT))",
)


def _install_arithmetic() -> None:
    """Make the translator library choose the SQL of arithmetic by operand types.

    Also make the translator library treat ``dynamic(null)`` as a value of type dynamic.
    """
    replace_attribute(translate, "render_expr", _patch_arithmetic_to_choose_macros)
    replace_attribute(translate, "_TYPED_NULLS", lambda nulls: nulls | {"dynamic"})


def _patch_arithmetic_to_choose_macros(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    """Patch the translator library to render arithmetic by a macro where SQL's operator differs from Kusto's."""

    def render_expr(node: ir.Expr) -> Sql:
        if isinstance(node, ir.BinaryOp) and node.op == "/":
            _check_division_operands(node)
        macro = _find_arithmetic_macro_name(node) if isinstance(node, ir.BinaryOp) else None
        if macro is None or not isinstance(node, ir.BinaryOp):
            return library_function(node)
        left, right = node.left, node.right
        if macro == "kql_span_times" and not _is_timespan(left):
            left, right = right, left
        operands = [render_expression(left), render_expression(right)]
        if any("kql_" in sql for sql in operands) or any(map(_contains_aggregate_call, (left, right))):
            # DuckDB binds an argument of an overloaded macro twice, so that nested calls double at each level, and does
            # not accept an aggregate there. It binds the element of a list once.
            return render_with_arguments_evaluated_once(operands, lambda a, b: f"{macro}({a}, {b})")
        return f"{macro}({', '.join(operands)})"

    return render_expr


def _check_division_operands(node: ir.BinaryOp) -> None:
    """Reject a division if an operand is known to be dynamic (JSON).

    Without this check, DuckDB would reject the SQL with an error that does not state the types.

    Raises:
        QueryError: an operand is dynamic.
    """
    kinds = [infer_static_type(each) or "unknown" for each in (node.left, node.right)]
    if DYNAMIC_KINDS & set(kinds):
        listed = ", ".join("dynamic" if each in DYNAMIC_KINDS else each for each in kinds)
        raise semantic_error(f"operator '/' does not accept operands of types ({listed})", inner="SEM0001")


def _find_arithmetic_macro_name(node: ir.BinaryOp) -> str | None:
    left, right = _is_timespan(node.left), _is_timespan(node.right)
    if node.op == "/" and left:
        return "kql_span_divided"
    if node.op == "/" and not right and not {infer_type(node.left), infer_type(node.right)} <= _WHOLE:
        return "kql_quotient"
    if node.op == "%" and left and right:
        return "kql_span_rest"
    fractional = writer.is_real_expr(node.left) or writer.is_real_expr(node.right)
    return "kql_span_times" if node.op == "*" and left is not right and fractional else None


def _contains_aggregate_call(root: ir.Expr) -> bool:
    """Return whether an expression contains a call of an aggregate, such as ``sum(x)``.

    A reference to the column with the result of an aggregate is not a call.
    """
    return any(isinstance(node, ir.RenderedAggregate) and "(" in node.sql for node in iterate_nodes(root))


def _is_timespan(expr: ir.Expr) -> bool:
    return bool(writer.is_timespan_expr(expr))


macros: tuple[str, ...] = (
    (
        f"CREATE OR REPLACE MACRO kql_decimal_quotient(a, b) AS CAST(kql_decimal_divided({EXECUTION}, "
        f"CAST(a AS VARCHAR), CAST(b AS VARCHAR)) AS {_DECIMAL})"
    ),
    "CREATE OR REPLACE MACRO kql_decimal_bin(v, r) AS CASE WHEN r > 0 THEN v - ((v % r) + r) % r END",
    # The average of no numbers is NaN.
    (
        f"CREATE OR REPLACE MACRO kql_avg(a {_DECIMAL}) AS kql_decimal_quotient(sum(a), count(a)), "
        + ", ".join(f"(a {kind}) AS coalesce(avg(a), CAST('NaN' AS DOUBLE))" for kind in _NUMBER_TYPES)
        + ", (a INTERVAL) AS avg(a), (a TIMESTAMP) AS avg(a)"
    ),
    *_COMPARISONS_MACROS,
    *_ARITHMETIC_MACROS,
)


def install_into_translator() -> None:
    """Add decimals, and the type rules of comparison and arithmetic operators, to the KQL translator library."""
    replace_attribute(lower, "_lower_expr", _patch_expressions_for_decimal_literals)
    replace_attribute(translate, "render_expr", _patch_arithmetic_for_decimals)
    replace_attribute(translate, "render_kql_tostring", _patch_tostring_for_decimals)
    _make_translator_check_compared_types()
    _install_arithmetic()
