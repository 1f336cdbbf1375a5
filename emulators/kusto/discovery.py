"""Query operators whose columns depend on the data, and the probe queries that find these columns.

An operator such as ``evaluate pivot()`` has one column for each value of its input. The first translation of such a
query therefore returns a probe: a query for those values. The engine runs the probe, and the query text is translated
again with the rows of the probe.
"""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import query_fault_error, semantic_error, unsupported_error

MAX_PROBES = 8
"""Maximum number of probes of one query."""
MAX_COLUMNS = 1000
"""Maximum number of columns that a probe may find."""
MAX_NAME_CHARACTERS = 1000

type Rows = Sequence[Sequence[Any]]
_PROBE_ROWS: contextvars.ContextVar[Mapping[int, Rows]] = contextvars.ContextVar("probe_rows")


class DataDependentOperator(ir.Operator):
    """Query operator whose output columns depend on the data.

    Attributes:
        offset: position in the query text at which the operator starts; it identifies the operator.
    """

    offset: int

    def build_probe(self) -> ir.Operator:
        """Return the query operator that lists the values which become columns, over the same input."""
        raise NotImplementedError

    @property
    def probe_rows(self) -> Rows:
        """Rows that the probe query of this operator returned.

        Raises:
            QueryError: the operator is in a place for which no probe runs.
        """
        rows = _PROBE_ROWS.get({}).get(self.offset)
        if rows is None:
            raise unsupported_error(
                "output columns that depend on the data, in this place",
                "add an output schema to the operator, as in : (name:type)",
            )
        return rows


def find_next_probe(query: ir.Query, found: Sequence[Rows]) -> ir.Query | None:
    """Return the next probe query that a query requires, None if all its probes have run.

    Args:
        query: the query in the intermediate representation of the translator library.
        found: the rows that the previous probe queries returned.

    Raises:
        QueryError: the query requires too many probes, or calls a function that contains such an operator twice.
    """
    places = list(_find_operators(query))
    if len(places) > MAX_PROBES:
        raise query_fault_error(
            "EMB0001",
            f"The query has more than {MAX_PROBES} operators whose columns depend on the data, such as bag_unpack or "
            "pivot; split the query",
        )
    if len({operator.offset for operator, _ in places}) < len(places):
        raise query_fault_error(
            "EMB0001",
            "The query calls a function twice whose columns depend on the data; call it once in a let statement with "
            "materialize(), or give its operator an output schema",
        )
    return places[len(found)][1] if len(found) < len(places) else None


@contextlib.contextmanager
def bind_probe_rows(query: ir.Query, found: Sequence[Rows]) -> Iterator[None]:
    """Context manager: make the rows of the probe queries available to the operators that need them."""
    places = (operator.offset for operator, _ in _find_operators(query))
    token = _PROBE_ROWS.set(dict(zip(places, found, strict=False)))
    try:
        yield
    finally:
        _PROBE_ROWS.reset(token)


def to_column_name(value: Any) -> str:
    """Convert a value that a probe query returned to a column name.

    Raises:
        QueryError: the value is too long for a column name.
    """
    name = "" if value is None else str(value)
    if len(name) > MAX_NAME_CHARACTERS:
        raise semantic_error(f"a value is too long for a column name; the limit is {MAX_NAME_CHARACTERS} characters")
    return name


def _find_operators(
    query: ir.Query, lets: Sequence[tuple[str, Any]] = ()
) -> Iterator[tuple[DataDependentOperator, ir.Query]]:
    """Yield each data-dependent operator with its probe query, in the order in which these queries must run."""
    scope = list(lets)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            yield from _find_operators(bound, scope)
        scope.append((name, bound))
    for index, operator in enumerate(query.operators):
        for nested in _find_queries(operator):
            yield from _find_operators(nested, scope)
        if isinstance(operator, DataDependentOperator):
            operators = [*query.operators[:index], operator.build_probe()]
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
