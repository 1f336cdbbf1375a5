"""``union``: columns of one name and different types, which SQL would convert to one type in silence."""

from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, schema, translate

from emulators.kusto.extensions.known_types import kind_of
from emulators.kusto.extensions.library import replace, writer
from emulators.kusto.extensions.raising import raising

macros: tuple[str, ...] = ()


def install() -> None:
    """Check the types of the columns that several inputs share."""
    replace(translate, "render_union", lambda _: _union)


def _union(
    op: ir.Union,
    prev: str,
    left_cols: list[str],
    query: ir.Query,
    tables: Any,
    leading: bool,  # noqa: FBT001  the library's interface
) -> str:
    names = frozenset(name for name, _ in query.lets)
    qualify = writer.union_qualifies(query, op, leading)
    arms = [
        (sql, label, left_cols) for sql, label in writer.left_arms(op, prev, query, tables, leading, names, qualify)
    ]
    for index, branch in enumerate(schema.surviving_branches(op, tables), start=1):
        cols = schema.output_columns(branch, tables)
        arms += [(sql, label, cols) for sql, label in writer.branch_arms(branch, index, tables, names, qualify)]
    wildcard = any(isinstance(each, ir.WildcardTableRef) for each in _sources(op, query, leading=leading))
    shared = [] if wildcard else _shared([cols for _, _, cols in arms])
    body = "\nUNION ALL BY NAME ".join(_arm(op, arm, shared) for arm in arms)
    kept = ", ".join(map(translate.quote_ident, schema.union_output_columns(op, left_cols, tables)))
    tests = [f"{_quoted(_type_name(name))} <> typeof({_quoted(name)})" for name in shared]
    where = f" WHERE CASE WHEN {' OR '.join(tests)} THEN {_FAILURE} ELSE true END" if tests else ""
    return f"SELECT {kept} FROM ({body}){where}"  # noqa: S608  quoted names


_FAILURE = raising(
    "EMB0001",
    "'union' of columns of one name and different types is not supported by the embedded query engine (rename one)",
)


def _sources(op: ir.Union, query: ir.Query, *, leading: bool) -> list[ir.Source]:
    return [*([query.source] if leading else []), *(branch.source for branch in op.branches if not branch.operators)]


def _shared(inputs: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns of several inputs whose types are not known to agree."""
    seen: set[str] = set()
    again: set[str] = set()
    for cols in inputs:
        again |= seen & set(cols)
        seen |= set(cols)
    return sorted(name for name in again if kind_of(ir.ColumnRef(name)) is None)


def _arm(op: ir.Union, arm: tuple[str, str, Sequence[str]], shared: Sequence[str]) -> str:
    sql, label, cols = arm
    parts = [f"{translate.quote_string(label)} AS {_quoted(op.with_source)}"] if op.with_source else []
    types = [f"typeof({_quoted(name)}) AS {_quoted(_type_name(name))}" for name in shared if name in cols]
    return f"SELECT {', '.join([*parts, '*', *types])} FROM ({sql})"  # noqa: S608  quoted names


def _type_name(name: str) -> str:
    return f"\N{SYMBOL FOR NULL}{name}"


def _quoted(name: str) -> str:
    return str(translate.quote_ident(name))
