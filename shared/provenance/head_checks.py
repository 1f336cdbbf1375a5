"""Checks of head items against their records. An attacker with write access to the store can change head items, too."""

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
"""Maximum difference between clocks of hosts. Appends after a record that is further ahead are rejected."""


async def reject_forged_head(store: ChainStore, chain: ChainKey, tip: Tip, instant: str) -> None:
    """Reject an append if the head item does not match the last record.

    The next record is linked to the head's hash, which must be the last record's. The next record's time is not earlier
    than the head's: a time ahead of the clock is accepted only if the last record has it, because the clock of another
    host may be ahead. The last record's time must have the service's format and must not be later than the head's.

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
    """Reject an append after a record too far in the future, since honest records would have to take its time.

    Args:
        tip: tip that the next records link to.
        instant: current time.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the time of the tip is more than
            :data:`MAX_CLOCK_DIFFERENCE` ahead. Appends succeed again when that time has passed.
    """
    if tip.timestamp > latest_allowed_time(instant):
        detail = f"{record_id(tip.sequence)} {_AHEAD}; synchronise the clocks of the hosts, and verify the chain."
        raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)


def latest_allowed_time(instant: datetime) -> str:
    """Return the latest time that a record may have at an instant."""
    return rfc3339(instant + MAX_CLOCK_DIFFERENCE)


async def find_future_timestamps(
    store: ChainStore, chain: ChainKey, verification: ChainVerification, instant: datetime
) -> ChainFault | None:
    """Return the fault of the first record whose time is too far ahead, after a verification without faults."""
    if verification.time <= latest_allowed_time(instant):
        return None
    ahead = Filters(start=latest_allowed_time(instant + timedelta(microseconds=1)))
    page = await store.scan(chain, ahead, newest_first=False, limit=1, max_bytes=1)
    first = record_id(min([verification.sequence, *(record.sequence for record in page.records)]))
    return ChainFault(first, f"{first} {_AHEAD}")


async def find_head_time_mismatch(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainFault | None:
    """Return the fault of a head item whose time differs from its record's."""
    if not tip.sequence or await read_last_time(store, chain, tip) == tip.timestamp:
        return None
    last = record_id(tip.sequence)
    return ChainFault(last, f"the time of {last} differs from the time in the head item")


async def find_orphans(store: ChainStore, chain: ChainKey, genesis: str, tip: Tip) -> ChainFault | None:
    """Return the fault of records that belong, or may belong, to the chain but are not reachable from its head item."""
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
    """Return whether a record may be the earliest of a chain: it has its genesis hash, or is not a first record."""
    return genesis.encode() in record.canonical or not _is_first_record(record)


def _is_first_record(record: ChainRecord) -> bool:
    """Return whether a record is valid by itself and the first of a chain."""
    value = parse_if_canonical(record.canonical)
    first = type(value) is dict and record.sequence == 1 and value.get("RecordID") == record_id(1)
    return first and digest(record.canonical) == record.hash


def _can_belong_to(chain: ChainKey, record: ChainRecord) -> bool:
    """Return whether a record may belong to a chain by its content; amendments contain their scope."""
    value = parse_if_canonical(record.canonical)
    if type(value) is dict and "ScopeKey" in value:
        return chain == (Target.DOMAIN_AMENDMENTS, value["ScopeKey"])
    return type(value) is not dict or chain.target is not Target.DOMAIN_AMENDMENTS


async def read_last_time(store: ChainStore, chain: ChainKey, tip: Tip) -> str:
    """Return the time in the content of the last record by the head item, or an empty string."""
    last = await _read_last(store, chain, tip)
    return await _parse_time(last) if last else ""


async def _parse_time(record: ChainRecord) -> str:
    with pause_garbage_collection(len(record.canonical)):
        return await run_in_worker(len(record.canonical), parse_content_time, record)


async def _read_last(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainRecord | None:
    """Return the last record by the head item, or None."""
    if not tip.sequence:
        return None
    page = await store.read(chain, tip.sequence - 1, limit=1, max_bytes=1)
    return page.records[0] if page.records and page.records[0].sequence == tip.sequence else None
