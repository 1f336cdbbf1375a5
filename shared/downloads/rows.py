"""Rows as the formats take them in: record batches of one connection, in slices that fit into memory."""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

SLICE_ROWS: Final = 65_536
SLICE_BYTES: Final = 16 * 1024 * 1024
JOINED_ROWS: Final = 8_192
JOINED_BYTES: Final = SLICE_BYTES // 16
"""Smaller batches are joined."""
FIXED_COLUMNS: Final = ("timestamp", "connection", "deviceId", "messageId")
"""The columns that stand before the payload in every format."""


def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of bounded length and size, small ones joined; a single row may be larger."""
    for batch in _joined(batches):
        for first in range(0, batch.num_rows, SLICE_ROWS):
            yield from _halved(batch.slice(first, SLICE_ROWS))


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches that are worth the fixed cost of each; an hour may hold a few rows only."""
    small: list[pa.RecordBatch] = []
    for batch in batches:
        if small and sum(each.num_rows for each in small) + batch.num_rows > SLICE_ROWS:
            yield pa.concat_batches(small)
            small.clear()
        if batch.num_rows >= JOINED_ROWS or batch.nbytes >= JOINED_BYTES:
            if small:
                yield pa.concat_batches(small)
                small.clear()
            yield batch
        elif batch.num_rows:
            small.append(batch)
    if small:
        yield pa.concat_batches(small)


def _halved(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows < 2 or batch.nbytes <= SLICE_BYTES:  # noqa: PLR2004  one row cannot be halved
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halved(batch.slice(0, middle))
    yield from _halved(batch.slice(middle))


def timestamp_texts(timestamps: pa.Array) -> pa.Array:
    """Return instants as RFC 3339 text with microseconds, without the closing ``Z``."""
    import pyarrow.compute as pc  # noqa: PLC0415  loaded where it is needed

    texts = timestamps.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_replace_slice(texts, 10, 11, "T")
