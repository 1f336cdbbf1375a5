"""Functions that return a table by its name: ``table()`` and ``materialized_view()``."""

from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.tree import get_child_rules, get_rule_name, get_source_position

SUPPORTED: tuple[str, ...] = ("table", "materialized_view")

macros: tuple[str, ...] = ()
_ARGUMENTS = 2
"""Maximum number of arguments: the name, and a scope or an age that have no meaning for a local table."""


def install() -> None:
    """Add the functions as sources of queries to the KQL translator library."""
    replace_attribute(lower, "_lower_source", _patch_lower_source)
    replace_attribute(lower, "_is_tabular_value", _patch_is_tabular)


def _find_call(node: Any) -> Any | None:
    """Return the parse tree node of a call of one of the functions; None for other sources."""
    inner = reader.unparenthesize(reader.collapse(node))
    if get_rule_name(inner) != "NamedFunctionCallExpression":
        return None
    return inner if inner.getText().startswith(tuple(f"{name}(" for name in SUPPORTED)) else None


def _patch_is_tabular(default: Callable[..., bool]) -> Callable[..., bool]:
    return lambda node, scalars: _find_call(node) is not None or default(node, scalars)


def _patch_lower_source(default: Callable[[Any], ir.Source]) -> Callable[[Any], ir.Source]:
    def lower_source(node: Any) -> ir.Source:
        call = _find_call(node)
        return default(node) if call is None else ir.TableRef(_read_table_name(call))

    return lower_source


def _read_table_name(call: Any) -> str:
    function, *arguments = get_child_rules(call)
    name, position = function.getText(), get_source_position(call)
    if not 1 <= len(arguments) <= _ARGUMENTS:
        raise semantic_error(f"{name}(): function expects 1 or 2 arguments", inner="SEM0219", position=position)
    value = reader.lower_named(arguments[0]).expr
    scope = reader.FN_STATE.get()
    if isinstance(value, ir.ColumnRef) and scope is not None:
        value = scope.scalars.get(value.name, value)
    if isinstance(value, ir.LetRef):
        value = value.value
    if not isinstance(value, ir.Literal) or not isinstance(value.value, str):
        raise semantic_error(f"{name}(): the name must be a constant string", inner="SEM0219", position=position)
    return value.value
