"""Checks of chains beyond hashes and links: their head items, and the signatures of decisions.

A head item states a chain's last record; it is compared with the records, because it may be forged. In a chain of
amendments, each signature of a decision must contain the hash of the amendment.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from shared.errors import Kind, WorkspaceError
from shared.interpreter import pause_garbage_collection
from shared.provenance.canonical import parse_if_canonical
from shared.provenance.chain_verification import ChainFault, ChainVerification, build_fork_fault, parse_content_time
from shared.provenance.hash_rule import (
    LAST_SEQUENCE,
    compute_digest,
    format_record_id,
    is_time,
    sequence_from_record_id,
)
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, OrphanRecords, Target, Tip
from shared.provenance.signatures import MEMBER, RECORD_HASH
from shared.runtime import Runtime
from shared.timestamps import rfc3339

MAX_ORPHANS: Final = 100
MAX_CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""Maximum difference between clocks of hosts. If the last record's time is further ahead, appends are rejected."""


async def reject_forged_head(store: ChainStore, chain: ChainKey, tip: Tip, instant: str, runtime: Runtime) -> None:
    """Reject an append if the chain's head item, which states the last record, does not match that record.

    The next record takes its PreviousHash and its earliest time from the head item. Therefore:

    - The head item's hash must be the stored hash of the last record.
    - The last record's time must have the format of records.
    - If the head item or the last record has a time ahead of the clock, both must have the same time. Such a time is
      accepted because the clock of another host may be ahead.

    Args:
        store: store of the chain.
        chain: chain to append to.
        tip: number, hash and time of the last record, as the head item states them.
        instant: current time in the format of records.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the head item is forged or the store does not respond.
    """
    if not await _matches_last_record(store, chain, tip, instant, runtime):
        detail = "The head item of the chain does not match its last record; verify the chain."
        raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)


async def _matches_last_record(store: ChainStore, chain: ChainKey, tip: Tip, instant: str, runtime: Runtime) -> bool:
    if not 0 <= tip.sequence < LAST_SEQUENCE:
        return False
    last = await _read_last(store, chain, tip)
    if tip.hash != (last.hash if last else "") or (last is None and tip.sequence):
        return False
    time = await _parse_time(last, runtime) if last else ""
    if last and not is_time(time) and parse_if_canonical(last.canonical) is not None:
        return False
    return max(tip.timestamp, time) <= instant or tip.timestamp == time


def reject_future_tip(tip: Tip, instant: datetime) -> None:
    """Reject an append if the time of the last record is too far ahead, because the next record would repeat that time.

    Args:
        tip: number, hash and time of the last record, as the chain's head item states them.
        instant: current time.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the time of the tip is more than
            :data:`MAX_CLOCK_DIFFERENCE` ahead. Appends succeed again when that time has passed.
    """
    if tip.timestamp > compute_latest_allowed_time(instant):
        fault = _describe_future_time(format_record_id(tip.sequence))
        detail = f"{fault}; synchronise the clocks of the hosts, and verify the chain."
        raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)


def compute_latest_allowed_time(instant: datetime) -> str:
    """Return the latest time that a record may have: the current time plus the allowed difference of clocks."""
    return rfc3339(instant + MAX_CLOCK_DIFFERENCE)


async def find_future_timestamps(
    store: ChainStore, chain: ChainKey, verification: ChainVerification, instant: datetime
) -> ChainFault | None:
    """Return a fault for the first record whose time is too far ahead of the clock.

    Call this only for a valid chain.
    """
    if verification.time <= compute_latest_allowed_time(instant):
        return None
    ahead = Filters(start=compute_latest_allowed_time(instant + timedelta(microseconds=1)))
    page = await store.scan(chain, ahead, newest_first=False, limit=1, max_bytes=1)
    first = format_record_id(min([verification.sequence, *(record.sequence for record in page.records)]))
    return ChainFault(first, _describe_future_time(first))


def _describe_future_time(record_id: str) -> str:
    return f"{record_id} has a time more than an hour ahead of this host's clock"


async def find_head_time_mismatch(store: ChainStore, chain: ChainKey, tip: Tip, runtime: Runtime) -> ChainFault | None:
    """Return a fault if the time in the head item differs from the time of the last record; else None."""
    if not tip.sequence or await read_last_time(store, chain, tip, runtime) == tip.timestamp:
        return None
    last = format_record_id(tip.sequence)
    return ChainFault(last, f"the time of {last} differs from the time in the head item")


async def find_orphans(store: ChainStore, chain: ChainKey, genesis: str, tip: Tip) -> ChainFault | None:
    """Return a fault if there are stored records of the chain that its head item does not include; else None."""
    orphans = await store.list_orphans(chain, genesis) if isinstance(store, OrphanRecords) else ()
    for record in orphans:
        value = parse_if_canonical(record.canonical)
        if type(value) is dict and value.get("PreviousHash") == genesis:
            here = format_record_id(record.sequence)
            if tip.sequence:
                return build_fork_fault(record.hash, 1)
            return ChainFault(here, f"{here} is stored, but this chain has no head item")
    for record in orphans:
        if not tip.sequence and not _is_first_record(record) and _can_belong_to(chain, record):
            here = format_record_id(record.sequence)
            return ChainFault(
                here, f"{here} is stored and may belong to this chain, which has no head item and no first record"
            )
    return None


def can_be_earliest(record: ChainRecord, genesis: str) -> bool:
    """Return whether a record can be the earliest remaining record of a chain.

    The result is True for the valid first record of this chain, and for a record that is not the first of its chain,
    because its predecessors may have been deleted.
    """
    return genesis.encode() in record.canonical or not _is_first_record(record)


def _is_first_record(record: ChainRecord) -> bool:
    """Return whether a record matches its stored hash and is the first record of some chain."""
    value = parse_if_canonical(record.canonical)
    first = type(value) is dict and record.sequence == 1 and value.get("RecordID") == format_record_id(1)
    return first and compute_digest(record.canonical) == record.hash


def _can_belong_to(chain: ChainKey, record: ChainRecord) -> bool:
    """Return False if the content of a record shows that the record belongs to another chain; else True.

    Amendments contain their scope; records of the other chains do not.
    """
    value = parse_if_canonical(record.canonical)
    if type(value) is dict and "ScopeKey" in value:
        return chain == (Target.DOMAIN_AMENDMENTS, value["ScopeKey"])
    return type(value) is not dict or chain.target is not Target.DOMAIN_AMENDMENTS


async def read_last_time(store: ChainStore, chain: ChainKey, tip: Tip, runtime: Runtime) -> str:
    """Return the time in the content of the record that the head item states as the last; empty if there is none."""
    last = await _read_last(store, chain, tip)
    return await _parse_time(last, runtime) if last else ""


async def _parse_time(record: ChainRecord, runtime: Runtime) -> str:
    with pause_garbage_collection(len(record.canonical)):
        return await runtime.run_in_worker(len(record.canonical), parse_content_time, record)


async def _read_last(store: ChainStore, chain: ChainKey, tip: Tip) -> ChainRecord | None:
    """Return the record that the head item states as the last record; None if this record does not exist."""
    if not tip.sequence:
        return None
    page = await store.read(chain, tip.sequence - 1, limit=1, max_bytes=1)
    return page.records[0] if page.records and page.records[0].sequence == tip.sequence else None


_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000


class _SignedDecision(NamedTuple):
    """Signed decision: its RecordID, the RecordID of its amendment, and the hash that its signature contains."""

    record_id: str
    amendment: object
    record_hash: object


async def find_misdirected_signature(
    store: ChainStore, chain: ChainKey, first: int, last: int, runtime: Runtime
) -> ChainFault | None:
    """Return the fault of the first signature whose hash is not that of the decided amendment.

    Return None if all hashes match.

    Args:
        store: store of the chain, whose records are verified already.
        chain: key of a scope's chain of amendments.
        first: sequence number of the first signed decision.
        last: sequence number of the last signed decision.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    after = first - 1
    while after < last:
        page = await store.read(chain, after, limit=min(_PAGE_RECORDS, last - after), max_bytes=_PAGE_BYTES)
        if not page.records:
            return None
        known = {format_record_id(record.sequence): record.hash for record in page.records}
        for decision in await runtime.run_in_thread(_list_signed, page.records):
            if decision.record_hash != await _find_hash(store, chain, decision.amendment, known):
                here = decision.record_id
                return ChainFault(here, f"{here}: the signature names another record")
        after = page.records[-1].sequence
    return None


def _list_signed(records: Sequence[ChainRecord]) -> list[_SignedDecision]:
    return list(_iter_signed(records))


def _iter_signed(records: Sequence[ChainRecord]) -> Iterator[_SignedDecision]:
    for record in records:
        content = parse_if_canonical(record.canonical)
        if type(content) is dict and is_signed_decision(content):
            signature = content[MEMBER]
            named = signature.get(RECORD_HASH) if isinstance(signature, dict) else None
            yield _SignedDecision(format_record_id(record.sequence), content["AmendmentID"], named)


def is_signed_decision(content: Mapping[str, object]) -> bool:
    """Return whether a record is a decision about an amendment and has a signature, which may be invalid."""
    return MEMBER in content and "AmendmentID" in content


async def _find_hash(store: ChainStore, chain: ChainKey, amendment: object, known: Mapping[str, str]) -> str:
    """Find the stored hash of an amendment by its RecordID; empty if the amendment does not exist."""
    if isinstance(amendment, str) and amendment in known:
        return known[amendment]
    sequence = sequence_from_record_id(amendment)
    if not sequence:
        return ""
    page = await store.read(chain, sequence - 1, limit=1, max_bytes=1)
    return next((record.hash for record in page.records if record.sequence == sequence), "")
