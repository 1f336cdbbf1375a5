"""Stores received messages in the spool file, in groups, and then acknowledges each message to the source."""

import asyncio
import logging
import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from oi.gateway.clock import ReceiveClock
from oi.gateway.deliveries import Delivery
from oi.gateway.messages import RejectedError, build_ndjson_line
from oi.gateway.metrics import Metrics
from oi.gateway.routes import NO_ROUTE, Routes
from oi.gateway.spool import MAX_TRANSACTION_BYTES, REFUSED_CONNECTION, RejectedMessage
from oi.gateway.spool_thread import SpoolThread

MAX_PENDING = 5_000
_MAX_PENDING_BYTES = 32 * 2**20
_GATHER_SECONDS = 0.001
_GATHER_STEPS = 8
_RETRY_SECONDS = 1.0
_MESSAGES_PER_LOG_LINE = 1_000
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _PendingMessage:
    """Received message that is not on disk yet: an NDJSON line for a connection, or a rejected message."""

    delivery: Delivery
    lookup: str
    line: bytes
    rejected: RejectedMessage | None = None

    @property
    def spool_bytes(self) -> int:
        """Size that counts towards the limit of the spool; rejected messages have a limit of their own."""
        return 0 if self.rejected is not None else len(self.line)


class Intake:
    """Converts received messages and stores them on disk; while the disk or the spool is full, the source must wait.

    Args:
        routes: rules that map the addresses of messages (MQTT topics) to data connections.
        spool: thread with the file of messages that wait to be sent.
        clock: clock for messages without a timestamp.
        metrics: counters and gauges to update.

    Attributes:
        acknowledged_mark_id: id of the newest spool row of marks whose deliveries have all been acknowledged; a mark is
            bytes that identify a delivery.
    """

    def __init__(self, routes: Routes, spool: SpoolThread, clock: ReceiveClock, metrics: Metrics) -> None:
        self._routes = routes
        self._spool = spool
        self._clock = clock
        self._metrics = metrics
        self._pending: list[_PendingMessage] = []
        self._pending_bytes = 0
        self._arrived = asyncio.Event()
        self._waiting_for_room: list[Callable[[], None]] = []
        self._stored_listeners: list[Callable[[], None]] = []
        self._blocked = False
        self._all_stored = asyncio.Event()
        self._all_stored.set()
        # A prefix per start: a restored copy of the spool must not use ids again.
        self._id_prefix = uuid.uuid4().hex[:20]
        self._next_id = 0
        self.acknowledged_mark_id = spool.spool.last_mark_id

    @property
    def is_full(self) -> bool:
        """True if the source must not read further messages: too many are in memory, or the spool or disk is full."""
        return self._blocked or len(self._pending) >= MAX_PENDING or self._pending_bytes >= _MAX_PENDING_BYTES

    def call_when_not_full(self, function: Callable[[], None]) -> None:
        """Register a function that is called once, when :attr:`is_full` becomes False."""
        self._waiting_for_room.append(function)

    def call_after_each_store(self, function: Callable[[], None]) -> None:
        """Register a function that is called each time messages have been stored in the spool."""
        self._stored_listeners.append(function)

    def accept_delivery(self, delivery: Delivery) -> None:
        """Accept a message, and acknowledge the message to the source when it is on disk."""
        self._metrics.increase_counter("received_messages_total")
        pending = self._convert_delivery(delivery)
        self._pending.append(pending)
        self._pending_bytes += len(pending.line)
        self._arrived.set()
        self._all_stored.clear()

    async def wait_until_stored(self) -> None:
        """Wait until every received message is on disk."""
        await self._all_stored.wait()

    async def run(self) -> None:
        """Store messages until the task is cancelled.

        Before the task ends, it stores all received messages, unless the spool or the disk is full.
        """
        try:
            while True:
                await self._arrived.wait()
                await self._wait_for_more_messages()
                await self._store_pending_deliveries()
        finally:
            while self._pending and not self._blocked:
                stored = await self._store_and_acknowledge_fitting(self._pending)
                self._pending = self._pending[stored:]

    async def _wait_for_more_messages(self) -> None:
        """Wait while messages keep arriving, at most a few milliseconds, so that they are stored together.

        A longer wait would delay a source that waits for acknowledgements.
        """
        for _ in range(_GATHER_STEPS):
            before = len(self._pending)
            await asyncio.sleep(_GATHER_SECONDS)
            if len(self._pending) == before:
                return

    async def _store_pending_deliveries(self) -> None:
        taken, self._pending, self._pending_bytes = self._pending, [], 0
        self._arrived.clear()
        try:
            while taken:
                stored = await self._store_and_acknowledge_fitting(taken)
                taken = taken[stored:]
                if not stored:
                    await asyncio.sleep(_RETRY_SECONDS)
        except asyncio.CancelledError:
            # Not acknowledged: the source delivers them again after the next start.
            self._pending = [*taken, *self._pending]
            raise
        self._report_storage_recovered()
        if not self._pending:
            self._all_stored.set()
        if not self.is_full:
            waiting, self._waiting_for_room = self._waiting_for_room, []
            for function in waiting:
                function()

    def _select_fitting_into_spool(self, pending: list[_PendingMessage]) -> list[_PendingMessage]:
        """Return the oldest received messages, as many as fit into the spool; at least one."""
        room = self._spool.spool.appendable_bytes
        for index, each in enumerate(pending):
            room -= each.spool_bytes
            if room < 0 and index:
                return pending[:index]
        return pending

    async def _store_and_acknowledge_fitting(self, received: list[_PendingMessage]) -> int:
        """Store the oldest received messages, as many as fit into the spool, and acknowledge them to the source.

        Return the number of stored messages; 0 if storing failed and must be repeated.
        """
        received = _select_for_one_transaction(received)
        try:
            await self._make_room_in_spool(received)
            fitting = self._select_fitting_into_spool(received)
            await self._write_to_spool(fitting)
        except (OSError, sqlite3.Error) as error:
            self._report_storage_failure(error)
            return 0
        for each in fitting:
            if each.delivery.acknowledge is not None:
                each.delivery.acknowledge()
        # Only this class stores marks, so the newest ones are those of the messages above.
        self.acknowledged_mark_id = self._spool.spool.last_mark_id
        for function in self._stored_listeners:
            function()
        return len(fitting)

    async def _make_room_in_spool(self, received: list[_PendingMessage]) -> None:
        """If the received messages do not fit into the spool, move old messages to the rejected messages.

        Only messages of refused connections are moved: connections of which the service refuses all messages. Rejected
        messages do not count towards the limit of the spool.
        """
        spool, needed_bytes = self._spool.spool, sum(each.spool_bytes for each in received)
        if needed_bytes <= spool.appendable_bytes:
            return
        rejected = await self._spool.run(spool.reject_refused_connections, needed_bytes)
        if rejected and self._count_rejected_and_decide_logging(REFUSED_CONNECTION, rejected):
            _LOG.warning("The spool is full: the oldest messages of refused connections are set aside.")

    async def _write_to_spool(self, pending: list[_PendingMessage]) -> None:
        lines: dict[str, list[bytes]] = {}
        for each in pending:
            if each.rejected is None:
                lines.setdefault(each.lookup, []).append(each.line)
        rejected = [each.rejected for each in pending if each.rejected is not None]
        mark = b"".join([each.delivery.mark for each in pending])
        dropped = await self._spool.run(self._spool.spool.append_and_count_dropped, lines, rejected, mark)
        self._report_stored_and_dropped(len(pending) - len(rejected), dropped)

    def _convert_delivery(self, delivery: Delivery) -> _PendingMessage:
        """Convert a message to an NDJSON line for its connection, or to a rejected message if it is invalid."""
        try:
            target = self._routes.find_target(delivery.address)
            if target is None:
                raise RejectedError("no_route", NO_ROUTE)  # noqa: TRY301
            line = build_ndjson_line(delivery.payload, target, self._clock.now_unix_seconds(), self._create_message_id)
        except RejectedError as error:
            rejected = RejectedMessage(delivery.address, None, error.reason, str(error), delivery.payload)
            self._report_rejected(rejected)
            return _PendingMessage(delivery, "", delivery.payload, rejected)
        return _PendingMessage(delivery, target.connection, line)

    def _create_message_id(self) -> str:
        self._next_id += 1
        return f"{self._id_prefix}-{self._next_id}"

    def _report_rejected(self, rejected: RejectedMessage) -> None:
        if self._count_rejected_and_decide_logging(rejected.reason, 1):
            _LOG.warning("A message on %r was rejected (%s): %s", rejected.address, rejected.reason, rejected.detail)

    def _count_rejected_and_decide_logging(self, reason: str, messages: int) -> bool:
        """Add rejected messages to the metrics; return whether to log: once per thousand messages of a reason."""
        label = f'reason="{reason}"'
        before = self._metrics.get_count("rejected_messages_total", label)
        self._metrics.increase_counter("rejected_messages_total", messages, label)
        # Log one line per thousand messages, so that a device that sends only such messages does not fill the log.
        return (before - 1) // _MESSAGES_PER_LOG_LINE != (before + messages - 1) // _MESSAGES_PER_LOG_LINE

    def _report_storage_failure(self, error: Exception) -> None:
        if not self._blocked:
            _LOG.error("Messages cannot be stored, so none are acknowledged: %s Trying again every second.", error)
        self._blocked = True
        self._metrics.set_gauge("spool_blocked", 1)

    def _report_storage_recovered(self) -> None:
        if self._blocked:
            _LOG.info("Messages are stored again.")
        self._blocked = False
        self._metrics.set_gauge("spool_blocked", 0)

    def _report_stored_and_dropped(self, stored_messages: int, dropped_messages: int) -> None:
        self._metrics.increase_counter("stored_messages_total", stored_messages)
        if dropped_messages:
            _LOG.warning("The spool is full: %s of the oldest messages were deleted.", f"{dropped_messages:,}")
            self._metrics.increase_counter("dropped_messages_total", dropped_messages)


def _select_for_one_transaction(received: list[_PendingMessage]) -> list[_PendingMessage]:
    """Return the oldest received messages, as many as one transaction should store; at least one."""
    size = 0
    for index, each in enumerate(received):
        size += len(each.line)
        if size > MAX_TRANSACTION_BYTES and index:
            return received[:index]
    return received
