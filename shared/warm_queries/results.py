"""Query results, and the conversion of the engine's rows to JSON values."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.catalog.models import Approval
from shared.errors import WorkspaceError, invalid
from shared.warm_queries.ports import Column

AD_HOC: Final = "ad-hoc"
MAX_DEPTH: Final = 200
"""Maximum nesting of a dynamic value; common JSON libraries cannot parse much deeper values."""
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Result of one query execution, with its metadata.

    Attributes:
        query: name of the query, or ``ad-hoc``.
        executed_at: time of the computation in the engine.
        rows: at most ``limit`` objects by column name.
        truncated: whether the query has more rows.
        execution_ms: execution time in the engine, in milliseconds.
        approval: approval of the query; None for an ad-hoc query.
        from_cache: whether the result was computed for an earlier call; None if the query does not allow caching.
    """

    query: str
    executed_at: datetime
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    truncated: bool
    execution_ms: float
    approval: Approval | None
    from_cache: bool | None = None


def to_row_objects(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return each row as an object by column name, with cells as JSON values of their type.

    Raises:
        WorkspaceError: INVALID ``QUERY_INVALID`` for a dynamic value of more than 200 levels.
    """
    names = [column.name for column in columns]
    converters = [(index, convert) for index, column in enumerate(columns) if (convert := _CONVERTERS.get(column.type))]
    objects = []
    for row in rows:
        cells = list(row)
        for index, convert in converters:
            if cells[index] is not None:
                cells[index] = convert(cells[index])
        objects.append(dict(zip(names, cells, strict=True)))
    return objects


def _to_datetime(cell: Any) -> Any:
    # Kusto writes up to seven fractional digits without trailing zeros; the service writes six.
    text = str(cell).removesuffix("Z")
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:6]:0<6}Z"


def _to_real(cell: Any) -> Any:
    return None if cell in _NOT_FINITE else cell


def _to_dynamic(cell: Any) -> Any:
    if isinstance(cell, dict | list):
        return _check_depth(cell)
    if not isinstance(cell, str):
        return cell
    try:
        return _check_depth(json.loads(cell)) if cell.count("[") + cell.count("{") > MAX_DEPTH else json.loads(cell)
    except RecursionError:
        raise _depth_error() from None
    except ValueError:
        return cell


def _check_depth(value: Any) -> Any:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _iter_children(each) if isinstance(inner, dict | list)]
        if not level:
            return value
    raise _depth_error()


def _iter_children(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _depth_error() -> WorkspaceError:
    return invalid(
        "query", f"a dynamic value of the result is nested deeper than {MAX_DEPTH} levels", code="QUERY_INVALID"
    )


def _to_bool(cell: Any) -> Any:
    return bool(cell)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "bool": _to_bool,
    "datetime": _to_datetime,
    "dynamic": _to_dynamic,
    "real": _to_real,
}
