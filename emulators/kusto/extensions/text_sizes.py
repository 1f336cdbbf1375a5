"""Texts that grow: joining is refused before it makes one that the engine cannot hold.

DuckDB works out the size of a joined text first, and one of 4 GiB or more ends the database instead of the query.
"""

from collections.abc import Callable

from duckdb_kql import ir, translate

from emulators.kusto.engine_errors import RUNAWAY
from emulators.kusto.extensions.known_types import kind_of
from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.raising import raising
from emulators.kusto.extensions.sql import once, render

macros: tuple[str, ...] = ()

MAX_TEXT_BYTES = 16_777_216
"""Far more than the 1 MiB that a stored text commonly has in Data Explorer, far less than what ends the engine."""
_JOINS = {"strcat": "concat", "strcat_delim": "concat_ws"}
_SMALL = frozenset({"bool", "int", "long", "real", "decimal", "datetime", "timespan", "guid"})


def install() -> None:
    """Make the translator check sizes."""
    for name, join in _JOINS.items():
        writer.SPECIAL_FORMS[name] = _sized(name, join, writer.SPECIAL_FORMS[name])


def _sized(name: str, join: str, default: Callable[[ir.FunctionCall], str]) -> Callable[[ir.FunctionCall], str]:
    failure = raising(RUNAWAY, f"{name}() makes a text of more than {MAX_TEXT_BYTES} bytes")

    def write(call: ir.FunctionCall) -> str:
        if all(map(_is_small, call.args)):
            return default(call)
        texts = [str(translate.render_kql_tostring(each)) for each in call.args]
        sizes = {i: _size(each) for i, each in enumerate(call.args) if isinstance(each, ir.ColumnRef)}
        bound = [i for i, each in enumerate(call.args) if i not in sizes and not _is_small(each)]

        def checked(*names: str) -> str:
            parts = texts.copy()
            for i, bound_name in zip(bound, names, strict=True):
                parts[i] = bound_name
            total = " + ".join([*filter(None, sizes.values()), *(f"strlen({each})" for each in names)])
            joined = f"{join}({', '.join(parts)})"
            return f"CASE WHEN {total} > {MAX_TEXT_BYTES} THEN {failure} ELSE {joined} END" if total else joined

        return once([texts[i] for i in bound], checked)

    return write


def _is_small(expr: ir.Expr) -> bool:
    """Return whether a value is one of the query's own text, or of a type whose texts are short."""
    return isinstance(expr, ir.Literal | ir.Parameter) or kind_of(expr) in _SMALL


def _size(column: ir.ColumnRef) -> str:
    """Return the bytes of a column's text, where it may be long; DuckDB knows the type when it binds this."""
    if _is_small(column):
        return ""
    sql = render(column)
    texts = f"typeof({sql}) IN ('VARCHAR', 'JSON')"
    return f"coalesce(CASE WHEN {texts} THEN strlen(CAST({sql} AS VARCHAR)) END, 0)"
