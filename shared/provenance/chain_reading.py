"""Reading of stored chains: verification of the records in order, and search for the last record."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import fields
from typing import Final

from shared.interpreter import pause_garbage_collection
from shared.provenance.chain_verification import ChainVerification, read_content_time, to_rows
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Row, RowStreams, Tip
from shared.runtime import SYSTEM_RUNTIME, Runtime

WINDOW_RECORDS: Final = 20_000
PAGE_RECORDS: Final = 1_000
PAGE_BYTES: Final = 8_000_000


async def verify_records_sequentially(
    store: ChainStore,
    chain: ChainKey,
    verification: ChainVerification,
    last_sequence: int,
    *,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> None:
    """Continue a verification in this process, up to a sequence number, a fault, or the last stored record.

    Args:
        store: store of the chain.
        chain: chain to verify.
        verification: state of the verification, which continues after its last valid record.
        last_sequence: highest sequence number to verify.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    while verification.fault is None and verification.sequence < last_sequence:
        before = verification.sequence
        await verify_next_records(store, chain, verification, last_sequence, runtime=runtime)
        if verification.sequence == before:
            return


async def verify_next_records(
    store: ChainStore,
    chain: ChainKey,
    verification: ChainVerification,
    last_sequence: int,
    window_end: int | None = None,
    *,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> None:
    """Verify the next records of a chain; do nothing if there are no further records.

    Args:
        store: store of the chain; if it has the port :class:`RowStreams`, its rows are not converted to records first.
        chain: chain to verify.
        verification: state of the verification, which continues after its last valid record.
        last_sequence: highest sequence number to verify.
        window_end: last sequence number to verify in this call if the store has row streams; None for a default number
            of records. Without row streams, this call verifies one page.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    before = verification.sequence
    if isinstance(store, RowStreams):
        await store.stream_rows(
            chain,
            before + 1,
            min(last_sequence, window_end or before + WINDOW_RECORDS),
            _build_restartable_verifier(verification),
        )
        if verification.sequence > before or verification.fault is not None:
            return
    # Also read a page if the window is empty: a gap can be longer than the window.
    page = await store.read(chain, before, limit=min(PAGE_RECORDS, last_sequence - before), max_bytes=PAGE_BYTES)
    records = [record for record in page.records if record.sequence <= last_sequence]
    await runtime.run_in_thread(verification.verify_rows, to_rows(records))


def _build_restartable_verifier(verification: ChainVerification) -> Callable[[Iterable[Row]], None]:
    """Return a function that verifies rows (records), and that can be called again with all rows after a failure.

    Each call first restores the state that ``verification`` had when this function was built.
    """
    start = {field.name: getattr(verification, field.name) for field in fields(verification)}
    tree = deepcopy(verification.tree)

    def verify_from_start(rows: Iterable[Row]) -> None:
        for name, value in (start | {"tree": deepcopy(tree)}).items():
            setattr(verification, name, value)
        verification.verify_rows(rows)

    return verify_from_start


async def find_last_record(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainRecord | None:
    """Return the chain's last record, whose number the tip states; None if this record does not exist."""
    if not tip.sequence:
        return None
    page = await store.read(chain, tip.sequence - 1, limit=1, max_bytes=1)
    return page.records[0] if page.records and page.records[0].sequence == tip.sequence else None


async def read_record_time(record: ChainRecord, runtime: Runtime) -> str:
    """Return the time in the content of a record; parse large content in a worker thread."""
    with pause_garbage_collection(len(record.canonical)):
        return await runtime.run_in_thread_if_large(len(record.canonical), read_content_time, record)
