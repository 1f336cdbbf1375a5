"""What was decided about corrections, by what the records say: the fields that filters look at can be edited alone."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.provenance.canonical import parse_if_canonical
from shared.provenance.hash_rule import digest, record_id, sequence_of
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, DecisionLookup, Lookup
from shared.provenance.records import project_record

READ_AT_MOST: Final = 5_000
"""Records read for their content alone, where a store finds decisions by nothing but their filter fields."""

_FIND_AT_ONCE: Final = 100
_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000
_BEGINS: Final = b'{"AmendmentID":"'


@dataclass(frozen=True, slots=True)
class FoundDecisions:
    """What was found about some corrections.

    Attributes:
        by_amendment: RecordIDs of decided ones, each with the first record about it.
        seen_to: last sequence up to which records were looked at for what they say; 0 where they were found so.
        whole: nothing follows that.
    """

    by_amendment: Mapping[str, ChainRecord]
    seen_to: int = 0
    whole: bool = True


def parse_content(record: ChainRecord) -> dict[str, Any] | None:
    """Return what a record says, None where its digest does not fit, or another place is named in it."""
    value = parse_if_canonical(record.canonical)
    sound = type(value) is dict and digest(record.canonical) == record.hash
    return value if sound and value.get("RecordID") == record_id(record.sequence) else None


def has_matching_filter_fields(record: ChainRecord) -> bool:
    """Tell whether a record is sound in itself, and its filter fields are those of its content."""
    content = parse_content(record)
    return content is not None and project_record(content) == dict(record.projection)


def decided_amendment_id(record: ChainRecord) -> str:
    """Return which correction a record decides, empty for none; only where it says nothing its filter field counts."""
    value = parse_if_canonical(record.canonical)
    if type(value) is not dict:
        return record.projection.get("AmendmentID", "")
    said = value.get("AmendmentID", "")
    return said if isinstance(said, str) else ""


async def look_up_decisions(store: ChainStore, chain: ChainKey, amendments: Sequence[str]) -> dict[str, ChainRecord]:
    """Return the decisions about some corrections: by content where the store finds them so, else by filter field."""
    found: list[ChainRecord] = []
    for start in range(0, len(amendments), _FIND_AT_ONCE):
        some = amendments[start : start + _FIND_AT_ONCE]
        if isinstance(store, DecisionLookup):
            found += await store.find_decisions(chain, some)
        else:
            found += await store.find(chain, Lookup.AMENDMENT_ID, some)
    return await asyncio.to_thread(_select_first, found, amendments)


async def find_decisions(
    store: ChainStore, chain: ChainKey, amendments: Sequence[str], after: int = 0
) -> FoundDecisions:
    """Return the decisions about some corrections.

    Args:
        store: keeps the chain; of one that finds records by their filter fields alone, those that follow the first of
            the corrections are read besides, up to :data:`READ_AT_MOST`.
        chain: the scope's chain of corrections.
        amendments: their RecordIDs.
        after: sequence behind which to begin to read; lower ones count for nothing.

    Raises:
        WorkspaceError: the store's UNAVAILABLE.
    """
    by_amendment = await look_up_decisions(store, chain, amendments)
    open_ones = [sequence_of(one) or 0 for one in amendments if one not in by_amendment]
    if isinstance(store, DecisionLookup) or not open_ones:
        return FoundDecisions(by_amendment)
    start = max(after, min(open_ones))
    read, seen_to, whole = await _read_decisions(store, chain, frozenset(map(record_id, open_ones)), start)
    return FoundDecisions({**await asyncio.to_thread(_select_first, read, amendments), **by_amendment}, seen_to, whole)


async def _read_decisions(
    store: ChainStore, chain: ChainKey, amendments: frozenset[str], start: int
) -> tuple[list[ChainRecord], int, bool]:
    """Return the records about corrections that say so, up to where was read, and whether nothing follows."""
    found: list[ChainRecord] = []
    after = start
    while after < start + READ_AT_MOST:
        most = min(_PAGE_RECORDS, start + READ_AT_MOST - after)
        page = await store.read(chain, after, limit=most, max_bytes=_PAGE_BYTES)
        found += await asyncio.to_thread(_filter_decisions, page.records, amendments)
        after = page.records[-1].sequence if page.records else after
        if not page.more:
            return found, after, True
    return found, after, False


def _filter_decisions(records: Sequence[ChainRecord], amendments: frozenset[str]) -> list[ChainRecord]:
    # No member of a decision sorts before this one.
    return [one for one in records if one.canonical.startswith(_BEGINS) and decided_amendment_id(one) in amendments]


def _select_first(records: Sequence[ChainRecord], amendments: Sequence[str]) -> dict[str, ChainRecord]:
    """Return the first record about each correction; one that says so goes before one of which a field says so."""
    in_order = sorted(records, key=lambda one: one.sequence)
    said = [(decided_amendment_id(one), one) for one in in_order]
    said += [(one.projection.get("AmendmentID", ""), one) for one in in_order]
    wanted = set(amendments)
    return {amendment: one for amendment, one in reversed(said) if amendment in wanted}
