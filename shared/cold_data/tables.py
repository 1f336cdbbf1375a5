"""Impulses as Parquet: the columns, and what a blob says of itself."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.telemetry.json_text import serialise
from shared.telemetry.models import HubEvent, Impulse

SUMMARY = "oi"
"""Key of the summary in a Parquet file's key-value metadata."""

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


@dataclass(frozen=True, slots=True)
class Arrived:
    """An impulse and the event that brought it."""

    impulse: Impulse
    event: HubEvent


@dataclass(frozen=True, slots=True)
class Summary:
    """What a blob says of itself.

    Attributes:
        rows: how many it holds.
        size: of the blob, bytes.
        first_enqueued: when the hub took the earliest of its events, microseconds since 1970.
        last_enqueued: and the latest.
        sources: of a merged blob: the identities of the blobs that it stands for.
    """

    rows: int
    size: int
    first_enqueued: int
    last_enqueued: int
    sources: frozenset[str] = frozenset()

    def text(self) -> str:
        """Return the JSON text that stands in the metadata."""
        return json.dumps([self.first_enqueued, self.last_enqueued, sorted(self.sources)])


def parquet(arrived: Sequence[Arrived], summary: Summary) -> bytes:
    """Return the Parquet file of rows, in order of their timestamps."""
    import pyarrow as pa  # noqa: PLC0415  loading it takes long
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    ordered = sorted(arrived, key=lambda each: (each.impulse.timestamp, each.event.sequence_number))
    columns: list[tuple[Any, ...]] = [*zip(*map(_cells, ordered), strict=True)]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _schema(), strict=True)]
    schema = _schema().with_metadata({SUMMARY: summary.text()})
    target = io.BytesIO()
    # Values of these two rarely repeat; a dictionary of them would only be thrown away.
    repeating = [name for name in COLUMNS if name not in {"message_id", "payload"}]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), target, compression="zstd", use_dictionary=repeating)
    return target.getvalue()


def summary_of(end: bytes, size: int) -> Summary:
    """Return what a blob says of itself.

    Args:
        end: the last bytes of the blob, at least ``footer_size``.
        size: of the whole blob.

    Raises:
        ValueError: the blob is none of the archive's.
    """
    import pyarrow as pa  # noqa: PLC0415  loading it takes long
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    found = pq.read_metadata(pa.BufferReader(end))
    text = (found.metadata or {}).get(SUMMARY.encode())
    if text is None:
        raise ValueError("the blob does not say what it holds")
    first, last, sources = json.loads(text)
    return Summary(found.num_rows, size, first, last, frozenset(sources))


def footer_size(end: bytes) -> int:
    """Return how many bytes at the end of a Parquet file its metadata takes."""
    return int.from_bytes(end[-8:-4], "little") + 8


def _schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    instant = pa.timestamp("us", "UTC")
    types = {"timestamp": instant, "enqueued_at": instant, "sequence": pa.int64()}
    return pa.schema([pa.field(name, types.get(name, pa.string()), nullable=False) for name in COLUMNS])


def _cells(arrived: Arrived) -> tuple[Any, ...]:
    impulse, event = arrived.impulse, arrived.event
    return (
        impulse.timestamp,
        impulse.connection,
        impulse.device_id,
        impulse.message_id,
        serialise(dict(impulse.payload)).decode(),
        serialise(dict(impulse.headers)).decode(),
        serialise(list(impulse.surfaces)).decode(),
        event.partition,
        event.sequence_number,
        event.enqueued_at,
    )
