"""Tests of the text with which `oi audit verify` explains its result to an auditor."""

from typing import TYPE_CHECKING, Any, cast

from oi.cli.audit import explain_verdict

if TYPE_CHECKING:
    from oi.models import Verdict


def build_verdict(**changes: Any) -> "Verdict":
    """Return the result of verifying an intact chain, with changed properties."""
    verdict = {
        "Valid": None,
        "ChainValid": True,
        "Empty": False,
        "Record": None,
        "RecomputedHash": None,
        "BrokenAt": None,
        "ForkDetected": False,
        "Reason": "2 records, all sound",
        "Target": "DomainEvents",
    }
    return cast("Verdict", verdict | changes)


def test_the_text_about_an_intact_chain_explains_the_result() -> None:
    """The text about an intact chain explains the meaning of the result."""
    assert "No record was altered, inserted, removed or reordered." in explain_verdict(build_verdict())


def test_the_text_about_an_empty_chain_states_that_nothing_was_checked() -> None:
    """The text about an empty chain says that nothing was checked, for example because of a wrong scope."""
    text = explain_verdict(build_verdict(Empty=True))
    assert "nothing was checked" in text
    assert "intact" not in text


def test_the_text_about_a_broken_chain_states_position_and_reason() -> None:
    """The text about a broken chain states the position, the reason, and what to do next."""
    broken = {"ChainValid": False, "BrokenAt": "000000000004", "Reason": "000000000004 is missing"}
    text = explain_verdict(build_verdict(**broken, ForkDetected=True))
    assert "THE CHAIN IS BROKEN at 000000000004" in text
    assert "Two records claim the same predecessor." in text
    assert "Do not rely on this chain." in text
    assert "`oi audit fetch`" in text


def test_the_text_about_a_record_states_whether_it_is_genuine() -> None:
    """The text about a single record states whether the record is genuine, altered or missing."""
    record = {"RecordID": "000000000002"}
    assert "its content matches its hash" in explain_verdict(build_verdict(Valid=True, Record=record))
    assert "ALTERED OR DAMAGED" in explain_verdict(build_verdict(Valid=False, Record=record))
    assert "no record with this RecordID" in explain_verdict(build_verdict(Valid=False))
