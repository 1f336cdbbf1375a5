"""Tests of the models of webhooks."""

from datetime import timedelta
from typing import Any

import pytest

from shared.webhooks.events import WebhookEvent, WebhookEventType
from shared.webhooks.models import (
    MAX_SHOWN_ATTEMPTS,
    Attempt,
    Delivery,
    EventFilter,
    StoredSecret,
    WebhookEndpoint,
    build_delivery_id,
)
from tests.unit.shared.webhooks.environment import TEST, URL
from tests.virtual_time import START

SECOND = timedelta(seconds=1)
ENDPOINT = WebhookEndpoint(
    id="e1", url=URL, event_types=(TEST,), created_at=START, created_by="ann", subscribed_at={TEST: START}
)


def build_event(**changes: Any) -> WebhookEvent:
    """Return an event of the type to which the test's endpoint subscribes."""
    return WebhookEvent(**{"key": "k", "type": TEST, "at": START, "data": {}, **changes})


@pytest.mark.parametrize(
    ("wanted", "event", "is_accepted"),
    [
        ({}, {}, True),
        ({"surfaces": ("s",)}, {"surfaces": frozenset({"s", "t"})}, True),
        ({"surfaces": ("s",)}, {"surfaces": frozenset({"t"})}, False),
        ({"surfaces": ("s",)}, {}, False),
        ({"connections": ("c",)}, {"connections": frozenset({"c"})}, True),
        ({"severities": ("critical",)}, {"severity": "critical"}, True),
        ({"severities": ("critical",)}, {"severity": "info"}, False),
        ({"surfaces": ("s",), "severities": ("info",)}, {"surfaces": frozenset({"s"})}, False),
        ({"surfaces": ()}, {"surfaces": frozenset({"s"})}, False),
    ],
)
def test_a_filter_needs_a_match_in_each_list(
    wanted: dict[str, Any], event: dict[str, Any], *, is_accepted: bool
) -> None:
    """An event matches a filter if it has a listed value for each list of the filter."""
    assert EventFilter(**wanted).accepts(build_event(**event)) is is_accepted


@pytest.mark.parametrize(
    ("changes", "event", "is_wanted"),
    [
        ({}, {}, True),
        ({"enabled": False}, {}, False),
        ({}, {"at": START - SECOND}, False),
        ({}, {"type": WebhookEventType.ALERT_FIRING}, False),
    ],
)
def test_an_endpoint_gets_events_since_its_subscription(
    changes: dict[str, Any], event: dict[str, Any], *, is_wanted: bool
) -> None:
    """An enabled endpoint gets the events since its subscription; a disabled endpoint gets none."""
    assert ENDPOINT.model_copy(update=changes).accepts_event(build_event(**event), START) is is_wanted


def test_both_secrets_sign_until_the_old_one_expires() -> None:
    """Both secrets sign until the old one expires, so that the receiver can install the new one."""
    new, old = StoredSecret(encrypted="b"), StoredSecret(encrypted="a", expires_at=START)
    endpoint = ENDPOINT.model_copy(update={"secrets": (new, old)})
    assert endpoint.list_active_secrets(START - SECOND) == [new, old]
    assert endpoint.list_active_secrets(START) == [new]


def test_the_entity_tag_depends_on_the_definition_only() -> None:
    """An endpoint's ETag depends only on its definition, so that a failed delivery does not change it."""
    failing = ENDPOINT.model_copy(update={"failing_since": START, "secrets": (StoredSecret(encrypted="x"),)})
    assert failing.etag == ENDPOINT.etag != ENDPOINT.model_copy(update={"description": "x"}).etag


def test_only_the_newest_attempts_are_stored() -> None:
    """Recording an attempt ends the delivery's lease; only the newest attempts are stored."""
    delivery = Delivery(
        id="d", endpoint="e1", event_type=TEST, body="{}", created_at=START, expires_at=START, lease="worker"
    )
    for number in range(MAX_SHOWN_ATTEMPTS + 1):
        delivery = delivery.copy_with_attempt(Attempt(at=START, duration_ms=number))
    assert (delivery.lease, len(delivery.attempts)) == ("", MAX_SHOWN_ATTEMPTS)
    assert delivery.attempts[-1].duration_ms == MAX_SHOWN_ATTEMPTS


def test_a_repeated_event_has_the_same_delivery() -> None:
    """A repeated event gets the same delivery id for an endpoint, so that the receiver recognises the repetition."""
    assert build_delivery_id("e1", "k") == build_delivery_id("e1", "k")
    assert len({build_delivery_id("e1", "k"), build_delivery_id("e2", "k"), build_delivery_id("e1", "j")}) == 3
