"""Source of webhook events about amendments (corrections of records), derived from their audit chains."""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.provenance.decisions import parse_content_if_verified
from shared.provenance.hash_rule import sequence_from_record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, Target, Tip
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import LONGEST_SETBACK, format_rfc3339, parse_rfc3339
from shared.webhooks.events import EventOutbox, WebhookEvent, WebhookEventType
from shared.webhooks.models import EndpointList
from shared.webhooks.ports import WebhookStore
from shared.webhooks.registry import EndpointRegistry

STATE_DOCUMENT: Final = "amendments"
OVERLAP: Final = timedelta(minutes=2)
"""Length of the period before the last run whose records are read again, because the clocks of instances differ."""
_TYPES: Final = (WebhookEventType.AMENDMENT_PENDING, WebhookEventType.AMENDMENT_DECIDED)
_PAGE_RECORDS: Final = 500
_PAGE_BYTES: Final = 4_000_000
_AMENDED_VALUES: Final = frozenset({"OriginalRecord", "AmendedRecord"})
"""Properties that no event contains. They can be large, and their deletion would block the event loop."""


class AmendmentEvents:
    """Publishes webhook events about amendments and their approvals or rejections since the last run.

    Args:
        chains: store of the chains.
        store: stores the time up to which records were read.
        registry: storage of the endpoints.
        outbox: receives the events.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        chains: ChainStore,
        store: WebhookStore,
        registry: EndpointRegistry,
        outbox: EventOutbox,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._chains = chains
        self._store = store
        self._registry = registry
        self._outbox = outbox
        self._runtime = runtime
        self._tips: dict[ChainKey, Tip] = {}

    async def publish_new_events(self) -> None:
        """Publish events about amendments and decisions since the last run, if an endpoint subscribes to such events.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond; the next run repeats the work.
        """
        wanted_from = find_earliest_subscription_time(await self._registry.load(), _TYPES)
        if wanted_from is None:
            self._tips.clear()
            return
        started = self._runtime.now()
        text = await self._store.read_state_document(STATE_DOCUMENT)
        done_to = wanted_from if text is None else max(parse_rfc3339(text), wanted_from)
        # The clocks may have been set back and forward since the last run, so a new record can have an earlier time. An
        # event that was published stays unique.
        since = format_rfc3339(min(done_to, started) - LONGEST_SETBACK - OVERLAP)
        tips: dict[ChainKey, Tip] = {}
        async for chain, tip in self._chains.iterate_tips(since, (Target.DOMAIN_AMENDMENTS,)):
            await self._publish_chain_events(chain, tip, since)
            tips[chain] = tip
        self._tips = tips
        if text is None or abs(started - parse_rfc3339(text)) > OVERLAP / 4:
            # A write in each run would cost more than reading a few records again after a crash.
            await self._store.change_state_document(STATE_DOCUMENT, lambda _: format_rfc3339(started))

    async def _publish_chain_events(self, chain: ChainKey, tip: Tip, since_record_time: str) -> None:
        """Publish webhook events about the new records of one audit chain."""
        known = self._tips.get(chain)
        if known is not None and known.sequence >= tip.sequence:
            return
        filters = Filters(start=since_record_time, from_sequence=None if known is None else known.sequence + 1)
        async for records in self._read_record_pages(chain, filters):
            events = [
                await self._build_event_of_record(chain, content)
                for content in await self._parse_valid_records_in_thread_if_large(records)
            ]
            await self._outbox.publish([event for event in events if event is not None])

    async def _read_record_pages(self, chain: ChainKey, filters: Filters) -> AsyncIterator[Sequence[ChainRecord]]:
        first = filters.from_sequence
        while True:
            narrowed = Filters(start=filters.start, from_sequence=first)
            page = await self._chains.scan(
                chain, narrowed, newest_first=False, limit=_PAGE_RECORDS, max_bytes=_PAGE_BYTES
            )
            yield page.records
            if not page.more:
                return
            first = page.records[-1].sequence + 1

    async def _build_event_of_record(self, chain: ChainKey, content: dict[str, Any]) -> WebhookEvent | None:
        if "AmendmentID" not in content:
            return build_amendment_event(chain.scope_key, content)
        sequence = sequence_from_record_id(str(content["AmendmentID"]))
        if sequence is None:
            return None
        page = await self._chains.read(chain, sequence - 1, limit=1, max_bytes=1)
        original = next(iter(await self._parse_valid_records_in_thread_if_large(page.records)), {})
        return build_decision_event(chain.scope_key, original, content)

    async def _parse_valid_records_in_thread_if_large(self, records: Sequence[ChainRecord]) -> list[dict[str, Any]]:
        size = sum(len(record.canonical) for record in records)
        return await self._runtime.run_in_thread_if_large(size, parse_valid_records, records)


def find_earliest_subscription_time(endpoint_list: EndpointList, types: Iterable[WebhookEventType]) -> datetime | None:
    """Return the earliest time at which an enabled endpoint subscribed to one of these types; None if none did."""
    times = [
        each.subscribed_at[kind]
        for each in endpoint_list.endpoints.values()
        if each.enabled
        for kind in types
        if kind in each.subscribed_at
    ]
    return min(times, default=None)


def parse_valid_records(records: Iterable[ChainRecord]) -> list[dict[str, Any]]:
    """Return the contents of valid audit records, without the properties OriginalRecord and AmendedRecord.

    Records that were tampered with are skipped.
    """
    return [
        {name: value for name, value in content.items() if name not in _AMENDED_VALUES}
        for record in records
        if (content := parse_content_if_verified(record)) is not None
    ]


def build_amendment_event(scope_key: str, record_content: dict[str, Any]) -> WebhookEvent | None:
    """Build the webhook event about a new amendment: pending, or approved if the policy requires no approval.

    Return None if the time of the amendment cannot be parsed.
    """
    is_pending = record_content.get("Status") == "pending"
    kind = WebhookEventType.AMENDMENT_PENDING if is_pending else WebhookEventType.AMENDMENT_DECIDED
    data = _amendment_to_event_data(scope_key, record_content) | {
        "status": record_content.get("Status"),
        "decidedBy": None,
    }
    return _build_webhook_event(kind, scope_key, record_content["RecordID"], str(record_content.get("AmendedAt")), data)


def build_decision_event(
    scope_key: str, original_content: dict[str, Any], decision_content: dict[str, Any]
) -> WebhookEvent | None:
    """Build the webhook event about the approval or rejection of an amendment (correction of a record).

    Return None if the time of the decision cannot be parsed.

    Args:
        scope_key: scope of the audit chain.
        original_content: content of the amendment's record; empty if it was tampered with.
        decision_content: content of the record that approves or rejects the amendment.
    """
    decided_by = decision_content.get("ApprovedBy", decision_content.get("RejectedBy"))
    data = _amendment_to_event_data(
        scope_key, {**decision_content, **original_content, "RecordID": decision_content["AmendmentID"]}
    )
    data |= {"status": decision_content.get("Status"), "decidedBy": decided_by}
    at = str(decision_content.get("ApprovedAt", decision_content.get("RejectedAt")))
    return _build_webhook_event(WebhookEventType.AMENDMENT_DECIDED, scope_key, decision_content["RecordID"], at, data)


def _amendment_to_event_data(scope_key: str, content: dict[str, Any]) -> dict[str, Any]:
    return {
        "scopeKey": scope_key,
        "recordId": content["RecordID"],
        "entityType": content.get("EntityType"),
        "entityId": content.get("EntityID"),
        "reasonCategory": content.get("ReasonCategory"),
        "amendedBy": content.get("AmendedBy"),
    }


def _build_webhook_event(
    kind: WebhookEventType, scope_key: str, record_id: str, at: str, data: dict[str, Any]
) -> WebhookEvent | None:
    try:
        time = parse_rfc3339(at)
    except ValueError:
        return None
    return WebhookEvent(f"{kind}/{record_id}/{scope_key}", kind, time, data)
