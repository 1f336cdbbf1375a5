"""Tests of the documented types of audit records."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from functions.audit_overview import _build_pending_amendments_json_body
from functions.reply_docs import provenance_events as replies
from functions.reply_docs.audit_overview import PendingAmendments
from shared.provenance.overview import PendingPage
from shared.provenance.overview_ports import PendingPlace
from shared.provenance.ports import ChainRecord
from shared.provenance.queries import AuditQueryResult
from shared.provenance.records import build_damaged_record_placeholder

PLACEHOLDER = build_damaged_record_placeholder(ChainRecord(1, b"garbage", "0" * 64, "append-1", {}))
DAMAGED = AuditQueryResult([PLACEHOLDER], 1, has_more=False, damaged=["000000000001"])


def remove_undeclared_properties(documented: Any, value: Any) -> Any:
    """Return a JSON value without the properties that its documented type lacks; fail if it has another type."""
    return TypeAdapter(documented).validate_python(value)


@pytest.mark.parametrize("documented", [replies.ChainRecord, replies.AmendmentRecord])
def test_the_placeholder_of_a_damaged_record_is_documented(documented: Any) -> None:
    """The documented types of audit records include the placeholder that replaces a damaged record."""
    [record] = json.loads(DAMAGED.to_json_array())
    assert remove_undeclared_properties(documented, record) == record


def test_the_placeholder_of_a_damaged_pending_amendment_is_documented() -> None:
    """The documented list of pending amendments includes the placeholder, which has the scope there."""
    place = PendingPlace("2026-01-05T08:00:00.000000Z", "line-1", 1)
    page = json.loads(_build_pending_amendments_json_body(PendingPage(DAMAGED, [place], has_more=False)))
    assert page["amendments"][0]["ScopeKey"] == "line-1"
    assert remove_undeclared_properties(PendingAmendments, page) == page
