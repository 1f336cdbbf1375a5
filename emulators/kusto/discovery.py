"""Columns that only the data tell: what a query must know before it can be translated, and where it keeps it.

An operator such as ``evaluate pivot()`` has a column for each value that it meets. The translation of such a query is
first a probe, a query for those values; once its rows are known the text is translated again, with them.
"""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error, unsupported

MOST_PROBES = 8
"""In one query."""
MOST_COLUMNS = 1000
"""That a probe may find."""

type Rows = Sequence[Sequence[Any]]
_FOUND: contextvars.ContextVar[Mapping[int, Rows]] = contextvars.ContextVar("found_columns")


class Discovering(ir.Operator):
    """An operator whose columns the data tell.

    Attributes:
        place: where its text begins, which tells it from the others of its query.
    """

    place: int

    def probe(self) -> ir.Operator:
        """Return the operator that answers, over the same input, the rows to be known."""
        raise NotImplementedError

    @property
    def found(self) -> Rows:
        """The rows that the probe answered.

        Raises:
            QueryError: the operator stands where no probe reaches.
        """
        rows = _FOUND.get({}).get(self.place)
        if rows is None:
            raise unsupported("a schema that depends on data here", "give the operator's columns, as in : (name:type)")
        return rows


def undiscovered(query: ir.Query, found: Sequence[Rows]) -> ir.Query | None:
    """Return the next probe of a query, None when everything is known.

    Args:
        query: a lowered query.
        found: the rows of the probes so far.

    Raises:
        QueryError: there are too many, or one text stands for several operators.
    """
    places = list(_places(query))
    if len(places) > MOST_PROBES:
        raise unsupported(f"more than {MOST_PROBES} operators whose schema depends on data")
    if len({operator.place for operator, _ in places}) < len(places):
        raise unsupported("a function with a schema that depends on data, invoked twice")
    return places[len(found)][1] if len(found) < len(places) else None


@contextlib.contextmanager
def known(query: ir.Query, found: Sequence[Rows]) -> Iterator[None]:
    """Let the operators of a query read what was found, for as long as the context lasts."""
    places = (operator.place for operator, _ in _places(query))
    token = _FOUND.set(dict(zip(places, found, strict=False)))
    try:
        yield
    finally:
        _FOUND.reset(token)


def name_of(value: Any) -> str:
    """Return a value found as the name of a column.

    Raises:
        QueryError: it is too long for one.
    """
    name = "" if value is None else str(value)
    if len(name) > MOST_COLUMNS:
        raise semantic_error("a value of the data is too long to be a column's name")
    return name


def _places(query: ir.Query, lets: Sequence[tuple[str, Any]] = ()) -> Iterator[tuple[Discovering, ir.Query]]:
    """Yield each such operator with its probe, those that an operator's input depends on before it."""
    scope = list(lets)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            yield from _places(bound, scope)
        scope.append((name, bound))
    for index, operator in enumerate(query.operators):
        for nested in _queries(operator):
            yield from _places(nested, scope)
        if isinstance(operator, Discovering):
            operators = [*query.operators[:index], operator.probe()]
            yield operator, ir.Query(query.source, operators, scope, list(query.parameters))


def _queries(root: Any) -> Iterator[ir.Query]:
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Query):
            yield node
        elif isinstance(node, tuple | list):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and id(node) not in seen:
            seen.add(id(node))
            stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))
