"""Audit events about webhook endpoints; they contain no secrets, and only the origin and SHA-256 of the URL."""

from typing import Any, Final

from shared.outbound.addresses import AddressRefusedError, parse_outbound_url
from shared.webhooks.models import EndpointList, PendingAudit, WebhookEndpoint

ENTITY_TYPE: Final = "Webhook"


def describe_endpoint_for_audit(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """Return the definition of a webhook endpoint for an audit event; it contains no secrets and not the full URL."""
    definition = endpoint.to_definition()
    try:
        url = parse_outbound_url(definition.pop("url"))
    except AddressRefusedError:
        return definition
    return {**definition, "urlOrigin": url.origin, "urlSha256": url.digest}


def add_audit_event(
    endpoint_list: EndpointList,
    verb: str,
    before: WebhookEndpoint | None,
    after: WebhookEndpoint | None,
    *,
    user_id: str,
    append_id: str,
) -> EndpointList:
    """Return the list of endpoints with one more pending audit event, which describes a change of an endpoint.

    Args:
        endpoint_list: all endpoints after the change, with their pending audit events.
        verb: last part of the ActionType: ``Created``, ``Updated``, ``Removed``, ``SecretRotated`` or ``Disabled``.
        before: the endpoint before the change; None for a new one.
        after: the endpoint after the change; None for a removed one.
        user_id: user who made the change.
        append_id: unique id of the event.
    """
    changed = after or before
    assert changed is not None  # noqa: S101  a change has an endpoint before or after it
    event: dict[str, Any] = {
        "ActionType": f"{ENTITY_TYPE}.{verb}",
        "EntityType": ENTITY_TYPE,
        "EntityID": changed.id,
    }
    if before is not None:
        event["BeforeState"] = describe_endpoint_for_audit(before)
    if after is not None:
        event["AfterState"] = describe_endpoint_for_audit(after)
    return endpoint_list.model_copy(
        update={"audit": (*endpoint_list.audit, PendingAudit(append_id=append_id, user_id=user_id, event=event))}
    )
