"""Tests of the limits of the memory that rows of Parquet files need."""

import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.imports import parquet_sizes
from shared.imports.parquet_sizes import (
    compute_max_rows_per_batch,
    list_dictionary_column_paths,
    measure_nested_name_bytes,
    measure_row_bytes,
    require_row_group_within_limits,
)
from shared.imports.row_mapping import FileRejectedError


def write_file(column: pa.Array, **options: Any) -> io.BytesIO:
    """Return a Parquet file with one column."""
    content = io.BytesIO()
    pq.write_table(pa.table({"v": column}), content, compression="zstd", **options)
    return content


@pytest.mark.parametrize(
    ("column", "sizes"),
    [
        (pa.array([1, None, 3]), [1, 1, 1]),
        (pa.array(["abc", None, ""]), [4, 1, 1]),
        (pa.array(["é"], pa.large_string()), [3]),
        (pa.array([b"abc"], pa.binary_view()), [4]),
        (pa.array([b"abc", None], pa.binary(3)), [4, 4]),
        (pa.array(["abc", None, "a", "abc"]).dictionary_encode(), [4, 1, 2, 4]),
        (pa.array([[1, 2], None, [], [3]]), [5, 1, 1, 3]),
        (pa.array([["ab", "c"], ["d"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))), [8, 4]),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)), [5, 5]),
        (pa.array([[], []], pa.list_(pa.int8(), 0)), [1, 1]),
        (pa.array([{"a": 1, "b": "xy"}, None]), [5, 3]),
        (pa.array([[("k", 1), ("l", 2)], []], pa.map_(pa.string(), pa.int8())), [11, 1]),
        (pa.array([[{"a": None}] * 3]), [10]),
    ],
)
def test_each_text_value_and_element_counts(column: pa.Array, sizes: list[int]) -> None:
    """The size of a row is the bytes of its texts, one for each value and one for each element, also of slices."""
    batch = pa.record_batch({"v": column})
    assert measure_row_bytes(batch) == sizes
    assert measure_row_bytes(batch.slice(1)) == sizes[1:]
    assert measure_row_bytes(pa.record_batch({"v": column, "w": column})) == [2 * size for size in sizes]


@pytest.mark.parametrize(
    ("column", "sizes"),
    [
        (pa.array([1, 2]), [0, 0]),
        (pa.array([{"ab": 1, "é": {"c": 2}}, None]), [5, 5]),
        (pa.array([[{"ab": 1}] * 3, None, [], [{"ab": None}]]), [6, 0, 0, 2]),
        (pa.array([[["x"]], []]), [0, 0]),
        (pa.array([[{"ab": 1}] * 2] * 2, pa.list_(pa.struct([("ab", pa.int8())]), 2)), [4, 4]),
    ],
)
def test_names_of_nested_properties_count_for_each_object(column: pa.Array, sizes: list[int]) -> None:
    """Each object inside a row counts the names of its properties, also in a slice of a batch."""
    batch = pa.record_batch({"v": column})
    assert measure_nested_name_bytes(batch) == sizes
    assert measure_nested_name_bytes(batch.slice(1)) == sizes[1:]


@pytest.mark.parametrize("value", [[0] * 100, ["a"] * 10, [[1, 2], []], {"a": [{"b": 1}]}, "text", ""])
def test_a_size_is_at_most_the_size_of_the_message(value: Any) -> None:
    """A row without missing values has at most the size of its message, so that no valid message is rejected."""
    [size] = measure_row_bytes(pa.record_batch({"v": pa.array([value])}))
    assert size <= len(json.dumps({"v": value}, separators=(",", ":")))


@pytest.mark.parametrize(
    ("column", "options", "expected"),
    [
        (pa.array(["a"]), {}, ["v"]),
        (pa.array([["a"]]), {}, ["v.list.element"]),
        (pa.array([1]), {}, []),
        (pa.array(["a"]), {"use_dictionary": False}, ["v"]),
        (pa.array(["a"]), {"use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}}, []),
        (pa.array(["a"]), {"use_dictionary": False, "column_encoding": {"v": "DELTA_LENGTH_BYTE_ARRAY"}}, []),
        (pa.array([Decimal(1)]), {}, []),
    ],
)
def test_texts_can_stay_dictionaries(column: pa.Array, options: dict[str, Any], expected: list[str]) -> None:
    """Columns of text and bytes are read as dictionaries, if the decoder supports it for their encoding."""
    content = write_file(column, **options)
    paths = list_dictionary_column_paths(pq.read_metadata(content))
    assert paths == expected
    [batch] = pq.ParquetFile(content, read_dictionary=paths).iter_batches()
    assert batch.to_pylist() == [{"v": value} for value in column.to_pylist()]


# Functions, because the columns have over a gigabyte.
@pytest.mark.parametrize(
    ("build_column", "options"),
    [
        (lambda: pa.array([list(range(200))] * 200_000), {}),
        (
            lambda: pa.array([[f"{n:07}" * 500 for n in range(1000)]]),
            {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
        ),
        (lambda: pa.array([[b"x" * 10_000] * 20_000], pa.list_(pa.binary(10_000))).take(pa.repeat(0, 6)), {}),
    ],
    ids=["numbers", "texts", "bytes"],
)
def test_lists_can_unpack_to_the_limit(build_column: Callable[[], pa.Array], options: dict[str, Any]) -> None:
    """A row group whose lists would need too much memory is rejected, however small it is."""
    metadata = pq.read_metadata(write_file(build_column(), **options))
    with pytest.raises(FileRejectedError, match=r"can unpack to \d+ bytes; the limit is 1073741824"):
        require_row_group_within_limits(metadata, 0)


def test_the_compressed_size_counts_if_it_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group is limited by its compressed size, too, because the decoder reads whole columns of it."""
    metadata = pq.read_metadata(write_file(pa.array([b"x"]), use_dictionary=False))
    column = metadata.row_group(0).column(0)
    assert column.total_compressed_size > column.total_uncompressed_size
    monkeypatch.setattr(parquet_sizes, "MAX_GROUP_BYTES", column.total_uncompressed_size)
    with pytest.raises(FileRejectedError, match=f"can unpack to {column.total_compressed_size} bytes"):
        require_row_group_within_limits(metadata, 0)


def test_values_that_are_too_wide_are_rejected() -> None:
    """A column whose values all are larger than a message is rejected."""
    metadata = pq.read_metadata(write_file(pa.array([b"x" * 262_145], pa.binary(262_145))))
    with pytest.raises(FileRejectedError, match="Column `v` has values of 262145 bytes"):
        require_row_group_within_limits(metadata, 0)


def test_batches_of_large_values_have_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows that are decoded together depends on the possible size of a row, and is at least one."""
    narrow = pq.read_metadata(write_file(pa.array([1])))
    wide = pq.read_metadata(write_file(pa.array([b"x" * 1008], pa.binary(1008))))
    growing = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
    repeated = pq.read_metadata(write_file(pa.array(["x" * 100_000] * 10), **growing))
    assert compute_max_rows_per_batch(narrow, 0) == 64 * 1024**2 // 16
    assert compute_max_rows_per_batch(wide, 0) == 64 * 1024
    assert compute_max_rows_per_batch(repeated, 0) < 700
    monkeypatch.setattr(parquet_sizes, "_BATCH_BYTES", 1)
    assert compute_max_rows_per_batch(repeated, 0) == 1
