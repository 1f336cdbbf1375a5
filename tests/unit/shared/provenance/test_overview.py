"""Tests of the entries in the overview of chains."""

from dataclasses import replace

from shared.provenance.overview import chain_summary_to_json
from shared.provenance.overview_ports import ChainSummary, StoredVerdict
from shared.provenance.ports import ChainKey, Target

AT = "2026-01-05T08:00:00.000000Z"
VALID = StoredVerdict(AT, 12, is_valid=True)
SUMMARY = ChainSummary(ChainKey(Target.DOMAIN_EVENTS, "line-1"), 12, AT, AT, 2, 10, VALID)


def test_an_overview_entry_has_all_values_of_its_chain() -> None:
    """An entry has all values of its chain; the last RecordID is computed from the number of records."""
    assert chain_summary_to_json(SUMMARY) == {
        "scopeKey": "line-1",
        "target": "DomainEvents",
        "records": 12,
        "firstAt": AT,
        "lastAt": AT,
        "lastRecordID": "000000000012",
        "checkpointSize": 10,
        "pendingAmendments": 2,
        "lastVerifiedAt": AT,
        "lastVerdict": "valid",
    }


def test_missing_and_damaged_values_of_a_chain_are_null() -> None:
    """If a value of a chain is missing or damaged, such as an invalid time, its entry shows null."""
    chain = ChainKey(Target.PLATFORM_CONFIG)
    row = chain_summary_to_json(ChainSummary(chain, 1, "yesterday", "", None, None))
    assert (row["scopeKey"], row["firstAt"], row["lastAt"], row["lastVerdict"]) == (None, None, None, None)
    assert (row["checkpointSize"], row["pendingAmendments"]) == (0, 0)
    assert chain_summary_to_json(ChainSummary(chain, 0, "", "", None, None))["lastRecordID"] is None


def test_a_broken_chain_is_marked_in_the_overview() -> None:
    """If the newest complete verification of a chain has failed, the chain is marked as broken."""
    broken = replace(SUMMARY, verdict=StoredVerdict(AT, 12, is_valid=False, broken_at="000000000003"))
    assert chain_summary_to_json(broken)["lastVerdict"] == "broken"
