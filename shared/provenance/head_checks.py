"""Checks of chains' head items against their records, because an attacker can change head items, too."""

from datetime import datetime, timedelta
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import parse_if_canonical
from shared.provenance.chain_verification import ChainFault, ChainVerification, describe_fork, parse_content_time
from shared.provenance.hash_rule import LAST_SEQUENCE, digest, is_time, record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, OrphanRecords, Target, Tip
from shared.timestamps import rfc3339
from shared.worker_threads import pause_garbage_collection, run_in_worker

MAX_ORPHANS: Final = 100
_AHEAD: Final = "has a time more than an hour ahead of this host's clock"
MAX_CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""Maximum difference between clocks of hosts. After a record whose time is further ahead, appends are rejected."""


async def reject_forged_head(store: ChainStore, chain: ChainKey, tip: Tip, instant: str) -> None:
    """Reject an append if the head item does not match the last record.

    The next record takes its PreviousHash and its earliest time from the head item. Therefore:

    - The head item's hash must be the Hash of the last record.
    - The last record's time must have the format of records.
    - If the head item or the last record has a time ahead of the clock, both must have the same time. Such a time is
      accepted because the clock of another host may be ahead.

    Args:
        store: store of the chain.
        chain: chain to append to.
        tip: tip from the store.
        instant: current time in the format of records.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the head item is forged or the store does not respond.
    """
    if not await _matches_last_record(store, chain, tip, instant):
        detail = "The head item of the chain does not match its last record; verify the chain."
        raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)


async def _matches_last_record(store: ChainStore, chain: ChainKey, tip: Tip, instant: str) -> bool:
    if not 0 <= tip.sequence < LAST_SEQUENCE:
        return False
    last = await _read_last(store, chain, tip)
    if tip.hash != (last.hash if last else "") or (last is None and tip.sequence):
        return False
    time = await _parse_time(last) if last else ""
    if last and not is_time(time) and parse_if_canonical(last.canonical) is not None:
        return False
    return max(tip.timestamp, time) <= instant or tip.timestamp == time


def reject_future_tip(tip: Tip, instant: datetime) -> None:
    """Reject an append if the time of the last record is too far ahead, because the next record would take that time.

    Args:
        tip: tip of the chain.
        instant: current time.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the time of the tip is more than
            :data:`MAX_CLOCK_DIFFERENCE` ahead. Appends succeed again when that time has passed.
    """
    if tip.timestamp > latest_allowed_time(instant):
        detail = f"{record_id(tip.sequence)} {_AHEAD}; synchronise the clocks of the hosts, and verify the chain."
        raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)


def latest_allowed_time(instant: datetime) -> str:
    """Return the latest valid time of a record at an instant of the clock."""
    return rfc3339(instant + MAX_CLOCK_DIFFERENCE)


async def find_future_timestamps(
    store: ChainStore, chain: ChainKey, verification: ChainVerification, instant: datetime
) -> ChainFault | None:
    """Find the first record whose time is too far ahead of the clock; call this after a verification without faults."""
    if verification.time <= latest_allowed_time(instant):
        return None
    ahead = Filters(start=latest_allowed_time(instant + timedelta(microseconds=1)))
    page = await store.scan(chain, ahead, newest_first=False, limit=1, max_bytes=1)
    first = record_id(min([verification.sequence, *(record.sequence for record in page.records)]))
    return ChainFault(first, f"{first} {_AHEAD}")


async def find_head_time_mismatch(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainFault | None:
    """Return a fault if the time in the head item differs from the time of the last record; else None."""
    if not tip.sequence or await read_last_time(store, chain, tip) == tip.timestamp:
        return None
    last = record_id(tip.sequence)
    return ChainFault(last, f"the time of {last} differs from the time in the head item")


async def find_orphans(store: ChainStore, chain: ChainKey, genesis: str, tip: Tip) -> ChainFault | None:
    """Return the fault of the first record that may belong to the chain but cannot be reached from its head item."""
    orphans = await store.list_orphans(chain, genesis) if isinstance(store, OrphanRecords) else ()
    for record in orphans:
        value = parse_if_canonical(record.canonical)
        if type(value) is dict and value.get("PreviousHash") == genesis:
            here = record_id(record.sequence)
            if tip.sequence:
                return ChainFault(record.hash, describe_fork(1))
            return ChainFault(here, f"{here} exists without a head item of this chain")
    for record in orphans:
        if not tip.sequence and not _is_first_record(record) and _can_belong_to(chain, record):
            here = record_id(record.sequence)
            return ChainFault(
                here, f"{here} exists without a head item and a first record, and may belong to this chain"
            )
    return None


def can_be_earliest(record: ChainRecord, genesis: str) -> bool:
    """Return whether a record can be the earliest that is left of a chain.

    It can, if it contains the genesis hash, or if it is not a valid first record: its predecessors may be deleted.
    """
    return genesis.encode() in record.canonical or not _is_first_record(record)


def _is_first_record(record: ChainRecord) -> bool:
    """Return whether a record matches its Hash and is the first record of a chain."""
    value = parse_if_canonical(record.canonical)
    first = type(value) is dict and record.sequence == 1 and value.get("RecordID") == record_id(1)
    return first and digest(record.canonical) == record.hash


def _can_belong_to(chain: ChainKey, record: ChainRecord) -> bool:
    """Return whether a record's content allows that it belongs to a chain; amendments contain their scope."""
    value = parse_if_canonical(record.canonical)
    if type(value) is dict and "ScopeKey" in value:
        return chain == (Target.DOMAIN_AMENDMENTS, value["ScopeKey"])
    return type(value) is not dict or chain.target is not Target.DOMAIN_AMENDMENTS


async def read_last_time(store: ChainStore, chain: ChainKey, tip: Tip) -> str:
    """Return the time in the content of the record that the head item names; an empty string if there is none."""
    last = await _read_last(store, chain, tip)
    return await _parse_time(last) if last else ""


async def _parse_time(record: ChainRecord) -> str:
    with pause_garbage_collection(len(record.canonical)):
        return await run_in_worker(len(record.canonical), parse_content_time, record)


async def _read_last(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainRecord | None:
    """Return the record that the head item names as the last one; None if it does not exist."""
    if not tip.sequence:
        return None
    page = await store.read(chain, tip.sequence - 1, limit=1, max_bytes=1)
    return page.records[0] if page.records and page.records[0].sequence == tip.sequence else None
