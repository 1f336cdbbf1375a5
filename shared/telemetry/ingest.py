"""Ingestion of event batches: conversion to impulses, and statistics of connections.

Separate from ``acceptance`` because triggers ingest batches, and requests only send messages.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.observability.logs import fields, get_logger
from shared.telemetry import unrouted
from shared.telemetry.impulses import encode
from shared.telemetry.json_text import parse
from shared.telemetry.models import IMPULSES_HUB, UNROUTED, HubEvent, HubMessage, Impulse
from shared.telemetry.normalisation import to_impulse
from shared.telemetry.ports import ArrivedMessages, ConnectionStateStore, CurrentCatalog, EventSender
from shared.telemetry.routing import ConnectionRouter

MAX_IMPULSE_BYTES = 1_000_000
"""Maximum size of an impulse; an Event Hub accepts 1 MiB including its framing."""

CONNECTED = "CONNECTED"
CONNECTED_REPEAT_SECONDS = 30.0
"""Period in which this process does not check a connection's status again."""

_LOGGER = get_logger("telemetry.ingest")


@dataclass(frozen=True, slots=True)
class _ProcessedEvent:
    """Impulses of an event as JSON text, and the connection that the event belongs to."""

    connection: str
    texts: tuple[bytes, ...]
    reason: str = ""


class TelemetryIngestor:
    """Normaliser of device telemetry; processing the same events again is safe."""

    def __init__(self, catalog: CurrentCatalog, sender: EventSender, states: ConnectionStateStore) -> None:
        self._catalog = catalog
        self._sender = sender
        self._states = states
        self._router: ConnectionRouter | None = None
        self._connected: dict[str, tuple[int, float]] = {}

    async def run(self, source: str, events: Sequence[HubEvent]) -> None:
        """Send the impulses of a batch in one call, then update the statistics.

        An event that is invalid or belongs to no connection becomes an ``_unrouted`` impulse; it does not fail the
        batch. A redelivered event becomes the same impulse and is not counted again.

        Args:
            source: ``telemetry``, or ``hub/consumerGroup`` for a separate Event Hub.
            events: a batch, ascending in each partition.

        Raises:
            Exception: if the hub, the catalog or the state store is unavailable; the batch must be delivered again.
        """
        if not events:
            return
        router = await self._current_router()
        processed = [_process_event(router, source, event) for event in events]
        messages = [HubMessage(text, each.connection, {}) for each in processed for text in each.texts]
        await self._sender.send(IMPULSES_HUB, messages)
        await self._states.record(list(_group_arrivals(source, events, processed)))
        await self._mark_connected({each.connection for each in processed}, router)
        _log_unrouted(source, processed)

    async def _current_router(self) -> ConnectionRouter:
        catalog = await self._catalog()
        if self._router is None or self._router.version != catalog.version:
            self._router = ConnectionRouter(catalog)
        return self._router

    async def _mark_connected(self, connections: set[str], router: ConnectionRouter) -> None:
        monotonic_now = time.monotonic()
        due = {
            each
            for each in connections
            if router.is_enabled(each) and self._is_due(each, router.version, monotonic_now)
        }
        if not due:
            return
        states = await self._states.states()
        for connection in sorted(due):
            state = states.get(connection)
            if state is None or state.status != CONNECTED:
                await self._states.set_status(connection, CONNECTED)
            self._connected[connection] = (router.version, monotonic_now + CONNECTED_REPEAT_SECONDS)

    def _is_due(self, connection: str, version: int, monotonic_now: float) -> bool:
        known_version, until = self._connected.get(connection, (-1, 0.0))
        return known_version != version or monotonic_now >= until


def _process_event(router: ConnectionRouter, source: str, event: HubEvent) -> _ProcessedEvent:
    message, reason = None, "no connection claims it"
    try:
        message = parse(event.body)
    except ValueError as error:
        reason = f"not JSON: {error}"
    else:
        if not isinstance(message, dict):
            reason = "not a JSON object"
    route = router.find(source, event, message)
    if route is not None and isinstance(message, dict):
        try:
            impulse = to_impulse(source, event, route, message)
        except ValueError as error:
            reason = str(error)
        else:
            try:
                return _ProcessedEvent(route.connection, (_encode_within_limit(impulse),))
            except ValueError as error:
                reason = str(error)
                # The extracted members have been removed from the message; an unrouted event is stored completely.
                message = parse(event.body)
    return _to_unrouted(source, event, message, reason, route.connection if route else "")


def _encode_within_limit(impulse: Impulse) -> bytes:
    text = encode(impulse)
    if len(text) > MAX_IMPULSE_BYTES:
        raise ValueError(f"larger than {MAX_IMPULSE_BYTES} bytes")
    return text


def _to_unrouted(source: str, event: HubEvent, message: Any, reason: str, claimed_by: str) -> _ProcessedEvent:
    try:
        impulse = unrouted.build_impulse(source, event, message, reason, claimed_by)
        texts: tuple[bytes, ...] = (_encode_within_limit(impulse),)
    except ValueError:
        texts = tuple(encode(part) for part in unrouted.build_part_impulses(source, event, reason, claimed_by))
    return _ProcessedEvent(UNROUTED, texts, reason)


def _group_arrivals(
    source: str, events: Sequence[HubEvent], processed: Sequence[_ProcessedEvent]
) -> Iterator[ArrivedMessages]:
    grouped: dict[tuple[str, str], tuple[set[int], datetime]] = {}
    for event, each in zip(events, processed, strict=True):
        key = (each.connection, event.partition)
        sequence_numbers, last = grouped.setdefault(key, (set(), event.enqueued_at))
        sequence_numbers.add(event.sequence_number)
        grouped[key] = (sequence_numbers, max(last, event.enqueued_at))
    for (connection, partition), (sequence_numbers, last) in grouped.items():
        yield ArrivedMessages(connection, f"{source}/{partition}", tuple(sorted(sequence_numbers)), last)


def _log_unrouted(source: str, processed: Sequence[_ProcessedEvent]) -> None:
    reasons = Counter(each.reason for each in processed if each.reason)
    if reasons:
        _LOGGER.warning(
            "%d of %d events were stored as unrouted",
            reasons.total(),
            len(processed),
            extra=fields(source=source, reasons=dict(reasons)),
        )
