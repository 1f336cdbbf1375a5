"""KQL functions about the environment of a query, such as the cluster, the caller, the table and the request.

The emulator has one database, and knows neither callers nor ingestion times. Most of these functions therefore return
constants, as Data Explorer does if this information is missing. ``bin_auto`` reads the size and the start of its bins
from ``set`` statements. The module also has some functions that need only SQL, such as ``assert()``.
"""

import contextvars
from collections.abc import Callable, Mapping

from duckdb_kql import ir, lower, options

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.registry import (
    ANY_NUMBER,
    add_custom_function,
    add_function_that_reuses_arguments,
    add_template_function,
)
from emulators.kusto.extensions.sql import Sql, render_expression, render_with_arguments_evaluated_once
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_line_and_column, list_nodes_by_rule
from emulators.kusto.extensions.type_checks import render_error

SUPPORTED: tuple[str, ...] = (
    "around",
    "assert",
    "current_cluster_endpoint",
    "current_database",
    "current_principal (the empty string)",
    "current_principal_details (an empty bag)",
    "current_principal_is_member_of (false)",
    "cursor_current (the empty string)",
    "estimate_data_size",
    "extent_id (an empty guid)",
    "extent_tags (an empty array)",
    "indexof_regex",
    "ingestion_time (null)",
    "isutf8",
    "array_strcat",
    "bin_auto",
)
DATABASE_MACRO = "kql_current_database"
"""Macro that returns the name of the database; it is created together with the macros of all extensions."""
_NO_GUID = "CAST('00000000-0000-0000-0000-000000000000' AS UUID)"
_INDEX_OF_REGEX = range(2, 6)

macros: tuple[str, ...] = (
    # The size of a value in bytes, by its type.
    (
        "CREATE OR REPLACE MACRO kql_data_size(v) AS CASE WHEN v IS NULL THEN 0 WHEN typeof(v) IN ('VARCHAR', 'JSON') "
        "THEN strlen(CAST(v AS VARCHAR)) WHEN typeof(v) = 'BOOLEAN' THEN 1 WHEN typeof(v) = 'INTEGER' THEN 4 "
        "WHEN typeof(v) IN ('UUID') OR typeof(v) LIKE 'DECIMAL%' THEN 16 ELSE 8 END"
    ),
    # The index of a match is the length of all before it: the pieces between the matches, and the earlier matches.
    (
        "CREATE OR REPLACE MACRO kql_match_index(t, r, n) AS list_transform("
        "[struct_pack(p := string_split_regex(t, r), m := regexp_extract_all(t, r))], "
        "lambda _x: CASE WHEN n < 1 OR len(_x.m) < n THEN -1 ELSE "
        "list_sum(list_transform(_x.p[1:n], lambda _e: length(_e))) + "
        "coalesce(list_sum(list_transform(_x.m[1:n - 1], lambda _e: length(_e))), 0) END)[1]"
    ),
)


def _render_principal_membership(call: ir.FunctionCall) -> Sql:
    """Return SQL that is always false: the emulator does not know the caller, so that no membership can be true."""
    # DuckDB resolves the names in the arguments, although the result does not depend on them.
    unused = " AND ".join(f"({render_expression(arg)}) IS NULL" for arg in call.args)
    return f"(false AND {unused})"


def _render_assert(call: ir.FunctionCall) -> Sql:
    message = call.args[1]
    if isinstance(message, ir.LetRef):
        message = message.value
    if not isinstance(message, ir.Literal) or not isinstance(message.value, str):
        raise semantic_error("assert(): the message must be a constant string", inner="SEM0219")
    if infer_type(call.args[0]) not in (None, "bool"):
        raise semantic_error("assert(): the condition must be of type bool", inner="SEM0219")
    failure = render_error("SEM0001", f"assert() has failed with message: '{message.value[:200]}'")
    return f"CASE WHEN {render_expression(call.args[0])} THEN true ELSE {failure} END"


def _render_estimate_data_size(call: ir.FunctionCall) -> Sql:
    if not all(isinstance(arg, ir.ColumnRef) for arg in call.args):
        raise semantic_error("estimate_data_size(): each argument must be a column", inner="SEM0219")
    sizes = [
        render_with_arguments_evaluated_once([render_expression(arg)], lambda value: f"kql_data_size({value})")
        for arg in call.args
    ]
    return f"CAST({' + '.join(sizes)} AS BIGINT)"


def _render_indexof_regex(call: ir.FunctionCall) -> Sql:
    text, pattern, *rest = map(render_expression, call.args)
    start, length, occurrence = [*rest, *("0", "-1", "1")[len(rest) :]]
    bounds = [f"CAST({each} AS BIGINT)" for each in (start, length, occurrence)]
    return render_with_arguments_evaluated_once([text, pattern, *bounds], _render_match_index_or_null)


def _render_match_index_or_null(text: Sql, pattern: Sql, start: Sql, length: Sql, occurrence: Sql) -> Sql:
    found = _render_match_index(text, pattern, start, length, occurrence)
    return f"CASE WHEN {start} < 0 OR {length} < -1 OR {occurrence} < 0 THEN NULL ELSE {found} END"


def _render_match_index(text: Sql, pattern: Sql, start: Sql, length: Sql, occurrence: Sql) -> Sql:
    part = (
        f"CASE WHEN {length} < 0 THEN substr({text}, CAST({start} AS BIGINT) + 1) "
        f"ELSE substr({text}, CAST({start} AS BIGINT) + 1, {length}) END"
    )
    return (
        f"list_transform([kql_match_index({part}, {pattern}, {occurrence})], "
        f"lambda _i: CASE WHEN _i < 0 THEN CAST(-1 AS BIGINT) ELSE CAST(_i + {start} AS BIGINT) END)[1]"
    )


SIZE, START = "query_bin_auto_size", "query_bin_auto_at"
_NONE: Mapping[str, ir.Expr] = {}
_VALUES: contextvars.ContextVar[Mapping[str, ir.Expr]] = contextvars.ContextVar("bin_auto_values", default=_NONE)
"""Values of the request properties `SIZE` and `START` in the query that is being parsed."""


def install_into_translator() -> None:
    """Add this module's functions to the KQL translator library, and the ``set`` statements that ``bin_auto`` reads."""
    constants = {
        "current_cluster_endpoint": "'localhost'",
        "current_database": f"{DATABASE_MACRO}()",
        "current_principal": "''",
        "current_principal_details": "CAST('{{}}' AS JSON)",
        "cursor_current": "''",
        "extent_id": _NO_GUID,
        "extent_tags": "CAST('[]' AS JSON)",
        "ingestion_time": "CAST(NULL AS TIMESTAMP)",
    }
    for name, sql in constants.items():
        add_template_function(name, sql, 0)
    add_custom_function("current_principal_is_member_of", ANY_NUMBER, _render_principal_membership)
    add_function_that_reuses_arguments(
        "around", (3,), lambda value, center, delta: f"({value} BETWEEN {center} - {delta} AND {center} + {delta})"
    )
    add_template_function("isutf8", "({0} IS NOT NULL)", 1)
    add_custom_function("assert", (2,), _render_assert)
    add_custom_function("estimate_data_size", ANY_NUMBER, _render_estimate_data_size)
    add_custom_function("indexof_regex", _INDEX_OF_REGEX, _render_indexof_regex)
    _install_bin_auto()


def _install_bin_auto() -> None:
    for name in (SIZE, START):
        options.OPTION_SUPPORT[name] = (options.OptionSupport.NO_OP, "read by bin_auto()")
    replace_attribute(lower, "_apply_set_statements", _patch_set_statements_for_bin_auto)
    replace_attribute(lower, "_lower_function_call", _patch_calls_for_bin_auto)
    add_custom_function(
        "array_strcat", (2,), lambda call: render_expression(ir.FunctionCall("strcat_array", call.args))
    )


def _patch_set_statements_for_bin_auto(library_function: Callable[[ParseNode], None]) -> Callable[[ParseNode], None]:
    """Patch ``set`` statements so that the size and the start of the bins of ``bin_auto`` are stored."""

    def apply_and_store_set_statements(tree: ParseNode) -> None:
        library_function(tree)
        values = {}
        for statement in list_nodes_by_rule(tree, "SetStatement"):
            name, value = reader.read_set_statement(statement)
            if name in (SIZE, START):
                values[name] = _parse_set_statement_value(statement, name, value)
        _VALUES.set(values)

    return apply_and_store_set_statements


def _parse_set_statement_value(statement: ParseNode, option_name: str, value_node: ParseNode | None) -> ir.Expr:
    lowered = None if value_node is None else reader.lower_expr(reader.collapse(value_node))
    if not isinstance(lowered, ir.Literal):
        raise semantic_error(f"set {option_name} requires a literal", position=get_line_and_column(statement))
    return lowered


def _patch_calls_for_bin_auto(library_function: Callable[[ParseNode], ir.Expr]) -> Callable[[ParseNode], ir.Expr]:
    def convert_function_call(node: ParseNode) -> ir.Expr:
        parts = get_child_rules(node)
        if not parts or parts[0].getText() != "bin_auto":
            return library_function(node)
        size, start = (_VALUES.get().get(name) for name in (SIZE, START))
        if len(parts) != 2 or size is None:  # noqa: PLR2004  the name and one argument
            fault = f"requires the statement 'set {SIZE} = ...'" if size is None else "requires 1 argument"
            raise semantic_error(f"bin_auto() {fault}", inner="SEM0219", position=get_line_and_column(node))
        value = reader.lower_expr(parts[1])
        return (
            ir.FunctionCall("bin", (value, size)) if start is None else ir.FunctionCall("bin_at", (value, size, start))
        )

    return convert_function_call
