"""Checks before an append to an audit chain.

The chain's head item, which states the last record, must match that record, and no record may follow it. The last
record's time must not be too far ahead of the clock.
"""

from datetime import datetime, timedelta
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import parse_json_if_canonical
from shared.provenance.chain_reading import read_record_time
from shared.provenance.hash_rule import LAST_SEQUENCE, format_record_id, is_record_time
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Tip
from shared.runtime import Runtime
from shared.timestamps import format_rfc3339

MAX_CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""Maximum difference between clocks of hosts. If the last record's time is further ahead, appends are rejected."""


async def reject_forged_head(store: ChainStore, chain: ChainKey, tip: Tip, current_time: str, runtime: Runtime) -> None:
    """Reject an append if the chain's head item, which states the last record, does not match the stored records.

    The next record takes its PreviousHash from the head item, and its time is not earlier than that of the head item.
    Therefore, these rules are checked:

    - The head item's hash must be the stored hash of the last record.
    - No record may follow, because an append would sooner or later need its place.
    - The last record's time must have the format of records.
    - If the head item or the last record has a time ahead of the clock, both must have the same time. Such a time is
      accepted because the clock of another host can be ahead.

    Args:
        store: store of the chain.
        chain: chain to append to.
        tip: number, hash and time of the last record, as the head item states them.
        current_time: current time in the format of records.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the head item is forged (a retry cannot help), or if
            the store does not respond.
    """
    if not 0 <= tip.sequence < LAST_SEQUENCE:
        raise _build_forged_head_error()
    page = await store.read(chain, max(tip.sequence - 1, 0), limit=1, max_bytes=1)
    last = page.records[0] if page.records and page.records[0].sequence == tip.sequence else None
    if not await _is_tip_consistent_with_last_record(tip, last, current_time, runtime):
        raise _build_forged_head_error()
    has_next = bool(page.more if last else page.records)
    # Another process may have appended since the tip was read; then its records are not forged.
    if has_next and (await store.read_tip(chain)).sequence == tip.sequence:
        raise _build_forged_head_error()


def _build_forged_head_error() -> WorkspaceError:
    detail = "The head item of the chain does not match its last record; an operator must verify the chain."
    return WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail, retryAfter=None)


async def _is_tip_consistent_with_last_record(
    tip: Tip, last: ChainRecord | None, current_time: str, runtime: Runtime
) -> bool:
    if tip.hash != (last.hash if last else "") or (last is None and tip.sequence):
        return False
    time = await read_record_time(last, runtime) if last else ""
    if last and not is_record_time(time) and parse_json_if_canonical(last.canonical) is not None:
        return False
    return max(tip.timestamp, time) <= current_time or tip.timestamp == time


def reject_future_tip(tip: Tip, now: datetime) -> None:
    """Reject an append if the last record's time, which the next record would repeat, is too far ahead of the clock.

    Args:
        tip: number, hash and time of the last record, as the chain's head item states them.
        now: current time.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the time of the tip is more than
            :data:`MAX_CLOCK_DIFFERENCE` ahead. Appends succeed again when that time has passed.
    """
    if tip.timestamp > compute_latest_allowed_record_time(now):
        fault = describe_future_time_fault(format_record_id(tip.sequence))
        detail = f"{fault}; synchronise the clocks of the hosts, and verify the chain."
        raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)


def compute_latest_allowed_record_time(now: datetime) -> str:
    """Return the latest time that a record may have: the current time plus the allowed difference of clocks."""
    return format_rfc3339(now + MAX_CLOCK_DIFFERENCE)


def describe_future_time_fault(record_id: str) -> str:
    """Describe the fault of a record whose time is later than :func:`compute_latest_allowed_record_time` allows."""
    return f"{record_id} has a time more than an hour ahead of this host's clock"
