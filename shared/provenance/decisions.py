"""Search for decisions (approvals and rejections) about amendments.

The content of records is searched and not only the filter fields (copies of the content for queries), because an
attacker may have changed only these copies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from shared.provenance.canonical import parse_json_if_canonical
from shared.provenance.hash_rule import (
    compute_record_hash,
    format_record_id,
    get_filter_fields,
    sequence_from_record_id,
)
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, DecisionLookup, LookupField
from shared.runtime import SYSTEM_RUNTIME, Runtime

READ_AT_MOST: Final = 5_000
"""Maximum number of records whose content is read, if the store can find decisions by filter fields only."""

_FIND_AT_ONCE: Final = 100
_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000
_DECISION_PREFIX: Final = b'{"AmendmentID":"'


@dataclass(frozen=True, slots=True)
class FoundDecisions:
    """Result of a search for decisions about amendments.

    Attributes:
        by_amendment: RecordIDs of decided amendments, each with its first decision.
        seen_to: sequence number of the last record whose content was read; 0 if no record was read, because the index
            of the store answered the search.
        is_complete: True if the search covered the whole chain; False if records after ``seen_to`` were not searched.
    """

    by_amendment: Mapping[str, ChainRecord]
    seen_to: int = 0
    is_complete: bool = True

    def select_decisions_up_to(self, last_sequence: int) -> "FoundDecisions":
        """Return the result without decisions after the record ``last_sequence``, as if the chain ended there."""
        by_amendment = {name: one for name, one in self.by_amendment.items() if one.sequence <= last_sequence}
        return FoundDecisions(by_amendment, self.seen_to, self.is_complete or self.seen_to >= last_sequence)


def parse_content_if_verified(record: ChainRecord) -> dict[str, Any] | None:
    """Parse a record's content; return None if the content does not match the stored Hash or sequence number."""
    value = parse_json_if_canonical(record.canonical)
    sound = type(value) is dict and compute_record_hash(record.canonical) == record.hash
    return value if sound and value.get("RecordID") == format_record_id(record.sequence) else None


def has_metadata_matching_content(record: ChainRecord) -> bool:
    """Return whether a record's Hash, sequence number and filter fields (copies for queries) match its content."""
    content = parse_content_if_verified(record)
    return content is not None and get_filter_fields(content) == dict(record.projection)


def read_decided_amendment_id(record: ChainRecord) -> str:
    """Return the RecordID of the amendment that a record approves or rejects; empty if the record is no decision.

    If the content cannot be parsed, the filter field ``AmendmentID`` is returned.
    """
    value = parse_json_if_canonical(record.canonical)
    if type(value) is not dict:
        return record.projection.get("AmendmentID", "")
    decided = value.get("AmendmentID", "")
    return decided if isinstance(decided, str) else ""


async def map_indexed_decisions_by_amendment(
    store: ChainStore, chain: ChainKey, amendment_ids: Sequence[str], *, runtime: Runtime
) -> dict[str, ChainRecord]:
    """Find decisions about amendments with an index of the store, without reading the chain.

    If the store has an index of the contents of records, use this index. Otherwise, use the index of the filter fields
    (copies of the content for queries).

    Returns:
        The first decision about each decided amendment, by the RecordID of the amendment.
    """
    found: list[ChainRecord] = []
    for start in range(0, len(amendment_ids), _FIND_AT_ONCE):
        batch = amendment_ids[start : start + _FIND_AT_ONCE]
        if isinstance(store, DecisionLookup):
            found += await store.find_decisions(chain, batch)
        else:
            found += await store.find(chain, LookupField.AMENDMENT_ID, batch)
    return await runtime.run_in_thread(_map_first_decisions_by_amendment, found, amendment_ids)


async def find_decisions(
    store: ChainStore,
    chain: ChainKey,
    amendment_ids: Sequence[str],
    after_sequence: int = 0,
    *,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> FoundDecisions:
    """Find the first decision about each of the given amendments.

    Args:
        store: store of the chain. If it finds records by filter fields only, the content of up to :data:`READ_AT_MOST`
            records after the first amendment is read, too.
        chain: key of the scope's chain of amendments.
        amendment_ids: RecordIDs of the amendments.
        after_sequence: sequence number up to which an earlier search has read the content of records.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    by_amendment = await map_indexed_decisions_by_amendment(store, chain, amendment_ids, runtime=runtime)
    undecided = [sequence_from_record_id(one) or 0 for one in amendment_ids if one not in by_amendment]
    if isinstance(store, DecisionLookup) or not undecided:
        return FoundDecisions(by_amendment)
    start = max(after_sequence, min(undecided))
    read, seen_to, is_complete = await _read_records_and_select_decisions(
        store, chain, frozenset(map(format_record_id, undecided)), start, runtime
    )
    return FoundDecisions(
        {**await runtime.run_in_thread(_map_first_decisions_by_amendment, read, amendment_ids), **by_amendment},
        seen_to,
        is_complete,
    )


class _ReadDecisions(NamedTuple):
    """Decisions among records that were read.

    Attributes:
        decisions: decisions about the amendments.
        seen_to: sequence number of the last record that was read.
        is_complete: whether that record is the last one of the chain.
    """

    decisions: list[ChainRecord]
    seen_to: int
    is_complete: bool


async def _read_records_and_select_decisions(
    store: ChainStore, chain: ChainKey, amendment_ids: frozenset[str], after_sequence: int, runtime: Runtime
) -> _ReadDecisions:
    """Read up to :data:`READ_AT_MOST` records after ``after_sequence``; return the decisions about the amendments."""
    found: list[ChainRecord] = []
    after = after_sequence
    while after < after_sequence + READ_AT_MOST:
        most = min(_PAGE_RECORDS, after_sequence + READ_AT_MOST - after)
        page = await store.read(chain, after, limit=most, max_bytes=_PAGE_BYTES)
        found += await runtime.run_in_thread(_filter_decisions, page.records, amendment_ids)
        after = page.records[-1].sequence if page.records else after
        if not page.more:
            return _ReadDecisions(found, after, is_complete=True)
    return _ReadDecisions(found, after, is_complete=False)


def _filter_decisions(records: Sequence[ChainRecord], amendment_ids: frozenset[str]) -> list[ChainRecord]:
    # AmendmentID is the first property of a decision in canonical order.
    return [
        one
        for one in records
        if one.canonical.startswith(_DECISION_PREFIX) and read_decided_amendment_id(one) in amendment_ids
    ]


def _map_first_decisions_by_amendment(
    records: Sequence[ChainRecord], amendment_ids: Sequence[str]
) -> dict[str, ChainRecord]:
    """Select the first decision about each of the given amendments; return it by the RecordID of the amendment.

    If the content of any record names the amendment, records that name it only in their filter fields do not count.
    """
    in_order = sorted(records, key=lambda one: one.sequence)
    pairs = [(read_decided_amendment_id(one), one) for one in in_order]
    pairs += [(one.projection.get("AmendmentID", ""), one) for one in in_order]
    wanted = set(amendment_ids)
    return {amendment: one for amendment, one in reversed(pairs) if amendment in wanted}
