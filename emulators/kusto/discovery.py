"""Operators whose columns depend on the data, and the probes that find these columns before translation.

An operator such as ``evaluate pivot()`` has one column for each value of its input. The first translation of such a
query is a probe, a query for those values. The text is then translated again with the rows of the probe.
"""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error, unsupported_error

MAX_PROBES = 8
"""Maximum number of probes of one query."""
MAX_COLUMNS = 1000
"""Maximum number of columns that a probe may find."""
MAX_NAME_CHARACTERS = 1000

type Rows = Sequence[Sequence[Any]]
_PROBE_ROWS: contextvars.ContextVar[Mapping[int, Rows]] = contextvars.ContextVar("probe_rows")


class DataDependentOperator(ir.Operator):
    """Operator whose columns depend on the data.

    Attributes:
        offset: start of its text, which identifies it within its query.
    """

    offset: int

    def probe(self) -> ir.Operator:
        """Return the operator that finds the columns, over the same input."""
        raise NotImplementedError

    @property
    def probe_rows(self) -> Rows:
        """Rows of the probe.

        Raises:
            QueryError: probes are not supported at the place of this operator.
        """
        rows = _PROBE_ROWS.get({}).get(self.offset)
        if rows is None:
            raise unsupported_error(
                "a schema that depends on data here", "give the operator's columns, as in : (name:type)"
            )
        return rows


def find_next_probe(query: ir.Query, found: Sequence[Rows]) -> ir.Query | None:
    """Return the next probe of a query, None if all probes have run.

    Args:
        query: a lowered query.
        found: the rows of the previous probes.

    Raises:
        QueryError: the query needs too many probes, or invokes a function that needs one twice.
    """
    places = list(_find_operators(query))
    if len(places) > MAX_PROBES:
        raise unsupported_error(f"more than {MAX_PROBES} operators whose schema depends on data")
    if len({operator.offset for operator, _ in places}) < len(places):
        raise unsupported_error("a function with a schema that depends on data, invoked twice")
    return places[len(found)][1] if len(found) < len(places) else None


@contextlib.contextmanager
def bind_probe_rows(query: ir.Query, found: Sequence[Rows]) -> Iterator[None]:
    """Provide the rows of the probes to the operators of a query within a context."""
    places = (operator.offset for operator, _ in _find_operators(query))
    token = _PROBE_ROWS.set(dict(zip(places, found, strict=False)))
    try:
        yield
    finally:
        _PROBE_ROWS.reset(token)


def to_column_name(value: Any) -> str:
    """Return a value of the data as the name of a column.

    Raises:
        QueryError: the value is too long.
    """
    name = "" if value is None else str(value)
    if len(name) > MAX_NAME_CHARACTERS:
        raise semantic_error(f"a value is too long for a column name; the limit is {MAX_NAME_CHARACTERS} characters")
    return name


def _find_operators(
    query: ir.Query, lets: Sequence[tuple[str, Any]] = ()
) -> Iterator[tuple[DataDependentOperator, ir.Query]]:
    """Yield each data-dependent operator with its probe, in the order in which the probes must run."""
    scope = list(lets)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            yield from _find_operators(bound, scope)
        scope.append((name, bound))
    for index, operator in enumerate(query.operators):
        for nested in _find_queries(operator):
            yield from _find_operators(nested, scope)
        if isinstance(operator, DataDependentOperator):
            operators = [*query.operators[:index], operator.probe()]
            yield operator, ir.Query(query.source, operators, scope, list(query.parameters))


def _find_queries(root: Any) -> Iterator[ir.Query]:
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
