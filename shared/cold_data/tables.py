"""Parquet files of archived telemetry: columns, row groups, and the summary in the footer."""

import functools
import io
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from shared.telemetry.impulses import ImpulseTexts
from shared.telemetry.models import HubEvent
from shared.timestamps import to_unix_microseconds

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

SUMMARY = "oi"
"""Key of the blob's summary in the key-value metadata of its Parquet file."""
GROUP_BYTES = 16 * 1024 * 1024
"""Maximum size of a row group with several rows; readers load a row group completely."""
GROUP_ROWS = 122_880
LONG = ("payload", "headers", "surfaces")
"""Columns that can have long texts; the ids in other columns have at most 256 characters."""


COLUMNS = (
    "timestamp",
    "connection",
    "device_id",
    "message_id",
    "payload",
    "headers",
    "surfaces",
    "partition",
    "sequence",
    "enqueued_at",
)


class ReceivedImpulse(NamedTuple):
    """Impulse (normalised telemetry message) with the hub event that contained it."""

    impulse: ImpulseTexts
    event: HubEvent


@dataclass(frozen=True, slots=True)
class BlobSummary:
    """Summary of an archive blob, stored in the footer of its Parquet file.

    Attributes:
        rows: number of rows.
        size: size of the blob in bytes.
        first_enqueued: enqueued time of the earliest event, microseconds since 1970.
        last_enqueued: enqueued time of the latest event.
        sources: identities of the blobs that were merged into this one.
        longest: maximum size in bytes of a row's texts in the columns with long texts (``LONG``); None if unknown. If
            it is known, row groups have at most ``GROUP_BYTES``.
        unpacked: approximate size of the rows in memory, in bytes.
    """

    rows: int
    size: int
    first_enqueued: int
    last_enqueued: int
    sources: frozenset[str] = frozenset()
    longest: int | None = None
    unpacked: int = 0

    def to_json(self) -> str:
        """Serialise as JSON the attributes that the file's own metadata lacks: enqueued times, sources, longest row."""
        return json.dumps([self.first_enqueued, self.last_enqueued, sorted(self.sources), self.longest])


def build_archive_parquet(received: Sequence[ReceivedImpulse], summary: BlobSummary) -> bytes:
    """Convert telemetry messages to a Parquet file in memory, sorted by timestamp, with a summary in the footer."""
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    columns = [*_build_columns(sorted(received, key=_SORT_KEY))]
    rows = pa.RecordBatch.from_arrays(columns, schema=build_archive_schema())
    target = io.BytesIO()
    with open_parquet_writer(target, replace(summary, longest=measure_longest_row_bytes(rows))) as file:
        for group in split_into_row_groups(rows):
            file.write_batch(group, row_group_size=group.num_rows)
    return target.getvalue()


def open_parquet_writer(target: Path | io.BytesIO, summary: BlobSummary) -> "pq.ParquetWriter":
    """Return a Parquet writer for archive rows; write each row group from ``split_into_row_groups`` with one call."""
    import pyarrow.parquet as pq  # noqa: PLC0415  loading it takes long

    # Values of the excluded columns rarely repeat; a dictionary would be discarded.
    repeating = [name for name in COLUMNS if name not in {"message_id", "payload", "sequence"}]
    schema = build_archive_schema().with_metadata({SUMMARY: summary.to_json()})
    return pq.ParquetWriter(target, schema, compression="zstd", use_dictionary=repeating)


def measure_longest_row_bytes(rows: "pa.RecordBatch | pa.Table", columns: Sequence[str] = LONG) -> int:
    """Return the maximum of the rows' sizes in bytes; 0 if there are no rows.

    The size of a row is the total length of the texts in ``columns``; by default, these are the columns with long
    texts.
    """
    import pyarrow.compute as pc  # noqa: PLC0415  loading it takes long

    lengths = (pc.binary_length(rows.column(name)) for name in columns)
    return pc.max(functools.reduce(pc.add, lengths)).as_py() or 0


def convert_to_archive_schema(rows: "pa.RecordBatch") -> "pa.RecordBatch":
    """Select the columns of archive files from rows, in the order and with the types of these files."""
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    return pa.RecordBatch.from_arrays([rows.column(name) for name in COLUMNS], schema=build_archive_schema())


def split_into_row_groups(rows: "pa.RecordBatch") -> Iterator["pa.RecordBatch"]:
    """Split rows into row groups of limited row count and size; a single long row may exceed the size."""
    if rows.num_rows > GROUP_ROWS or (rows.nbytes > GROUP_BYTES and rows.num_rows > 1):
        middle = rows.num_rows // 2
        yield from split_into_row_groups(rows.slice(0, middle))
        yield from split_into_row_groups(rows.slice(middle))
    elif rows.num_rows:
        yield rows


def parse_summary_from_blob_end(blob_end: bytes, blob_size: int) -> BlobSummary:
    """Parse the summary from the footer of an archive blob.

    Args:
        blob_end: last bytes of the blob, at least as many as :func:`parse_footer_size` returns.
        blob_size: size of the whole blob in bytes.

    Raises:
        ValueError: the blob has no summary.
    """
    import pyarrow as pa  # noqa: PLC0415  loading it takes long
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    metadata = pq.read_metadata(pa.BufferReader(blob_end))
    to_json = (metadata.metadata or {}).get(SUMMARY.encode())
    if to_json is None:
        raise ValueError("the blob has no summary in its metadata")
    first, last, sources, *more = json.loads(to_json)
    unpacked = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return BlobSummary(
        metadata.num_rows, blob_size, first, last, frozenset(sources), more[0] if more else None, unpacked
    )


def parse_footer_size(file_end: bytes) -> int:
    """Return the size in bytes of a Parquet file's footer, which the last bytes of the file (``file_end``) state."""
    return int.from_bytes(file_end[-8:-4], "little") + 8


def build_archive_schema() -> "pa.Schema":
    """Build the Arrow schema of the columns in archive files."""
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    types = {
        "timestamp": _build_arrow_timestamp_type(),
        "enqueued_at": _build_arrow_timestamp_type(),
        "sequence": pa.int64(),
    }
    return pa.schema([pa.field(name, types.get(name, pa.string()), nullable=False) for name in COLUMNS])


def _build_arrow_timestamp_type() -> "pa.TimestampType":
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    return pa.timestamp("us", "UTC")


_SORT_KEY: Final = attrgetter("impulse.microseconds", "event.sequence_number")


def _build_columns(received: Sequence[ReceivedImpulse]) -> Iterator["pa.Array"]:
    """Yield the archive's columns as Arrow arrays.

    They are built from buffers, because lists would be slower to convert.
    """
    # Tuples are transposed at once, because reading each field by its name takes three times as long.
    impulses, events = zip(*received, strict=True)
    message_ids, microseconds, device_ids, payloads, headers, surfaces, connections = zip(*impulses, strict=True)
    _, partitions, sequence_numbers, enqueued_times, *_ = zip(*events, strict=True)
    yield _to_instant_array(microseconds)
    yield to_text_array(_encode_texts_as_utf8(connections))
    yield to_text_array(_encode_texts_as_utf8(device_ids))
    yield to_text_array(_encode_texts_as_utf8(message_ids))
    yield to_text_array(payloads)
    yield to_text_array(headers)
    yield to_text_array(surfaces)
    yield to_text_array(_encode_texts_as_utf8(partitions))
    yield _to_int64_array(sequence_numbers)
    # Many events of a batch have the same enqueued time.
    converted = {instant: to_unix_microseconds(instant) for instant in set(enqueued_times)}
    yield _to_instant_array([converted[instant] for instant in enqueued_times])


def _encode_texts_as_utf8(texts: Sequence[str]) -> list[bytes]:
    return list(map(str.encode, texts))


def to_text_array(values: Sequence[bytes]) -> "pa.StringArray":
    """Build an Arrow string array from UTF-8 texts of at most 2 GiB in total."""
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    ends = array("i", accumulate(map(len, values), initial=0))
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


def _to_instant_array(microseconds: Sequence[int]) -> "pa.Array":
    return _to_int64_array(microseconds).view(_build_arrow_timestamp_type())


def _to_int64_array(values: Sequence[int]) -> "pa.Int64Array":
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])
