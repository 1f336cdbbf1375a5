"""Impulses as Parquet: the columns, and what a blob says of itself."""

import io
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

from shared.telemetry.json_text import serialise
from shared.telemetry.models import HubEvent, Impulse

SUMMARY = "oi"
"""Key of the summary in a Parquet file's key-value metadata."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

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


class Arrived(NamedTuple):
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

    ordered = sorted(arrived, key=_order)
    schema = _schema().with_metadata({SUMMARY: summary.text()})
    target = io.BytesIO()
    # Values of these two rarely repeat; a dictionary of them would only be thrown away.
    repeating = [name for name in COLUMNS if name not in {"message_id", "payload"}]
    pq.write_table(
        pa.Table.from_arrays([*_columns(ordered)], schema=schema), target, compression="zstd", use_dictionary=repeating
    )
    return target.getvalue()


def microseconds(instant: datetime) -> int:
    """Return an aware instant as microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


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

    types = {"timestamp": _instant(), "enqueued_at": _instant(), "sequence": pa.int64()}
    return pa.schema([pa.field(name, types.get(name, pa.string()), nullable=False) for name in COLUMNS])


def _instant() -> Any:
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    return pa.timestamp("us", "UTC")


def _order(arrived: Arrived) -> tuple[datetime, int]:
    return arrived.impulse.timestamp, arrived.event.sequence_number


def _columns(arrived: Sequence[Arrived]) -> Iterator[Any]:
    """Yield the columns in the memory layout of Arrow; from Python lists pyarrow would look at each value."""
    impulses = [impulse for impulse, _ in arrived]
    events = [event for _, event in arrived]
    yield _instants([each.timestamp for each in impulses])
    yield _texts([each.connection.encode() for each in impulses])
    yield _texts([each.device_id.encode() for each in impulses])
    yield _texts([each.message_id.encode() for each in impulses])
    yield _texts([serialise(each.payload) for each in impulses])
    yield _texts([serialise(each.headers) for each in impulses])
    yield _texts([serialise(each.surfaces) for each in impulses])
    yield _texts([each.partition.encode() for each in events])
    yield _numbers([each.sequence_number for each in events])
    yield _instants([each.enqueued_at for each in events])


def _texts(values: Sequence[bytes]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    ends = array("i", accumulate(map(len, values), initial=0))
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


def _instants(values: Sequence[datetime]) -> Any:
    return _numbers([microseconds(value) for value in values]).view(_instant())


def _numbers(values: Sequence[int]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  loading it takes long

    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])
