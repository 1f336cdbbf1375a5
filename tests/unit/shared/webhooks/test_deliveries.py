"""Tests of the log of deliveries, manual retries, and the schedule of automatic retries."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.errors import WorkspaceError
from shared.runtime import SYSTEM_RUNTIME
from shared.webhooks.deliveries import RETRY_DELAYS, compute_retry_time_or_none
from shared.webhooks.models import DeliveryStatus
from tests.unit.shared.webhooks.environment import WebhookServices, reply_with_failure

AT = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_delays_follow_the_documented_schedule() -> None:
    """A failed delivery is retried nine times, after five seconds to a day, each with a jitter of up to 10 %."""
    expected = [timedelta(seconds=5), HOUR / 12, HOUR / 2, *(HOUR * n for n in (2, 5, 10, 14, 20, 24))]
    assert list(RETRY_DELAYS) == expected
    for retries, delay in enumerate(expected):
        for _ in range(20):
            planned = compute_retry_time_or_none(retries, AT, SYSTEM_RUNTIME)
            assert planned is not None
            assert delay * 0.9 <= planned - AT <= delay * 1.1
    assert compute_retry_time_or_none(len(expected), AT, SYSTEM_RUNTIME) is None


async def test_a_manual_retry_sends_an_ended_delivery_once_more(webhook_services: WebhookServices) -> None:
    """A manual retry sends an ended delivery once more, without further retries, and a waiting delivery at once."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish()
    await webhook_services.send_due_deliveries()
    [delivery] = await webhook_services.list_all(endpoint)
    webhook_services.http.answer = reply_with_failure
    await webhook_services.deliveries.retry(endpoint.id, delivery.id)
    await webhook_services.send_due_deliveries()
    await webhook_services.send_due_deliveries_after(days=1)
    [ended] = await webhook_services.list_all(endpoint)
    assert (ended.status, len(ended.attempts)) == (DeliveryStatus.FAILED, 2)
    await webhook_services.publish("k2")
    await webhook_services.send_due_deliveries()
    waiting = (await webhook_services.list_all(endpoint))[0]
    assert waiting.next_attempt_at == webhook_services.time.now + timedelta(seconds=5)
    assert (
        await webhook_services.deliveries.retry(endpoint.id, waiting.id)
    ).next_attempt_at == webhook_services.time.now


async def test_pages_have_all_deliveries_newest_first(webhook_services: WebhookServices) -> None:
    """All pages together have each delivery once, newest first; the last page has no cursor."""
    endpoint = await webhook_services.create_endpoint()
    for number in range(3):
        await webhook_services.publish(f"k{number}")
        webhook_services.time.advance(1)
    first, after = await webhook_services.deliveries.list_deliveries_page(endpoint.id, None, None, 2)
    second, end = await webhook_services.deliveries.list_deliveries_page(endpoint.id, None, after, 2)
    assert [*first, *second] == await webhook_services.list_all(endpoint)
    assert (len(first), len(second), end) == (2, 1, None)


@pytest.mark.parametrize(
    ("endpoint", "delivery", "code"),
    [("none", "none", "WEBHOOK_NOT_FOUND"), (None, "none", "DELIVERY_NOT_FOUND")],
)
async def test_a_retry_distinguishes_missing_endpoints_and_deliveries(
    webhook_services: WebhookServices, endpoint: str | None, delivery: str, code: str
) -> None:
    """An unknown endpoint and an unknown delivery have different error codes."""
    created = await webhook_services.create_endpoint()
    with pytest.raises(WorkspaceError) as raised:
        await webhook_services.deliveries.retry(endpoint or created.id, delivery)
    assert raised.value.code == code
