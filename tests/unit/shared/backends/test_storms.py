"""Tests of ``check_records``, which checks the stored records after a crash test of a chain store."""

from dataclasses import dataclass
from typing import Any

import pytest

from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.records import build_event_draft, parse_record, seal_record
from tests.unit.shared.backends.storms import CHAIN, Acknowledgement, Acknowledgements, check_records


@dataclass
class History:
    """Chain of three events from two writers, and the replies to these writers."""

    records: list[dict[str, Any]]
    acknowledgements: Acknowledgements


@pytest.fixture
def valid_history() -> History:
    """Provide a valid history."""
    return build_history([("a", 0), ("b", 0), ("a", 1)])


def build_history(events: list[tuple[str, int]]) -> History:
    """Return a history in which the given events were appended one after another."""
    records: list[dict[str, Any]] = []
    acknowledgements: Acknowledgements = {}
    previous = compute_genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)
    for sequence, (name, number) in enumerate(events, start=1):
        event = {"ActionType": "Test", "EntityType": name, "EntityID": str(number)}
        record = seal_record(build_event_draft(name, event), sequence, f"2026-01-01T00:00:0{sequence}Z", previous, "")
        previous = record.hash
        records.append(parse_record(record.canonical, record.hash))
        acknowledgements[name, number] = Acknowledgement(records[-1]["RecordID"], record.hash, sequence, sequence + 0.5)
    return History(records, acknowledgements)


def test_check_records_accepts_a_valid_history(valid_history: History) -> None:
    """A valid history of appends is accepted, even if the last event was not acknowledged."""
    check_records(valid_history.records, valid_history.acknowledgements)
    del valid_history.acknowledgements["a", 1]
    check_records(valid_history.records, valid_history.acknowledgements)


def test_check_records_finds_a_lost_event(valid_history: History) -> None:
    """The check of a history fails if an acknowledged event is missing."""
    valid_history.acknowledgements["b", 1] = Acknowledgement("000000000004", "0" * 64, 5, 6)
    with pytest.raises(KeyError):
        check_records(valid_history.records, valid_history.acknowledgements)
    valid_history.acknowledgements["b", 1] = valid_history.acknowledgements["b", 0]
    with pytest.raises((AssertionError, KeyError)):
        check_records(valid_history.records, valid_history.acknowledgements)


def test_check_records_finds_a_gap_and_a_fork(valid_history: History) -> None:
    """The check of a history fails if a record is missing or does not link to the record before it."""
    with pytest.raises(AssertionError):
        check_records([valid_history.records[0], valid_history.records[2]], {})
    other = build_history([("a", 0), ("a", 1), ("b", 0)])
    with pytest.raises(AssertionError):
        check_records([*valid_history.records[:2], other.records[2]], {})


@pytest.mark.parametrize("events", [[("a", 0), ("a", 0)], [("a", 1), ("a", 0)]])
def test_check_records_finds_a_duplicate_and_a_wrong_order(events: list[tuple[str, int]]) -> None:
    """The check of a history fails if a writer's event is stored twice, or before an earlier event of this writer."""
    with pytest.raises(AssertionError, match="is stored before event"):
        check_records(build_history(events).records, {})


def test_check_records_finds_a_reply_with_a_wrong_record(valid_history: History) -> None:
    """The check of a history fails if the reply about one event contains the record of a different event."""
    valid_history.acknowledgements["b", 0] = valid_history.acknowledgements["a", 0]
    with pytest.raises(AssertionError, match="is not stored as"):
        check_records(valid_history.records, valid_history.acknowledgements)


def test_check_records_finds_an_event_before_an_acknowledged_one(valid_history: History) -> None:
    """The check of a history fails if an event is stored before an event that was acknowledged before its request."""
    late = valid_history.acknowledgements["a", 0]
    valid_history.acknowledgements["a", 0] = late._replace(requested_at=9.0, acknowledged_at=9.5)
    with pytest.raises(AssertionError, match="precedes an event"):
        check_records(valid_history.records, valid_history.acknowledgements)
