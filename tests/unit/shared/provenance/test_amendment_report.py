"""Tests of electronic signatures in the printable report of amendments."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from shared.provenance.amendment_report import render_amendment_html
from shared.provenance.decisions import FoundDecisions
from shared.provenance.ports import ChainRecord
from shared.provenance.records import build_record_draft, seal_record

AMENDMENT = {
    "AmendedBy": "ann@t",
    "AmendedRecord": {"weight": 14},
    "ChangedFields": ["weight"],
    "EntityID": "B-1",
    "EntityType": "Batch",
    "OriginalRecord": {"weight": 41},
    "ReasonCategory": "typo",
    "ReasonText": "swapped digits",
    "ScopeKey": "line-1",
    "Status": "pending",
}
DECISION = {
    "AmendmentID": "000000000001",
    "ApprovedBy": "bob@t",
    "EntityID": "B-1",
    "EntityType": "Batch",
    "Meaning": "approval",
    "ScopeKey": "line-1",
    "Status": "approved",
}
SIGNATURE = {
    "UserID": "bob@t",
    "PrintedName": "Bob <Example>",
    "Meaning": "review",
    "Statement": "I checked & agree.",
    "SignedAt": "2026-05-04T08:00:00.000000Z",
    "AuthTime": "2026-05-04T07:59:00.000000Z",
    "AuthMethods": ["key"],
    "RecordHash": "ab" * 32,
}


def render_with_signature(signature: Mapping[str, Any] | None, *, altered: Any = None) -> str:
    """Render an amendment whose decision has the given signature; ``altered`` replaces it in the stored text."""
    amendment = seal_record(build_record_draft(AMENDMENT, "AmendedAt"), 1, "2026-05-04T07:00:00.000000Z", "", "a")
    members = DECISION if signature is None else {**DECISION, "Signature": signature}
    decision = seal_record(
        build_record_draft(members, "ApprovedAt"), 2, "2026-05-04T08:00:00.000000Z", amendment.hash, "b"
    )
    if altered is not None:
        decision = decision._replace(
            canonical=json.dumps({**json.loads(decision.canonical), "Signature": altered}).encode()
        )
    found: Mapping[str, ChainRecord] = {"000000000001": decision}
    return render_amendment_html(amendment, FoundDecisions(found))


def test_a_signature_shows_printed_name_time_with_zone_and_meaning() -> None:
    """The report shows the signer, time with zone, meaning, statement and signed record of a signature."""
    page = render_with_signature(SIGNATURE)
    for name, value in (
        ("Signed by", "Bob &lt;Example&gt; (bob@t)"),
        ("Signed at", "2026-05-04 08:00:00.000000 UTC"),
        ("Meaning of the signature", "review"),
        ("Statement", "I checked &amp; agree."),
        ("Signed in at", "2026-05-04 07:59:00.000000 UTC, key"),
        ("Hash of the signed record", "ab" * 32),
    ):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page


def test_a_signature_without_statement_and_methods_has_no_empty_lines() -> None:
    """A missing statement is left out, and unknown sign-in methods are shown as unknown."""
    page = render_with_signature({**SIGNATURE, "Statement": None, "AuthMethods": []})
    assert "<dt>Statement</dt>" not in page
    assert "2026-05-04 07:59:00.000000 UTC, unknown" in page


def test_a_decision_without_signature_shows_its_meaning() -> None:
    """If a decision has no signature, the report shows only its meaning, and does not mention a signature."""
    page = render_with_signature(None)
    assert "<dt>Meaning of the decision</dt><dd>approval</dd>" in page
    assert "Signed by" not in page
    assert "Meaning of the signature" not in page


@pytest.mark.parametrize("signature", ["text", {}, {**SIGNATURE, "AuthMethods": 7}, {**SIGNATURE, "SignedAt": None}])
def test_a_damaged_signature_is_reported(signature: Any) -> None:
    """If a stored signature is not valid, the report marks its record, and shows the other signatures."""
    assert "Verify the chain" in render_with_signature(SIGNATURE, altered=signature)
