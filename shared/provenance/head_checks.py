"""Checks of the end of a chain: its last record, its head item, and records without a head item.

A head item is a stored item that states the sequence number, hash and time of a chain's last record. It can be forged,
so it is compared with the records.
"""

from datetime import datetime, timedelta
from typing import Final

from shared.provenance.append_guards import compute_latest_allowed_record_time, describe_future_time_fault
from shared.provenance.canonical import parse_json_if_canonical
from shared.provenance.chain_reading import find_last_record, read_record_time
from shared.provenance.chain_verification import ChainFault, ChainVerification, build_fork_fault
from shared.provenance.hash_rule import compute_record_hash, format_record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, OrphanRecords, Target, Tip
from shared.runtime import Runtime

MAX_ORPHANS: Final = 100


async def find_future_time_fault(
    store: ChainStore, chain: ChainKey, verification: ChainVerification, now: datetime
) -> ChainFault | None:
    """Return a fault for the first record whose time is too far ahead of the clock; None if there is none.

    Call this only for a chain whose records are valid. ``now`` is the current time.
    """
    if verification.time <= compute_latest_allowed_record_time(now):
        return None
    ahead = Filters(start=compute_latest_allowed_record_time(now + timedelta(microseconds=1)))
    page = await store.scan(chain, ahead, newest_first=False, limit=1, max_bytes=1)
    first = format_record_id(min([verification.sequence, *(record.sequence for record in page.records)]))
    return ChainFault(first, describe_future_time_fault(first))


async def find_head_fault(store: ChainStore, chain: ChainKey, tip: Tip, runtime: Runtime) -> ChainFault | None:
    """Return a fault if a chain's head item states another scope than the chain, or another time than its last record.

    A head item states number, hash and time of a chain's last record. Return None if there is no fault.
    """
    if not tip.sequence:
        return None
    last = format_record_id(tip.sequence)
    if tip.states_other_scope:
        return ChainFault(last, "the head item states another scope, so that lists and checkpoints omit this chain")
    record = await find_last_record(store, chain, tip)
    if (await read_record_time(record, runtime) if record else "") == tip.timestamp:
        return None
    return ChainFault(last, f"the time of {last} differs from the time in the head item")


async def find_orphan_fault(store: ChainStore, chain: ChainKey, genesis_hash: str, tip: Tip) -> ChainFault | None:
    """Return a fault if the store contains orphans that possibly belong to this chain; else None.

    An orphan is a stored record that the head item of its chain does not include, for example because the head item
    was deleted.
    """
    orphans = await store.list_orphan_records(chain, genesis_hash) if isinstance(store, OrphanRecords) else ()
    for record in orphans:
        value = parse_json_if_canonical(record.canonical)
        if type(value) is dict and value.get("PreviousHash") == genesis_hash:
            here = format_record_id(record.sequence)
            if tip.sequence:
                return build_fork_fault(record.hash, 1)
            return ChainFault(here, f"{here} is stored, but this chain has no head item")
    for record in orphans:
        if not tip.sequence and not _is_undamaged_first_record(record) and _can_belong_to_chain(chain, record):
            here = format_record_id(record.sequence)
            return ChainFault(
                here, f"{here} is stored and may belong to this chain, which has no head item and no first record"
            )
    return None


def can_be_earliest_record(record: ChainRecord, genesis_hash: str) -> bool:
    """Return whether a record can be the earliest remaining record of a chain.

    The result is True for the valid first record of this chain. It is also True for a record that is not the first of
    its chain, because the records before it may have been deleted.
    """
    return genesis_hash.encode() in record.canonical or not _is_undamaged_first_record(record)


def _is_undamaged_first_record(record: ChainRecord) -> bool:
    """Return whether a record matches its stored hash and is the first record of some chain."""
    value = parse_json_if_canonical(record.canonical)
    first = type(value) is dict and record.sequence == 1 and value.get("RecordID") == format_record_id(1)
    return first and compute_record_hash(record.canonical) == record.hash


def _can_belong_to_chain(chain: ChainKey, record: ChainRecord) -> bool:
    """Return False if the content of a record shows that the record belongs to another chain; else True.

    Amendments contain their scope; records of the other chains do not.
    """
    value = parse_json_if_canonical(record.canonical)
    if type(value) is dict and "ScopeKey" in value:
        return chain == (Target.DOMAIN_AMENDMENTS, value["ScopeKey"])
    return type(value) is not dict or chain.target is not Target.DOMAIN_AMENDMENTS
