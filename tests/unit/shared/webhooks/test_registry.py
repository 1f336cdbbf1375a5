"""Tests of the storage of webhook endpoints."""

from shared.webhooks.audit import add_audit_event
from shared.webhooks.models import EndpointList, WebhookEndpoint
from shared.webhooks.registry import add_or_replace_endpoint
from tests.unit.shared.webhooks.environment import TEST, URL, WebhookServices
from tests.virtual_time import START

ENDPOINT = WebhookEndpoint(id="e1", url=URL, event_types=(TEST,), created_at=START, created_by="ann")


async def test_an_empty_store_has_no_endpoints(webhook_services: WebhookServices) -> None:
    """A store without a saved document has no endpoints."""
    assert await webhook_services.registry.load() == EndpointList()


async def test_a_stored_endpoint_is_read_unchanged(webhook_services: WebhookServices) -> None:
    """An endpoint is read as it was stored; if a change function returns None, nothing is stored."""
    stored = await webhook_services.registry.change_endpoint_list(
        lambda listed: add_or_replace_endpoint(listed, ENDPOINT)
    )
    assert stored == await webhook_services.registry.load() == EndpointList(endpoints={"e1": ENDPOINT})
    assert await webhook_services.registry.change_endpoint_list(lambda _: None) == stored


async def test_an_event_type_of_a_newer_version_is_kept(webhook_services: WebhookServices) -> None:
    """An endpoint that subscribes to an event type of a newer version is read, and a change keeps this type."""
    newer = ENDPOINT.model_copy(
        update={"event_types": (TEST, "import.completed"), "subscribed_at": {"import.completed": START}}
    )
    await webhook_services.registry.change_endpoint_list(lambda listed: add_or_replace_endpoint(listed, newer))
    changed = newer.model_copy(update={"failing_since": START})
    await webhook_services.registry.change_endpoint_list(lambda listed: add_or_replace_endpoint(listed, changed))
    [stored] = (await webhook_services.registry.load()).endpoints.values()
    assert stored == changed
    assert stored.to_definition()["eventTypes"] == ["webhook.test", "import.completed"]


async def test_appended_events_are_removed(webhook_services: WebhookServices) -> None:
    """Audit events are removed from the store after they were appended; pending events stay in order."""
    for append_id in ("1", "2", "3"):
        await webhook_services.registry.change_endpoint_list(
            lambda listed, key=append_id: add_audit_event(  # type: ignore[misc]
                listed, "Created", None, ENDPOINT, user_id="ann", append_id=key
            )
        )
    await webhook_services.registry.delete_pending_events(["2", "none"])
    assert [event.append_id for event in await webhook_services.registry.list_pending_events()] == ["1", "3"]
