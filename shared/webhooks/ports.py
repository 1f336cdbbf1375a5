"""Storage port of webhooks, shared by all instances."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from shared.webhooks.models import Delivery, DeliveryStatus


class DeliveryPlace(NamedTuple):
    """Position in the list of an endpoint's deliveries, which is sorted newest first."""

    created_at: str
    id: str


class WebhookStore(Protocol):
    """Storage of endpoints, of deliveries, and of the progress of event sources.

    Methods raise ``WorkspaceError`` UNAVAILABLE with code ``WEBHOOKS_UNAVAILABLE`` if the store does not respond.
    """

    async def read_state_document(self, document_name: str) -> str | None:
        """Return a state document; None if it does not exist.

        A state document is a text: the list of endpoints, or the progress of one event source.

        Args:
            document_name: name of the document, such as ``endpoints``.
        """
        ...

    async def change_state_document(self, document_name: str, change: Callable[[str | None], str | None]) -> str | None:
        """Atomically replace a state document by the result of ``change``, and return the stored document.

        Args:
            document_name: name of the document, as for :meth:`read_state_document`.
            change: receives the current text (None if the document does not exist) and returns the new text, or None
                for no change. It can be called several times; its exceptions are raised to the caller.
        """
        ...

    async def add_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Store new webhook deliveries; do nothing for a delivery whose id is already stored."""
        ...

    async def find_due_endpoint_id(self, at: datetime, excluded_ids: Collection[str]) -> str | None:
        """Return the id of an endpoint that has a due delivery and is not excluded; None if there is none."""
        ...

    async def claim_due_deliveries(
        self, endpoint_id: str, at: datetime, leased_until: datetime, lease_id: str, limit: int
    ) -> Sequence[Delivery]:
        """Claim due deliveries of an endpoint for this process; return them in the order in which they became due.

        No other caller gets these deliveries before ``leased_until``. Then they are due again, because this
        process may have crashed. A delivery that cannot be parsed is delayed in the same way, but not returned.

        Args:
            endpoint_id: id of the webhook endpoint.
            at: current time.
            leased_until: time at which the claim ends.
            lease_id: new id of the claim, which :meth:`try_save_claimed_delivery` requires.
            limit: maximum number of deliveries.
        """
        ...

    async def reschedule_and_count_after_clock_setback(
        self, waiting_due_at: datetime, claimed_due_at: datetime, scheduled_after: datetime, limit: int
    ) -> int:
        """Reschedule deliveries that were scheduled before the clock was set back; return their number.

        Args:
            waiting_due_at: new due time of waiting deliveries: the current time.
            claimed_due_at: new due time of claimed deliveries, whose claims stay.
            scheduled_after: time in the future. If ``scheduled_at`` of a delivery is later, the clock was set back
                after the delivery was scheduled.
            limit: maximum number of deliveries.
        """
        ...

    async def try_save_claimed_delivery(self, delivery: Delivery, lease_id: str) -> bool:
        """Store the result of a claimed delivery.

        Return False and store nothing if another worker has claimed the delivery meanwhile.

        Args:
            delivery: the delivery after the attempt.
            lease_id: id of the claim.
        """
        ...

    async def change_delivery(
        self, endpoint_id: str, delivery_id: str, change: Callable[[Delivery], Delivery | None]
    ) -> Delivery | None:
        """Atomically replace a delivery by the result of ``change``.

        A worker that has claimed a replaced delivery loses its claim if the new delivery has another ``lease``.

        Args:
            endpoint_id: id of the webhook endpoint.
            delivery_id: id of the delivery.
            change: receives the stored delivery and returns the new delivery, or None for no change. It is not called
                if the delivery does not exist or cannot be parsed. It can be called again after a concurrent change.
                Its exceptions are raised to the caller.

        Returns:
            The stored delivery; None if it does not exist or cannot be parsed.
        """
        ...

    async def list_deliveries(
        self, endpoint_id: str, status: DeliveryStatus | None, after: DeliveryPlace | None, limit: int
    ) -> Sequence[Delivery]:
        """Return deliveries of an endpoint, newest first, without those that cannot be parsed.

        Args:
            endpoint_id: id of the webhook endpoint.
            status: return only deliveries of this status; None for all.
            after: position of the last delivery of the previous page; None for the first page.
            limit: maximum number of deliveries.
        """
        ...

    async def delete_and_count_expired_deliveries(self, at: datetime, limit: int) -> int:
        """Delete up to ``limit`` deliveries whose retention time has ended; return their number."""
        ...
