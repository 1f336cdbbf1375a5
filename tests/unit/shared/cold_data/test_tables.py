"""Tests of the Parquet files of the archive."""

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.cold_data import tables
from shared.cold_data.tables import (
    COLUMNS,
    BlobSummary,
    build_archive_schema,
    measure_longest_row_bytes,
    open_parquet_writer,
    parse_footer_size,
    parse_summary_from_blob_end,
    split_into_row_groups,
)

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
SUMMARY = BlobSummary(2, 0, 5, 9, frozenset({"b@1", "a@2"}), longest=7)


def build_rows(*payloads: str) -> pa.RecordBatch:
    """Return archive rows with payloads."""
    texts = dict.fromkeys(COLUMNS, "x") | {"headers": "{}", "surfaces": "[]"}
    rows = [
        {**texts, "timestamp": AT, "enqueued_at": AT, "sequence": number, "payload": payload}
        for number, payload in enumerate(payloads)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=build_archive_schema())


def build_parquet(rows: pa.RecordBatch) -> bytes:
    """Return a Parquet file with rows and a summary."""
    target = io.BytesIO()
    with open_parquet_writer(target, SUMMARY) as file:
        file.write_batch(rows)
    return target.getvalue()


def test_the_summary_of_an_archive_file_is_in_its_footer() -> None:
    """The summary of a file is in its footer, so that a reader needs only the end of the blob."""
    content = build_parquet(build_rows("{}", "{}"))
    size = parse_footer_size(content[-8:])
    assert size < len(content)
    found = parse_summary_from_blob_end(content[-size:], len(content))
    assert replace(found, unpacked=0) == replace(SUMMARY, size=len(content))
    assert found.unpacked > 0


def test_a_file_of_another_program_has_no_summary(tmp_path: Path) -> None:
    """A Parquet file of another program has no summary and is not archived telemetry."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    with pytest.raises(ValueError, match="no summary"):
        parse_summary_from_blob_end(content, len(content))


def test_the_longest_row_is_measured_in_bytes() -> None:
    """The length of a row is the sum of the bytes of all its texts."""
    assert measure_longest_row_bytes(build_rows("{}", "ü" * 10)) == 20 + len("{}") + len("[]")
    assert measure_longest_row_bytes(build_rows()) == 0


@pytest.mark.parametrize(("limit", "sizes"), [(10, [5]), (3, [2, 3]), (1, [1, 1, 1, 1, 1])])
def test_row_groups_are_limited(monkeypatch: pytest.MonkeyPatch, limit: int, sizes: list[int]) -> None:
    """Row groups have a maximum size, because a reader loads a whole group; the row order does not change."""
    monkeypatch.setattr(tables, "GROUP_ROWS", limit)
    groups = list(split_into_row_groups(build_rows(*"abcde")))
    assert [group.num_rows for group in groups] == sizes
    assert "".join(text for group in groups for text in group.column("payload").to_pylist()) == "abcde"


def test_a_long_row_is_alone_in_its_row_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row longer than the limit is alone in a row group."""
    monkeypatch.setattr(tables, "GROUP_BYTES", 100)
    assert [group.num_rows for group in split_into_row_groups(build_rows("x" * 1_000))] == [1]
    assert list(split_into_row_groups(build_rows())) == []
