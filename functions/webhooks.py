"""HTTP operations on webhooks: endpoints, their secrets, test events, and the log of deliveries."""

import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool, StringConstraints, WithJsonSchema

from functions.catalog_items import check_conditional_headers
from functions.conditions import parse_conditional_headers
from functions.idempotency import make_idempotent
from functions.reply_docs import alerts as replies
from shared.auth.rights import AccessRight
from shared.catalog.alert_rule_models import Severity
from shared.errors import FieldError, ValidationErrors, build_invalid_fields_error
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group, ServerManagedProperties, StrictBody
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.outbound.addresses import MAX_URL_LENGTH
from shared.provenance.cursors import ListCursor
from shared.timestamps import format_rfc3339
from shared.validation.whole_numbers import parse_whole_number
from shared.webhooks.event_data import DESCRIPTIONS
from shared.webhooks.events import WebhookEventType
from shared.webhooks.models import Delivery, DeliveryStatus, EventFilter, MessageFormat, WebhookEndpoint
from shared.webhooks.ports import DeliveryPlace
from shared.webhooks.service import EndpointDefinition, EndpointSecret
from shared.wiring import services

GROUP = Group("webhooks")
_ROUTE: Final = "oi-api/webhooks"
_RIGHT: Final = AccessRight.WEBHOOK_MANAGE
MAX_LIMIT: Final = 1_000
MAX_FILTERED: Final = 1_000
_CURSOR: Final = ListCursor("webhook-deliveries", (str, str), DeliveryPlace, ("status",))
_DESCRIPTION_PATTERN: Final = r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
"""Pattern, for JSON Schema, of the texts that :func:`_validate_description` accepts."""
_DIRECTIONS: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Bidirectional classes of invisible characters that reverse the display of the following text."""
_LIMIT: Final = {"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_LIMIT}


def _reject_repeated_values[T](values: list[T]) -> list[T]:
    if len(set(values)) < len(values):
        raise ValueError("must not contain the same value twice")
    return values


def _validate_description(text: str) -> str:
    for place, character in enumerate(text, 1):
        is_control = character != "\n" and unicodedata.category(character) in {"Cc", "Zl", "Zp"}
        if is_control or unicodedata.bidirectional(character) in _DIRECTIONS:
            raise ValueError(
                f"must not contain control characters except line breaks (U+{ord(character):04X} is character {place})"
            )
    return text


type Description = Annotated[
    str,
    StringConstraints(strict=True, max_length=1_000),
    AfterValidator(_validate_description),
    Field(json_schema_extra={"pattern": _DESCRIPTION_PATTERN}),
]
type Lookups = Annotated[
    list[str], Field(min_length=1, max_length=MAX_FILTERED), AfterValidator(_reject_repeated_values)
]
type Severities = Annotated[list[Severity], Field(min_length=1, max_length=3), AfterValidator(_reject_repeated_values)]


class FilterBody(StrictBody):
    """Filter of the events that a webhook receives; an omitted or null property restricts nothing."""

    surfaces: Lookups | None = None
    connections: Lookups | None = None
    severities: Severities | None = None


class WebhookBody(StrictBody):
    """Request body that defines a webhook."""

    url: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=MAX_URL_LENGTH)]
    format: MessageFormat = MessageFormat.STANDARD
    description: Description | None = None
    event_types: Annotated[
        list[WebhookEventType],
        Field(min_length=1, max_length=len(WebhookEventType)),
        AfterValidator(_reject_repeated_values),
    ] = Field(alias="eventTypes")
    filter: FilterBody = FilterBody()
    enabled: StrictBool | None = None


class WebhookChangeBody(WebhookBody):
    """Request body that replaces the definition of a webhook."""


def _parse_limit(text: Any) -> int:
    return parse_whole_number(text, MAX_LIMIT)


class DeliveriesQuery(BaseModel):
    """Query parameters of the list of deliveries."""

    status: DeliveryStatus | None = Field(None, description="Only deliveries of this status. Default: all.")
    limit: Annotated[int, BeforeValidator(_parse_limit), WithJsonSchema(_LIMIT)] = Field(
        100, description="Maximum number of deliveries, 1 to 1000. Default: 100."
    )
    cursor: str | None = Field(None, description="The `cursor` of the previous page. Default: the first page.")


@GROUP.endpoint("GET", _ROUTE, right=_RIGHT, docs=replies.WEBHOOKS_LISTED)
async def list_webhooks(call: Call) -> Reply:  # noqa: ARG001  every handler takes the call
    """Return the webhooks, oldest first."""
    endpoints = await services().webhook_endpoints.service.list_endpoints()
    return build_json_reply({"webhooks": [_webhook_to_json(each) for each in endpoints]})


async def _check_webhook(call: Call[Any, WebhookBody], faults: ValidationErrors) -> None:
    check_conditional_headers(faults, call.request)
    if faults.has_valid_fields("filter"):
        await _check_filter(faults, call.body.filter, await _find_stored_filter(call.path))
    if faults and faults.has_valid_fields("url"):
        # Without errors so far, the handler checks the URL itself.
        with faults.collect_raised_error():
            await services().webhook_endpoints.service.check_url(call.body.url)


async def _find_stored_filter(path_parameters: Mapping[str, str]) -> EventFilter:
    """Return the stored filter of the webhook in the URL path; an empty filter if the webhook does not exist."""
    if "id" not in path_parameters:
        return EventFilter()
    endpoints = await services().webhook_endpoints.service.list_endpoints()
    found = (each.filter for each in endpoints if each.id == path_parameters["id"])
    return next(found, EventFilter())


async def _check_filter(faults: ValidationErrors, body: FilterBody, stored: EventFilter) -> None:
    """Add an error to ``faults`` for each surface or connection in a webhook's filter that does not exist.

    Names that the stored filter already contains are accepted, because surfaces and connections can be removed while a
    webhook names them, and callers must still be able to disable that webhook.
    """
    catalog = await services().catalog.get_current_catalog()
    errors = [
        *_list_unknown_lookup_errors("surface", body.surfaces or (), {*catalog.surfaces, *(stored.surfaces or ())}),
        *_list_unknown_lookup_errors(
            "connection", body.connections or (), {*catalog.connections, *(stored.connections or ())}
        ),
    ]
    if errors:
        faults.add(build_invalid_fields_error(errors))


def _list_unknown_lookup_errors(
    item_kind: str, lookups: Sequence[str], known_lookups: Collection[str]
) -> list[FieldError]:
    return [
        FieldError(f"filter.{item_kind}s[{index}]", f"The workspace has no {item_kind} `{lookup}`.")
        for index, lookup in enumerate(lookups)
        if lookup not in known_lookups
    ]


@GROUP.endpoint("POST", _ROUTE, right=_RIGHT, body=WebhookBody, check=_check_webhook, docs=replies.WEBHOOK_CREATED)
@make_idempotent
async def create_webhook(call: Call[Any, WebhookBody]) -> Reply:
    """Create a webhook and return its secret, which no later reply contains."""
    created = await services().webhook_endpoints.service.create(
        call.principal.member_id, _to_endpoint_definition(call.body), append_id=call.append_id
    )
    return _build_secret_reply(created, 201)


@GROUP.endpoint("GET", f"{_ROUTE}/event-types", right=_RIGHT, docs=replies.EVENT_TYPES)
async def list_webhook_event_types(call: Call) -> Reply:  # noqa: ARG001  every handler takes the call
    """Return the types of webhook events, each with a description and an example."""
    listed = [
        {"type": kind.value, "description": described.text, "example": described.example}
        for kind, described in DESCRIPTIONS.items()
    ]
    return build_json_reply({"eventTypes": listed})


@GROUP.endpoint("GET", f"{_ROUTE}/{{id}}", right=_RIGHT, docs=replies.WEBHOOK_READ)
async def read_webhook(call: Call) -> Reply:
    """Return a webhook without its secret."""
    return _build_webhook_reply(await services().webhook_endpoints.service.get(call.path["id"]))


async def _read_current_webhook(path_parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored webhook as JSON; only its id if the webhook does not exist."""
    listed = {each.id: each for each in await services().webhook_endpoints.service.list_endpoints()}
    return (
        _webhook_to_json(listed[path_parameters["id"]])
        if path_parameters["id"] in listed
        else {"id": path_parameters["id"]}
    )


@GROUP.endpoint(
    "PUT",
    f"{_ROUTE}/{{id}}",
    right=_RIGHT,
    body=WebhookChangeBody,
    server_set=ServerManagedProperties(
        frozenset(replies.Webhook.__annotations__) - map_accepted_names_to_documented_names(WebhookBody).keys(),
        _read_current_webhook,
    ),
    check=_check_webhook,
    docs=replies.WEBHOOK_PUT,
)
async def put_webhook(call: Call[Any, WebhookChangeBody]) -> Reply:
    """Replace the definition of a webhook; if `enabled` is omitted, the webhook stays enabled or disabled."""
    changed = await services().webhook_endpoints.service.replace(
        call.principal.member_id,
        call.path["id"],
        _to_endpoint_definition(call.body),
        parse_conditional_headers(call.request),
    )
    return _build_webhook_reply(changed)


@GROUP.endpoint("DELETE", f"{_ROUTE}/{{id}}", right=_RIGHT, docs=replies.WEBHOOK_DELETED)
async def delete_webhook(call: Call) -> Reply:
    """Remove a webhook; its waiting deliveries are not sent."""
    await services().webhook_endpoints.service.remove(
        call.principal.member_id, call.path["id"], parse_conditional_headers(call.request)
    )
    return Reply(204)


@GROUP.endpoint("POST", f"{_ROUTE}/{{id}}/rotate-secret", right=_RIGHT, docs=replies.SECRET_ROTATED)
@make_idempotent
async def rotate_webhook_secret(call: Call) -> Reply:
    """Create a new signing secret for a webhook and return it; for 24 hours the previous secret signs, too."""
    created = await services().webhook_endpoints.service.rotate_secret(
        call.principal.member_id, call.path["id"], parse_conditional_headers(call.request), append_id=call.append_id
    )
    return _build_secret_reply(created, 200)


@GROUP.endpoint("POST", f"{_ROUTE}/{{id}}/test", right=_RIGHT, docs=replies.SENT)
@make_idempotent
async def send_webhook_test(call: Call) -> Reply:
    """Send the event `webhook.test` to a webhook, even if its event types exclude this event."""
    delivery = await services().webhook_endpoints.service.send_test_delivery(
        call.principal.member_id, call.path["id"], append_id=call.append_id
    )
    return build_json_reply(_delivery_to_json(delivery), 202)


async def _check_deliveries_query(call: Call[DeliveriesQuery], faults: ValidationErrors) -> None:
    _CURSOR.add_cursor_error_if_invalid(faults, call.query.cursor, _format_filters_for_cursor(call))


def _format_filters_for_cursor(call: Call[DeliveriesQuery]) -> str:
    """Return the webhook's id and the status filter of a list of deliveries as one text.

    The paging cursor contains this text, so that a cursor of another list is rejected.
    """
    return f"{call.path['id']} {call.query.status or ''}"


@GROUP.endpoint(
    "GET",
    f"{_ROUTE}/{{id}}/deliveries",
    right=_RIGHT,
    query=DeliveriesQuery,
    check=_check_deliveries_query,
    docs=replies.DELIVERIES,
)
async def list_webhook_deliveries(call: Call[DeliveriesQuery]) -> Reply:
    """Return the deliveries of a webhook of the last 30 days, newest first."""
    query, filters = call.query, _format_filters_for_cursor(call)
    page, last = await services().webhook_endpoints.log.list_deliveries_page(
        call.path["id"], query.status, _CURSOR.decode(query.cursor, filters), query.limit
    )
    cursor = None if last is None else _CURSOR.encode(filters, last)
    return build_json_reply({"deliveries": [_delivery_to_json(each) for each in page], "cursor": cursor})


@GROUP.endpoint("POST", f"{_ROUTE}/{{id}}/deliveries/{{deliveryId}}/retry", right=_RIGHT, docs=replies.RETRIED)
@make_idempotent
async def retry_webhook_delivery(call: Call) -> Reply:
    """Send a webhook delivery again now, under the same id."""
    delivery = await services().webhook_endpoints.log.retry(call.path["id"], call.path["deliveryId"])
    return build_json_reply(_delivery_to_json(delivery), 202)


def _to_endpoint_definition(body: WebhookBody) -> EndpointDefinition:
    wanted = body.filter
    return EndpointDefinition(
        url=body.url,
        event_types=tuple(body.event_types),
        format=body.format,
        description=body.description,
        filter=EventFilter(
            surfaces=None if wanted.surfaces is None else tuple(wanted.surfaces),
            connections=None if wanted.connections is None else tuple(wanted.connections),
            severities=None if wanted.severities is None else tuple(wanted.severities),
        ),
        enabled=body.enabled,
    )


def _webhook_to_json(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return {
        **endpoint.to_definition(),
        "createdAt": format_rfc3339(endpoint.created_at),
        "createdBy": endpoint.created_by,
        "etag": endpoint.etag,
    }


def _build_webhook_reply(endpoint: WebhookEndpoint) -> Reply:
    return build_json_reply(_webhook_to_json(endpoint), 200, {"ETag": endpoint.etag})


def _build_secret_reply(created: EndpointSecret, status: int) -> Reply:
    headers = {"ETag": created.endpoint.etag, "Cache-Control": "no-store"}
    return build_json_reply({**_webhook_to_json(created.endpoint), "secret": created.secret}, status, headers)


def _delivery_to_json(delivery: Delivery) -> dict[str, Any]:
    next_at = delivery.next_attempt_at
    return {
        "id": delivery.id,
        "webhookId": delivery.endpoint,
        "eventType": delivery.event_type,
        "status": delivery.status.value,
        "attempts": [
            {
                "at": format_rfc3339(each.at),
                "httpStatus": each.http_status,
                "error": each.error,
                "durationMs": each.duration_ms,
                "reply": each.reply,
            }
            for each in delivery.attempts
        ],
        "nextAttemptAt": None if next_at is None else format_rfc3339(next_at),
        "createdAt": format_rfc3339(delivery.created_at),
        "event": json.loads(delivery.body),
    }
