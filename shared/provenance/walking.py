"""Brings stored records to a walk, a window at a time, off the event loop."""

import asyncio
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import fields
from typing import Final

from shared.provenance.ports import ChainKey, ChainStore, Row, RowStreams
from shared.provenance.walk import Walk, rows_of

WINDOW_RECORDS: Final = 20_000
PAGE_RECORDS: Final = 1_000
PAGE_BYTES: Final = 8_000_000


async def walk_on(store: ChainStore, chain: ChainKey, walk: Walk, last: int, stop: int | None = None) -> None:
    """Walk over some next records of a chain; the walk's sequence stays the same when there are none.

    Args:
        store: keeps the chain; one that streams rows is walked without a record made of each.
        chain: which chain.
        walk: goes on after its sequence.
        last: highest sequence to walk over.
        stop: where to pause, at least the next sequence; None to pause where it suits.

    Raises:
        WorkspaceError: the store's UNAVAILABLE.
    """
    before = walk.sequence
    if isinstance(store, RowStreams):
        await store.stream(chain, before + 1, min(last, stop or before + WINDOW_RECORDS), _afresh(walk))
        if walk.sequence > before or walk.fault is not None:
            return
    # Also when a window is empty: a gap may be longer than it.
    page = await store.read(chain, before, limit=min(PAGE_RECORDS, last - before), max_bytes=PAGE_BYTES)
    records = [record for record in page.records if record.sequence <= last]
    await asyncio.to_thread(walk.over, rows_of(records))


def _afresh(walk: Walk) -> Callable[[Iterable[Row]], None]:
    """Return what walks over rows from where the walk stands now, however often it is called."""
    start = {field.name: getattr(walk, field.name) for field in fields(walk)}
    tree = deepcopy(walk.tree)

    def over(rows: Iterable[Row]) -> None:
        for name, value in (start | {"tree": deepcopy(tree)}).items():
            setattr(walk, name, value)
        walk.over(rows)

    return over
