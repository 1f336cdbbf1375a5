"""Items that administrators define: team members, connections, surfaces (groups of connections), alerts, webhooks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from oi._sync.transport import Transport
from oi.requests import build_if_match_header, parse_json_reply, quote_path_segment, require_no_content

if TYPE_CHECKING:
    from oi.models import AlertDescription, WebhookDelivery, WebhookWithSecret


class ItemWithEtag(NamedTuple):
    """Item, and the ETag of its stored version.

    Attributes:
        item: JSON properties of the item.
        etag: ETag; empty if the reply has none.
    """

    item: dict[str, Any]
    etag: str


class Items:
    """Reads and changes the items of one kind, for instance all data connections.

    Args:
        transport: sends the requests.
        route: URL path of the list of items; the path of an item is the list's path and the item's key.
        member: name of the JSON property that contains the items in the reply with the list.
    """

    def __init__(self, transport: Transport, route: str, member: str) -> None:
        self._transport = transport
        self._route = route
        self._member = member

    def list(self) -> Sequence[dict[str, Any]]:
        """Return all items of this kind."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = self._transport.get_json(self._route, {"cursor": cursor} if cursor else None)
            found += page[self._member]
            cursor = page.get("cursor")
            if not cursor:
                return found

    def get(self, key: str) -> ItemWithEtag:
        """Return an item and its ETag.

        Raises:
            NotFoundError: no item has this key.
        """
        response = self._transport.request("GET", self._build_item_path(key))
        return ItemWithEtag(parse_json_reply(response), response.headers.get("etag", ""))

    def put(
        self, key: str, item: Mapping[str, Any], *, etag: str | None = None, create_only: bool = False
    ) -> dict[str, Any]:
        """Create or replace an item; return the stored item.

        Args:
            key: id or short name (lookup) of the item in URLs.
            item: JSON properties of the item.
            etag: replace the item only if the stored version still has this ETag.
            create_only: create a new item; raise an error if an item with this key exists.

        Raises:
            PreconditionFailedError: the stored item no longer has the ETag `etag`, or `create_only` is set and the item
                exists already.
        """
        headers = build_if_match_header(etag)
        if create_only:
            headers["If-None-Match"] = "*"
        response = self._transport.request("PUT", self._build_item_path(key), json=item, headers=headers)
        stored: dict[str, Any] = parse_json_reply(response)
        return stored

    def delete(self, key: str, *, etag: str | None = None) -> None:
        """Delete an item. With an ETag, delete it only if the stored version still has this ETag.

        Raises:
            ConflictError: other items refer to the item.
        """
        require_no_content(
            self._transport.request("DELETE", self._build_item_path(key), headers=build_if_match_header(etag))
        )

    def _build_item_path(self, key: str) -> str:
        return f"{self._route}/{quote_path_segment(key)}"


class Alerts:
    """Lists and acknowledges alerts; the attribute ``rules`` manages the alert rules, which raise the alerts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.rules = Items(transport, "/oi-api/alert-rules", "rules")

    def list(
        self, *, state: str | None = None, severity: str | None = None, surface: str | None = None
    ) -> Sequence["AlertDescription"]:
        """Return alerts, optionally only those of one state, severity or surface (group of connections)."""
        filters = {"state": state, "severity": severity, "surface": surface}
        found: list[AlertDescription] = []
        cursor: str | None = None
        while True:
            page = self._transport.get_json("/oi-api/alerts", {**filters, "cursor": cursor})
            found += page["alerts"]
            cursor = page.get("cursor")
            if not cursor:
                return found

    def acknowledge(self, alert_id: str, comment: str | None = None) -> "AlertDescription":
        """Acknowledge an alert; return the acknowledged alert.

        Raises:
            ConflictError: the alert is resolved.
        """
        body = {} if comment is None else {"comment": comment}
        path = f"/oi-api/alerts/{quote_path_segment(alert_id)}/acknowledge"
        alert: AlertDescription = parse_json_reply(self._transport.request("POST", path, json=body, appends=True))
        return alert


class Webhooks:
    """Manages the workspace's webhooks, which send events to https addresses."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._items = Items(transport, _WEBHOOKS, "webhooks")

    def list(self) -> Sequence[dict[str, Any]]:
        """Return all webhooks, without their secrets."""
        return self._items.list()

    def get(self, webhook_id: str) -> ItemWithEtag:
        """Return a webhook without its secret, and its ETag.

        Raises:
            NotFoundError: there is no such webhook.
        """
        return self._items.get(webhook_id)

    def put(self, webhook_id: str, definition: Mapping[str, Any], *, etag: str | None = None) -> dict[str, Any]:
        """Replace the definition of a webhook, whose secret remains the same; return the stored webhook.

        Args:
            webhook_id: id of the webhook.
            definition: ``url`` and ``eventTypes``, and the optional properties of :meth:`create`.
            etag: ETag from :meth:`get`; the webhook is then replaced only if it still has this ETag.

        Raises:
            PreconditionFailedError: the webhook was changed, and no longer has this ETag.
        """
        return self._items.put(webhook_id, definition, etag=etag)

    def create(self, url: str, event_types: Sequence[str], **members: Any) -> "WebhookWithSecret":
        """Create a webhook; return the webhook with its ``secret``, which no later reply contains.

        Args:
            url: https address that receives the events.
            event_types: types of the events to send, for instance ``alert.firing``.
            members: optional properties of the webhook: ``format``, ``description``, ``filter``, ``enabled``.
        """
        body = {"url": url, "eventTypes": list(event_types), **members}
        webhook: WebhookWithSecret = parse_json_reply(
            self._transport.request("POST", _WEBHOOKS, json=body, appends=True)
        )
        return webhook

    def delete(self, webhook_id: str) -> None:
        """Delete a webhook."""
        self._items.delete(webhook_id)

    def rotate_secret(self, webhook_id: str) -> "WebhookWithSecret":
        """Create a new secret for a webhook; return the webhook with its secret.

        For 24 hours, events are also signed with the old secret.
        """
        webhook: WebhookWithSecret = self._post_action_and_parse_reply(webhook_id, "rotate-secret")
        return webhook

    def test(self, webhook_id: str) -> "WebhookDelivery":
        """Send the event ``webhook.test`` to a webhook; return the event's delivery, which may still be waiting."""
        delivery: WebhookDelivery = self._post_action_and_parse_reply(webhook_id, "test")
        return delivery

    def deliveries(self, webhook_id: str, *, status: str | None = None) -> Sequence["WebhookDelivery"]:
        """Return the newest deliveries (sent or waiting events) of a webhook, each with all attempts to send its event.

        Args:
            webhook_id: id of the webhook.
            status: return only deliveries with this status: ``pending``, ``delivered`` or ``failed``.
        """
        path = f"{_WEBHOOKS}/{quote_path_segment(webhook_id)}/deliveries"
        found: Sequence[WebhookDelivery] = (self._transport.get_json(path, {"status": status}))["deliveries"]
        return found

    def retry(self, webhook_id: str, delivery_id: str) -> "WebhookDelivery":
        """Send the event of a failed or waiting delivery again at once, with the same event id; return the delivery."""
        action = f"deliveries/{quote_path_segment(delivery_id)}/retry"
        delivery: WebhookDelivery = self._post_action_and_parse_reply(webhook_id, action)
        return delivery

    def _post_action_and_parse_reply(self, webhook_id: str, action_path: str) -> Any:
        path = f"{_WEBHOOKS}/{quote_path_segment(webhook_id)}/{action_path}"
        return parse_json_reply(self._transport.request("POST", path, appends=True))


_WEBHOOKS = "/oi-api/webhooks"
