"""Tests of managing webhook endpoints."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from shared.conditional_requests import condition_from_headers
from shared.errors import WorkspaceError
from shared.outbound.ports import OutboundRequest
from shared.timestamps import now
from shared.webhooks import service
from shared.webhooks.models import MAX_ENDPOINTS, EventFilter
from shared.webhooks.service import EndpointDefinition
from tests.unit.shared.webhooks.environment import DOWNLOAD, TEST, URL, WebhookServices, open_webhooks
from tests.virtual_time import VirtualTime


async def get_error_code(call: object) -> str:
    """Return the error code with which a call is rejected."""
    with pytest.raises(WorkspaceError) as failure:
        await call  # type: ignore[misc]  # any awaitable
    return failure.value.code


async def test_an_endpoint_is_created_with_a_secret(webhook_services: WebhookServices) -> None:
    """The secret of a new endpoint is in the reply, but neither in the store nor in the audit event."""
    made = await webhook_services.service.create("admin@t", EndpointDefinition(URL, (TEST,), description="Shift"))
    assert made.secret.startswith("whsec_")
    assert made.secret.removeprefix("whsec_") not in str(await webhook_services.store.read_state_document("endpoints"))
    [event] = webhook_services.log.events
    assert event["ActionType"] == "Webhook.Created"
    assert event["AfterState"]["urlOrigin"] == "https://hooks.example:443"
    assert len(event["AfterState"]["urlSha256"]) == 64
    assert made.secret not in str(event)
    assert "path-with-secret" not in str(event)


async def test_the_official_library_verifies_a_message(tmp_path: Path) -> None:
    """The official library accepts a message, but not with a changed body or the secret of another endpoint."""
    async with open_webhooks(tmp_path / "webhooks.sqlite", VirtualTime(now())) as webhook_services:
        made = await webhook_services.service.create("admin@t", EndpointDefinition(URL, (DOWNLOAD,)))
        other = await webhook_services.service.create("admin@t", EndpointDefinition(URL, (TEST,)))
        await webhook_services.publish()
        await webhook_services.send_due_deliveries()
        [request] = webhook_services.http.requests
        event = Webhook(made.secret).verify(request.body, dict(request.headers))
        assert event["type"] == "download.completed"
        for secret, body in ((made.secret, request.body + b" "), (other.secret, request.body)):
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(body, dict(request.headers))


def is_signed_by(secret: str, request: OutboundRequest) -> bool:
    """Return whether a request is signed with the given secret, even if the request is old."""
    at = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), tz=UTC)
    expected = Webhook(secret).sign(request.headers["webhook-id"], at, request.body.decode())
    return expected in request.headers["webhook-signature"].split()


async def test_both_secrets_sign_after_a_rotation(webhook_services: WebhookServices) -> None:
    """After a rotation, the new and the previous secret sign requests for 24 hours; older secrets never sign."""
    first = await webhook_services.service.create("admin@t", EndpointDefinition(URL, (DOWNLOAD,)))
    second = await webhook_services.service.rotate_secret("admin@t", first.endpoint.id)
    await webhook_services.publish("k1")
    await webhook_services.send_due_deliveries()
    request = webhook_services.http.requests[-1]
    assert is_signed_by(first.secret, request)
    assert is_signed_by(second.secret, request)
    third = await webhook_services.service.rotate_secret("admin@t", first.endpoint.id)
    await webhook_services.publish("k2")
    await webhook_services.send_due_deliveries()
    assert len(webhook_services.http.requests[-1].headers["webhook-signature"].split()) == 2
    assert not is_signed_by(first.secret, webhook_services.http.requests[-1])
    webhook_services.time.advance(timedelta(hours=23, minutes=59).total_seconds())
    await webhook_services.publish("k3")
    await webhook_services.send_due_deliveries()
    assert is_signed_by(second.secret, webhook_services.http.requests[-1])
    webhook_services.time.advance(timedelta(minutes=2).total_seconds())
    await webhook_services.publish("k4")
    await webhook_services.send_due_deliveries()
    assert len(webhook_services.http.requests[-1].headers["webhook-signature"].split()) == 1
    assert is_signed_by(third.secret, webhook_services.http.requests[-1])
    assert [event["ActionType"] for event in webhook_services.log.events][1:] == ["Webhook.SecretRotated"] * 2
    assert second.secret not in str(webhook_services.log.events)


async def test_a_rotation_ends_the_failures_after_another_key(tmp_path: Path) -> None:
    """After the key of the vault was replaced, deliveries fail until a rotation; then only the new secret signs."""
    path, time = tmp_path / "webhooks.sqlite", VirtualTime()
    async with open_webhooks(path, time) as webhook_services:
        first = await webhook_services.service.create("admin@t", EndpointDefinition(URL, (DOWNLOAD,)))
    async with open_webhooks(path, time) as webhook_services:
        webhook_services.key = b"n" * 32
        await webhook_services.publish("k1")
        await webhook_services.send_due_deliveries()
        assert webhook_services.http.requests == []
        rotated = await webhook_services.service.rotate_secret("admin@t", first.endpoint.id)
        await webhook_services.publish("k2")
        await webhook_services.send_due_deliveries()
        [request] = webhook_services.http.requests
        assert len(request.headers["webhook-signature"].split()) == 1
        assert is_signed_by(rotated.secret, request)


async def test_a_repeated_request_returns_the_same_secret(webhook_services: WebhookServices) -> None:
    """Repeating a creation or rotation with the same append id returns the same secret."""
    definition = EndpointDefinition(URL, (TEST,))
    made = [await webhook_services.service.create("admin@t", definition, append_id="a1") for _ in range(2)]
    assert made[0] == made[1]
    rotated = [
        await webhook_services.service.rotate_secret("admin@t", made[0].endpoint.id, append_id="a2") for _ in range(2)
    ]
    assert rotated[0] == rotated[1]
    assert rotated[0].secret != made[0].secret
    assert len(webhook_services.log.events) == 2


async def test_the_number_of_endpoints_is_limited(webhook_services: WebhookServices) -> None:
    """A workspace can have 50 endpoints; the 51st is rejected."""
    for _ in range(MAX_ENDPOINTS):
        await webhook_services.create_endpoint()
    assert await get_error_code(webhook_services.create_endpoint()) == "TOO_MANY_WEBHOOKS"


async def test_the_filters_of_all_endpoints_are_limited(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that increases the size of all filters beyond the limit is rejected; other changes are possible."""
    lookups = tuple(f"{number:064}" for number in range(1_000))
    large = EventFilter(surfaces=lookups, connections=lookups)
    first, _, _ = [await webhook_services.create_endpoint(filter=large) for _ in range(3)]
    assert await get_error_code(webhook_services.create_endpoint(filter=large)) == "INVALID_REQUEST"
    small = await webhook_services.create_endpoint()
    larger = EndpointDefinition(URL, (TEST,), filter=large)
    assert await get_error_code(webhook_services.service.replace("admin@t", small.id, larger)) == "INVALID_REQUEST"
    monkeypatch.setattr(service, "MAX_FILTER_BYTES", 1_000)
    assert (await webhook_services.service.replace("admin@t", first.id, larger)).event_types == (TEST,)
    await webhook_services.service.remove("admin@t", first.id)


async def test_a_forbidden_url_is_rejected(webhook_services: WebhookServices) -> None:
    """A URL is checked when an endpoint is created or its URL changes, but not when other fields change."""
    endpoint = await webhook_services.create_endpoint()
    webhook_services.http.refused = {"hooks.example", "evil.example"}
    for url in ("https://evil.example/", "ftp://hooks.example/", "https://2130706433/"):
        definition = EndpointDefinition(url, (TEST,))
        assert await get_error_code(webhook_services.service.create("admin@t", definition)) == "WEBHOOK_URL_REFUSED"
        assert (
            await get_error_code(webhook_services.service.replace("admin@t", endpoint.id, definition))
            == "WEBHOOK_URL_REFUSED"
        )
    changed = await webhook_services.service.replace(
        "admin@t", endpoint.id, EndpointDefinition(URL, (TEST,), description="x")
    )
    assert changed.description == "x"


async def test_a_change_of_an_endpoint_is_conditional_and_audited(webhook_services: WebhookServices) -> None:
    """A wrong ETag is rejected; an equal definition causes no audit event; without ``enabled``, the state stays."""
    endpoint = await webhook_services.create_endpoint(TEST, enabled=False)
    definition = EndpointDefinition(URL, (TEST,), description="new")
    wrong = condition_from_headers('"wrong"', None)
    assert (
        await get_error_code(webhook_services.service.replace("admin@t", endpoint.id, definition, wrong))
        == "PRECONDITION_FAILED"
    )
    right = condition_from_headers(endpoint.etag, None)
    changed = await webhook_services.service.replace("editor@t", endpoint.id, definition, right)
    assert (changed.description, changed.enabled) == ("new", False)
    await webhook_services.service.replace("editor@t", endpoint.id, definition)
    assert await get_error_code(webhook_services.service.remove("admin@t", endpoint.id, right)) == "PRECONDITION_FAILED"
    await webhook_services.service.remove("admin@t", endpoint.id, condition_from_headers(changed.etag, None))
    assert await get_error_code(webhook_services.service.get(endpoint.id)) == "WEBHOOK_NOT_FOUND"
    assert await get_error_code(webhook_services.service.remove("admin@t", endpoint.id, right)) == "PRECONDITION_FAILED"
    assert await get_error_code(webhook_services.service.remove("admin@t", endpoint.id)) == "WEBHOOK_NOT_FOUND"
    actions = [(event["ActionType"], event["user"]) for event in webhook_services.log.events]
    assert actions == [
        ("Webhook.Created", "admin@t"),
        ("Webhook.Updated", "editor@t"),
        ("Webhook.Removed", "admin@t"),
    ]


async def test_an_endpoint_that_is_too_large_for_its_audit_event_is_refused(webhook_services: WebhookServices) -> None:
    """A change of an endpoint whose audit event would exceed a record is refused and not stored."""
    endpoint = await webhook_services.create_endpoint(TEST)
    large = EndpointDefinition(URL, (TEST,), description="a" * 1_500_000)
    assert await get_error_code(webhook_services.service.replace("admin@t", endpoint.id, large)) == "RECORD_TOO_LARGE"
    assert (await webhook_services.service.get(endpoint.id)).description == endpoint.description


async def test_enabling_an_endpoint_again_removes_its_failure(webhook_services: WebhookServices) -> None:
    """Enabling a disabled endpoint deletes the reason of its failure; it gets only events from then on."""
    endpoint = await webhook_services.create_endpoint()
    await webhook_services.service.replace("admin@t", endpoint.id, EndpointDefinition(URL, (DOWNLOAD,), enabled=False))
    early = webhook_services.time.now
    webhook_services.time.advance(1)
    await webhook_services.service.replace("admin@t", endpoint.id, EndpointDefinition(URL, (DOWNLOAD,), enabled=True))
    await webhook_services.publish("early", at=early)
    await webhook_services.publish("late")
    assert [each.body for each in await webhook_services.list_all(endpoint) if '"early"' in each.body] == []
    assert len(await webhook_services.list_all(endpoint)) == 1


async def test_a_test_event_ignores_event_types(webhook_services: WebhookServices) -> None:
    """A test event is sent to an enabled endpoint, whatever event types it subscribes to."""
    endpoint = await webhook_services.create_endpoint(DOWNLOAD)
    delivery = await webhook_services.service.send_test_delivery("admin@t", endpoint.id)
    await webhook_services.send_due_deliveries()
    assert [each.headers["webhook-id"] for each in webhook_services.http.requests] == [delivery.id]
    await webhook_services.service.replace("admin@t", endpoint.id, EndpointDefinition(URL, (DOWNLOAD,), enabled=False))
    assert (
        await get_error_code(webhook_services.service.send_test_delivery("admin@t", endpoint.id)) == "WEBHOOK_DISABLED"
    )
    assert await get_error_code(webhook_services.deliveries.retry(endpoint.id, delivery.id)) == "WEBHOOK_DISABLED"


async def test_only_events_that_match_the_filter_are_stored(webhook_services: WebhookServices) -> None:
    """An event is stored for an endpoint only if it has a listed value for each list of the filter."""
    wanted = EventFilter(surfaces=("cooling",), severities=("critical",))
    endpoint = await webhook_services.create_endpoint(DOWNLOAD, filter=wanted)
    await webhook_services.publish("no dimension")
    await webhook_services.publish("other surface", surfaces=frozenset({"hall"}), severity="critical")
    await webhook_services.publish("no severity", surfaces=frozenset({"cooling"}))
    await webhook_services.publish("wanted", surfaces=frozenset({"cooling", "hall"}), severity="critical")
    await webhook_services.publish("wanted", surfaces=frozenset({"cooling"}), severity="critical")
    assert ["wanted" in each.body for each in await webhook_services.list_all(endpoint)] == [True]


async def test_changes_without_provenance_are_not_audited(webhook_services: WebhookServices) -> None:
    """In a workspace without provenance, a change succeeds without an audit event."""
    webhook_services.is_audited = False
    await webhook_services.create_endpoint()
    assert webhook_services.log.events == []
    assert (await webhook_services.registry.load()).audit == ()


@pytest.mark.parametrize("is_provenance_removed", [False, True])
async def test_audit_events_of_a_crash_are_appended_later(
    webhook_services: WebhookServices, monkeypatch: pytest.MonkeyPatch, *, is_provenance_removed: bool
) -> None:
    """If the audit event of a change cannot be appended, the change is stored, and the next run appends the event.

    This also applies if provenance was removed after the change.
    """

    async def fail_append(*_: object, **__: object) -> None:
        raise WorkspaceError("unavailable", "PROVENANCE_UNAVAILABLE", "down")  # type: ignore[arg-type]  # any kind

    append = webhook_services.log.append
    monkeypatch.setattr(webhook_services.log, "append", fail_append)
    endpoint = await webhook_services.create_endpoint()
    monkeypatch.setattr(webhook_services.log, "append", append)
    webhook_services.is_audited = not is_provenance_removed
    await webhook_services.service.flush_and_count_audit_events()
    assert [event["EntityID"] for event in webhook_services.log.events] == [endpoint.id]
