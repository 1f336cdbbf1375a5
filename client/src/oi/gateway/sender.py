"""Sends stored messages: several connections at the same time, and the messages of each connection in order."""

import asyncio
import itertools
import logging
import time
from functools import partial
from typing import Protocol

from oi.batches import MAX_BYTES, MAX_MESSAGES
from oi.errors import ApiError
from oi.gateway.metrics import Metrics
from oi.gateway.sections import SettingsError
from oi.gateway.spool import Batch, RejectedMessage
from oi.gateway.spool_thread import SpoolThread
from oi.refusals import Action, Refusal, interpret_refusal

CONCURRENT = 4
_FIRST_LINGER_SECONDS = 0.1
"""Pause after a batch that was not full, so that the next one carries more messages; it doubles with each batch."""
_LONGEST_LINGER_SECONDS = 2.0
"""Longest such pause; a connection with few messages then needs at most 30 requests of the rate limit in a minute."""
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_LONGEST_RETRY_AFTER_SECONDS = 300.0
"""Longest pause that a reply can cause; a wrong date of a proxy must not stop the gateway for longer."""
_HOLD_SECONDS = 60.0
_GROWTH = 8
"""Divisor: after the service has accepted a smaller batch, the next one may be larger by an eighth."""
_FORGOTTEN_SECONDS = 3600.0
"""Seconds after the last request of a connection at which its pauses and batch size are forgotten.

Topics can name connections, so the number of connections has no limit.
"""
_REASON = "service"
"""Reason that is stored with messages which the service has rejected."""
_UNREACHABLE, _NO_API_KEY = "UNREACHABLE", "NO_API_KEY"
"""Codes in the metrics for failed requests: without an error code of the service, or without a readable API key."""
_LOG = logging.getLogger(__name__)


class Upstream(Protocol):
    """Port through which the gateway sends batches of telemetry messages to the service."""

    async def send(self, lookup: str, ndjson_lines: bytes) -> None:
        """Send NDJSON lines of a connection.

        If this raises an error, the service has accepted none of the lines, or an unknown part of them.
        """


class Sender:
    """Sends the messages in the spool file, and deletes them from the file after the service has accepted them.

    Args:
        upstream: service that receives the batches.
        spool: thread with the file of messages that wait to be sent.
        metrics: counters and gauges to update.
    """

    def __init__(self, upstream: Upstream, spool: SpoolThread, metrics: Metrics) -> None:
        self._upstream = upstream
        self._spool = spool
        self._metrics = metrics
        self._changed = asyncio.Event()
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._next_at: dict[str, float] = {}
        self._last_turns: dict[str, int] = {}
        self._turns = itertools.count(1)
        self._linger_seconds: dict[str, float] = {}
        self._max_bytes: dict[str, int] = {}
        self._paused_until = 0.0
        self._pause = _FIRST_PAUSE_SECONDS
        self._reported = dict[str, str]()
        # Times at which the last requests of connections ended, in ascending order.
        self._finished_at: dict[str, float] = {}

    def notify_new_messages(self) -> None:
        """Notify the sender that the spool file contains new messages."""
        self._changed.set()

    async def run(self) -> None:
        """Send messages until the task is cancelled."""
        try:
            while True:
                self._changed.clear()
                timeout = self._start_requests_and_get_wait_seconds()
                try:
                    async with asyncio.timeout(timeout):
                        await self._changed.wait()
                except TimeoutError:
                    pass
        finally:
            for task in self._sending.values():
                task.cancel()
            await asyncio.gather(*self._sending.values(), return_exceptions=True)

    def _start_requests_and_get_wait_seconds(self) -> float:
        """Start a request for each connection that has stored messages and no running request.

        Return the maximum number of seconds to wait before the next call; the event ``_changed`` ends the wait earlier.
        """
        now = time.monotonic()
        if now < self._paused_until:
            return self._paused_until - now
        # Look again after a while: a full spool stores nothing and so wakes no sender.
        nearest = _LONGEST_PAUSE_SECONDS
        # Connections take turns; otherwise four of them with many messages would occupy all requests.
        for lookup in sorted(self._spool.spool.lookups_with_messages, key=lambda each: self._last_turns.get(each, 0)):
            if len(self._sending) >= CONCURRENT:
                return nearest
            if lookup in self._sending:
                continue
            wait = self._next_at.get(lookup, 0.0) - now
            if wait > 0:
                nearest = min(nearest, wait)
                continue
            # A number, not the time: requests that start together have turns, too.
            self._last_turns[lookup] = next(self._turns)
            task = self._sending[lookup] = asyncio.create_task(self._send_next_batch(lookup))
            task.add_done_callback(lambda _, lookup=lookup: self._finish_request(lookup))  # type: ignore[misc]
        return nearest

    def _finish_request(self, lookup: str) -> None:
        now = time.monotonic()
        task = self._sending.pop(lookup)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()):
            _LOG.error("Sending for the connection %s failed: %r", lookup, error)
            self._next_at[lookup] = now + _LONGEST_PAUSE_SECONDS
        self._finished_at.pop(lookup, None)
        self._finished_at[lookup] = now
        self._forget_connections_finished_before(now - _FORGOTTEN_SECONDS)

    def _forget_connections_finished_before(self, instant: float) -> None:
        for lookup in list(itertools.takewhile(lambda each: self._finished_at[each] < instant, self._finished_at)):
            for values in (self._finished_at, self._next_at, self._last_turns, self._linger_seconds, self._max_bytes):
                values.pop(lookup, None)
            self._reported.pop(lookup, None)

    async def _send_next_batch(self, lookup: str) -> None:
        max_bytes = self._max_bytes.get(lookup, MAX_BYTES)
        batch: Batch | None = await self._spool.run(self._spool.spool.find_next_batch, lookup, max_bytes)
        if batch is None:
            return
        try:
            await self._upstream.send(lookup, b"".join(batch.blocks))
        except ApiError as error:
            self._count_failed_request(error.code or _UNREACHABLE)
            await self._handle_refusal(interpret_refusal(error, lookup), batch, error.retry_after)
            return
        except SettingsError as error:
            # The settings name the file of the API key, which an operator may correct.
            self._count_failed_request(_NO_API_KEY)
            await self._handle_refusal(Refusal(Action.READ_KEY, str(error)), batch, None)
            return
        # Remove it only now: if the process ends earlier, the batch is sent again; the service knows its message ids.
        await self._spool.run(self._spool.spool.remove_batch, batch)
        self._record_sent_batch(batch)

    def _count_failed_request(self, error_code: str) -> None:
        self._metrics.increase_counter("failed_requests_total", label=f'code="{error_code}"')

    def _record_sent_batch(self, batch: Batch) -> None:
        self._metrics.increase_counter("sent_messages_total", batch.messages)
        self._metrics.set_gauge("last_sent_timestamp_seconds", time.time())
        self._pause = _FIRST_PAUSE_SECONDS
        for key in ("", batch.lookup):
            if self._reported.pop(key, None):
                _LOG.info("The service accepts messages of the connection %s again.", batch.lookup)
        max_bytes = self._max_bytes.pop(batch.lookup, MAX_BYTES)
        is_full = batch.messages > MAX_MESSAGES // 2 or batch.size > max_bytes // 2
        larger = max_bytes + max_bytes // _GROWTH + 1
        if larger < MAX_BYTES:
            self._max_bytes[batch.lookup] = larger
        self._next_at[batch.lookup] = time.monotonic() + self._choose_linger_seconds(batch.lookup, is_full=is_full)

    def _choose_linger_seconds(self, lookup: str, *, is_full: bool) -> float:
        """Return the seconds to wait before the next batch of a connection, so that more messages can arrive for it.

        Each small batch doubles the wait, up to 2 seconds. After a batch that was more than half full (``is_full``),
        there is no wait.
        """
        if is_full:
            self._linger_seconds.pop(lookup, None)
            return 0.0
        linger = self._linger_seconds.get(lookup, _FIRST_LINGER_SECONDS)
        self._linger_seconds[lookup] = min(linger * 2, _LONGEST_LINGER_SECONDS)
        return linger

    async def _handle_refusal(self, refusal: Refusal, batch: Batch, retry_after_seconds: float | None) -> None:
        """Take the action that the refusal of a batch requires: reject messages, send fewer, or pause."""
        now = time.monotonic()
        # During an outage, the messages of a connection that was refused before are as valuable as all others.
        is_refused = refusal.action is Action.HOLD_CONNECTION and refusal.concerns_connection
        await self._spool.run(partial(self._spool.spool.set_refused, batch.lookup, is_refused=is_refused))
        if refusal.action is Action.REJECT_LINES:
            await self._store_reported_lines_as_rejected(refusal, batch)
        elif refusal.action is Action.SEND_FEWER:
            await self._reduce_batch_size(refusal, batch)
        elif refusal.action is Action.HOLD_CONNECTION:
            await self._hold_connection(refusal, batch)
        elif refusal.action is Action.READ_KEY:
            self._log_error_if_changed("", refusal.text)
            self._paused_until = now + _HOLD_SECONDS
        else:
            self._log_error_if_changed("", refusal.text)
            requested = min(retry_after_seconds or 0.0, _LONGEST_RETRY_AFTER_SECONDS)
            self._paused_until = now + max(self._pause, requested)
            self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _store_reported_lines_as_rejected(self, refusal: Refusal, batch: Batch) -> None:
        """Reject the messages that the service's error names; the other messages of the batch are sent again later."""
        lines = batch.lines
        named = refusal.map_rejected_lines_to_reasons(lines)
        rejected = [
            RejectedMessage("", batch.lookup, _REASON, named[number], line)
            for number, line in enumerate(lines, 1)
            if number in named
        ]
        if not rejected:
            await self._hold_connection(refusal, batch)
            return
        accepted = [line for number, line in enumerate(lines, 1) if number not in named]
        await self._store_rejected(refusal, batch, accepted, rejected)

    async def _reduce_batch_size(self, refusal: Refusal, batch: Batch) -> None:
        """Halve the size of the connection's batches; if the batch was a single message, reject this message.

        If the error gives no reason to reject a single message, pause the connection instead.
        """
        if batch.messages > 1:
            if batch.lookup not in self._max_bytes:
                _LOG.warning("%s Sending fewer messages in one request.", refusal.text)
            self._max_bytes[batch.lookup] = batch.size // 2
        elif refusal.reason_if_single:
            rejected = RejectedMessage("", batch.lookup, _REASON, refusal.reason_if_single, batch.lines[0])
            await self._store_rejected(refusal, batch, [], [rejected])
        else:
            await self._hold_connection(refusal, batch)

    async def _store_rejected(
        self, refusal: Refusal, batch: Batch, sendable_lines: list[bytes], rejected: list[RejectedMessage]
    ) -> None:
        await self._spool.run(self._spool.spool.reject_messages, batch, sendable_lines, rejected)
        self._metrics.increase_counter("rejected_messages_total", len(rejected), label=f'reason="{_REASON}"')
        _LOG.warning("%s", refusal.text)

    async def _hold_connection(self, refusal: Refusal, batch: Batch) -> None:
        """Send no messages of the batch's connection for a minute; log the refusal unless it was logged before."""
        self._log_error_if_changed(batch.lookup, refusal.text)
        self._next_at[batch.lookup] = time.monotonic() + _HOLD_SECONDS

    def _log_error_if_changed(self, error_key: str, text: str) -> None:
        """Log an error, unless it equals the last error with the same key.

        The key is the short name of a connection, or empty for an error that concerns all connections.
        """
        if self._reported.get(error_key) != text:
            waiting = self._spool.spool.waiting.messages
            _LOG.error("%s (%s messages wait in the spool)", text, f"{waiting:,}")
        self._reported[error_key] = text
