"""Tests that the check after a crash test rejects each kind of invalid history."""

from dataclasses import dataclass
from typing import Any

import pytest

from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.records import draft_event, parse_record, seal_record
from tests.unit.shared.backends.storms import CHAIN, Acknowledgement, Acknowledgements, check_records


@dataclass
class History:
    """Chain of three events from two writers, and the replies to these writers."""

    records: list[dict[str, Any]]
    acknowledgements: Acknowledgements


@pytest.fixture
def valid_history() -> History:
    """Provide a valid history."""
    return append_history([("a", 0), ("b", 0), ("a", 1)])


def append_history(events: list[tuple[str, int]]) -> History:
    """Return a history in which these events are appended one after another."""
    records: list[dict[str, Any]] = []
    acknowledgements: Acknowledgements = {}
    previous = compute_genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)
    for sequence, (name, number) in enumerate(events, start=1):
        event = {"ActionType": "Test", "EntityType": name, "EntityID": str(number)}
        record = seal_record(draft_event(name, event), sequence, f"2026-01-01T00:00:0{sequence}Z", previous, "")
        previous = record.hash
        records.append(parse_record(record.canonical, record.hash))
        acknowledgements[name, number] = Acknowledgement(records[-1]["RecordID"], record.hash, sequence, sequence + 0.5)
    return History(records, acknowledgements)


def test_the_check_accepts_a_valid_history(valid_history: History) -> None:
    """The check accepts a valid history, also if the last event was not acknowledged."""
    check_records(valid_history.records, valid_history.acknowledgements)
    del valid_history.acknowledgements["a", 1]
    check_records(valid_history.records, valid_history.acknowledgements)


def test_the_check_finds_a_lost_event(valid_history: History) -> None:
    """The check fails if an acknowledged event is missing."""
    valid_history.acknowledgements["b", 1] = Acknowledgement("000000000004", "0" * 64, 5, 6)
    with pytest.raises(KeyError):
        check_records(valid_history.records, valid_history.acknowledgements)
    valid_history.acknowledgements["b", 1] = valid_history.acknowledgements["b", 0]
    with pytest.raises((AssertionError, KeyError)):
        check_records(valid_history.records, valid_history.acknowledgements)


def test_the_check_finds_a_gap_and_a_fork(valid_history: History) -> None:
    """The check fails if a record is missing or does not link to the one before."""
    with pytest.raises(AssertionError):
        check_records([valid_history.records[0], valid_history.records[2]], {})
    other = append_history([("a", 0), ("a", 1), ("b", 0)])
    with pytest.raises(AssertionError):
        check_records([*valid_history.records[:2], other.records[2]], {})


@pytest.mark.parametrize("events", [[("a", 0), ("a", 0)], [("a", 1), ("a", 0)]])
def test_the_check_finds_a_duplicate_and_a_wrong_order(events: list[tuple[str, int]]) -> None:
    """The check fails if an event is stored twice, or before an earlier event of its writer."""
    with pytest.raises(AssertionError, match="comes next"):
        check_records(append_history(events).records, {})


def test_the_check_finds_a_reply_with_another_record(valid_history: History) -> None:
    """The check fails if a reply contains the record of another event."""
    valid_history.acknowledgements["b", 0] = valid_history.acknowledgements["a", 0]
    with pytest.raises(AssertionError, match="is not stored as"):
        check_records(valid_history.records, valid_history.acknowledgements)


def test_the_check_finds_an_event_before_an_acknowledged_one(valid_history: History) -> None:
    """The check fails if an event precedes another event whose reply arrived before the first one was requested."""
    late = valid_history.acknowledgements["a", 0]
    valid_history.acknowledgements["a", 0] = late._replace(requested_at=9.0, acknowledged_at=9.5)
    with pytest.raises(AssertionError, match="precedes an event"):
        check_records(valid_history.records, valid_history.acknowledgements)
