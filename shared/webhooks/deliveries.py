"""Deliveries to a webhook endpoint: the schedule of automatic retries, the log, and manual retries."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339
from shared.webhooks.models import Delivery, DeliveryStatus
from shared.webhooks.ports import DeliveryPlace, WebhookStore
from shared.webhooks.service import WebhookService, check_endpoint_is_enabled

RETRY_DELAYS: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
JITTER: Final = 0.1
"""Largest random deviation of a delay, as a fraction; it spreads the retries after an outage."""

DISABLED_AFTER: Final = timedelta(days=5)
"""Time without a successful attempt after which a delivery that has used all its retries disables its endpoint."""


def compute_retry_time_or_none(retries_so_far: int, failed_at: datetime, runtime: Runtime) -> datetime | None:
    """Compute the time of the next attempt to send a webhook delivery; None if all retries are used.

    Args:
        retries_so_far: number of retries so far.
        failed_at: time of the failed attempt.
        runtime: source of randomness for the jitter.
    """
    if retries_so_far >= len(RETRY_DELAYS):
        return None
    return failed_at + RETRY_DELAYS[retries_so_far] * runtime.uniform(1 - JITTER, 1 + JITTER)


def is_manual_retry(delivery: Delivery) -> bool:
    """Return whether the current attempt of a delivery is a retry that was requested after the delivery had ended."""
    return delivery.retries > len(RETRY_DELAYS)


class DeliveryPage(NamedTuple):
    """Page of an endpoint's deliveries.

    Attributes:
        deliveries: deliveries, newest first.
        next_after: position after which the next page begins; None on the last page.
    """

    deliveries: Sequence[Delivery]
    next_after: DeliveryPlace | None


class DeliveryLog:
    """Reads the deliveries to webhook endpoints, and sends them again on request.

    Args:
        store: storage of webhooks.
        service: finds endpoints.
        wake: called after a retry was requested, so that the worker sends it immediately.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: WebhookStore,
        service: WebhookService,
        wake: Callable[[], None],
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._service = service
        self._wake = wake
        self._runtime = runtime

    async def list_deliveries_page(
        self, endpoint_id: str, status: DeliveryStatus | None, after: DeliveryPlace | None, limit: int
    ) -> DeliveryPage:
        """Return a page of an endpoint's deliveries, newest first.

        Args:
            endpoint_id: id of the webhook endpoint.
            status: return only deliveries of this status; None for all.
            after: ``next_after`` of the previous page; None for the first page.
            limit: maximum number of deliveries.

        Raises:
            WorkspaceError: NOT_FOUND ``WEBHOOK_NOT_FOUND``.
        """
        await self._service.get(endpoint_id)
        found = await self._store.list_deliveries(endpoint_id, status, after, limit + 1)
        page = found[:limit]
        last = DeliveryPlace(format_rfc3339(page[-1].created_at), page[-1].id) if len(found) > limit else None
        return DeliveryPage(page, last)

    async def retry(self, endpoint_id: str, delivery_id: str) -> Delivery:
        """Make a delivery due now, so that the worker sends it again under the same id; return the delivery.

        A delivery that has ended gets one attempt, whose failure does not disable the endpoint unless the endpoint
        replies 410 (see :func:`is_manual_retry`); a pending delivery keeps its remaining retries. A delivery that a
        worker is sending at this moment does not change.

        Raises:
            WorkspaceError: NOT_FOUND ``WEBHOOK_NOT_FOUND`` or ``DELIVERY_NOT_FOUND``; CONFLICT ``WEBHOOK_DISABLED``.
        """
        check_endpoint_is_enabled(await self._service.get(endpoint_id))
        at = self._runtime.now()

        def reschedule_delivery(before: Delivery) -> Delivery | None:
            if before.lease:
                return None  # an attempt runs at this moment
            retries = before.retries if before.status is DeliveryStatus.PENDING else len(RETRY_DELAYS) + 1
            updates = {"status": DeliveryStatus.PENDING, "retries": retries, "next_attempt_at": at, "scheduled_at": at}
            return before.model_copy(update=updates)

        delivery = await self._store.change_delivery(endpoint_id, delivery_id, reschedule_delivery)
        if delivery is None:
            raise WorkspaceError(Kind.NOT_FOUND, "DELIVERY_NOT_FOUND", "The webhook has no delivery with this id.")
        self._wake()
        return delivery
