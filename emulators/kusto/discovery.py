"""Operators whose output columns depend on the data or on types, and the discovery queries that find these columns.

An operator such as ``evaluate pivot()`` has one output column for each value in an input column. Therefore the first
translation of such a query returns a discovery query, which lists these values. The engine runs the discovery query,
and then translates the query text again with the rows of the discovery query. A ``union`` needs a discovery query if
its inputs have columns with the same name whose types only DuckDB knows; this discovery query returns the types and
reads no rows.
"""

import collections
import contextlib
import contextvars
import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from duckdb_kql import ir

from emulators.kusto.errors import error_from_code, semantic_error, unsupported_error

MAX_DISCOVERY_QUERIES = 8
"""Maximum number of discovery queries that run before one query."""
MAX_COLUMNS = 1000
"""Maximum number of columns that a discovery query may find."""
MAX_NAME_CHARACTERS = 1000
PLACEHOLDER_COLUMN = "Column1"
"""Column of a result that has no column on Data Explorer, because SQL requires at least one."""
MAX_TYPE_DISCOVERY_QUERIES = 16
"""Maximum number of discovery queries for types; a further ``union`` rejects columns of one name and several types."""

type Rows = Sequence[Sequence[Any]]
_DISCOVERY_ROWS: contextvars.ContextVar[Mapping[int, Rows]] = contextvars.ContextVar("discovery_rows")


class DataDependentOperator(ir.Operator):
    """Query operator whose output columns depend on the data, such as ``evaluate pivot()``.

    Attributes:
        offset: index of the operator's first character in the query text, which identifies the operator.
    """

    offset: int
    discovers_types = False
    """True if the discovery query returns types, not data; the operator also works without the result of that query."""

    def needs_discovery_query(self, input_query: ir.Query, columns_by_table: Mapping[str, Sequence[str]]) -> bool:
        """Return whether a discovery query must find the output columns of the operator.

        Args:
            input_query: query whose result is the input of the operator.
            columns_by_table: columns of each table.
        """
        del input_query, columns_by_table
        return True

    def build_column_discovery_operator(self) -> ir.Operator:
        """Return the operator that ends the discovery query for this operator.

        The discovery query consists of the operators before this operator, followed by the returned operator. Its rows
        are the values that become column names, or the types of columns.
        """
        raise NotImplementedError

    @property
    def discovery_rows(self) -> Rows:
        """Rows that the discovery query of this operator returned.

        Raises:
            QueryError: no discovery query runs for the operator, because of its position in the query.
        """
        rows = find_discovery_rows(self)
        if rows is None:
            raise unsupported_error(
                "operators whose columns depend on the data, such as bag_unpack, in this place of the query",
                "add an output schema to the operator, for instance : (name:string)",
            )
        return rows


class OperatorWithInput(NamedTuple):
    """Data-dependent operator, and the query that produces its input."""

    operator: DataDependentOperator
    input_query: ir.Query


@dataclasses.dataclass(frozen=True, slots=True)
class NextDiscoveryQuery:
    """Discovery query that the engine must run next.

    Attributes:
        query: the discovery query.
        reusable: True if the rows of this discovery query, and of all discovery queries before it, depend only on
            types, not on data; a later run may then use them again.
    """

    query: ir.Query
    reusable: bool


@contextlib.contextmanager
def bind_rows_and_find_next_query(
    query: ir.Query, discovery_rows: Sequence[Rows], columns_by_table: Mapping[str, Sequence[str]]
) -> Iterator[NextDiscoveryQuery | None]:
    """Context manager: give each data-dependent operator the rows of its discovery query, if that query has run.

    Yield the next discovery query, which finds the output columns of the first operator without rows; yield None if no
    further discovery query must run.

    Args:
        query: the KQL query in the intermediate representation of the translator library.
        discovery_rows: rows of each discovery query that has run, in the order of execution.
        columns_by_table: columns of each table.

    Raises:
        QueryError: the query requires too many discovery queries, or calls a function with a data-dependent operator
            twice.
    """
    places = list(_iterate_data_dependent_operators(query))
    _check_data_dependent_operators([operator for operator, _ in places if not operator.discovers_types])
    rows: dict[int, Rows] = {}
    token = _DISCOVERY_ROWS.set(rows)
    try:
        yield _assign_rows_and_find_next_query(places, discovery_rows, columns_by_table, rows)
    finally:
        _DISCOVERY_ROWS.reset(token)


def _check_data_dependent_operators(operators: Sequence[DataDependentOperator]) -> None:
    """Reject a query with too many data-dependent operators, or with one that runs twice in a function."""
    if len(operators) > MAX_DISCOVERY_QUERIES:
        raise error_from_code(
            "EMB0001",
            f"The query has more than {MAX_DISCOVERY_QUERIES} operators whose columns depend on the data, such as "
            "bag_unpack or pivot; split the query",
        )
    if len({operator.offset for operator in operators}) < len(operators):
        raise error_from_code(
            "EMB0001",
            "The query calls a function twice, and the columns of the function depend on the data; call it once in a "
            "let statement with materialize(), or give its operator an output schema",
        )


def _assign_rows_and_find_next_query(
    operators: Sequence[OperatorWithInput],
    discovery_rows: Sequence[Rows],
    columns_by_table: Mapping[str, Sequence[str]],
    rows_by_offset: dict[int, Rows],
) -> NextDiscoveryQuery | None:
    """Assign the rows of the discovery queries that have run to the operators, in order.

    Return the discovery query of the first operator that has no rows yet; None if no operator needs a further query.

    Args:
        operators: data-dependent operators of the query.
        discovery_rows: rows of each discovery query that has run, in the order of execution.
        columns_by_table: columns of each table.
        rows_by_offset: mapping to which the rows are added, by the ``offset`` of their operator.
    """
    calls = collections.Counter(operator.offset for operator, _ in operators)
    used = types = 0
    for operator, before in operators:
        if operator.discovers_types:
            if (
                calls[operator.offset] > 1
                or types == MAX_TYPE_DISCOVERY_QUERIES
                or not operator.needs_discovery_query(before, columns_by_table)
            ):
                continue
            types += 1
        if used == len(discovery_rows):
            discovery_query = dataclasses.replace(
                before, operators=[*before.operators, operator.build_column_discovery_operator()]
            )
            return NextDiscoveryQuery(discovery_query, reusable=types == used + 1)
        rows_by_offset[operator.offset] = discovery_rows[used]
        used += 1
    return None


def check_column_count(discovery_rows: Rows) -> None:
    """Check that a discovery query has found at most ``MAX_COLUMNS`` columns.

    Raises:
        QueryError: the discovery query has found more columns.
    """
    if len(discovery_rows) > MAX_COLUMNS:
        raise error_from_code(
            "EMB0001",
            f"the data has values for more than {MAX_COLUMNS} columns of an operator such as pivot or bag_unpack; add "
            "an output schema to the operator, for instance : (name:string)",
        )


def find_discovery_rows(operator: DataDependentOperator) -> Rows | None:
    """Return the rows of the discovery query that finds an operator's columns; None if that query has not run yet."""
    return _DISCOVERY_ROWS.get({}).get(operator.offset)


def map_texts_to_column_names(texts: Iterable[Any], other_names: Collection[str]) -> dict[str, str]:
    """Return a mapping from each text that a discovery query found to the name of its output column.

    The name is the text itself. The empty text cannot be a name; its column is called ``Column1``, or ``Column2`` if
    another column has that name, and so on.

    Args:
        texts: the texts from the discovery query.
        other_names: names of other output columns.

    Raises:
        QueryError: a text is too long for a column name.
    """
    names = [column_name_from_value(value) for value in texts]
    taken = {name.lower() for name in (*names, *other_names)}
    unnamed = next(name for name in map("Column{}".format, itertools.count(1)) if name.lower() not in taken)
    return {name: name or unnamed for name in names}


def column_name_from_value(value: Any) -> str:
    """Convert a value from a discovery query to the name of an output column.

    Raises:
        QueryError: the value is too long for a column name.
    """
    name = "" if value is None else str(value)
    if len(name) > MAX_NAME_CHARACTERS:
        raise semantic_error(f"a value that becomes a column name must have at most {MAX_NAME_CHARACTERS} characters")
    return name


def _iterate_data_dependent_operators(
    query: ir.Query, let_bindings: Sequence[tuple[str, Any]] = ()
) -> Iterator[OperatorWithInput]:
    """Yield each data-dependent operator of a query, in the order in which the discovery queries run.

    ``let_bindings`` are the names and values of the ``let`` statements before the query.
    """
    scope = list(let_bindings)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            yield from _iterate_data_dependent_operators(bound, scope)
        scope.append((name, bound))
    for index, operator in enumerate(query.operators):
        for nested in _iterate_nested_queries(operator):
            yield from _iterate_data_dependent_operators(nested, scope)
        if isinstance(operator, DataDependentOperator):
            input_query = ir.Query(query.source, query.operators[:index], scope, list(query.parameters))
            yield OperatorWithInput(operator, input_query)


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
