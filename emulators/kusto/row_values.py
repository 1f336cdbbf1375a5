"""Converts Arrow columns to the arguments of Python functions, and the outputs of the functions to Arrow arrays.

This module is separate from `series_functions`, because translator processes load neither NumPy nor Arrow.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

_ARROW_TYPES = {
    "series": pa.float64(), "integers": pa.int64(), "texts": pa.string(), "real": pa.float64(), "long": pa.int64(),
    "text": pa.string(),
}  # fmt: skip
_LISTS = ("series", "integers", "texts")
_CONVERTED = 8192
"""Number of texts that are converted at once."""

type Row = Mapping[str, Any] | None
"""Outputs of one row by name; None if all outputs are null."""


def iterate_python_values(column: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the value of each row of a column; a list of numbers becomes a NumPy array."""
    for chunk in column.chunks:
        if not pa.types.is_list(chunk.type):
            yield from chunk.to_pylist()
            continue
        elements = _convert_list_elements(chunk.values)
        offsets = chunk.offsets.to_numpy()
        valid = chunk.is_valid().to_numpy(zero_copy_only=False)
        for index in range(len(chunk)):
            yield elements[offsets[index] : offsets[index + 1]] if valid[index] else None


def _convert_list_elements(values: pa.Array) -> Any:
    """Convert the elements of an Arrow list column: strings to a Python list, numbers to a NumPy array."""
    if not pa.types.is_string(values.type):
        return values.to_numpy(zero_copy_only=False)
    parts = range(0, len(values), _CONVERTED)  # each conversion holds the interpreter
    return [element for start in parts for element in values.slice(start, _CONVERTED).to_pylist()]


def to_struct_array(kinds_by_output: Mapping[str, str], rows: Sequence[Row]) -> pa.Array:
    """Convert the outputs of a function to an Arrow array with one struct for each row.

    Args:
        kinds_by_output: kind of each output (such as ``real`` or ``texts``), by name; see ``SeriesFunction.outputs``.
        rows: outputs by name, for each row; None for a row without outputs, whose struct becomes null.
    """
    missing = pa.array([row is None for row in rows], pa.bool_())
    arrays = [
        _to_arrow_array(kind, [None if row is None else row[name] for row in rows])
        for name, kind in kinds_by_output.items()
    ]
    fields = [pa.field(name, array.type) for name, array in zip(kinds_by_output, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)


def _to_arrow_array(kind: str, values: Sequence[Any]) -> pa.Array:
    if kind not in _LISTS:
        return pa.array(values, _ARROW_TYPES[kind])
    lengths = (0 if value is None else len(value) for value in values)
    offsets = pa.array(itertools.accumulate(lengths, initial=0), pa.int32())
    present = [pa.array(value, _ARROW_TYPES[kind], from_pandas=True) for value in values if value is not None]
    elements = pa.concat_arrays(present) if present else pa.array([], _ARROW_TYPES[kind])
    missing = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(offsets, elements, mask=missing)
