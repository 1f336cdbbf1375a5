"""Storage of webhook endpoints together with the audit events of their changes."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from shared.catalog.ports import PendingEvent
from shared.provenance.ports import Target
from shared.webhooks.models import EndpointList, PendingAudit, WebhookEndpoint
from shared.webhooks.ports import WebhookStore

STATE_DOCUMENT: Final = "endpoints"


class EndpointRegistry:
    """Storage of webhook endpoints with the audit events of their changes.

    A change and its audit event are stored in one write, so a crash loses neither. Afterwards,
    :func:`shared.catalog.outbox.flush_outbox_and_count_events` appends the event to its audit chain; it reads the
    pending events from this class.

    Args:
        store: storage of webhooks.
    """

    def __init__(self, store: WebhookStore) -> None:
        self._store = store

    async def load(self) -> EndpointList:
        """Read all webhook endpoints.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOKS_UNAVAILABLE``.
        """
        return _parse_endpoints(await self._store.read_state_document(STATE_DOCUMENT))

    async def change_endpoint_list(self, change: Callable[[EndpointList], EndpointList | None]) -> EndpointList:
        """Atomically replace the list of endpoints by the result of ``change``, and return the stored list.

        Args:
            change: receives the stored list and returns the new list, or None for no change. It can be called several
                times; its exceptions are raised to the caller.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOKS_UNAVAILABLE``.
        """

        def change_endpoints_json(before_json: str | None) -> str | None:
            after = change(_parse_endpoints(before_json))
            return None if after is None else after.model_dump_json()

        return _parse_endpoints(await self._store.change_state_document(STATE_DOCUMENT, change_endpoints_json))

    async def list_pending_events(self) -> Sequence[PendingEvent]:
        """Return the audit events that must still be appended to their chain, oldest first."""
        return [to_pending_event(one) for one in (await self.load()).audit]

    async def delete_pending_events(self, append_ids: Sequence[str]) -> None:
        """Remove audit events from the pending events, for instance after they were appended to their chain."""

        def remove_pending_events(before: EndpointList) -> EndpointList | None:
            left = tuple(one for one in before.audit if one.append_id not in append_ids)
            return None if len(left) == len(before.audit) else before.model_copy(update={"audit": left})

        await self.change_endpoint_list(remove_pending_events)


def to_pending_event(audit: PendingAudit) -> PendingEvent:
    """Convert the audit event of an endpoint change to a pending event of the outbox."""
    return PendingEvent(audit.append_id, Target.PLATFORM_CONFIG, audit.user_id, dict(audit.event))


def add_or_replace_endpoint(endpoint_list: EndpointList, endpoint: WebhookEndpoint, **changes: Any) -> EndpointList:
    """Return the endpoint list with one endpoint added or replaced.

    ``changes`` are new values of other attributes of the list.
    """
    return endpoint_list.model_copy(update={"endpoints": {**endpoint_list.endpoints, endpoint.id: endpoint}, **changes})


def _parse_endpoints(endpoints_json: str | None) -> EndpointList:
    return EndpointList() if endpoints_json is None else EndpointList.model_validate_json(endpoints_json)
