"""Outbox of webhook events: stores one delivery for each endpoint that subscribes to an event."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import batched
from typing import Final

from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339
from shared.webhooks.events import EventOutbox, WebhookEvent
from shared.webhooks.models import RETENTION, Delivery, WebhookEndpoint, build_delivery_id
from shared.webhooks.ports import WebhookStore
from shared.webhooks.registry import EndpointRegistry

MAX_ADDED: Final = 100
"""Maximum number of deliveries that are built and stored together; more would block the event loop and the store."""

MAX_EVENT_AGE: Final = RETENTION - timedelta(days=1)
"""Maximum age of an event that is published again. The day covers differences of clocks and slow publications."""


class DeliveryOutbox:
    """Implementation of the port ``EventOutbox``: stores deliveries, and wakes the worker that sends them.

    Args:
        store: storage of webhooks.
        registry: storage of the endpoints.
        wake: called after new deliveries were stored, so that the worker sends them immediately.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: WebhookStore,
        registry: EndpointRegistry,
        wake: Callable[[], None],
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._registry = registry
        self._wake = wake
        self._runtime = runtime

    async def publish(self, events: Sequence[WebhookEvent]) -> None:
        """Store the deliveries of events; see :class:`shared.webhooks.events.EventOutbox`."""
        if not events:
            return
        types = {event.type for event in events}
        listed = (await self._registry.load()).endpoints.values()
        endpoints = [each for each in listed if each.enabled and not types.isdisjoint(each.subscribed_at)]
        if endpoints:
            at = self._runtime.now()
            for part in batched(events, max(1, MAX_ADDED // len(endpoints)), strict=False):
                await self.add_deliveries(
                    build_delivery(each, event, self._runtime)
                    for event in part
                    for each in endpoints
                    if each.accepts_event(event, at)
                )

    async def add_deliveries(self, deliveries: Iterable[Delivery]) -> None:
        """Store webhook deliveries and let the worker send them in the background.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOKS_UNAVAILABLE``.
        """
        if added := list(deliveries):
            await self._store.add_deliveries(added)
            self._wake()


class RecentEventOutbox:
    """Implementation of the port ``EventOutbox`` for callers that publish an event again until another system works.

    It drops events older than ``MAX_EVENT_AGE``. Their first deliveries have possibly expired, so that a further
    publication would send the events again.

    Args:
        outbox: receives the other events.
        runtime: clock.
    """

    def __init__(self, outbox: EventOutbox, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._outbox = outbox
        self._runtime = runtime

    async def publish(self, events: Sequence[WebhookEvent]) -> None:
        """Store the deliveries of recent events; see :class:`shared.webhooks.events.EventOutbox`."""
        earliest = self._runtime.now() - MAX_EVENT_AGE
        await self._outbox.publish([event for event in events if event.at > earliest])


def build_delivery(endpoint: WebhookEndpoint, event: WebhookEvent, runtime: Runtime) -> Delivery:
    """Build the webhook delivery of an event to an endpoint; the delivery is due immediately."""
    at = runtime.now()
    body = {"type": event.type.value, "timestamp": format_rfc3339(event.at), "data": event.data}
    return Delivery(
        id=build_delivery_id(endpoint.id, event.key),
        endpoint=endpoint.id,
        event_type=event.type,
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        created_at=at,
        next_attempt_at=at,
        scheduled_at=at,
        expires_at=at + RETENTION,
    )
