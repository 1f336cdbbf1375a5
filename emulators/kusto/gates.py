"""What a lowered query may touch: the tables it was given, nothing else that DuckDB would find by name."""

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import QueryError, semantic_error, unsupported

_PERMITTED_SOURCES = (
    ir.TableRef,
    ir.WildcardTableRef,
    ir.DataTable,
    ir.PrintSource,
    ir.RangeSource,
    ir.GraphSource,
)


def check_sources(query: ir.Query, tables: Collection[str]) -> None:
    """Pass when every table the query reads is one of ``tables`` or a ``let`` in scope, compared with case.

    DuckDB resolves more names than Kusto: catalog views, Python objects, files. What is not on the list is refused
    here, before any SQL exists.

    Raises:
        QueryError: a name is unknown, or reaches into another database or cluster.
    """
    _Walk(frozenset(tables)).query(query, frozenset())


class _Walk:
    """One walk over a query; shared nodes are visited once per scope, since a chain of lets is a graph, not a tree."""

    def __init__(self, tables: frozenset[str]) -> None:
        self._tables = tables
        self._seen: set[tuple[int, frozenset[str]]] = set()

    def query(self, query: ir.Query, scope: frozenset[str]) -> None:
        if (id(query), scope) in self._seen:
            return
        self._seen.add((id(query), scope))
        for name, bound in query.lets:
            self.node(bound, scope)
            scope |= {name}
        self.source(query.source, scope)
        self.node(query.source, scope)
        self.node(query.operators, scope)

    def source(self, source: ir.Source, scope: frozenset[str]) -> None:
        if not isinstance(source, _PERMITTED_SOURCES):
            raise unsupported(type(source).__name__)
        if isinstance(source, ir.WildcardTableRef) and source.database is not None:
            raise _elsewhere(source.pattern)
        if not isinstance(source, ir.TableRef):
            return
        if source.database is not None or source.cluster is not None:
            raise _elsewhere(source.name)
        if source.name not in self._tables and source.name not in scope:
            raise semantic_error(
                f"Failed to resolve table or column expression named '{source.name}'", subject=source.name
            )

    def node(self, node: Any, scope: frozenset[str]) -> None:
        stack = [node]
        while stack:
            current = stack.pop()
            if isinstance(current, ir.Query):
                self.query(current, scope)
            elif isinstance(current, list | tuple):
                stack.extend(current)
            elif dataclasses.is_dataclass(current) and (id(current), scope) not in self._seen:
                self._seen.add((id(current), scope))
                stack.extend(_members(current))


def _members(node: Any) -> Iterator[Any]:
    return (getattr(node, field.name) for field in dataclasses.fields(node))


def _elsewhere(name: str) -> QueryError:
    return unsupported("database() and cluster() references", f"'{name}' is reached through another database")
