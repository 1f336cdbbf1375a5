"""What a batch of events becomes: impulses, and statistics of their connections."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.observability.logs import fields, get_logger
from shared.telemetry import unrouted
from shared.telemetry.impulses import encode
from shared.telemetry.json_text import parse
from shared.telemetry.models import IMPULSES_HUB, UNROUTED, HubEvent, HubMessage, Impulse
from shared.telemetry.normalisation import to_impulse
from shared.telemetry.ports import ArrivedMessages, ConnectionStateStore, CurrentCatalog, EventSender
from shared.telemetry.routing import ConnectionRouter

MAX_IMPULSE_BYTES = 1_000_000
"""An Event Hub takes 1 MiB, its own framing included."""

CONNECTED = "CONNECTED"
CONNECTED_REPEAT_SECONDS = 30.0
"""How long the status of a connection that keeps sending is taken to be what this process saw last."""

_LOGGER = get_logger("telemetry.ingest")


@dataclass(frozen=True, slots=True)
class _Taken:
    """An event's outcome: the connection that it counts for, and its impulses as JSON text."""

    connection: str
    texts: tuple[bytes, ...]
    reason: str = ""


class TelemetryIngestor:
    """Normalises what devices send; safe to run again over the same events."""

    def __init__(self, catalog: CurrentCatalog, sender: EventSender, states: ConnectionStateStore) -> None:
        self._catalog = catalog
        self._sender = sender
        self._states = states
        self._router: ConnectionRouter | None = None
        self._connected: dict[str, tuple[int, float]] = {}

    async def run(self, source: str, events: Sequence[HubEvent]) -> None:
        """Send the impulses of a batch in one go, then count them.

        An event that cannot be read, or that no connection claims, becomes an ``_unrouted`` impulse; it never fails
        the batch. Delivered again, an event becomes the same impulse and is not counted again.

        Args:
            source: ``telemetry``, or ``hub/consumerGroup`` for an Event Hub of its own.
            events: a batch, ascending in each partition.

        Raises:
            Exception: the hub, the catalog or the state store does not answer; the batch is to be delivered again.
        """
        if not events:
            return
        router = await self._current_router()
        taken = [_take(router, source, event) for event in events]
        messages = [HubMessage(text, each.connection, {}) for each in taken for text in each.texts]
        await self._sender.send(IMPULSES_HUB, messages)
        await self._states.record(list(_arrivals(source, events, taken)))
        await self._connect({each.connection for each in taken}, router)
        _report(source, taken)

    async def _current_router(self) -> ConnectionRouter:
        catalog = await self._catalog()
        if self._router is None or self._router.version != catalog.version:
            self._router = ConnectionRouter(catalog)
        return self._router

    async def _connect(self, connections: set[str], router: ConnectionRouter) -> None:
        moment = time.monotonic()
        due = {each for each in connections if router.is_enabled(each) and self._is_due(each, router.version, moment)}
        if not due:
            return
        states = await self._states.states()
        for connection in sorted(due):
            state = states.get(connection)
            if state is None or state.status != CONNECTED:
                await self._states.set_status(connection, CONNECTED)
            self._connected[connection] = (router.version, moment + CONNECTED_REPEAT_SECONDS)

    def _is_due(self, connection: str, version: int, moment: float) -> bool:
        known_version, until = self._connected.get(connection, (-1, 0.0))
        return known_version != version or moment >= until


def _take(router: ConnectionRouter, source: str, event: HubEvent) -> _Taken:
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
            return _Taken(route.connection, (_encode(to_impulse(source, event, route, message)),))
        except ValueError as error:
            reason = str(error)
    return _set_aside(source, event, reason, route.connection if route else "")


def _encode(impulse: Impulse) -> bytes:
    text = encode(impulse)
    if len(text) > MAX_IMPULSE_BYTES:
        raise ValueError("larger than an impulse can be")
    return text


def _set_aside(source: str, event: HubEvent, reason: str, claimed_by: str) -> _Taken:
    try:
        texts: tuple[bytes, ...] = (_encode(unrouted.build_impulse(source, event, reason, claimed_by)),)
    except ValueError:
        texts = tuple(encode(part) for part in unrouted.build_part_impulses(source, event, reason, claimed_by))
    return _Taken(UNROUTED, texts, reason)


def _arrivals(source: str, events: Sequence[HubEvent], taken: Sequence[_Taken]) -> Iterator[ArrivedMessages]:
    grouped: dict[tuple[str, str], tuple[set[int], datetime]] = {}
    for event, each in zip(events, taken, strict=True):
        key = (each.connection, event.partition)
        sequence_numbers, last = grouped.setdefault(key, (set(), event.enqueued_at))
        sequence_numbers.add(event.sequence_number)
        grouped[key] = (sequence_numbers, max(last, event.enqueued_at))
    for (connection, partition), (sequence_numbers, last) in grouped.items():
        yield ArrivedMessages(connection, f"{source}/{partition}", tuple(sorted(sequence_numbers)), last)


def _report(source: str, taken: Sequence[_Taken]) -> None:
    reasons = Counter(each.reason for each in taken if each.reason)
    if reasons:
        _LOGGER.warning(
            "%d of %d events were set aside",
            reasons.total(),
            len(taken),
            extra=fields(source=source, reasons=dict(reasons)),
        )
