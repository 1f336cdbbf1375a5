"""Results of KQL queries, and the conversion of the engine's rows to JSON values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from shared.catalog.models import Approval
from shared.errors import WorkspaceError, build_invalid_field_error
from shared.text_formats.large_json import parse_json_in_slices
from shared.text_formats.serialisation import to_json_text
from shared.warm_queries.ports import Column

AD_HOC: Final = "ad-hoc"
MAX_DEPTH: Final = 200
"""Maximum nesting of a dynamic value in a result; common JSON libraries cannot parse much deeper values."""
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_TIME_LENGTH: Final = len("2026-01-05T08:00:00.123456Z")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Result of one query execution, with its metadata.

    Attributes:
        query: name of the query, or ``ad-hoc``.
        executed_at: time of the computation in the engine.
        rows: at most ``limit`` objects by column name; empty if the result has values by column.
        truncated: True if the query has more rows than ``limit``.
        execution_ms: execution time in the engine, in milliseconds.
        approval: approval of the query; None for an ad-hoc query.
        from_cache: True if the result was computed for an earlier call; None if the query does not allow caching.
        values: list of cells for each column, for formats that store columns; None if the result has ``rows``.
        visualization: properties of the query's operator ``render``; None without the operator.
        size: number of bytes of the engine's reply; decides whether the rows are processed in a worker thread.
    """

    query: str
    executed_at: datetime
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    truncated: bool
    execution_ms: float
    approval: Approval | None
    from_cache: bool | None = None
    values: tuple[list[Any], ...] | None = None
    visualization: Mapping[str, Any] | None = None
    size: int = 0

    @property
    def row_count(self) -> int:
        """Number of rows of the query result; 0 for a result without columns."""
        if self.values is None:
            return len(self.rows)
        # `bag_unpack` over no rows has no columns in Data Explorer.
        return len(self.values[0]) if self.values else 0

    def convert_to_rows(self) -> "QueryResult":
        """Convert a result whose values are grouped by column to a result with rows."""
        if self.values is None:
            return self
        return replace(self, rows=_column_values_to_row_objects(self.columns, self.values), values=None)


def to_row_objects(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Convert the engine's rows to JSON objects, with a property for each column.

    Raises:
        WorkspaceError: INVALID ``QUERY_INVALID`` for a dynamic value of more than 200 levels.
    """
    return _column_values_to_row_objects(columns, to_column_values(columns, rows))


def _column_values_to_row_objects(
    columns: Sequence[Column], column_values: Iterable[list[Any]]
) -> list[dict[str, Any]]:
    names = [column.name for column in columns]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*column_values, strict=True)]


def to_column_values(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    """Convert the engine's rows to lists of JSON values, one list for each column.

    Raises:
        WorkspaceError: INVALID ``QUERY_INVALID`` for a dynamic value of more than 200 levels.
    """
    cells = zip(*rows, strict=True) if rows else [()] * len(columns)
    return tuple(_CONVERTERS.get(column.type, list[Any])(values) for column, values in zip(columns, cells, strict=True))


def _convert_datetime_cells(cells: Iterable[Any]) -> list[Any]:
    # Kusto writes up to seven fractional digits without trailing zeros; the service writes six.
    return [
        cell if cell is None or len(cell) == _TIME_LENGTH else _pad_fraction_to_microseconds(cell) for cell in cells
    ]


def _pad_fraction_to_microseconds(cell: str) -> str:
    whole, _, fraction = cell.removesuffix("Z").partition(".")
    return f"{whole}.{fraction[:6]:0<6}Z"


def _convert_real_cells(cells: Iterable[Any]) -> list[Any]:
    return [None if cell in _NOT_FINITE else cell for cell in cells]


def _convert_dynamic_cells(cells: Iterable[Any]) -> list[Any]:
    return [_convert_dynamic_cell(cell) for cell in cells]


def _convert_bool_cells(cells: Iterable[Any]) -> list[Any]:
    return [None if cell is None else bool(cell) for cell in cells]


def _convert_dynamic_cell(cell: Any) -> Any:
    """Convert a cell of the type dynamic to a JSON value; a text that is a JSON object or array is parsed."""
    # Known from replies of Data Explorer in the tests of Microsoft's SDK azure-kusto-python (version 2 of the API):
    # numbers and texts are JSON numbers and texts, so "123" is a text and 123 a number. Objects and arrays are JSON
    # (dynamic.json, of 2019) or JSON text (deft.json, of 2018). Assumed: clusters of today may send both forms. A text
    # that is a JSON object or array is therefore read as one; the reply does not tell whether a device sent it as text.
    if isinstance(cell, dict | list):
        return _require_allowed_nesting(cell)
    if not isinstance(cell, str) or not cell.startswith(("{", "[")):
        return cell
    try:
        value = parse_json_in_slices(cell)
        if _ESCAPED_SURROGATE.search(cell):
            # An unpaired surrogate is not a character; encoding it raises a ValueError.
            to_json_text(value).encode()
    except RecursionError:
        raise _build_too_deep_nesting_error() from None
    except ValueError:
        return cell
    return _require_allowed_nesting(value) if cell.count("[") + cell.count("{") > MAX_DEPTH else value


def _require_allowed_nesting(json_value: Any) -> Any:
    """Return a dynamic value unchanged; raise QUERY_INVALID if it has more than ``MAX_DEPTH`` levels."""
    level = [json_value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _iterate_json_children(each) if isinstance(inner, dict | list)]
        if not level:
            return json_value
    raise _build_too_deep_nesting_error()


def _iterate_json_children(json_value: Any) -> Iterable[Any]:
    return json_value.values() if isinstance(json_value, dict) else json_value if isinstance(json_value, list) else ()


def _build_too_deep_nesting_error() -> WorkspaceError:
    return build_invalid_field_error(
        "query", f"a dynamic value of the result is nested deeper than {MAX_DEPTH} levels", code="QUERY_INVALID"
    )


_CONVERTERS: dict[str, Callable[[Iterable[Any]], list[Any]]] = {
    "bool": _convert_bool_cells,
    "datetime": _convert_datetime_cells,
    "dynamic": _convert_dynamic_cells,
    "real": _convert_real_cells,
}
"""Conversion of the cells of a column, by the column's type."""
