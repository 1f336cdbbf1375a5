"""Columns that are known to hold texts: the translator asks each value for its type where a name may mean a dynamic.

It knows names, not types, so every comparison of a text is written twice over. A name that is a text in each table that
has it, and that nothing in the query gives to anything else, needs no such question; the SQL is half as long, which is
most of what a small query costs, and DuckDB can compare the column itself while it reads.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql._state import State
from duckdb_kql.errors import KqlError
from duckdb_kql.translate import naming

from local.kusto.extensions.library import replace
from local.kusto.extensions.make_series import MakeSeries
from local.kusto.extensions.tabular import DistinctRows, SelectColumns, TakeRows

macros: tuple[str, ...] = ()

_TEXTS: State[Collection[str]] = State("local.kusto.texts", frozenset)
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


@contextlib.contextmanager
def known_texts(query: ir.Query, texts: Collection[str]) -> Iterator[None]:
    """Translate one query with what is known about its names.

    Args:
        query: the lowered query.
        texts: the names of columns that are texts in each table that has them.
    """
    given = _given_names(query)
    # A join calls the second of two columns of a name by that name and a number.
    numbered = {name for name in texts if name[-1:].isdigit()}
    with _TEXTS.bound(frozenset() if given is None else frozenset(texts) - given - numbered):
        yield


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
        return default(node) and not _is_text(node)

    return may_be_dynamic


def _tostring(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    def tostring(node: ir.Expr) -> str:
        return f"coalesce({translate.render_expr(node)}, '')" if _is_text(node) else default(node)

    return tostring


def _is_text(node: ir.Expr) -> bool:
    return isinstance(node, ir.ColumnRef) and node.name in _TEXTS.get()
