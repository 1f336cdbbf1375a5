"""Tests of the description of webhook events."""

from jsonschema import Draft202012Validator

from shared.openapi.event_webhooks import build_event_webhooks
from shared.openapi.schemas import SchemaRegistry
from shared.webhooks.events import WebhookEventType


def test_each_event_type_is_described() -> None:
    """The document describes the request of each event type to which a receiver may subscribe."""
    built = build_event_webhooks(SchemaRegistry())
    assert set(built) == {kind.value for kind in WebhookEventType}
    names = [item["post"]["operationId"] for item in built.values()]
    assert len(set(names)) == len(names)
    assert built["warm-query.pending-approval"]["post"]["operationId"] == "receiveWarmQueryPendingApproval"


def test_each_example_fits_its_schema() -> None:
    """The example of each event type is valid under its schema."""
    schemas = SchemaRegistry()
    for kind, item in build_event_webhooks(schemas).items():
        form = item["post"]["requestBody"]["content"]["application/json"]
        document = {**form["schema"], "components": {"schemas": schemas.named}}
        Draft202012Validator(document).validate(form["example"])
        assert form["example"]["type"] == kind
