"""Worker that sends due webhook deliveries, several at a time for each endpoint."""

import asyncio
import contextvars
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, Final

from shared.background.ports import CLOCK_TOLERANCE
from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.provenance.ports import ServiceUser
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.webhooks.audit import add_audit_event
from shared.webhooks.deliveries import DISABLED_AFTER, compute_retry_time_or_none, is_manual_retry
from shared.webhooks.models import Attempt, Delivery, DeliveryStatus, EndpointList, WebhookEndpoint
from shared.webhooks.ports import WebhookStore
from shared.webhooks.registry import EndpointRegistry, add_or_replace_endpoint
from shared.webhooks.sender import DeliverySender

LEASE: Final = timedelta(seconds=30)
"""Time for which a worker owns a delivery, longer than an attempt; another worker can send it after this time."""
MAX_PER_ENDPOINT: Final = 8
"""Maximum number of deliveries that a process sends to one endpoint at a time; a slow endpoint delays no other."""
PROMPT_RETRY_SECONDS: Final = 10.0
"""Maximum time in seconds for which a process itself waits for a retry; the background job starts later retries."""
_MAX_RESCHEDULED: Final = 100
_GONE: Final = 410
_LOG = get_logger("webhooks")


class DeliveryWorker:
    """Sends due webhook deliveries in concurrent tasks until none is due.

    Args:
        store: storage of the deliveries.
        registry: storage of the endpoints' definitions and health.
        sender: sends one delivery.
        is_audited: returns whether the workspace has provenance (audit chains) now.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: WebhookStore,
        registry: EndpointRegistry,
        sender: DeliverySender,
        is_audited: Callable[[], Awaitable[bool]],
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._registry = registry
        self._sender = sender
        self._is_audited = is_audited
        self._runtime = runtime
        self._sending: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._is_closed = False
        self._is_starting = False

    def wake(self) -> None:
        """Make the worker look for due deliveries; start it if it does not run."""
        self._woken.set()
        if not self._is_closed and (self._loop is None or self._loop.done()):
            # The task serves many requests, so it must not inherit the log context of the first one.
            self._loop = asyncio.get_running_loop().create_task(self._run_until_idle(), context=contextvars.Context())

    async def reschedule_after_clock_setback(self) -> None:
        """Make deliveries due that were scheduled before the clock was set back; otherwise, they would wait too long.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        at = self._runtime.now()
        while await self._store.reschedule_and_count_after_clock_setback(
            at, at + LEASE, at + CLOCK_TOLERANCE, _MAX_RESCHEDULED
        ):
            self.wake()

    @property
    def is_idle(self) -> bool:
        """True if the worker is sending no delivery; a retry in a few seconds can still be planned."""
        return not (self._woken.is_set() or self._is_starting or self._tasks)

    async def close(self) -> None:
        """Stop sending deliveries. An interrupted attempt is repeated after the lease of its delivery has ended."""
        self._is_closed = True
        tasks = [*self._tasks, *self._timers, *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_until_idle(self) -> None:
        """Start due deliveries each time deliveries have ended or were stored.

        Return when no delivery is running and no retry within ``PROMPT_RETRY_SECONDS`` is planned.
        """
        try:
            while True:
                self._woken.clear()
                self._is_starting = True
                try:
                    await self._start_due_deliveries()
                finally:
                    self._is_starting = False
                if not self._tasks and not self._timers and not self._woken.is_set():
                    return
                await self._woken.wait()
        except WorkspaceError as error:
            _LOG.warning(
                "due webhook deliveries were not started; a later run starts them, claimed ones after %d seconds: %s",
                LEASE.total_seconds(),
                error,
            )

    async def _start_due_deliveries(self) -> None:
        """Claim and start due deliveries; skip endpoints with over half of ``MAX_PER_ENDPOINT`` running deliveries."""
        busy = {endpoint for endpoint, number in self._sending.items() if number > MAX_PER_ENDPOINT // 2}
        while (endpoint := await self._store.find_due_endpoint_id(self._runtime.now(), busy)) is not None:
            busy.add(endpoint)
            at, lease = self._runtime.now(), self._runtime.new_id()
            room = MAX_PER_ENDPOINT - self._sending[endpoint]
            claimed = await self._store.claim_due_deliveries(endpoint, at, at + LEASE, lease, room)
            if not claimed:
                continue
            # A list that was read before the claim could contain an endpoint that was removed or changed meanwhile.
            definition = (await self._registry.load()).endpoints.get(endpoint)
            for delivery in claimed:
                self._start_task(self._send_or_end_claimed_delivery(definition, delivery, lease), endpoint)

    def _start_task(self, coroutine: Coroutine[Any, Any, None], endpoint_id: str) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        self._sending[endpoint_id] += 1

        def forget_ended_task(ended: asyncio.Task[None]) -> None:
            self._tasks.discard(ended)
            self._sending[endpoint_id] -= 1
            if not self._sending[endpoint_id]:
                del self._sending[endpoint_id]
            self._woken.set()

        task.add_done_callback(forget_ended_task)

    async def _send_or_end_claimed_delivery(
        self, endpoint: WebhookEndpoint | None, delivery: Delivery, lease_id: str
    ) -> None:
        """Send a claimed delivery, or end it if its endpoint was removed or disabled; log errors."""
        try:
            if endpoint is None or not endpoint.enabled:
                await self._end_unsent_delivery(delivery, lease_id, "removed" if endpoint is None else "disabled")
            else:
                await self._attempt_delivery(endpoint, delivery, lease_id)
        except WorkspaceError as error:
            _LOG.warning(
                "the result of a webhook delivery was not stored; it is sent again: %s",
                error,
                extra=fields(webhook=delivery.endpoint, delivery=delivery.id),
            )
        except Exception:  # noqa: BLE001  one delivery must not stop the others
            _LOG.exception("a webhook delivery failed", extra=fields(webhook=delivery.endpoint, delivery=delivery.id))

    async def _end_unsent_delivery(self, delivery: Delivery, lease_id: str, reason: str) -> None:
        """Mark a claimed delivery as ended without sending it, because its endpoint is disabled or deleted."""
        attempt = Attempt(at=self._runtime.now(), error=f"Not sent, because the endpoint is {reason}.")
        failed = delivery.copy_with_attempt(attempt, status=DeliveryStatus.FAILED, next_attempt_at=None)
        await self._store.try_save_claimed_delivery(failed, lease_id)

    async def _attempt_delivery(self, endpoint: WebhookEndpoint, delivery: Delivery, lease_id: str) -> None:
        """Send a claimed delivery once; store the result, and whether the endpoint works."""
        result = await self._sender.send(endpoint, delivery)
        attempt = result.attempt
        if result.is_delivered:
            after = delivery.copy_with_attempt(attempt, status=DeliveryStatus.DELIVERED, next_attempt_at=None)
        elif attempt.http_status == _GONE:
            after = delivery.copy_with_attempt(attempt, status=DeliveryStatus.FAILED, next_attempt_at=None)
        else:
            after = self._schedule_retry(delivery, attempt)
        count("workspace.webhooks.attempts", outcome="delivered" if result.is_delivered else "failed")
        if after.status is DeliveryStatus.FAILED:
            count("workspace.webhooks.dead_letters")
            _LOG.warning(
                "a webhook delivery failed and is not retried: %s",
                attempt.error,
                extra=fields(webhook=endpoint.id, delivery=delivery.id, eventType=delivery.event_type),
            )
        await self._store.try_save_claimed_delivery(after, lease_id)
        try:
            await self._update_endpoint_health(endpoint, after)
        except WorkspaceError as error:
            _LOG.warning(
                "the health of a webhook was not stored; the next attempt updates it: %s",
                error,
                extra=fields(webhook=endpoint.id, delivery=delivery.id),
            )

    def _schedule_retry(self, delivery: Delivery, attempt: Attempt) -> Delivery:
        """Return a copy of a delivery after a failed attempt, with the time of the next attempt.

        The copy has the status FAILED and no next attempt if all retries are used.
        """
        at = self._runtime.now()
        due_at = compute_retry_time_or_none(delivery.retries, at, self._runtime)
        if due_at is None:
            return delivery.copy_with_attempt(attempt, status=DeliveryStatus.FAILED, next_attempt_at=None)
        if due_at - at < timedelta(seconds=PROMPT_RETRY_SECONDS):
            timer = asyncio.create_task(self._wake_at(due_at))
            self._timers.add(timer)
            timer.add_done_callback(self._timers.discard)
        return delivery.copy_with_attempt(
            attempt, retries=delivery.retries + 1, next_attempt_at=due_at, scheduled_at=at
        )

    async def _wake_at(self, due_at: datetime) -> None:
        await self._runtime.sleep(max(0.0, (due_at - self._runtime.now()).total_seconds()))
        self._woken.set()

    async def _update_endpoint_health(self, endpoint: WebhookEndpoint, delivery: Delivery) -> None:
        """Store the time since which all attempts for an endpoint have failed; delete it after a success.

        Disable the endpoint if :func:`_find_reason_to_disable` returns a reason.
        """
        if delivery.status is DeliveryStatus.DELIVERED and not await self._is_endpoint_failing(endpoint.id):
            return  # a read is cheaper than a change, and most deliveries succeed
        append_id = self._runtime.new_id()
        # Only a delivery that has failed for good can disable the endpoint, which is audited.
        is_audited = delivery.status is DeliveryStatus.FAILED and await self._is_audited()

        def change_health(endpoint_list: EndpointList) -> EndpointList | None:
            # The given endpoint can be older than the results of other attempts, which the stored one contains.
            before = endpoint_list.endpoints.get(endpoint.id)
            if before is None or not before.enabled or before.url != endpoint.url:
                return None
            reason = _find_reason_to_disable(before, delivery)
            if reason is not None:
                after = before.model_copy(update={"enabled": False, "disabled_reason": reason})
                changed = add_or_replace_endpoint(endpoint_list, after)
                if not is_audited:
                    return changed
                return add_audit_event(
                    changed, "Disabled", before, after, user_id=ServiceUser.SYSTEM, append_id=append_id
                )
            is_delivered = delivery.status is DeliveryStatus.DELIVERED
            since = None if is_delivered else before.failing_since or delivery.attempts[-1].at
            if since == before.failing_since:
                return None
            return add_or_replace_endpoint(endpoint_list, before.model_copy(update={"failing_since": since}))

        await self._registry.change_endpoint_list(change_health)

    async def _is_endpoint_failing(self, endpoint_id: str) -> bool:
        endpoint = (await self._registry.load()).endpoints.get(endpoint_id)
        return endpoint is not None and endpoint.failing_since is not None


def _find_reason_to_disable(endpoint: WebhookEndpoint, delivery: Delivery) -> str | None:
    """Return why an endpoint must be disabled after the last attempt of a delivery; None if it stays enabled.

    An endpoint is disabled if it replied 410, or if a delivery has failed after its last automatic retry and no attempt
    has succeeded for ``DISABLED_AFTER``.
    """
    attempt, since = delivery.attempts[-1], endpoint.failing_since
    if attempt.http_status == _GONE:
        return "The endpoint replied with status 410 (Gone)."
    # The failure of a manual retry says nothing about the days before it, in which possibly nothing was sent.
    has_used_all_retries = delivery.status is DeliveryStatus.FAILED and not is_manual_retry(delivery)
    if has_used_all_retries and since is not None and attempt.at - since >= DISABLED_AFTER:
        return f"All deliveries have failed since {since:%Y-%m-%d %H:%M} UTC."
    return None
