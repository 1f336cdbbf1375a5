"""Checks of types: by the signatures of KQL's functions during translation, and by SQL guards during execution.

Signatures are used to check arguments of calls, conditions, and grouping keys. A call is rejected if the types of its
arguments are known and no signature accepts them; so a query that runs locally also runs on Data Explorer. If a
signature accepts any type, but the SQL requires a string, the argument is converted.

A guard is a CASE expression that rejects a query if DuckDB finds a wrong type for a column. DuckDB evaluates the test
``typeof(x) = ...`` when it binds the SQL, and removes the guard if the test is false. Therefore a guard costs no time
during execution.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from duckdb_kql import ir, lower, translate
from duckdb_kql._state import State
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.errors import QueryError, semantic_error
from emulators.kusto.extensions.known_types import bind_input_types
from emulators.kusto.extensions.language import FunctionKind, read_kql_function_descriptions
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.sql import DuckDbType, KustoType, Sql
from emulators.kusto.extensions.static_types import (
    DYNAMICS as DYNAMIC_KINDS,
)
from emulators.kusto.extensions.static_types import (
    NUMBERS,
    TEMPORAL,
    ArgumentTypes,
    SignatureParameters,
    accepts_argument_types,
    find_signatures,
    infer_static_type,
    iterate_possible_parameter_lists,
    list_conflicting_types,
)
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_rule_name, iterate_nodes
from emulators.kusto.extensions.windows import WindowedOperator
from emulators.kusto.library_errors import MARK

_MAX_CHARACTERS = 240
"""Maximum length of a guarded SQL expression. A guard repeats the expression, so nested guards would double the SQL."""
_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE", "HUGEINT", "UBIGINT", "SMALLINT", "UINTEGER", "FLOAT", "TINYINT", "UHUGEINT")
TEXTS = ("VARCHAR",)
DYNAMICS = ("JSON",)


def render_error(error_code: str, message: str) -> Sql:
    """Return SQL that raises a query error with an inner error code and a message."""
    return f"error({translate.quote_string(f'{MARK}{error_code}:{message}')})"


def add_type_guard(type_test: Sql, failure: Sql, sql: Sql) -> Sql:
    """Return SQL that evaluates ``failure`` (such as an error) if the SQL ``type_test`` is true, else ``sql``.

    An empty ``type_test`` counts as false.
    """
    return f"CASE WHEN {type_test} THEN {failure} ELSE {sql} END" if type_test else sql


def render_type_test(sql: Sql, types: tuple[DuckDbType, ...]) -> Sql:
    """Return SQL that tests whether an expression has one of several types.

    If the expression is too long to be repeated, return an empty text, which means that there is no test.
    """
    if len(sql) > _MAX_CHARACTERS:
        return ""
    listed = ", ".join(f"'{each}'" for each in types)
    return f"typeof({sql}) IN ({listed})" if len(types) > 1 else f"typeof({sql}) = {listed}"


def render_number_test(sql: Sql) -> Sql:
    """Return SQL that tests whether an expression is a number.

    Return an empty text (no test) if the expression is too long.
    """
    test = render_type_test(sql, _NUMBERS)
    return test and f"({test} OR typeof({sql}) LIKE 'DECIMAL%')"


def join_tests_with_or(*tests: Sql) -> Sql:
    """Join the SQL of type tests by OR; empty tests are omitted."""
    return " OR ".join(f"({test})" for test in tests if test)


def join_tests_with_and(*tests: Sql) -> Sql:
    """Join the SQL of type tests by AND; if one test is empty (no test possible), return an empty text.

    Without the empty test, the joined test could be true for values that do not meet all conditions.
    """
    return " AND ".join(tests) if all(tests) else ""


_TEXTS: Mapping[str, Sequence[int]] = {
    "tolower": (0,), "toupper": (0,), "substring": (0,), "isascii": (0,), "isutf8": (0,), "url_decode": (0,),
    "url_encode": (0,), "url_encode_component": (0,), "regex_quote": (0,), "indexof": (0, 1), "indexof_regex": (0, 1),
    "unicode_codepoints_from_string": (0,), "trim": (1,), "trim_start": (1,), "trim_end": (1,), "string_size": (0,),
    "strlen": (0,), "split": (0,), "reverse": (0,), "strcmp": (0, 1), "replace_string": (0,), "countof": (0,),
    "punycode_from_string": (0,), "extract": (2,), "extract_all": (2,), "base64_encode_tostring": (0,),
    "parse_command_line": (0,), "gzip_compress_to_base64_string": (0,), "zlib_compress_to_base64_string": (0,),
}  # fmt: skip
"""Positions of the arguments that the SQL of a function requires as strings, while KQL accepts any type."""
_CONVERTED = NUMBERS | TEMPORAL | {"bool", "guid"}
_INTERNAL = " output"
"""End of the internal name of a function that returns one output of a function with several outputs."""
_PARSED = DYNAMIC_KINDS | {"string"}
_CONDITIONALS = frozenset({"iff", "iif", "case"})
_COMMON = frozenset({"coalesce", "max_of", "min_of"})
"""Functions whose arguments all have one type."""
_WINDOWS = frozenset(
    {"row_number", "row_cumsum", "row_rank_dense", "row_rank_min", "row_window_session", "prev", "next"}
)
_LOGICAL = frozenset({"and", "or"})


def _find_call_error(call: ir.FunctionCall) -> QueryError | None:
    """Return the error for a call if no signature of the function accepts its arguments; else None."""
    name = call.name.removesuffix(_INTERNAL)
    args = call.args if name == call.name else call.args[:-1]
    return _find_signature_error("functions", name, args)


def _find_signature_error(
    function_kind: FunctionKind, function_name: str, args: Sequence[ir.Expr]
) -> QueryError | None:
    signatures = find_signatures(function_kind, function_name)
    if not signatures or not args or any(isinstance(arg, ir.Wildcard) for arg in args):
        return None
    types = [infer_static_type(arg) for arg in args]
    accepted = [each["parameters"] for each in signatures if accepts_argument_types(each["parameters"], types)]
    if accepted:
        return _find_constant_argument_error(function_name, accepted, args) or _find_common_type_error(
            function_name, accepted, types
        )
    named = ", ".join(each or "unknown" for each in types)
    return semantic_error(
        f"{function_name}(): the function does not accept arguments of the types ({named})",
        inner="SEM0219",
        subject=f"{function_name}()",
    )


def _find_constant_argument_error(
    function_name: str, accepted: Sequence[SignatureParameters], args: Sequence[ir.Expr]
) -> QueryError | None:
    """Return an error if an argument reads a column, although all signatures require a constant; else None."""
    reads = [any(isinstance(node, ir.ColumnRef) for node in iterate_nodes(arg)) for arg in args]
    for parameters in (each for one in accepted for each in iterate_possible_parameter_lists(one, len(args))):
        if not any(read and each.get("constant") for read, each in zip(reads, parameters, strict=True)):
            return None
    return semantic_error(
        f"{function_name}(): an argument must be a constant", inner="SEM0219", subject=f"{function_name}()"
    )


def _find_common_type_error(
    function_name: str, accepted: Sequence[SignatureParameters], types: ArgumentTypes
) -> QueryError | None:
    """Return the error for a call whose arguments must have one common type but do not; else None."""
    for parameters in (each for one in accepted for each in iterate_possible_parameter_lists(one, len(types))):
        if different := list_conflicting_types(parameters, types):
            message = f"{function_name}(): the values must be of the same type, not {' and '.join(map(str, different))}"
            inner = "SEM0525" if function_name in _CONDITIONALS | {"coalesce"} else "SEM0219"
            return semantic_error(message, inner=inner, subject=f"{function_name}()")
    return None


def _check_aggregate_arguments(op: ir.Summarize) -> None:
    """Check the arguments of the aggregates in a ``summarize``."""
    for node in iterate_nodes(op.aggregates):
        if isinstance(node, ir.FunctionCall) and _is_aggregate_call(node):
            error = _find_signature_error("aggregates", node.name, node.args)
            if error is not None:
                raise error


def _check_window_functions(op: ir.Operator) -> None:
    """Check the argument types of window function calls, before columns replace these calls in the operator.

    Raises:
        QueryError: no signature of the function accepts the arguments.
    """
    if not isinstance(op, WindowedOperator):
        return
    with bind_input_types(op.operator):
        for node in iterate_nodes(op):
            error = _find_call_error(node) if isinstance(node, ir.FunctionCall) and node.name in _WINDOWS else None
            if error is not None:
                raise error


def _is_aggregate_call(call: ir.FunctionCall) -> bool:
    """Return whether a call in a ``summarize`` is an aggregate.

    Some names, such as ``hll_merge``, belong to an aggregate with one argument and a scalar function with several.
    """
    return len(call.args) == 1 or not read_kql_function_descriptions("functions").get(call.name)


def _convert_arguments_to_text(call: ir.FunctionCall) -> ir.FunctionCall:
    positions = _TEXTS.get(call.name, ())
    if not any(index < len(call.args) and infer_static_type(call.args[index]) in _CONVERTED for index in positions):
        return call
    args = tuple(
        ir.FunctionCall("tostring", (arg,)) if index in positions and infer_static_type(arg) in _CONVERTED else arg
        for index, arg in enumerate(call.args)
    )
    return dataclasses.replace(call, args=args)


def _convert_values_to_common_type(call: ir.FunctionCall) -> ir.FunctionCall:
    """Return a copy of a call such as ``iff(c, a, b)`` in which the values ``a`` and ``b`` have the same type.

    Texts become dynamic if another value is dynamic, and reals become decimals if another value is a decimal. Otherwise
    DuckDB would parse the texts as JSON, and return a real instead of a decimal.
    """
    last = len(call.args) - 1
    values = range(last + 1) if call.name in _COMMON else [index for index in range(last) if index % 2] + [last]
    types = {index: infer_static_type(call.args[index]) for index in values}
    converted: Mapping[int, ir.Expr]
    if call.name in _CONDITIONALS and DYNAMIC_KINDS & set(types.values()):
        converted = {
            index: ir.RenderedAggregate(f"to_json({translate.render_expr(call.args[index])})")
            for index, kind in types.items()
            if kind == "string"
        }
    elif "decimal" in types.values():
        reals = [index for index, kind in types.items() if kind == "real"]
        converted = {index: ir.FunctionCall("todecimal", (call.args[index],)) for index in reals}
    else:
        return call
    return dataclasses.replace(call, args=tuple(converted.get(index, arg) for index, arg in enumerate(call.args)))


_KEYS: State[frozenset[int]] = State("emulators.kusto.keys", frozenset)
"""Python ids of the expressions by which the operator that is being rendered groups rows."""
_NOTHING: Mapping[int, Sequence[str]] = {}
_CONDITIONS: State[Mapping[int, Sequence[str]]] = State("emulators.kusto.conditions", lambda: _NOTHING)
"""SQL types that a condition must not have, by Python id of the column that is the condition."""
_NO_CONDITIONS = ("BIGINT", "INTEGER", "DOUBLE", "HUGEINT", "VARCHAR", "TIMESTAMP", "INTERVAL", "UUID")
"""SQL types that no condition may have."""


def _patch_expressions_to_check_types(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    def render_expr_with_type_checks(node: ir.Expr) -> Sql:
        if isinstance(node, ir.FunctionCall):
            rendered = _render_call_with_type_checks(library_function, node)
        elif isinstance(node, ir.UnaryOp) and node.op == "+":
            rendered = _render_unary_plus(library_function, node.operand)
        elif isinstance(node, ir.BinaryOp) and node.op in _LOGICAL:
            for each in (node.left, node.right):
                _check_condition_type(each, "dynamic")
            with _bind_rejected_condition_types(_NO_CONDITIONS, node.left, node.right):
                rendered = library_function(node)
        else:
            if isinstance(node, ir.PathAccess):
                _check_can_have_elements(node.base)
            rendered = library_function(node)
            if refused := _CONDITIONS.get().get(id(node)):
                failure = render_error("SEM0001", "A condition must have the type bool")
                rendered = add_type_guard(render_type_test(rendered, tuple(refused)), failure, rendered)
        return _add_check_for_dynamic_grouping_key(node, rendered) if id(node) in _KEYS.get() else rendered

    return render_expr_with_type_checks


def _render_unary_plus(library_function: Callable[[ir.Expr], Sql], operand: ir.Expr) -> Sql:
    """Return SQL for an operand after the sign ``+``; reject an operand of type string, bool or guid."""
    kind = infer_static_type(operand)
    if kind in ("string", "bool", "guid"):
        raise semantic_error(f"The operator '+' does not accept an operand of type {kind}", inner="SEM0001")
    return library_function(operand)


def _patch_expressions_to_keep_unary_plus(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    """Patch the parser to keep the sign in ``+x``, so that the type of ``x`` can be checked."""

    def convert_expression(node: ParseNode) -> ir.Expr:
        # The library drops the sign, so that it would accept an operand of any type.
        lowered = library_function(node)
        return ir.UnaryOp("+", lowered) if _is_unary_plus(reader.collapse(node)) else lowered

    return convert_expression


def _is_unary_plus(node: ParseNode) -> bool:
    if get_rule_name(node) == "UnaryPlusExpression":
        return True
    rules = get_child_rules(node)
    return get_rule_name(node) == "InvocationExpression" and len(rules) == 1 and node.getText().startswith("+")


def _patch_calls_to_check_constants(library_function: Callable[[ParseNode], ir.Expr]) -> Callable[[ParseNode], ir.Expr]:
    """Patch the parser to call `_reject_parenthesized_constants` for each function call."""

    def convert_function_call(node: ParseNode) -> ir.Expr:
        lowered = library_function(node)
        if isinstance(lowered, ir.FunctionCall) and lowered.args:
            name, *args = get_child_rules(node)
            if lowered.name == name.getText() and len(lowered.args) == len(args):
                _reject_parenthesized_constants(lowered.name, args)
        return lowered

    return convert_function_call


def _reject_parenthesized_constants(function_name: str, argument_nodes: Sequence[ParseNode]) -> None:
    """Reject an argument with parentheses, such as ``(5)``, where all signatures of the function require a constant.

    Microsoft's language service rejects it, too.

    Args:
        function_name: name of the function.
        argument_nodes: parse tree node of each argument.
    """
    signatures = find_signatures("functions", function_name)
    lists = [
        each for one in signatures for each in iterate_possible_parameter_lists(one["parameters"], len(argument_nodes))
    ]
    for index, arg in enumerate(argument_nodes):
        if lists and all(each[index].get("constant") for each in lists) and _has_parentheses(arg):
            raise semantic_error(
                f"{function_name}(): a constant argument must not contain parentheses",
                inner="SEM0219",
                subject=f"{function_name}()",
            )


def _has_parentheses(node: ParseNode) -> bool:
    """Return whether an expression contains parentheses that do not belong to a function call."""
    return get_rule_name(node) == "ParenthesizedExpression" or any(map(_has_parentheses, get_child_rules(node)))


def _bind_rejected_condition_types(
    types: Sequence[DuckDbType], *exprs: ir.Expr
) -> contextlib.AbstractContextManager[object]:
    """Context manager: make the rendered SQL reject the query if a condition is a column with a type in ``types``.

    ``exprs`` are the conditions. The check concerns columns whose types only DuckDB knows.
    """
    unknown = [each for each in exprs if isinstance(each, ir.ColumnRef) and infer_static_type(each) is None]
    return _CONDITIONS.bound({**_CONDITIONS.get(), **{id(each): types for each in unknown}})


def _render_call_with_type_checks(library_function: Callable[[ir.Expr], Sql], call: ir.FunctionCall) -> Sql:
    error = _find_call_error(call)
    try:
        converted = _convert_values_to_common_type(call) if call.name in _CONDITIONALS | _COMMON else call
        rendered = library_function(_convert_arguments_to_text(converted))
    except KqlUnsupportedError:
        # The emulator does not support this call, whatever its arguments; the signature error would mislead.
        raise
    except Exception:
        if error is not None:
            raise error from None
        raise
    if error is not None:
        raise error
    return rendered


def _check_condition_type(expr: ir.Expr, *other_types: KustoType) -> None:
    """Check that an expression, if its type is known, is a bool or has one of the types ``other_types``."""
    kind = infer_static_type(expr)
    if kind is not None and kind not in ("bool", "null", *other_types):
        raise semantic_error(f"A condition must have the type bool, not {kind}", inner="SEM0001")


def _check_can_have_elements(expr: ir.Expr) -> None:
    """Reject a query that reads an element, as in ``a[0]``, of an expression whose known type is not dynamic.

    Raises:
        QueryError: the type of the expression is known and is not dynamic.
    """
    kind = infer_static_type(expr)
    if kind is not None and kind not in DYNAMIC_KINDS:
        raise semantic_error(f"A value of type {kind} has no elements; a dynamic is expected", inner="SEM0001")


def _add_check_for_dynamic_grouping_key(node: ir.Expr, rendered: Sql) -> Sql:
    """Add a check to the SQL of a grouping key that rejects the query if the key is dynamic."""
    kind = infer_static_type(node)
    if kind in DYNAMIC_KINDS:
        raise semantic_error(_DYNAMIC_KEY, inner="SEM0001")
    test = render_type_test(rendered, ("JSON",)) if kind is None else ""
    return add_type_guard(test, render_error("SEM0001", _DYNAMIC_KEY), rendered)


_DYNAMIC_KEY = "A key of summarize or distinct cannot be dynamic; convert it first, such as with tostring()"


def _patch_operators_to_check_types(library_function: Callable[..., Sql]) -> Callable[..., Sql]:
    def render_operator(op: ir.Operator, input_sql: Sql, input_columns: list[str] | None = None) -> Sql:
        with bind_input_types(op):
            return check_and_render_operator(op, input_sql, input_columns)

    def check_and_render_operator(op: ir.Operator, input_sql: Sql, input_columns: list[str] | None) -> Sql:
        keys: Sequence[ir.NamedExpr] = ()
        _check_window_functions(op)
        if isinstance(op, ir.Parse) and infer_static_type(op.expression) not in _PARSED:
            op = dataclasses.replace(op, expression=ir.FunctionCall("tostring", (op.expression,)))
        if isinstance(op, ir.Where):
            _check_condition_type(op.predicate)
        elif isinstance(op, ir.MvExpand):
            for target in op.targets:
                _check_can_have_elements(ir.ColumnRef(target.column))
        elif isinstance(op, ir.Summarize):
            _check_aggregate_arguments(op)
            keys = op.by
        elif isinstance(op, ir.Distinct):
            keys = op.expressions
        conditions = (
            _bind_rejected_condition_types((*_NO_CONDITIONS, "JSON"), op.predicate)
            if isinstance(op, ir.Where)
            else contextlib.nullcontext()
        )
        with conditions, _KEYS.bound(frozenset(id(each.expr) for each in keys)):
            return library_function(op, input_sql, input_columns)

    return render_operator


macros: tuple[str, ...] = ()


def install_into_translator() -> None:
    """Make the translator library check the arguments of calls, conditions and keys."""
    replace_attribute(lower, "_lower_expr", _patch_expressions_to_keep_unary_plus)
    replace_attribute(lower, "_lower_function_call", _patch_calls_to_check_constants)
    replace_attribute(translate, "render_expr", _patch_expressions_to_check_types)
    replace_attribute(translate, "render_operator", _patch_operators_to_check_types)
