"""Names of columns that a query does not name, such as ``strlen_S`` for ``strlen(S)``.

The rules are those of Microsoft's language service: the name of a function, of its argument, or both. The translator
library knows the names that its authors measured on Microsoft's Kusto emulator; these take precedence.
"""

from collections.abc import Callable, Mapping
from typing import Any

from duckdb_kql import ir
from duckdb_kql.translate import naming
from duckdb_kql.translate.functions import lookup_aggregate

from emulators.kusto.extensions.language import read_symbols
from emulators.kusto.extensions.library import replace_attribute

type NameRule = Callable[[ir.Expr], str | None]

_MEASURED = naming.NAME_PRESERVING | {
    *("strlen", "gettype", "array_sort_asc", "array_sort_desc"),
    *("pow", "exp10", "sign", "cot", "degrees", "radians", "trim", "trim_start", "trim_end", "tolower", "startofweek"),
}
"""Functions whose names the library's authors measured; those of the last line give their column no name."""

_SEVERAL = 2
"""Least number of arguments of a function that has the name of an aggregate, such as ``hll_merge``."""


def _find_naming(call: ir.FunctionCall) -> Mapping[str, Any] | None:
    """Find the rule by which the result column of a function call is named; None if the library names it."""
    functions, aggregates = read_symbols("functions"), read_symbols("aggregates")
    is_aggregate = call.name in aggregates and (call.name not in functions or len(call.args) < _SEVERAL)
    if call.name in _MEASURED or (is_aggregate and lookup_aggregate(call.name) is not None):
        return None
    symbol = (aggregates if is_aggregate else functions).get(call.name)
    return None if symbol is None else symbol.get("naming")


def _patch_expression_name(default: NameRule) -> NameRule:
    def name_expression(expr: ir.Expr) -> str | None:
        rule = _find_naming(expr) if isinstance(expr, ir.FunctionCall) else None
        if rule is None or not isinstance(expr, ir.FunctionCall):
            return default(expr)
        prefix = rule.get("prefix")
        if rule["argument"] == "none":
            return str(prefix)
        if rule["argument"] == "only" and len(expr.args) != 1:
            return None
        # The names of the arguments follow the same rules.
        name = naming.expression_name(expr.args[0]) if expr.args else None
        return f"{prefix}_{name or ''}" if prefix else name

    return name_expression


macros: tuple[str, ...] = ()


def install() -> None:
    """Make the translator library name columns as the language service does."""
    replace_attribute(naming, "expression_name", _patch_expression_name)
