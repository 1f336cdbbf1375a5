"""Limits of the memory that rows of a Parquet file need; this memory can be a million times the size of the file.

Separate from ``parquet_reader``, which only reads and converts rows.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shared.imports.parquet_pages import ColumnPages
from shared.imports.row_mapping import FileRejectedError
from shared.telemetry.message_parser import MAX_MESSAGE_BYTES

MAX_GROUP_BYTES: Final = 1024**3
"""Maximum unpacked size of a row group; parts of a row group are unpacked together."""
LIST_VALUE_BYTES: Final = 32
"""Minimum bytes that each value of a list counts: the decoded value, its levels and the measurement of its size."""
_DICTIONARY_TEXT_BYTES: Final = 32
"""Bytes that each text of a dictionary counts: its pointer, length and offset; the decoder allocates them first."""
_DICTIONARY_NUMBER_BYTES: Final = 12
"""Bytes that each number of a dictionary counts: the size of the largest type, ``INT96``."""
_VALUE_BYTES: Final = 16
_BATCH_BYTES: Final = 64 * 1024**2
_DELTA_ENCODINGS: Final = frozenset({"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"})
"""Encodings of text or bytes that the decoder cannot leave as a dictionary."""
_REPEATING_ENCODINGS: Final = frozenset({"DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "PLAIN_DICTIONARY"})
"""Encodings that store a part of a text, or a whole text, once for many values."""

_NO_COLUMN_PAGES: Final = ColumnPages(0, 0, frozenset())
_NO_PAGES: Final[Mapping[int, ColumnPages]] = {}


class _Chunk(NamedTuple):
    """Values of one column in a row group, as the footer of the file and the headers of its pages describe them.

    Attributes:
        name: path of the column.
        is_list: whether a row can have several of the values.
        value_count: number of values.
        stored: size in bytes of the encoded values, before or after compression, whichever is larger.
        width: size in bytes of each value if all have the same size, otherwise 0.
        can_be_dictionary: whether the values are text or bytes that the decoder can leave as a dictionary.
        can_repeat: whether each decoded value can be nearly as large as all encoded values together.
        dictionary_bytes: size in bytes of the decoded values of the dictionary, without their text.
    """

    name: str
    is_list: bool
    value_count: int
    stored: int
    width: int
    can_be_dictionary: bool
    can_repeat: bool
    dictionary_bytes: int


def list_dictionary_column_paths(metadata: pq.FileMetaData) -> list[str]:
    """Return the paths of the columns of text or bytes that the decoder can leave as dictionaries.

    Args:
        metadata: footer of the file.
    """
    chunks = [
        chunk
        for group_number in range(metadata.num_row_groups)
        for chunk in _iterate_column_chunks(metadata, group_number)
    ]
    excluded = {chunk.name for chunk in chunks if not chunk.can_be_dictionary}
    return sorted({chunk.name for chunk in chunks} - excluded)


def require_row_group_within_limits(
    metadata: pq.FileMetaData, group_number: int, pages: Mapping[int, ColumnPages] = _NO_PAGES
) -> None:
    """Check that the rows of a row group do not need too much memory.

    Args:
        metadata: footer of the file.
        group_number: number of the row group, from 0.
        pages: pages of the row group by column number; for other columns, only the footer counts.

    Raises:
        FileRejectedError: the row group exceeds a limit.
    """
    group = metadata.row_group(group_number)
    chunks = list(_iterate_column_chunks(metadata, group_number, pages))
    for chunk in chunks:
        if chunk.width > MAX_MESSAGE_BYTES:
            rule = f"has values of {chunk.width} bytes; a message has at most {MAX_MESSAGE_BYTES}"
            raise FileRejectedError(f"Column `{chunk.name[:64]}` {rule}.")
        if chunk.is_list and chunk.value_count > group.num_rows * MAX_MESSAGE_BYTES:
            rule = f"has more than {MAX_MESSAGE_BYTES} values per row in row group {group_number + 1}"
            raise FileRejectedError(
                f"Column `{chunk.name[:64]}` {rule}; a message has at most {MAX_MESSAGE_BYTES} bytes."
            )
    stored = max(group.total_byte_size, sum(chunk.stored for chunk in chunks))
    size = stored + sum(_estimate_list_bytes_of_chunk(chunk) + chunk.dictionary_bytes for chunk in chunks)
    if size > MAX_GROUP_BYTES:
        fault = f"Row group {group_number + 1} can unpack to {size} bytes; the limit is {MAX_GROUP_BYTES}."
        raise FileRejectedError(f"{fault} Write the file with smaller row groups.")


def compute_max_rows_per_batch(
    metadata: pq.FileMetaData, group_number: int, pages: Mapping[int, ColumnPages] = _NO_PAGES
) -> int:
    """Return how many rows of a row group may be decoded together, so that they need limited memory.

    Args:
        metadata: footer of the file.
        group_number: number of the row group, from 0.
        pages: pages of the row group by column number; for other columns, only the footer counts.
    """
    flat = [chunk for chunk in _iterate_column_chunks(metadata, group_number, pages) if not chunk.is_list]
    row_bytes = sum(_VALUE_BYTES + chunk.width + (chunk.stored if chunk.can_repeat else 0) for chunk in flat)
    return max(1, _BATCH_BYTES // max(1, row_bytes))


def measure_row_bytes(batch: pa.RecordBatch) -> list[int]:
    """Return the size of each row: the bytes of its texts, plus 1 for each value and for each element of a list.

    Missing values count, because they need memory, too. The size of a row without missing values is at most the size
    of its message.
    """
    sizes = [_measure_value_bytes(array) for array in batch.columns]
    return reduce(pc.add, sizes).to_pylist() if sizes else [0] * batch.num_rows


def measure_nested_name_bytes(batch: pa.RecordBatch) -> list[int]:
    """Return the bytes of the property names that the objects inside the cells of each row repeat.

    Names of missing properties count, because they become Python objects, too. :func:`measure_row_bytes` omits all
    names, because the message omits those of missing properties.
    """
    sizes = [_measure_name_bytes(array) for array in batch.columns]
    return list(reduce(pc.add, sizes, _build_constant_array(0, batch.num_rows)).to_pylist())


def _measure_name_bytes(array: pa.Array) -> pa.Array:
    if pa.types.is_struct(array.type):
        names = sum(len(field.name.encode()) for field in array.type)
        return reduce(pc.add, map(_measure_name_bytes, array.flatten()), _build_constant_array(names, len(array)))
    if _is_list_type(array.type) and pa.types.is_nested(array.values.type):
        return _sum_list_elements(array, _measure_name_bytes(array.values))
    return _build_constant_array(0, len(array))


def _iterate_column_chunks(
    metadata: pq.FileMetaData, group_number: int, pages: Mapping[int, ColumnPages] = _NO_PAGES
) -> Iterator[_Chunk]:
    group = metadata.row_group(group_number)
    for index in range(group.num_columns):
        column, found = metadata.schema.column(index), group.column(index)
        actual = pages.get(index, _NO_COLUMN_PAGES)
        encodings = actual.encodings.union(found.encodings)
        is_text = column.physical_type == "BYTE_ARRAY"
        can_be_dictionary = is_text and column.logical_type.type != "DECIMAL" and _DELTA_ENCODINGS.isdisjoint(encodings)
        dictionary_width = _DICTIONARY_TEXT_BYTES if "BYTE_ARRAY" in column.physical_type else _DICTIONARY_NUMBER_BYTES
        yield _Chunk(
            column.path,
            column.max_repetition_level > 0,
            max(found.num_values, actual.value_count),
            max(found.total_uncompressed_size, found.total_compressed_size, actual.unpacked_bytes),
            column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0,
            can_be_dictionary,
            is_text and not can_be_dictionary and not _REPEATING_ENCODINGS.isdisjoint(encodings),
            actual.dictionary_value_count * dictionary_width,
        )


def _estimate_list_bytes_of_chunk(chunk: _Chunk) -> int:
    if not chunk.is_list:
        return 0
    return chunk.value_count * (LIST_VALUE_BYTES + chunk.width + (chunk.stored if chunk.can_repeat else 0))


def _measure_value_bytes(array: pa.Array) -> pa.Array:
    """Return the size of each value of an array as an array of whole numbers."""
    measure = _find_byte_measuring_function(array.type)
    return _build_constant_array(1, len(array)) if measure is None else measure(array)


def _find_byte_measuring_function(kind: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    """Return the function that measures the bytes of values of an Arrow type; None if each value counts as 1 byte."""
    return next((measure for is_kind, measure in _MEASURES if is_kind(kind)), None)


def _measure_dictionary_value_bytes(array: pa.DictionaryArray) -> pa.Array:
    return pc.fill_null(_measure_value_bytes(array.dictionary).take(array.indices), 1)


def _measure_text_bytes(array: pa.Array) -> pa.Array:
    return pc.add(pc.fill_null(pc.binary_length(array), 0).cast(pa.int64()), 1)


def _measure_struct_bytes(array: pa.StructArray) -> pa.Array:
    return reduce(pc.add, map(_measure_value_bytes, array.flatten()), _build_constant_array(1, len(array)))


def _measure_list_bytes(array: pa.Array) -> pa.Array:
    if _find_byte_measuring_function(array.values.type) is None:
        # Sums would need several times the memory of the numbers.
        starts, ends = _compute_list_bounds(array)
        return pc.add(pc.multiply(pc.subtract(ends, starts), 2), 1)
    return pc.add(_sum_list_elements(array, pc.add(_measure_value_bytes(array.values), 1)), 1)


def _sum_list_elements(array: pa.Array, sizes: pa.Array) -> pa.Array:
    """Return the sum of the sizes of each list's elements; ``sizes`` has those of all ``array.values``."""
    starts, ends = _compute_list_bounds(array)
    sums = pa.concat_arrays([_build_constant_array(0, 1), pc.cumulative_sum(sizes)])
    return pc.subtract(sums.take(ends), sums.take(starts))


def _compute_list_bounds(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the positions in ``array.values`` at which each list starts and ends."""
    if pa.types.is_fixed_size_list(array.type):
        width = array.type.list_size
        offsets = pa.array(
            [number * width for number in range(array.offset, array.offset + len(array) + 1)], pa.int64()
        )
    else:
        offsets = array.offsets.cast(pa.int64())
    return offsets[:-1], offsets[1:]


def _is_list_type(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind) or types.is_fixed_size_list(kind)
    )


def _is_text_type(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind)
    )


def _is_view_type(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is ``string_view`` or ``binary_view``."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _is_extension_type(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def _build_constant_array(value: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), count)


_MEASURES: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...]] = (
    (pa.types.is_dictionary, _measure_dictionary_value_bytes),
    (_is_text_type, _measure_text_bytes),
    (_is_view_type, lambda array: _measure_text_bytes(array.cast(pa.large_binary()))),
    (pa.types.is_fixed_size_binary, lambda array: _build_constant_array(1 + array.type.byte_width, len(array))),
    (pa.types.is_struct, _measure_struct_bytes),
    (_is_list_type, _measure_list_bytes),
    (_is_extension_type, lambda array: _measure_value_bytes(array.storage)),
)
