"""Tests of the worker that sends deliveries."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.backends.outbound_http import BODY_SECONDS
from shared.errors import Kind, WorkspaceError
from shared.outbound.ports import OutboundFailedError, OutboundReply, OutboundRequest
from shared.webhooks.deliveries import DISABLED_AFTER, RETRY_DELAYS
from shared.webhooks.models import Delivery, DeliveryStatus
from shared.webhooks.registry import add_or_replace_endpoint
from shared.webhooks.service import EndpointDefinition
from shared.webhooks.worker import LEASE, MAX_PER_ENDPOINT
from tests.unit.shared.webhooks.environment import (
    DOWNLOAD,
    TEST,
    URL,
    WebhookServices,
    build_reply,
    open_webhooks,
    reply_with_failure,
)

DOWN = WorkspaceError(Kind.UNAVAILABLE, "WEBHOOKS_UNAVAILABLE", "down")


async def fail_to_change(*_: object) -> None:
    """Fail like a store of endpoints that does not respond."""
    raise DOWN


async def test_a_delivery_is_sent_once(webhook_services: WebhookServices) -> None:
    """A successful reply ends a delivery; the log shows the attempt and the beginning of the reply."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish()
    await webhook_services.send_due_deliveries()
    await webhook_services.send_due_deliveries_after(days=5)
    [delivery] = await webhook_services.list_all(endpoint)
    assert delivery.status is DeliveryStatus.DELIVERED
    assert [(each.http_status, each.error) for each in delivery.attempts] == [(204, None)]
    [request] = webhook_services.http.requests
    assert (request.method, request.url.text, request.headers["webhook-id"]) == ("POST", URL, delivery.id)
    assert request.headers["User-Agent"] == "oi-webhooks/1"


async def test_a_failed_delivery_is_retried_by_the_schedule(webhook_services: WebhookServices) -> None:
    """A failed delivery is retried nine times with the same id, and is then marked as failed."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish()
    webhook_services.http.answer = reply_with_failure
    await webhook_services.send_due_deliveries()
    for number, delay in enumerate(RETRY_DELAYS, 1):
        await webhook_services.send_due_deliveries_after(seconds=delay.total_seconds() - 0.5)
        assert len(webhook_services.http.requests) == number
        await webhook_services.send_due_deliveries_after(seconds=0.5)
        assert len(webhook_services.http.requests) == number + 1
    [delivery] = await webhook_services.list_all(endpoint)
    assert (delivery.status, delivery.next_attempt_at) == (DeliveryStatus.FAILED, None)
    assert {each.headers["webhook-id"] for each in webhook_services.http.requests} == {delivery.id}
    assert delivery.attempts[-1].error == "The endpoint replied with status 500."
    assert delivery.attempts[-1].reply == "broken \ufffd\ufffd"


@pytest.mark.parametrize("retries", [0, 2])
async def test_deliveries_do_not_wait_for_clocks_that_were_set_back(
    webhook_services: WebhookServices, retries: int
) -> None:
    """After the clock is set back by 50 minutes, new deliveries and waiting retries are sent at once."""
    await webhook_services.create_endpoint()
    webhook_services.time.advance(3600)
    await webhook_services.publish()
    webhook_services.http.answer = reply_with_failure
    for delay in RETRY_DELAYS[:retries]:
        await webhook_services.send_due_deliveries_after(seconds=delay.total_seconds())
    webhook_services.http.answer = webhook_services.http.accept
    webhook_services.http.requests.clear()
    webhook_services.time.advance(-3000)
    await webhook_services.send_due_deliveries()
    assert webhook_services.http.requests == []
    await webhook_services.worker.reschedule_after_clock_setback()
    await webhook_services.send_due_deliveries()
    assert len(webhook_services.http.requests) == 1


async def test_a_retry_waits_after_a_small_change_of_the_clock(webhook_services: WebhookServices) -> None:
    """If a clock is set back by only a minute, the times of the retries do not change."""
    await webhook_services.create_endpoint()
    await webhook_services.publish()
    webhook_services.http.answer = reply_with_failure
    await webhook_services.send_due_deliveries()
    webhook_services.time.advance(-60)
    await webhook_services.worker.reschedule_after_clock_setback()
    await webhook_services.send_due_deliveries()
    assert len(webhook_services.http.requests) == 1


async def test_a_short_delay_needs_no_timer_of_the_host(webhook_services: WebhookServices) -> None:
    """If a retry is due in five seconds, the worker waits for it without the host's timer."""
    await webhook_services.create_endpoint()
    await webhook_services.publish()
    webhook_services.http.answer = reply_with_failure
    await webhook_services.send_due_deliveries()
    webhook_services.time.advance(5)

    async def is_repeated() -> bool:
        return len(webhook_services.http.requests) == 2

    await webhook_services.wait_until(is_repeated)


async def test_a_request_without_a_reply_is_a_failure(webhook_services: WebhookServices) -> None:
    """A failed or refused connection is a failed attempt, and the log has the reason."""
    endpoint = await webhook_services.create_endpoint()

    async def raise_timeout(request: OutboundRequest) -> OutboundReply:
        raise OutboundFailedError(f"No complete reply within {request.seconds:g} seconds.")

    webhook_services.http.answer = raise_timeout
    await webhook_services.publish()
    await webhook_services.send_due_deliveries()
    webhook_services.http.refused = {"hooks.example"}
    await webhook_services.send_due_deliveries_after(seconds=5)
    [delivery] = await webhook_services.list_all(endpoint)
    assert [each.error for each in delivery.attempts] == [
        "No complete reply within 15 seconds.",
        "The host `hooks.example` resolves to an address that is not public.",
    ]
    assert {each.http_status for each in delivery.attempts} == {None}


async def test_a_reply_shortly_before_the_time_limit_is_a_success(webhook_services: WebhookServices) -> None:
    """A reply after 14.9 seconds is a success; the worker's claim on the delivery is still valid then."""
    endpoint = await webhook_services.create_endpoint()

    async def reply_shortly_before_limit(request: OutboundRequest) -> OutboundReply:
        assert request.seconds == 15
        webhook_services.time.advance(14.9)
        return build_reply(200)

    webhook_services.http.answer = reply_shortly_before_limit
    await webhook_services.publish()
    await webhook_services.send_due_deliveries()
    [delivery] = await webhook_services.list_all(endpoint)
    assert (delivery.status, delivery.attempts[0].duration_ms) == (DeliveryStatus.DELIVERED, 14_900)
    assert timedelta(seconds=15 + BODY_SECONDS) < LEASE
    await webhook_services.send_due_deliveries_after(seconds=LEASE.total_seconds())
    assert len(webhook_services.http.requests) == 1


async def test_a_redirect_is_a_failure(webhook_services: WebhookServices) -> None:
    """A redirect is not followed and counts as a failed attempt."""

    async def reply_with_redirect(request: OutboundRequest) -> OutboundReply:
        del request
        return OutboundReply(302, {"location": "https://hooks.example/other"}, b"")

    endpoint = await webhook_services.create_endpoint()
    webhook_services.http.answer = reply_with_redirect
    await webhook_services.publish()
    await webhook_services.send_due_deliveries()
    [delivery] = await webhook_services.list_all(endpoint)
    assert (delivery.status, delivery.attempts[0].http_status) == (DeliveryStatus.PENDING, 302)


@pytest.mark.parametrize("is_audited", [True, False])
async def test_status_410_disables_the_endpoint(webhook_services: WebhookServices, *, is_audited: bool) -> None:
    """A 410 reply disables the endpoint: the delivery fails, later events are dropped, and this is audited.

    It is not audited in a workspace without provenance.
    """

    async def reply_with_410(request: OutboundRequest) -> OutboundReply:
        del request
        return build_reply(410)

    endpoint = await webhook_services.create_endpoint()
    webhook_services.http.answer, webhook_services.is_audited = reply_with_410, is_audited
    await webhook_services.publish("k1")
    await webhook_services.send_due_deliveries()
    await webhook_services.publish("k2")
    await webhook_services.send_due_deliveries()
    disabled = await webhook_services.service.get(endpoint.id)
    assert (disabled.enabled, disabled.disabled_reason) == (False, "The endpoint replied with status 410 (Gone).")
    assert [each.status for each in await webhook_services.list_all(endpoint)] == [DeliveryStatus.FAILED]
    await webhook_services.service.flush_and_count_audit_events()
    events = [(event["ActionType"], event["user"]) for event in webhook_services.log.events]
    assert events == [("Webhook.Created", "admin@t"), ("Webhook.Disabled", "system")][: 2 if is_audited else 1]
    assert "path-with-secret" not in str(webhook_services.log.events)


async def test_a_failure_of_an_earlier_url_has_no_effect(webhook_services: WebhookServices) -> None:
    """After the URL of an endpoint was replaced, a 410 reply or a failure of the old URL has no effect on it."""
    endpoint = await webhook_services.create_endpoint()
    webhook_services.http.answer = reply_with_failure
    await webhook_services.publish("k1")
    await webhook_services.send_due_deliveries()
    assert (await webhook_services.service.get(endpoint.id)).failing_since is not None

    async def replace_url(request: OutboundRequest) -> OutboundReply:
        del request
        moved = EndpointDefinition("https://new.example/", (TEST, DOWNLOAD))
        await webhook_services.service.replace("admin@t", endpoint.id, moved)
        return build_reply(410)

    webhook_services.http.answer = replace_url
    await webhook_services.publish("k2")
    await webhook_services.send_due_deliveries()
    moved = await webhook_services.service.get(endpoint.id)
    assert (moved.url, moved.enabled, moved.failing_since) == ("https://new.example/", True, None)


async def fail_all_retries(webhook_services: WebhookServices) -> None:
    """Let the current deliveries fail until their last retry, which is due after about three days."""
    webhook_services.http.answer = reply_with_failure
    await webhook_services.send_due_deliveries()
    for delay in RETRY_DELAYS:
        await webhook_services.send_due_deliveries_after(seconds=delay.total_seconds())


async def test_an_endpoint_that_fails_for_days_is_disabled(webhook_services: WebhookServices) -> None:
    """An endpoint is disabled when a delivery has used its retries and no attempt has succeeded for five days."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish("k1")
    await fail_all_retries(webhook_services)
    failing = await webhook_services.service.get(endpoint.id)
    assert failing.enabled
    assert failing.failing_since is not None
    await webhook_services.publish("k2")
    await fail_all_retries(webhook_services)
    disabled = await webhook_services.service.get(endpoint.id)
    assert not disabled.enabled
    assert disabled.disabled_reason == f"All deliveries have failed since {failing.failing_since:%Y-%m-%d %H:%M} UTC."


@pytest.mark.parametrize(
    ("failing", "enabled"), [(timedelta(days=4, hours=23, minutes=59), True), (timedelta(days=5, minutes=1), False)]
)
async def test_an_endpoint_is_disabled_after_five_days(
    webhook_services: WebhookServices, failing: timedelta, *, enabled: bool
) -> None:
    """The last retry of a delivery disables an endpoint that has failed for five days, and no endpoint before."""
    endpoint = await webhook_services.create_endpoint()
    since = webhook_services.time.now + sum(RETRY_DELAYS, timedelta()) - failing
    failing_endpoint = endpoint.model_copy(update={"failing_since": since})
    await webhook_services.registry.change_endpoint_list(
        lambda listed: add_or_replace_endpoint(listed, failing_endpoint)
    )
    await webhook_services.publish()
    await fail_all_retries(webhook_services)
    assert (await webhook_services.service.get(endpoint.id)).enabled is enabled


async def test_a_first_failure_after_quiet_days_does_not_disable_the_endpoint(
    webhook_services: WebhookServices,
) -> None:
    """If an earlier delivery failed and no event happened for five days, the next delivery still has its retries."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish("k1")
    await fail_all_retries(webhook_services)
    webhook_services.time.advance(DISABLED_AFTER.total_seconds())
    await webhook_services.publish("k2")
    await webhook_services.send_due_deliveries()
    webhook_services.http.answer = webhook_services.http.accept
    await webhook_services.send_due_deliveries_after(seconds=RETRY_DELAYS[0].total_seconds())
    current = await webhook_services.service.get(endpoint.id)
    assert (current.enabled, current.failing_since) == (True, None)
    assert (await webhook_services.list_all(endpoint))[0].status is DeliveryStatus.DELIVERED


async def test_a_failed_manual_retry_after_quiet_days_does_not_disable_the_endpoint(
    webhook_services: WebhookServices,
) -> None:
    """The failure of a retry on request does not disable an endpoint, so waiting deliveries are sent."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish("k1")
    await fail_all_retries(webhook_services)
    [failed] = await webhook_services.list_all(endpoint)
    webhook_services.time.advance(DISABLED_AFTER.total_seconds())
    await webhook_services.publish("k2")
    await webhook_services.send_due_deliveries()
    await webhook_services.deliveries.retry(endpoint.id, failed.id)
    await webhook_services.send_due_deliveries()
    assert (await webhook_services.service.get(endpoint.id)).enabled
    webhook_services.http.answer = webhook_services.http.accept
    await webhook_services.send_due_deliveries_after(seconds=RETRY_DELAYS[0].total_seconds())
    waiting, ended = await webhook_services.list_all(endpoint)
    assert (waiting.status, ended.status) == (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED)


async def test_a_success_ends_the_failures_of_simultaneous_deliveries(webhook_services: WebhookServices) -> None:
    """A success after a failure ends the time of failures, also if both deliveries were started together."""
    endpoint = await webhook_services.create_endpoint()

    async def reply_to_second_after_failure_of_first(request: OutboundRequest) -> OutboundReply:
        if b'"first"' in request.body:
            return build_reply(413)

        async def is_failing() -> bool:
            return (await webhook_services.service.get(endpoint.id)).failing_since is not None

        await webhook_services.wait_until(is_failing)
        return build_reply(204)

    webhook_services.http.answer = reply_to_second_after_failure_of_first
    await webhook_services.publish("first")
    await webhook_services.publish("second")
    await webhook_services.send_due_deliveries()
    assert (await webhook_services.service.get(endpoint.id)).failing_since is None


async def test_waiting_deliveries_of_a_disabled_endpoint_are_not_sent(webhook_services: WebhookServices) -> None:
    """A due delivery of a disabled or removed endpoint is not sent, but marked as failed with this reason."""
    first, second = await webhook_services.create_endpoint(), await webhook_services.create_endpoint()
    await webhook_services.publish()
    await webhook_services.registry.change_endpoint_list(
        lambda listed: listed.model_copy(update={"endpoints": {first.id: first.model_copy(update={"enabled": False})}})
    )
    await webhook_services.send_due_deliveries()
    assert webhook_services.http.requests == []
    for endpoint, reason in ((first, "disabled"), (second, "removed")):
        [delivery] = await webhook_services.list_all(endpoint)
        assert delivery.attempts[0].error == f"Not sent, because the endpoint is {reason}."


@pytest.mark.parametrize("exists", [False, True])
async def test_a_delivery_of_an_endpoint_that_was_enabled_meanwhile_is_sent(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch, *, exists: bool
) -> None:
    """If an endpoint is created or enabled while the worker looks for due deliveries, its next event is sent."""
    first = await webhook_services.create_endpoint()
    others = [await webhook_services.create_endpoint(enabled=False)] if exists else []
    await webhook_services.publish("k1")
    claim = webhook_services.store.claim_due_deliveries

    async def enable_other_endpoint_after_claim(endpoint: str, *arguments: Any) -> Sequence[Delivery]:
        claimed = await claim(endpoint, *arguments)
        if endpoint == first.id and claimed:
            if exists:
                definition = EndpointDefinition(URL, (TEST, DOWNLOAD), enabled=True)
                await webhook_services.service.replace("admin@t", others[0].id, definition)
            else:
                others.append(await webhook_services.create_endpoint())
            await webhook_services.publish("k2")
        return claimed

    monkeypatch.setattr(webhook_services.store, "claim_due_deliveries", enable_other_endpoint_after_claim)
    await webhook_services.send_due_deliveries()
    [delivery] = await webhook_services.list_all(others[0])
    assert delivery.status is DeliveryStatus.DELIVERED


async def test_a_delivery_of_an_endpoint_that_was_removed_meanwhile_is_not_sent(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an endpoint is removed while the worker claims deliveries of another one, its waiting delivery is not sent."""
    endpoints = [await webhook_services.create_endpoint() for _ in range(2)]
    await webhook_services.publish()
    claim = webhook_services.store.claim_due_deliveries
    claimed_first: list[str] = []

    async def remove_other_endpoint_after_first_claim(endpoint: str, *arguments: Any) -> Sequence[Delivery]:
        claimed = await claim(endpoint, *arguments)
        if not claimed_first:
            claimed_first.append(endpoint)
            [other] = [each for each in endpoints if each.id != endpoint]
            await webhook_services.service.remove("admin@t", other.id)
        return claimed

    monkeypatch.setattr(webhook_services.store, "claim_due_deliveries", remove_other_endpoint_after_first_claim)
    await webhook_services.send_due_deliveries()
    statuses = {each.id: (await webhook_services.list_all(each))[0].status for each in endpoints}
    assert [each for each, status in statuses.items() if status is DeliveryStatus.DELIVERED] == claimed_first
    assert len(webhook_services.http.requests) == 1


async def test_a_delivery_of_an_unknown_event_type_is_sent(webhook_services: WebhookServices) -> None:
    """A delivery whose event type only a newer version of the service knows is sent like others."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish()
    [delivery] = await webhook_services.list_all(endpoint)
    newer = delivery.model_copy(update={"id": "msg_newer", "event_type": "import.completed"})
    await webhook_services.outbox.add_deliveries([newer])
    await webhook_services.send_due_deliveries()
    assert {each.headers["webhook-id"] for each in webhook_services.http.requests} == {delivery.id, newer.id}


async def test_a_delivery_that_cannot_be_parsed_stops_no_other_endpoint(webhook_services: WebhookServices) -> None:
    """If a stored delivery cannot be parsed, the deliveries to other endpoints are sent."""
    endpoints = [await webhook_services.create_endpoint() for _ in range(2)]
    broken, working = sorted(endpoints, key=lambda each: each.id)
    await webhook_services.publish()
    sql = "UPDATE webhook_deliveries SET content = json_set(content, '$.status', 'paused') WHERE endpoint = ?"
    await webhook_services.database.write(lambda connection: connection.execute(sql, (broken.id,)).rowcount)
    await webhook_services.send_due_deliveries()
    [delivery] = await webhook_services.list_all(working)
    assert delivery.status is DeliveryStatus.DELIVERED


async def test_a_slow_endpoint_does_not_delay_another(webhook_services: WebhookServices) -> None:
    """While one endpoint does not reply, all deliveries to other endpoints are sent."""
    slow = await webhook_services.create_endpoint(description="slow")
    released = asyncio.Event()

    async def stay_silent(request: OutboundRequest) -> OutboundReply:
        del request
        await released.wait()
        return build_reply(200)

    for number in range(MAX_PER_ENDPOINT * 3):
        await webhook_services.publish(f"k{number}")
    webhook_services.http.answer = stay_silent
    webhook_services.worker.wake()

    async def is_full() -> bool:
        return len(webhook_services.http.requests) == MAX_PER_ENDPOINT

    await webhook_services.wait_until(is_full)
    fast = await webhook_services.create_endpoint(description="fast")
    webhook_services.http.answer = webhook_services.http.accept
    await webhook_services.outbox.add_deliveries(
        [each.model_copy(update={"endpoint": fast.id}) for each in await webhook_services.list_all(slow)]
    )
    webhook_services.worker.wake()

    async def is_delivered() -> bool:
        return all(each.status is DeliveryStatus.DELIVERED for each in await webhook_services.list_all(fast))

    await webhook_services.wait_until(is_delivered)
    assert {each.status for each in await webhook_services.list_all(slow)} == {DeliveryStatus.PENDING}
    released.set()
    await webhook_services.send_due_deliveries()
    assert {each.status for each in await webhook_services.list_all(slow)} == {DeliveryStatus.DELIVERED}


async def test_a_delivery_of_a_dead_process_is_sent_again(tmp_path: Path) -> None:
    """If a process crashes after sending, another process sends the delivery again when its claim has expired."""
    path = tmp_path / "webhooks.sqlite"
    async with open_webhooks(path) as dead:
        await dead.create_endpoint()
        await dead.publish()
        sent = asyncio.Event()

        async def never_reply(request: OutboundRequest) -> OutboundReply:
            del request
            sent.set()
            await asyncio.Event().wait()
            raise AssertionError

        dead.http.answer = never_reply
        dead.worker.wake()
        await sent.wait()
        lost = dead.http.requests[0].headers["webhook-id"]
    async with open_webhooks(path, dead.time) as other:
        await other.send_due_deliveries()
        assert other.http.requests == []
        await other.send_due_deliveries_after(seconds=LEASE.total_seconds())
        assert [each.headers["webhook-id"] for each in other.http.requests] == [lost]


async def test_a_delivery_is_sent_again_after_a_failure_of_the_store(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the result of a delivery cannot be stored, the delivery is sent again when its claim has expired."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish()
    save = webhook_services.store.try_save_claimed_delivery

    async def fail_to_save(*_: object) -> bool:
        raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOKS_UNAVAILABLE", "down")

    monkeypatch.setattr(webhook_services.store, "try_save_claimed_delivery", fail_to_save)
    await webhook_services.send_due_deliveries()
    monkeypatch.setattr(webhook_services.store, "try_save_claimed_delivery", save)
    await webhook_services.send_due_deliveries_after(seconds=LEASE.total_seconds())
    [delivery] = await webhook_services.list_all(endpoint)
    assert (delivery.status, len(webhook_services.http.requests)) == (DeliveryStatus.DELIVERED, 2)


async def test_a_success_of_a_working_endpoint_changes_no_endpoint(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A delivered message writes nothing to an endpoint without failures."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish()
    monkeypatch.setattr(webhook_services.registry, "change_endpoint_list", fail_to_change)
    await webhook_services.send_due_deliveries()
    [delivery] = await webhook_services.list_all(endpoint)
    assert (delivery.status, caplog.messages) == (DeliveryStatus.DELIVERED, [])


async def test_claimed_deliveries_of_unknown_endpoints_are_logged_with_their_lease(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the endpoints cannot be read after the claim of deliveries, the log says when these are sent."""
    await webhook_services.create_endpoint()
    await webhook_services.publish()
    monkeypatch.setattr(webhook_services.registry, "load", fail_to_change)
    await webhook_services.send_due_deliveries()
    reason = f"a later run starts them, claimed ones after 30 seconds: {DOWN}"
    assert caplog.messages == [f"due webhook deliveries were not started; {reason}"]


async def test_a_stored_result_is_not_sent_again_after_a_failure_of_the_endpoints(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If only the health of the endpoint cannot be stored, the log does not announce that the message is repeated."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.publish()
    webhook_services.http.answer = reply_with_failure
    monkeypatch.setattr(webhook_services.registry, "change_endpoint_list", fail_to_change)
    await webhook_services.send_due_deliveries()
    assert caplog.messages == [f"the health of a webhook was not stored; the next attempt updates it: {DOWN}"]
    [delivery] = await webhook_services.list_all(endpoint)
    assert (delivery.retries, delivery.lease) == (1, "")


async def test_two_workers_send_each_delivery_once(tmp_path: Path) -> None:
    """If the workers of two processes run at once, each delivery is sent once."""
    path = tmp_path / "webhooks.sqlite"
    async with open_webhooks(path) as first, open_webhooks(path, first.time) as second:
        await first.create_endpoint()
        for number in range(20):
            await first.publish(f"k{number}")
        await asyncio.gather(first.send_due_deliveries(), second.send_due_deliveries())
        ids = [each.headers["webhook-id"] for each in (*first.http.requests, *second.http.requests)]
        assert len(ids) == len(set(ids)) == 20
