"""Tests of the audit events about webhook endpoints."""

import hashlib
from typing import Any

import pytest

from shared.webhooks.audit import add_audit_event, describe_endpoint_for_audit
from shared.webhooks.models import EndpointList, WebhookEndpoint
from tests.unit.shared.webhooks.environment import TEST, URL
from tests.virtual_time import START

ENDPOINT = WebhookEndpoint(id="e1", url=URL, event_types=(TEST,), created_at=START, created_by="ann")


def test_the_url_is_described_without_its_secret() -> None:
    """The audit event contains only the origin and a hash of the URL, because the path can be secret."""
    described = describe_endpoint_for_audit(ENDPOINT)
    assert "path-with-secret" not in str(described)
    assert (described["urlOrigin"], described["urlSha256"]) == (
        "https://hooks.example:443",
        hashlib.sha256(URL.encode()).hexdigest(),
    )


def test_an_address_that_is_no_longer_allowed_is_omitted() -> None:
    """If the stored URL breaks a newer rule, the endpoint can be changed; the audit event does not contain the URL."""
    described = describe_endpoint_for_audit(ENDPOINT.model_copy(update={"url": "ftp://hooks.example/"}))
    assert not {"url", "urlOrigin"} & described.keys()


@pytest.mark.parametrize(
    ("before", "after", "states"),
    [
        (None, ENDPOINT, {"AfterState"}),
        (ENDPOINT, None, {"BeforeState"}),
        (ENDPOINT, ENDPOINT, {"BeforeState", "AfterState"}),
    ],
)
def test_an_event_has_the_states_that_exist(before: Any, after: Any, states: set[str]) -> None:
    """The audit event of a new endpoint has no `BeforeState`, and that of a removed endpoint no `AfterState`."""
    listed = add_audit_event(EndpointList(), "Updated", before, after, user_id="ann", append_id="x1")
    [pending] = listed.audit
    assert (pending.append_id, pending.user_id, pending.event["ActionType"]) == ("x1", "ann", "Webhook.Updated")
    assert pending.event.keys() & {"BeforeState", "AfterState"} == states
