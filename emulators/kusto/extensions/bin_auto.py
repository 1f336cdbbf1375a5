"""KQL function ``bin_auto``: rounds values to bins; a ``set`` statement defines the size and the start of the bins."""

import contextvars
from collections.abc import Callable, Mapping
from typing import Any

from duckdb_kql import ir, lower, options

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.sql import render_expression
from emulators.kusto.extensions.tree import find_rules, get_child_rules, get_source_position

SUPPORTED: tuple[str, ...] = ("array_strcat", "bin_auto")

macros: tuple[str, ...] = ()
SIZE, START = "query_bin_auto_size", "query_bin_auto_at"
_NONE: Mapping[str, ir.Expr] = {}
_VALUES: contextvars.ContextVar[Mapping[str, ir.Expr]] = contextvars.ContextVar("bin_auto_values", default=_NONE)
"""Values of the two request properties in the query that is being parsed."""


def install() -> None:
    """Add the function to the KQL translator library, and let it accept the two request properties."""
    for name in (SIZE, START):
        options.OPTION_SUPPORT[name] = (options.OptionSupport.NO_OP, "read by bin_auto()")
    replace_attribute(lower, "_apply_set_statements", _patch_set_statements)
    replace_attribute(lower, "_lower_function_call", _patch_function_call)
    add_custom_function(
        "array_strcat", (2,), lambda call: render_expression(ir.FunctionCall("strcat_array", call.args))
    )


def _patch_set_statements(default: Callable[[Any], None]) -> Callable[[Any], None]:
    def apply_set_statements(tree: Any) -> None:
        default(tree)
        values = {}
        for statement in find_rules(tree, "SetStatement"):
            name, value = reader.read_set_statement(statement)
            if name in (SIZE, START):
                values[name] = _read_value(statement, name, value)
        _VALUES.set(values)

    return apply_set_statements


def _read_value(statement: Any, name: str, value: Any) -> ir.Expr:
    lowered = None if value is None else reader.lower_expr(reader.collapse(value))
    if not isinstance(lowered, ir.Literal):
        raise semantic_error(f"set {name} requires a literal", position=get_source_position(statement))
    return lowered


def _patch_function_call(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_function_call(node: Any) -> ir.Expr:
        parts = get_child_rules(node)
        if not parts or parts[0].getText() != "bin_auto":
            return default(node)
        size, start = (_VALUES.get().get(name) for name in (SIZE, START))
        if len(parts) != 2 or size is None:  # noqa: PLR2004  the name and one argument
            fault = f"requires the statement 'set {SIZE} = ...'" if size is None else "requires 1 argument"
            raise semantic_error(f"bin_auto() {fault}", inner="SEM0219", position=get_source_position(node))
        value = reader.lower_expr(parts[1])
        return (
            ir.FunctionCall("bin", (value, size)) if start is None else ir.FunctionCall("bin_at", (value, size, start))
        )

    return lower_function_call
