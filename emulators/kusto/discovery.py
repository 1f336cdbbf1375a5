"""Operators whose output columns depend on the data or on types, and the probe queries that find these columns.

An operator such as ``evaluate pivot()`` has one output column for each value in an input column. Therefore the first
translation of such a query returns a probe: a query that lists these values. The engine runs the probe, and then
translates the query text again with the rows of the probe. A ``union`` needs a probe if its inputs have columns with
the same name whose types only DuckDB knows; this probe returns the types and reads no rows.
"""

import collections
import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import error_from_code, semantic_error, unsupported_error

MAX_PROBES = 8
"""Maximum number of probe queries that run before one query."""
MAX_COLUMNS = 1000
"""Maximum number of columns that a probe query may find."""
MAX_NAME_CHARACTERS = 1000
MAX_TYPE_PROBES = 16
"""Maximum number of probe queries for types; the columns of further operators must have the same types."""

type Rows = Sequence[Sequence[Any]]
_PROBE_ROWS: contextvars.ContextVar[Mapping[int, Rows]] = contextvars.ContextVar("probe_rows")


class DataDependentOperator(ir.Operator):
    """Query operator whose output columns depend on the data, such as ``evaluate pivot()``.

    Attributes:
        offset: index of the operator's first character in the query text, which identifies the operator.
    """

    offset: int
    probes_types = False
    """True if the probe finds types only: its rows depend on no data, and the operator also works without them."""

    def needs_probe_query(self, query_before: ir.Query, tables: Mapping[str, Sequence[str]]) -> bool:
        """Return whether a probe query must find the output columns of the operator.

        Args:
            query_before: query whose result is the input of the operator.
            tables: columns of each table.
        """
        del query_before, tables
        return True

    def build_probe_operator(self) -> ir.Operator:
        """Return the last operator of the probe query; it lists future column names, or column types."""
        raise NotImplementedError

    @property
    def probe_rows(self) -> Rows:
        """Rows that the probe query of this operator returned.

        Raises:
            QueryError: no probe query runs for the operator, because of its position in the query.
        """
        rows = find_probe_rows(self)
        if rows is None:
            raise unsupported_error(
                "operators whose columns depend on the data, such as bag_unpack, in this place of the query",
                "add an output schema to the operator, for instance : (name:string)",
            )
        return rows


@dataclasses.dataclass(frozen=True, slots=True)
class NextProbe:
    """Probe query that the engine must run next.

    Attributes:
        query: the probe query.
        reusable: True if a later run may use the rows of this probe query again, because the rows of this and of all
            earlier probe queries depend only on types, not on data.
    """

    query: ir.Query
    reusable: bool


@contextlib.contextmanager
def bind_probe_rows(
    query: ir.Query, probe_rows: Sequence[Rows], tables: Mapping[str, Sequence[str]]
) -> Iterator[NextProbe | None]:
    """Context manager: assign the rows of probe queries to the operators; yield the next probe query.

    Yields None if no further probe query must run.

    Args:
        query: the KQL query in the intermediate representation of the translator library.
        probe_rows: the rows that the previous probe queries returned.
        tables: columns of each table.

    Raises:
        QueryError: the query requires too many probe queries, or calls a function with a data-dependent operator twice.
    """
    places = list(_iterate_data_dependent_operators(query))
    _check_data_dependent_operators([operator for operator, _ in places if not operator.probes_types])
    rows: dict[int, Rows] = {}
    token = _PROBE_ROWS.set(rows)
    try:
        yield _find_next_probe(places, probe_rows, tables, rows)
    finally:
        _PROBE_ROWS.reset(token)


def _check_data_dependent_operators(operators: Sequence[DataDependentOperator]) -> None:
    if len(operators) > MAX_PROBES:
        raise error_from_code(
            "EMB0001",
            f"The query has more than {MAX_PROBES} operators whose columns depend on the data, such as bag_unpack or "
            "pivot; split the query",
        )
    if len({operator.offset for operator in operators}) < len(operators):
        raise error_from_code(
            "EMB0001",
            "The query calls a function twice, and the columns of the function depend on the data; call it once in a "
            "let statement with materialize(), or give its operator an output schema",
        )


def _find_next_probe(
    operators_with_queries: Sequence[tuple[DataDependentOperator, ir.Query]],
    probe_rows: Sequence[Rows],
    tables: Mapping[str, Sequence[str]],
    rows: dict[int, Rows],
) -> NextProbe | None:
    """Assign the probe rows to the operators in order; return the probe query of the first operator without rows.

    The rows are added to ``rows``, by ``offset`` of their operator. Return None if no operator needs a further probe.
    """
    calls = collections.Counter(operator.offset for operator, _ in operators_with_queries)
    used = types = 0
    for operator, before in operators_with_queries:
        if operator.probes_types:
            if calls[operator.offset] > 1 or types == MAX_TYPE_PROBES or not operator.needs_probe_query(before, tables):
                continue
            types += 1
        if used == len(probe_rows):
            probe = dataclasses.replace(before, operators=[*before.operators, operator.build_probe_operator()])
            return NextProbe(probe, reusable=types == used + 1)
        rows[operator.offset] = probe_rows[used]
        used += 1
    return None


def find_probe_rows(operator: DataDependentOperator) -> Rows | None:
    """Return the rows of the probe query that finds an operator's columns; None if that query has not run yet."""
    return _PROBE_ROWS.get({}).get(operator.offset)


def to_column_name(value: Any) -> str:
    """Convert a value from a probe query to the name of an output column.

    Raises:
        QueryError: the value is too long for a column name.
    """
    name = "" if value is None else str(value)
    if len(name) > MAX_NAME_CHARACTERS:
        raise semantic_error(f"a value that becomes a column name must have at most {MAX_NAME_CHARACTERS} characters")
    return name


def _iterate_data_dependent_operators(
    query: ir.Query, lets: Sequence[tuple[str, Any]] = ()
) -> Iterator[tuple[DataDependentOperator, ir.Query]]:
    """Yield each data-dependent operator and the query that produces its input, in the order of the probe queries."""
    scope = list(lets)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            yield from _iterate_data_dependent_operators(bound, scope)
        scope.append((name, bound))
    for index, operator in enumerate(query.operators):
        for nested in _iterate_nested_queries(operator):
            yield from _iterate_data_dependent_operators(nested, scope)
        if isinstance(operator, DataDependentOperator):
            yield operator, ir.Query(query.source, query.operators[:index], scope, list(query.parameters))


def _iterate_nested_queries(root: Any) -> Iterator[ir.Query]:
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
