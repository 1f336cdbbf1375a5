"""Rows off the engine's wire as the JSON values that callers get."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from shared.warm_queries.ports import Column

_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def row_objects(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return each row as an object by column name, its cells as JSON values of their type."""
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
    if not isinstance(cell, str):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _bool(cell: Any) -> Any:
    return bool(cell)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "bool": _bool,
    "datetime": _datetime,
    "dynamic": _dynamic,
    "real": _real,
}
