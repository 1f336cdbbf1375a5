"""Management of webhook endpoints: create, change, remove, rotate secrets, test."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from shared.catalog.outbox import (
    EventAnnouncer,
    check_event_can_be_appended,
    flush_outbox_and_count_events,
    ignore_events,
)
from shared.conditional_requests import UNCONDITIONAL, Condition, build_item_missing_error
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.observability.logs import get_logger
from shared.outbound.addresses import AddressRefusedError, parse_outbound_url
from shared.outbound.ports import OutboundHttp
from shared.provenance.ports import AuditLog
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.webhooks.audit import add_audit_event
from shared.webhooks.events import WebhookEvent, WebhookEventType
from shared.webhooks.models import (
    MAX_ENDPOINTS,
    MAX_FILTER_BYTES,
    Delivery,
    EndpointList,
    EventFilter,
    MessageFormat,
    StoredSecret,
    WebhookEndpoint,
)
from shared.webhooks.outbox import DeliveryOutbox, build_delivery
from shared.webhooks.registry import EndpointRegistry, add_or_replace_endpoint, to_pending_event
from shared.webhooks.secrets import SecretVault

OVERLAP: Final = timedelta(hours=24)
"""Time after a rotation for which deliveries are also signed with the previous secret."""
_LOG = get_logger("webhooks")


@dataclass(frozen=True, slots=True)
class EndpointDefinition:
    """Definition of a webhook endpoint from a caller; if ``enabled`` is None, the stored value does not change."""

    url: str
    event_types: tuple[WebhookEventType, ...]
    format: MessageFormat = MessageFormat.STANDARD
    description: str | None = None
    filter: EventFilter = field(default_factory=EventFilter)
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class EndpointSecret:
    """Webhook endpoint and its newest signing secret, which is shown once."""

    endpoint: WebhookEndpoint
    secret: str


async def do_nothing_on_subscribe() -> None:
    """Do nothing; this is the default of the argument ``on_subscribe`` of ``WebhookService``."""


class WebhookService:
    """Manages webhook endpoints; each change is audited without the secret.

    Args:
        registry: storage of the endpoints.
        vault: creates and encrypts secrets.
        http: client that checks the addresses of URLs.
        outbox: stores test deliveries.
        audit_log: destination of the audit events.
        is_audited: returns whether the workspace has provenance (audit chains) now.
        on_subscribe: called after an endpoint was created or changed, before the reply; prepares the sources of events.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        registry: EndpointRegistry,
        vault: SecretVault,
        http: OutboundHttp,
        outbox: DeliveryOutbox,
        audit_log: AuditLog,
        is_audited: Callable[[], Awaitable[bool]],
        *,
        on_subscribe: Callable[[], Awaitable[None]] = do_nothing_on_subscribe,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._registry = registry
        self._vault = vault
        self._http = http
        self._outbox = outbox
        self._audit_log = audit_log
        self._is_audited = is_audited
        self._on_subscribe = on_subscribe
        self._runtime = runtime

    async def list_endpoints(self) -> Sequence[WebhookEndpoint]:
        """Return all webhook endpoints, oldest first."""
        endpoints = (await self._registry.load()).endpoints.values()
        return sorted(endpoints, key=lambda each: (each.created_at, each.id))

    async def get(self, endpoint_id: str) -> WebhookEndpoint:
        """Return the webhook endpoint with this id.

        Raises:
            WorkspaceError: NOT_FOUND ``WEBHOOK_NOT_FOUND``.
        """
        return _get_endpoint(await self._registry.load(), endpoint_id)

    async def create(self, user_id: str, definition: EndpointDefinition, *, append_id: str = "") -> EndpointSecret:
        """Create a webhook endpoint with a new signing secret.

        Args:
            user_id: user who creates the endpoint.
            definition: definition of the endpoint.
            append_id: unique id of the request; a repeat returns the endpoint that the first request created. Empty
                for a request that is certainly new.

        Raises:
            WorkspaceError: INVALID ``WEBHOOK_URL_REFUSED`` if the URL is not allowed; INVALID naming ``filter`` if the
                filters of all endpoints are too large; CONFLICT ``TOO_MANY_WEBHOOKS``; TOO_LARGE ``RECORD_TOO_LARGE``
                if the endpoint is too large for its audit event; UNAVAILABLE if the store or a key is unavailable.
        """
        await self.check_url(definition.url)
        append_id = append_id or self._runtime.new_id()
        endpoint_id = hashlib.sha256(append_id.encode()).hexdigest()[:32]
        stored_secret = await self._create_secret(endpoint_id, append_id)
        at = self._runtime.now()
        made = WebhookEndpoint(
            id=endpoint_id,
            url=definition.url,
            format=definition.format,
            description=definition.description,
            event_types=definition.event_types,
            filter=definition.filter,
            enabled=definition.enabled is not False,
            created_at=at,
            created_by=user_id,
            secrets=(stored_secret,),
            subscribed_at=dict.fromkeys(definition.event_types, at),
        )

        def add_endpoint_to_list(endpoint_list: EndpointList) -> EndpointList | None:
            if endpoint_id in endpoint_list.endpoints:
                return None
            if len(endpoint_list.endpoints) >= MAX_ENDPOINTS:
                detail = f"The workspace has {MAX_ENDPOINTS} webhooks already; remove one first."
                raise WorkspaceError(Kind.CONFLICT, "TOO_MANY_WEBHOOKS", detail)
            changed = add_or_replace_endpoint(endpoint_list, made)
            return add_audit_event(changed, "Created", None, made, user_id=user_id, append_id=append_id)

        listed = await self._change_endpoints(add_endpoint_to_list)
        await self._prepare_event_sources()
        return await self._decrypt_newest_secret(listed.endpoints[endpoint_id])

    async def replace(
        self, user_id: str, endpoint_id: str, definition: EndpointDefinition, condition: Condition = UNCONDITIONAL
    ) -> WebhookEndpoint:
        """Replace the definition of an endpoint; an unchanged definition is neither stored nor audited.

        Raises:
            WorkspaceError: INVALID ``WEBHOOK_URL_REFUSED`` if the URL is not allowed; INVALID naming ``filter`` if the
                filters of all endpoints are too large; NOT_FOUND ``WEBHOOK_NOT_FOUND``; PRECONDITION_FAILED; TOO_LARGE
                ``RECORD_TOO_LARGE`` if the endpoint is too large for its audit event.
        """
        before = (await self._registry.load()).endpoints.get(endpoint_id)
        if before is None or before.url != definition.url:
            await self.check_url(definition.url)
        at, append_id = self._runtime.now(), self._runtime.new_id()

        def replace_endpoint_in_list(endpoint_list: EndpointList) -> EndpointList | None:
            stored = _get_endpoint(endpoint_list, endpoint_id, condition)
            condition.check_write_allowed(stored.etag)
            enabled = stored.enabled if definition.enabled is None else definition.enabled
            known = stored.subscribed_at if stored.enabled else {}
            updates: dict[str, Any] = {
                "url": definition.url,
                "format": definition.format,
                "description": definition.description,
                "event_types": definition.event_types,
                "filter": definition.filter,
                "enabled": enabled,
                "subscribed_at": {each: known.get(each, at) for each in definition.event_types},
            }
            if enabled and not stored.enabled:
                updates["disabled_reason"] = None
            if enabled and (not stored.enabled or stored.url != definition.url):
                updates["failing_since"] = None
            after = stored.model_copy(update=updates)
            if after.to_definition() == stored.to_definition():
                return None
            changed = add_or_replace_endpoint(endpoint_list, after)
            return add_audit_event(changed, "Updated", stored, after, user_id=user_id, append_id=append_id)

        listed = await self._change_endpoints(replace_endpoint_in_list)
        await self._prepare_event_sources()
        return listed.endpoints[endpoint_id]

    async def remove(self, user_id: str, endpoint_id: str, condition: Condition = UNCONDITIONAL) -> None:
        """Remove an endpoint; its pending deliveries are not sent.

        Raises:
            WorkspaceError: NOT_FOUND ``WEBHOOK_NOT_FOUND``; PRECONDITION_FAILED.
        """
        append_id = self._runtime.new_id()

        def remove_endpoint_from_list(endpoint_list: EndpointList) -> EndpointList:
            before = _get_endpoint(endpoint_list, endpoint_id, condition)
            condition.check_write_allowed(before.etag)
            left = {key: value for key, value in endpoint_list.endpoints.items() if key != endpoint_id}
            changed = endpoint_list.model_copy(update={"endpoints": left})
            return add_audit_event(changed, "Removed", before, None, user_id=user_id, append_id=append_id)

        await self._change_endpoints(remove_endpoint_from_list)

    async def rotate_secret(
        self, user_id: str, endpoint_id: str, condition: Condition = UNCONDITIONAL, *, append_id: str = ""
    ) -> EndpointSecret:
        """Create a new secret for an endpoint; for 24 hours, deliveries are also signed with the previous secret.

        Args:
            user_id: user who rotates the secret.
            endpoint_id: id of the webhook endpoint.
            condition: If-Match precondition on the definition of the endpoint.
            append_id: unique id of the request; a repeat returns the secret that the first request created. Empty for
                a request that is certainly new.

        Raises:
            WorkspaceError: NOT_FOUND ``WEBHOOK_NOT_FOUND``; PRECONDITION_FAILED; TOO_LARGE ``RECORD_TOO_LARGE`` if the
                endpoint is too large for its audit event; UNAVAILABLE if the store or a key is unavailable.
        """
        append_id = append_id or self._runtime.new_id()
        made = await self._create_secret(endpoint_id, append_id)
        until = self._runtime.now() + OVERLAP

        def replace_secret(endpoint_list: EndpointList) -> EndpointList | None:
            before = _get_endpoint(endpoint_list, endpoint_id, condition)
            if before.secrets[0].append_id == append_id:
                return None
            condition.check_write_allowed(before.etag)
            previous = before.secrets[0].model_copy(update={"expires_at": until})
            after = before.model_copy(update={"secrets": (made, previous)})
            changed = add_or_replace_endpoint(endpoint_list, after)
            return add_audit_event(changed, "SecretRotated", before, after, user_id=user_id, append_id=append_id)

        return await self._decrypt_newest_secret((await self._change_endpoints(replace_secret)).endpoints[endpoint_id])

    async def send_test_delivery(self, user_id: str, endpoint_id: str, *, append_id: str = "") -> Delivery:
        """Store a delivery of a test event to an endpoint, even without a subscription, and return the delivery.

        The worker sends it in the background. A repeat with the same ``append_id`` stores nothing.

        Raises:
            WorkspaceError: NOT_FOUND ``WEBHOOK_NOT_FOUND``; CONFLICT ``WEBHOOK_DISABLED``.
        """
        endpoint = await self.get(endpoint_id)
        check_endpoint_is_enabled(endpoint)
        event = WebhookEvent(
            key=f"{WebhookEventType.WEBHOOK_TEST}/{append_id or self._runtime.new_id()}",
            type=WebhookEventType.WEBHOOK_TEST,
            at=self._runtime.now(),
            data={"webhookId": endpoint_id, "requestedBy": user_id},
        )
        delivery = build_delivery(endpoint, event, self._runtime)
        await self._outbox.add_deliveries([delivery])
        return delivery

    async def flush_and_count_audit_events(self) -> int:
        """Append pending audit events to their chain; return their number.

        They are also appended if the workspace had provenance (audit chains) at the change, but has none now.

        Raises:
            WorkspaceError: any error of the audit log or the store; events that were not appended stay pending.
        """
        return await flush_outbox_and_count_events(self._registry, self._audit_log, EventAnnouncer(ignore_events))

    async def check_url(self, url_text: str) -> None:
        """Reject a URL that is not allowed as the URL of an endpoint, or whose host resolves to a forbidden address.

        Raises:
            WorkspaceError: INVALID ``WEBHOOK_URL_REFUSED``, whose message states the broken rule.
        """
        try:
            await self._http.require_allowed_host(parse_outbound_url(url_text))
        except AddressRefusedError as error:
            raise build_invalid_field_error("url", error.reason, code="WEBHOOK_URL_REFUSED") from None

    async def _create_secret(self, endpoint_id: str, append_id: str) -> StoredSecret:
        return StoredSecret(
            encrypted=await self._vault.encrypt(endpoint_id, self._vault.create_secret()), append_id=append_id
        )

    async def _decrypt_newest_secret(self, endpoint: WebhookEndpoint) -> EndpointSecret:
        """Return an endpoint with its newest secret, decrypted."""
        return EndpointSecret(endpoint, await self._vault.decrypt(endpoint.id, endpoint.secrets[0].encrypted))

    async def _prepare_event_sources(self) -> None:
        try:
            await self._on_subscribe()
        except WorkspaceError as error:
            _LOG.warning("the sources of events were not prepared; the next run prepares them: %s", error)

    async def _change_endpoints(self, change: Callable[[EndpointList], EndpointList | None]) -> EndpointList:
        """Change the list of endpoints with the function ``change``, store it, and return the stored list.

        If the workspace has provenance (audit chains), the audit events of the change are stored with the list, and
        then appended to their chain. Events that cannot be appended now stay pending.
        """
        # The workspace at the time of the change decides, because the event is possibly appended days later.
        is_audited = await self._is_audited()

        def change_list_and_check_sizes(before: EndpointList) -> EndpointList | None:
            after = change(before)
            if after is None:
                return None
            _check_size_of_filters(before, after)
            if not is_audited:
                return after.model_copy(update={"audit": before.audit})
            for audit in after.audit[len(before.audit) :]:
                check_event_can_be_appended(to_pending_event(audit))
            return after

        listed = await self._registry.change_endpoint_list(change_list_and_check_sizes)
        if not is_audited:
            _LOG.warning("provenance is not configured; changes to webhooks are not audited")
            return listed
        try:
            await self.flush_and_count_audit_events()
        except WorkspaceError:
            _LOG.exception("audit events of webhook changes stay pending")
        return listed


def check_endpoint_is_enabled(endpoint: WebhookEndpoint) -> None:
    """Check that a webhook endpoint is enabled, before an operation sends a delivery to it.

    Raises:
        WorkspaceError: CONFLICT ``WEBHOOK_DISABLED``.
    """
    if not endpoint.enabled:
        raise WorkspaceError(Kind.CONFLICT, "WEBHOOK_DISABLED", "The webhook is disabled; enable it first.")


def _check_size_of_filters(before: EndpointList, after: EndpointList) -> None:
    """Reject a change that increases the size of all filters beyond the limit.

    Raises:
        WorkspaceError: INVALID on ``filter``.
    """
    size = after.count_filter_bytes()
    if size > MAX_FILTER_BYTES and size > before.count_filter_bytes():
        rule = f"must be shorter, because the filters of all webhooks together have at most {MAX_FILTER_BYTES} bytes"
        raise build_invalid_field_error("filter", rule)


def _get_endpoint(
    endpoint_list: EndpointList, endpoint_id: str, condition: Condition = UNCONDITIONAL
) -> WebhookEndpoint:
    """Return a webhook endpoint by its id.

    An unknown id is an error: PRECONDITION_FAILED (412) for a request with If-Match, else NOT_FOUND (404).
    """
    if endpoint_id not in endpoint_list.endpoints:
        if condition.match is not None:
            raise build_item_missing_error()
        raise WorkspaceError(Kind.NOT_FOUND, "WEBHOOK_NOT_FOUND", "The workspace has no webhook with this id.")
    return endpoint_list.endpoints[endpoint_id]
