"""What is known of the types of expressions before DuckDB sees them.

The translator knows names, not types, so it asks each value for its type where a name may mean a dynamic. A column that
is of one type in each table that has it, and whose name nothing in the query gives to anything else, needs no such
question; the SQL is half as long, which is most of what a small query costs.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql._state import State
from duckdb_kql.errors import KqlError
from duckdb_kql.translate import naming

from emulators.kusto.extensions.library import replace
from emulators.kusto.extensions.make_series import MakeSeries
from emulators.kusto.extensions.tabular import DistinctRows, SelectColumns, TakeRows
from emulators.kusto.tables import FINITE_OR_INFINITE

macros: tuple[str, ...] = ()

_NONE: Mapping[str, str] = {}
_TYPES: State[Mapping[str, str]] = State("emulators.kusto.types", lambda: _NONE)
_KINDS = {
    "VARCHAR": "string", "JSON": "dynamic", "BOOLEAN": "bool", "UUID": "guid", "TIMESTAMP": "datetime",
    "INTERVAL": "timespan", "DOUBLE": "real", "FLOAT": "real", "BIGINT": "long", "INTEGER": "int", "HUGEINT": "long",
    "SMALLINT": "int", "TINYINT": "int", FINITE_OR_INFINITE: "real",
}  # fmt: skip
_RESULTS = {
    "string": ("tostring", "strcat", "strcat_delim", "strcat_array", "tolower", "toupper", "substring",
               "replace_string", "replace_regex", "trim", "trim_start", "trim_end", "format_datetime",
               "format_timespan", "strrep", "reverse", "gettype"),
    "long": ("tolong", "strlen", "array_length", "countof", "datetime_diff", "row_number", "hash"),
    "int": ("toint",),
    "real": ("toreal", "todouble", "sqrt", "log", "log10", "exp"),
    "datetime": ("now", "ago", "todatetime", "startofday", "startofhour", "datetime_add", "make_datetime"),
    "timespan": ("totimespan", "make_timespan"),
    "dynamic": ("parse_json", "todynamic", "pack_array", "bag_pack", "pack", "pack_dictionary", "bag_merge",
                "bag_keys", "split", "array_concat", "array_slice", "extract_all"),
}  # fmt: skip
_RESULT_OF = {name: kind for kind, names in _RESULTS.items() for name in names}
_ALIASES = {"double": "real", "boolean": "bool", "date": "datetime", "time": "timespan"}
_READING = (ir.ColumnRef, ir.Literal, ir.Parameter, ir.FunctionCall, ir.BinaryOp, ir.UnaryOp, ir.JoinKey, ir.LetRef,
            ir.PathStep, ir.TableRef, ir.InList, ir.HasList)  # fmt: skip
"""Nodes whose texts name no column that comes into being."""
_KNOWN_OPERATORS = (ir.Where, ir.Project, ir.Extend, ir.Take, ir.Sort, ir.Top, ir.Count, ir.Distinct, ir.Join,
                    ir.Lookup, ir.Union, ir.MvExpand, ir.Parse, ir.ProjectAway, ir.ProjectRename, ir.Summarize,
                    MakeSeries, SelectColumns, TakeRows, DistinctRows)  # fmt: skip
_KNOWN_SOURCES = (ir.TableRef, ir.DataTable, ir.PrintSource, ir.RangeSource)


def install() -> None:
    """Make the translator look names up among the known texts."""
    replace(translate, "_may_be_dynamic", _may_be_dynamic)
    replace(translate, "render_kql_tostring", _tostring)
    # Arithmetic of int is of long.
    replace(translate, "_is_int_expr", lambda default: lambda node: default(node) or kind_of(node) == "int")


@contextlib.contextmanager
def known_types(query: ir.Query, types: Mapping[str, str]) -> Iterator[None]:
    """Translate one query with what is known about its names.

    Args:
        query: the lowered query.
        types: DuckDB's type of each column that is of one type in every table that has it.
    """
    given = _given_names(query)
    # A join calls the second of two columns of a name by that name and a number.
    kept = {} if given is None else {n: t for n, t in types.items() if n not in given and not n[-1:].isdigit()}
    with _TYPES.bound(kept):
        yield


def kind_of(expr: ir.Expr) -> str | None:
    """Return Kusto's name of an expression's type, None where it is not known yet."""
    match expr:
        case ir.Literal() | ir.Parameter():
            return _ALIASES.get(expr.kind, expr.kind)
        case ir.ColumnRef():
            return _KINDS.get(_TYPES.get().get(expr.name, ""))
        case ir.PathAccess():
            return "dynamic"
        case ir.FunctionCall():
            return _RESULT_OF.get(expr.name.lower())
        case ir.UnaryOp(op="-"):
            return kind_of(expr.operand)
    return None


def may_be_nan(expr: ir.Expr) -> bool:
    """Return whether a real may be a NaN; only columns are known that hold none."""
    return not isinstance(expr, ir.ColumnRef) or _TYPES.get().get(expr.name) != FINITE_OR_INFINITE


def _given_names(query: ir.Query) -> set[str] | None:
    """Return every name that the query may give to a value, None where it cannot be told."""
    names: set[str] = set()
    stack: list[Any] = [query]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif isinstance(node, str):
            names.add(node)
        elif dataclasses.is_dataclass(node) and id(node) not in seen:
            seen.add(id(node))
            if _is_unknown(node):
                return None
            stack.extend(_members(node))
            if isinstance(node, ir.NamedExpr) and node.name is None and not isinstance(node.expr, ir.ColumnRef):
                names.add(_name_of(node.expr))
    return names


def _is_unknown(node: object) -> bool:
    if isinstance(node, ir.Operator):
        return not isinstance(node, _KNOWN_OPERATORS)
    return isinstance(node, ir.Source) and not isinstance(node, _KNOWN_SOURCES)


def _members(node: Any) -> Iterator[Any]:
    values = (getattr(node, field.name) for field in dataclasses.fields(node))
    if isinstance(node, _READING):
        return (value for value in values if not isinstance(value, str))
    return values


def _name_of(expr: ir.Expr) -> str:
    try:
        return naming.expression_name(expr) or ""
    except KqlError:
        return ""  # it has no name of its own to collide with; whoever needs one will say so


def _may_be_dynamic(default: Callable[[ir.Expr], bool]) -> Callable[[ir.Expr], bool]:
    def may_be_dynamic(node: ir.Expr) -> bool:
        return default(node) and not (isinstance(node, ir.ColumnRef) and _TYPES.get().get(node.name, "JSON") != "JSON")

    return may_be_dynamic


def _tostring(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    def tostring(node: ir.Expr) -> str:
        return f"coalesce({translate.render_expr(node)}, '')" if _is_text(node) else default(node)

    return tostring


def _is_text(node: ir.Expr) -> bool:
    return isinstance(node, ir.ColumnRef) and _TYPES.get().get(node.name) == "VARCHAR"
