"""Rows off the engine's wire as the JSON values that callers get."""

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
"""Levels of a dynamic value; JSON libraries, those of callers included, read few more."""
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


@dataclass(frozen=True, slots=True)
class QueryResult:
    """An answer with everything that is told of it.

    Attributes:
        query: the query's name, or ``ad-hoc``.
        executed_at: when the engine worked it out.
        rows: at most ``limit`` objects by column name.
        truncated: whether the query gave more rows than that.
        execution_ms: the engine's own time, milliseconds.
        approval: who released the query, None for an ad-hoc one.
        from_cache: whether it was worked out for an earlier call; None for a query that allows no such thing.
    """

    query: str
    executed_at: datetime
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    truncated: bool
    execution_ms: float
    approval: Approval | None
    from_cache: bool | None = None


def row_objects(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return each row as an object by column name, its cells as JSON values of their type.

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


def _datetime(cell: Any) -> Any:
    # Kusto writes up to seven fractional digits and leaves trailing zeros out; the service writes six.
    text = str(cell).removesuffix("Z")
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:6]:0<6}Z"


def _real(cell: Any) -> Any:
    return None if cell in _NOT_FINITE else cell


def _dynamic(cell: Any) -> Any:
    if isinstance(cell, dict | list):
        return _shallow(cell)
    if not isinstance(cell, str):
        return cell
    try:
        return _shallow(json.loads(cell)) if cell.count("[") + cell.count("{") > MAX_DEPTH else json.loads(cell)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        return cell


def _shallow(value: Any) -> Any:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _inner(each) if isinstance(inner, dict | list)]
        if not level:
            return value
    raise _too_deep()


def _inner(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _too_deep() -> WorkspaceError:
    return invalid("query", f"a dynamic value of the result has more than {MAX_DEPTH} levels", code="QUERY_INVALID")


def _bool(cell: Any) -> Any:
    return bool(cell)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "bool": _bool,
    "datetime": _datetime,
    "dynamic": _dynamic,
    "real": _real,
}
