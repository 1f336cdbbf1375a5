"""Head items, compared with the records that they stand for: who can write to the store can change them, too."""

from datetime import datetime, timedelta
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import parse_if_canonical
from shared.provenance.chain_verification import ChainFault, ChainVerification, content_time, describe_fork
from shared.provenance.hash_rule import LAST_SEQUENCE, digest, is_time, record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, OrphanRecords, Target, Tip
from shared.timestamps import rfc3339
from shared.worker_threads import pause_garbage_collection, run_in_worker

MAX_ORPHANS: Final = 100
_AHEAD: Final = "has a time more than an hour ahead of this host's clock"
MAX_CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""How far the clocks of hosts may differ: what is further ahead of this one is not built on."""


async def reject_forged_head(store: ChainStore, chain: ChainKey, tip: Tip, instant: str) -> None:
    """Refuse to append from a head item that no append left.

    Its hash goes into what is sealed, and must be that of the last record. So does its time, as the earliest one of the
    next record: one that lies ahead of the clock is believed only if the last record has it, since the clock of another
    host may be ahead; and that record's own time must be one that the service writes, and not be hidden by the head's.

    Args:
        store: keeps the chain.
        chain: which chain.
        tip: as the store gave it.
        instant: the current one, in the records' own format.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE``; the head item is forged; the store's UNAVAILABLE.
    """
    if not await _matches_last_record(store, chain, tip, instant):
        detail = "The chain's head item is not the one of its last record; verify the chain."
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
    """Refuse to append behind a time that would have to be given to honest records, too.

    Args:
        tip: as the records behind it are to be sealed from.
        instant: the current one.

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
    store: ChainStore, chain: ChainKey, walk: ChainVerification, instant: datetime
) -> ChainFault | None:
    """Return the fault of the first record whose time lies too far ahead, after a walk over sound ones."""
    if walk.time <= latest_allowed_time(instant):
        return None
    ahead = Filters(start=latest_allowed_time(instant + timedelta(microseconds=1)))
    page = await store.scan(chain, ahead, newest_first=False, limit=1, max_bytes=1)
    first = record_id(min([walk.sequence, *(record.sequence for record in page.records)]))
    return ChainFault(first, f"{first} {_AHEAD}")


async def find_head_time_mismatch(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainFault | None:
    """Return the fault of a head item with another time than its record."""
    if not tip.sequence or await read_last_time(store, chain, tip) == tip.timestamp:
        return None
    last = record_id(tip.sequence)
    return ChainFault(last, f"{last} does not have the time that the head item names")


async def find_orphans(store: ChainStore, chain: ChainKey, genesis: str, tip: Tip) -> ChainFault | None:
    """Return the fault of records that are, or may be, the chain's, and that its head item does not lead to."""
    strays = await store.list_orphans(chain, genesis) if isinstance(store, OrphanRecords) else ()
    for record in strays:
        value = parse_if_canonical(record.canonical)
        if type(value) is dict and value.get("PreviousHash") == genesis:
            here = record_id(record.sequence)
            if tip.sequence:
                return ChainFault(record.hash, describe_fork(1))
            return ChainFault(here, f"{here} is there without the head item of this chain")
    for record in strays:
        if not tip.sequence and not _is_first_record(record) and _can_belong_to(chain, record):
            here = record_id(record.sequence)
            return ChainFault(here, f"{here} is there without a head item and a first record, and may be of this chain")
    return None


def can_be_earliest(record: ChainRecord, genesis: str) -> bool:
    """Tell whether a record may be the earliest of a chain: it has its genesis hash, or is no chain's first record."""
    return genesis.encode() in record.canonical or not _is_first_record(record)


def _is_first_record(record: ChainRecord) -> bool:
    """Tell whether a record is sound in itself and the first of some chain."""
    value = parse_if_canonical(record.canonical)
    first = type(value) is dict and record.sequence == 1 and value.get("RecordID") == record_id(1)
    return first and digest(record.canonical) == record.hash


def _can_belong_to(chain: ChainKey, record: ChainRecord) -> bool:
    """Tell whether the content of a record leaves it open that it is a chain's: corrections name their scope."""
    value = parse_if_canonical(record.canonical)
    if type(value) is dict and "ScopeKey" in value:
        return chain == (Target.DOMAIN_AMENDMENTS, value["ScopeKey"])
    return type(value) is not dict or chain.target is not Target.DOMAIN_AMENDMENTS


async def read_last_time(store: ChainStore, chain: ChainKey, tip: Tip) -> str:
    """Return the time in the content of the record that a head item names, empty without."""
    last = await _read_last(store, chain, tip)
    return await _parse_time(last) if last else ""


async def _parse_time(record: ChainRecord) -> str:
    with pause_garbage_collection(len(record.canonical)):
        return await run_in_worker(len(record.canonical), content_time, record)


async def _read_last(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainRecord | None:
    """Return the record that a head item names, None without."""
    if not tip.sequence:
        return None
    page = await store.read(chain, tip.sequence - 1, limit=1, max_bytes=1)
    return page.records[0] if page.records and page.records[0].sequence == tip.sequence else None
