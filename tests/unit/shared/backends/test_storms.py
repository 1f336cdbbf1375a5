"""The model of the storms refuses each history that it is there to refuse."""

from dataclasses import dataclass
from typing import Any

import pytest

from shared.provenance.hash_rule import genesis_hash
from shared.provenance.records import draft_event, parse_record, seal_record
from tests.unit.shared.backends.storms import CHAIN, Answer, Answers, check


@dataclass
class History:
    """A chain of three events of two writers, and what they were told."""

    records: list[dict[str, Any]]
    answers: Answers


@pytest.fixture
def history() -> History:
    """A history that fits."""
    return made([("a", 0), ("b", 0), ("a", 1)])


def made(events: list[tuple[str, int]]) -> History:
    """Return the history of events that were appended and answered one after the other."""
    records: list[dict[str, Any]] = []
    answers: Answers = {}
    previous = genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)
    for sequence, (name, number) in enumerate(events, start=1):
        event = {"ActionType": "Test", "EntityType": name, "EntityID": str(number)}
        record = seal_record(draft_event(name, event), sequence, f"2026-01-01T00:00:0{sequence}Z", previous, "")
        previous = record.hash
        records.append(parse_record(record.canonical, record.hash))
        answers[name, number] = Answer(records[-1]["RecordID"], record.hash, sequence, sequence + 0.5)
    return History(records, answers)


def test_a_sound_history_fits(history: History) -> None:
    """The right one passes, also when its last event was never answered."""
    check(history.records, history.answers)
    del history.answers["a", 1]
    check(history.records, history.answers)


def test_a_lost_answer_is_found(history: History) -> None:
    """An answered event that is not there."""
    history.answers["b", 1] = Answer("000000000004", "0" * 64, 5, 6)
    with pytest.raises(KeyError):
        check(history.records, history.answers)
    history.answers["b", 1] = history.answers["b", 0]
    with pytest.raises((AssertionError, KeyError)):
        check(history.records, history.answers)


def test_a_gap_and_a_fork_are_found(history: History) -> None:
    """A record that is missing, or does not link."""
    with pytest.raises(AssertionError):
        check([history.records[0], history.records[2]], {})
    other = made([("a", 0), ("a", 1), ("b", 0)])
    with pytest.raises(AssertionError):
        check([*history.records[:2], other.records[2]], {})


@pytest.mark.parametrize("events", [[("a", 0), ("a", 0)], [("a", 1), ("a", 0)]])
def test_a_duplicate_and_a_wrong_order_are_found(events: list[tuple[str, int]]) -> None:
    """An event twice, or before the one that its writer was answered first."""
    with pytest.raises(AssertionError, match="comes next"):
        check(made(events).records, {})


def test_an_answer_of_another_record_is_found(history: History) -> None:
    """An answer that names another place than the event's."""
    history.answers["b", 0] = history.answers["a", 0]
    with pytest.raises(AssertionError, match="is not where"):
        check(history.records, history.answers)


def test_an_event_before_what_was_answered_earlier_is_found(history: History) -> None:
    """Who asks after an answer stands behind it."""
    late = history.answers["a", 0]
    history.answers["a", 0] = late._replace(asked=9.0, answered=9.5)
    with pytest.raises(AssertionError, match="answered earlier"):
        check(history.records, history.answers)
