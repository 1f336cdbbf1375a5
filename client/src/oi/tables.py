"""Conversion of query results to Arrow tables; requires the optional dependency ``oi-client[arrow]``."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from oi.results import Column

_TYPES: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "datetime": pa.timestamp("us", tz="UTC"),
    "int": pa.int32(),
    "long": pa.int64(),
    "real": pa.float64(),
}


def build_arrow_table(columns: Sequence["Column"], rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Build an Arrow table from the columns and rows of a KQL query's result.

    Args:
        columns: columns with their Kusto types; values of type ``dynamic`` become JSON text, and values of other
            types without an Arrow equivalent become text.
        rows: rows as dictionaries of values by column name.
    """
    arrays = [
        pa.array([_convert_cell_for_arrow(row.get(each.name), each.type) for row in rows], _get_arrow_type(each))
        for each in columns
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema([(each.name, _get_arrow_type(each)) for each in columns]))


def _get_arrow_type(column: "Column") -> pa.DataType:
    return _TYPES.get(column.type, pa.string())


def _convert_cell_for_arrow(value: Any, kusto_type: str) -> Any:
    if value is None:
        return None
    if kusto_type == "datetime":
        return datetime.fromisoformat(value)
    if kusto_type == "real":
        # JSON has no numbers for these values, so the service sends them as text.
        return float(value)
    # A text in a dynamic column becomes JSON, too, so that it differs from a number, as in Arrow files of the service.
    if kusto_type in _TYPES or (isinstance(value, str) and kusto_type != "dynamic"):
        return value
    return json.dumps(value, ensure_ascii=False)
