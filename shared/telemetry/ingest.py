"""Ingestion of batches of hub events: conversion to impulses (normalised telemetry), and statistics of connections.

Events that this service has accepted over HTTP, or from a simulator, have a fast conversion: their properties are the
impulse's ids and time, and their body is the payload, so their texts are copied. The module ``normalisation`` converts
all other events; for accepted events, both conversions have the same result.

This module is separate from ``acceptance``, because triggers ingest batches, and requests only send messages.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry import unrouted
from shared.telemetry.impulses import encode_impulse, encode_impulse_from_texts, is_payload_shallow
from shared.telemetry.json_text import parse_lossless_json
from shared.telemetry.layout import validate_message_or_device_id
from shared.telemetry.models import IMPULSES_HUB, UNROUTED, HubEvent, HubMessage, Impulse
from shared.telemetry.normalisation import to_impulse
from shared.telemetry.ports import ArrivedMessages, ConnectionStateStore, CurrentCatalog, EventSender
from shared.telemetry.properties import (
    DEVICE_ID,
    MESSAGE_ID,
    TIMESTAMP,
    has_exactly_service_properties,
    has_timestamp_and_ids,
    is_accepted_by_service,
)
from shared.telemetry.routing import ConnectionRouter, Route
from shared.telemetry.signals import has_type_mismatch
from shared.timestamps import is_canonical_timestamp

_HOUR = slice(11, 13)
_END_OF_DAY = "24"


def try_encode_accepted_event_as_impulse(event: HubEvent, route: Route) -> bytes | None:
    """Convert an event that this service accepted over HTTP or from a simulator to the JSON text of its impulse.

    Return None if only ``to_impulse`` can convert the event.

    Args:
        event: event whose body is a JSON object.
        route: connection to which the event belongs.
    """
    properties, payload = event.properties, event.body
    if event.device_id or not has_exactly_service_properties(properties):
        return None
    timestamp = properties[TIMESTAMP]
    # An hour 24, which the general conversion rejects or changes, must not be copied.
    if not is_canonical_timestamp(timestamp) or timestamp[_HOUR] == _END_OF_DAY or not is_payload_shallow(payload):
        return None
    try:
        datetime.fromisoformat(timestamp)
        message_id, device_id = (
            validate_message_or_device_id(properties[MESSAGE_ID]),
            validate_message_or_device_id(properties[DEVICE_ID]),
        )
        text = encode_impulse_from_texts(message_id, timestamp, device_id, route.connection, route.surfaces, payload)
        return _require_impulse_within_size_limit(text)
    except ValueError:
        return None


MAX_IMPULSE_BYTES = 1_000_000
"""Maximum size of an impulse; an Event Hub accepts 1 MiB including its framing."""

CONNECTED = "CONNECTED"
CONNECTED_REPEAT_SECONDS = 30.0
"""Seconds for which this process uses the stored statuses of connections that it has read."""

_LOGGER = get_logger("telemetry.ingest")


class _ProcessedEvent(NamedTuple):
    """Result of processing a hub event: its telemetry messages as JSON texts, and their connection.

    The class is a tuple, because the creation of a frozen dataclass takes three times as long.

    Attributes:
        reason: text that says why the event is stored as unrouted; empty for a routed event.
        is_mismatched: True if a value in the payload does not have its declared type.
    """

    connection: str
    texts: tuple[bytes, ...]
    reason: str = ""
    is_mismatched: bool = False


class TelemetryIngestor:
    """Converts hub events to impulses (normalised telemetry messages); processing the same events again is safe.

    Args:
        catalog: function that returns the current workspace catalog.
        sender: sends the impulses to their hub.
        states: store of the status and the message counts of connections.
        on_status: called each time a batch has changed the status of connections.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        catalog: CurrentCatalog,
        sender: EventSender,
        states: ConnectionStateStore,
        *,
        on_status: Callable[[], None] = lambda: None,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._sender = sender
        self._states = states
        self._on_status = on_status
        self._router: ConnectionRouter | None = None
        self._router_lock = asyncio.Lock()
        self._connected: tuple[int, float, set[str]] = (-1, 0.0, set())
        self._runtime = runtime

    async def run(self, source_name: str, events: Sequence[HubEvent]) -> None:
        """Convert a batch of hub events, send the results to the hub ``impulses``, then update connection statistics.

        An event that is invalid or belongs to no connection becomes an ``_unrouted`` message; it does not fail the
        batch. A redelivered event gives the same message and is not counted again.

        Args:
            source_name: ``telemetry`` for the common hub, or ``hub/consumerGroup`` for the Event Hub of a connection.
            events: batch whose sequence numbers ascend in each partition.

        Raises:
            Exception: if the hub, the catalog or the state store is unavailable; the batch must be delivered again.
        """
        if not events:
            return
        router = await self._get_router()
        # Parsing and serialising the messages of a large batch would block the event loop.
        size = sum(map(_estimate_event_bytes, events))
        processed = await self._runtime.run_in_thread_if_large(size, _process_events, router, source_name, events)
        messages = [HubMessage(text, each.connection, {}) for each in processed for text in each.texts]
        await self._sender.send(IMPULSES_HUB, messages)
        await self._states.add_arrived_messages_to_counts(list(_group_arrived_messages(source_name, events, processed)))
        _record_type_mismatch_metric(processed)
        await self._mark_connections_connected({each.connection for each in processed}, router)
        _log_unrouted_events(source_name, processed)

    async def _get_router(self) -> ConnectionRouter:
        catalog = await self._catalog()
        async with self._router_lock:
            if self._router is None or self._router.version != catalog.version:
                # The compilation of many device patterns would block the event loop.
                self._router = await self._runtime.run_in_thread(ConnectionRouter, catalog)
            return self._router

    async def _mark_connections_connected(self, connections: set[str], router: ConnectionRouter) -> None:
        enabled = {each for each in connections if router.is_enabled(each)}
        if not enabled:
            return
        connected = await self._load_connected_lookups(router.version)
        if new := enabled - connected:
            await self._states.set_status(sorted(new), CONNECTED)
            connected |= new
            self._on_status()

    async def _load_connected_lookups(self, catalog_version: int) -> set[str]:
        """Return the cached set of connections whose stored status is CONNECTED.

        A caller that stores this status for more connections must add them to the set.
        """
        known_version, until, connected = self._connected
        monotonic_now = self._runtime.monotonic()
        # Statuses are reset only before a change of the catalog, which then has a new version.
        if known_version != catalog_version or monotonic_now >= until:
            statuses = await self._states.load_statuses_by_connection()
            connected = {each for each, status in statuses.items() if status == CONNECTED}
            self._connected = catalog_version, monotonic_now + CONNECTED_REPEAT_SECONDS, connected
        return connected


def _estimate_event_bytes(event: HubEvent) -> int:
    return len(event.body) + sum(map(len, event.properties.values()))


def _process_events(router: ConnectionRouter, source_name: str, events: Sequence[HubEvent]) -> list[_ProcessedEvent]:
    return [_process_event(router, source_name, event) for event in events]


def _process_event(router: ConnectionRouter, source_name: str, event: HubEvent) -> _ProcessedEvent:
    message, reason = None, "no connection matches the event"
    try:
        message = parse_lossless_json(event.body)
    except ValueError as error:
        reason = f"the body is not JSON: {error}"
    else:
        if not isinstance(message, dict):
            reason = "the body is not a JSON object"
    route = router.find_route(source_name, event, message)
    if route is not None and isinstance(message, dict):
        if (known := try_encode_accepted_event_as_impulse(event, route)) is not None:
            is_mismatched = bool(route.signal_checks) and has_type_mismatch(route.signal_checks, message)
            return _ProcessedEvent(route.connection, (known,), is_mismatched=is_mismatched)
        try:
            impulse = to_impulse(source_name, event, route, message)
        except ValueError as error:
            reason = str(error)
        else:
            try:
                checks = route.signal_checks
                is_mismatched = bool(checks) and has_type_mismatch(checks, impulse.payload)
                text = _encode_impulse_within_limit(impulse, _find_payload_of_accepted_event(event))
                return _ProcessedEvent(route.connection, (text,), is_mismatched=is_mismatched)
            except ValueError as error:
                reason = str(error)
                # The extracted properties have been removed from the message; an unrouted event is stored completely.
                message = parse_lossless_json(event.body)
    return _build_unrouted_event(source_name, event, message, reason, route.connection if route else "")


def _find_payload_of_accepted_event(event: HubEvent) -> bytes | None:
    """Return the body of an event that this service wrote, which is the payload in compact JSON; else None."""
    known = is_accepted_by_service(event.properties) and has_timestamp_and_ids(event.properties) and not event.device_id
    return event.body if known else None


def _encode_impulse_within_limit(impulse: Impulse, payload_json: bytes | None = None) -> bytes:
    return _require_impulse_within_size_limit(encode_impulse(impulse, payload_json))


def _require_impulse_within_size_limit(impulse_json: bytes) -> bytes:
    if len(impulse_json) > MAX_IMPULSE_BYTES:
        raise ValueError(f"the message is larger than {MAX_IMPULSE_BYTES} bytes")
    return impulse_json


def _build_unrouted_event(
    source_name: str, event: HubEvent, message: Any, reason: str, matching_connection_lookup: str
) -> _ProcessedEvent:
    try:
        impulse = unrouted.build_unrouted_impulse(source_name, event, message, reason, matching_connection_lookup)
        texts: tuple[bytes, ...] = (_encode_impulse_within_limit(impulse),)
    except ValueError:
        texts = tuple(
            encode_impulse(part)
            for part in unrouted.split_into_unrouted_impulses(source_name, event, reason, matching_connection_lookup)
        )
    return _ProcessedEvent(UNROUTED, texts, reason)


def _group_arrived_messages(
    source_name: str, events: Sequence[HubEvent], processed: Sequence[_ProcessedEvent]
) -> Iterator[ArrivedMessages]:
    grouped: defaultdict[tuple[str, str], list[tuple[HubEvent, bool]]] = defaultdict(list)
    for event, each in zip(events, processed, strict=True):
        grouped[each.connection, event.partition].append((event, each.is_mismatched))
    for (connection, partition), arrived in grouped.items():
        times = [event.enqueued_at for event, _ in arrived]
        yield ArrivedMessages(
            connection,
            f"{source_name}/{partition}",
            tuple(sorted({event.sequence_number for event, _ in arrived})),
            min(times),
            max(times),
            frozenset(event.sequence_number for event, is_mismatched in arrived if is_mismatched),
        )


def _record_type_mismatch_metric(processed: Sequence[_ProcessedEvent]) -> None:
    if mismatches := sum(each.is_mismatched for each in processed):
        count("workspace.telemetry.type_mismatches", mismatches)


def _log_unrouted_events(source_name: str, processed: Sequence[_ProcessedEvent]) -> None:
    reasons = Counter(each.reason for each in processed if each.reason)
    if reasons:
        _LOGGER.warning(
            "%d of %d events were stored as unrouted",
            reasons.total(),
            len(processed),
            extra=fields(source=source_name, reasons=dict(reasons)),
        )
