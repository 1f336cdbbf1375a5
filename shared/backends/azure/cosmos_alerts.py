"""Alerts and the states of alert rules in Cosmos DB.

A partition contains the alerts of one rule and the rule's state item. Every change of the alerts replaces the state
item under If-Match in the same transaction. If the alerts do not fit into one transaction, several transactions store
them, and the last one stores the new state.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from shared.alerts.models import Alert, RuleState
from shared.alerts.ports import AlertFilter, AlertPlace, RuleRecord
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import ALERTS
from shared.backends.azure.cosmos_item_store import MAX_OPERATIONS, CosmosItemStore, Item
from shared.backends.azure.cosmos_requests import Operation
from shared.timestamps import format_rfc3339

MAX_BATCH_CHARACTERS: Final = 400_000
"""Maximum number of characters of the alerts in one transaction; Cosmos DB limits a transaction to 2 MB."""

_STATE: Final = "state"
"""Id of a rule's state item; it differs from all ids of alerts, because they are hexadecimal."""

_HISTORY_SECONDS: Final = 90 * 24 * 3600
"""Time in seconds after which Cosmos DB deletes a resolved alert."""

_LAST: Final = "~"
"""Text that is greater than every sort key."""


class CosmosAlertStore:
    """Implementation of AlertStore: stores alerts and the states of alert rules in Cosmos DB.

    Changes of many alerts are split into several transactions; the last one also stores the new state of the rule.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = CosmosItemStore(account, ALERTS, "ALERTS_UNAVAILABLE", "the store of alerts")

    async def list_rule_states(self) -> Sequence[RuleState]:
        found = await self._items.query_items("SELECT * FROM c WHERE c.id = @id", id=_STATE)
        return [RuleState.model_validate_json(item["content"]) for item in found if item["content"]]

    async def load_rule_record(self, rule_lookup: str) -> RuleRecord:
        # The state is read first, so that a change between the two reads makes the token invalid.
        item = await self._items.read(_STATE, rule_lookup)
        if item is None:
            return RuleRecord(rule_lookup)
        found = await self._items.query_items("SELECT * FROM c WHERE c.open = true", rule_lookup)
        alerts = sorted((_alert_from_item(one) for one in found), key=lambda alert: alert.id)
        state = RuleState.model_validate_json(item["content"]) if item["content"] else None
        return RuleRecord(rule_lookup, state, tuple(alerts), _build_version_token(item))

    async def try_save_rule_changes_and_return_token(
        self,
        record: RuleRecord,
        new_state: RuleState | None,
        changed_alerts: Sequence[Alert],
        deleted_alert_ids: Sequence[str] = (),
    ) -> str | None:
        current = _state_item_from_version_token(record)
        *earlier, last = _split_into_transactions(changed_alerts, deleted_alert_ids)
        partial = _build_state_item(record.rule, _build_state_until_last_transaction(record.state, new_state))
        for operations in earlier:
            current = await self._items.put_if_unchanged(current, partial, operations)
            if current is None:
                return None
        if new_state is None:
            return "" if await self._try_delete_unchanged_rule_state(record.rule, current, last) else None
        stored = await self._items.put_if_unchanged(current, _build_state_item(record.rule, new_state), last)
        return None if stored is None else _build_version_token(stored)

    async def find_alert(self, alert_id: str) -> Alert | None:
        found = await self._items.query_items("SELECT * FROM c WHERE c.id = @id", id=alert_id)
        return next((_alert_from_item(item) for item in found if "alert" in item), None)

    async def list_alerts(self, alert_filter: AlertFilter, after: AlertPlace | None, limit: int) -> Sequence[Alert]:
        values = {"after": _LAST if after is None else _build_sort_key(after.started_at, after.alert_id)}
        conditions = ["c.sort < @after"]
        for name, value in (
            ("state", alert_filter.state),
            ("severity", alert_filter.severity),
            ("surface", alert_filter.surface),
        ):
            if value is not None:
                conditions.append(f"c.{name} = @{name}")
                values[name] = str(value)
        where = " AND ".join(conditions)
        text = f"SELECT TOP {int(limit)} * FROM c WHERE {where} ORDER BY c.sort DESC"  # noqa: S608  our own names
        return [_alert_from_item(item) for item in await self._items.query_items(text, **values)]

    async def delete_and_count_resolved_alerts(self, resolved_before: datetime) -> int:  # noqa: ARG002  resolved alerts expire by their ttl
        return 0

    async def _try_delete_unchanged_rule_state(
        self, rule_lookup: str, state_item: Item | None, alert_operations: Sequence[Operation]
    ) -> bool:
        """Delete a rule's state item and perform operations on the rule's alerts, in one transaction.

        Return False if another process has changed the state item since ``state_item`` was read.

        If ``state_item`` is None, there is nothing to delete: write nothing, and return True only if there are no
        operations.
        """
        if state_item is None:
            return not alert_operations
        deletion: Operation = ("delete", (_STATE,), {"if_match_etag": state_item["_etag"]})
        outcome = await self._items.commit_batch(rule_lookup, [deletion, *alert_operations])
        if outcome.results is not None:
            return True
        return outcome.may_be_applied and await self._items.read(_STATE, rule_lookup) is None


class _SizedOperation(NamedTuple):
    """Operation on an alert, and the number of characters that count for the size of its transaction."""

    operation: Operation
    characters: int


def _split_into_transactions(
    alerts_to_put: Sequence[Alert], alert_ids_to_delete: Sequence[str]
) -> list[list[Operation]]:
    """Split the changes of alerts into transactions of allowed size; the last transaction can be empty."""
    batches: list[list[Operation]] = [[]]
    size = 0
    for operation, characters in _iterate_sized_operations(alerts_to_put, alert_ids_to_delete):
        # One more operation replaces the state.
        if len(batches[-1]) + 1 >= MAX_OPERATIONS or size + characters > MAX_BATCH_CHARACTERS:
            batches.append([])
            size = 0
        batches[-1].append(operation)
        size += characters
    return batches


def _iterate_sized_operations(
    alerts_to_put: Sequence[Alert], alert_ids_to_delete: Sequence[str]
) -> Iterator[_SizedOperation]:
    for alert in alerts_to_put:
        item = _alert_to_item(alert)
        yield _SizedOperation(("upsert", (item,), {}), len(item["alert"]))
    for alert_id in alert_ids_to_delete:
        yield _SizedOperation(("delete", (alert_id,), {}), 0)


def _alert_to_item(alert: Alert) -> Item:
    is_open = alert.is_active or bool(alert.marks)
    return {
        "id": alert.id,
        "rule": alert.rule,
        "open": is_open,
        "state": alert.state.value,
        "severity": alert.severity.value,
        "surface": alert.surface,
        "sort": _build_sort_key(format_rfc3339(alert.started_at), alert.id),
        "alert": alert.model_dump_json(),
        **({} if is_open else {"ttl": _HISTORY_SECONDS}),
    }


def _alert_from_item(item: Item) -> Alert:
    return Alert.model_validate_json(item["alert"])


def _build_sort_key(started_at: str, alert_id: str) -> str:
    return f"{started_at}/{alert_id}"


def _build_state_until_last_transaction(before: RuleState | None, after: RuleState | None) -> RuleState | None:
    """Build the state that a rule has while changes of its alerts are stored in several transactions.

    If the process ends before the last transaction, this state remains stored. The rule then has its earlier due time
    and is not idle, so the scheduler publishes the alerts that are already stored. If the rule is disabled or deleted
    before its next evaluation, the scheduler ends these alerts.

    Args:
        before: stored state of the rule; None before its first evaluation.
        after: new state; None if the state will be deleted.
    """
    if after is None:
        return before
    if before is None:
        return after.model_copy(update={"due_at": after.evaluated_at or after.due_at, "evaluated_at": None})
    counts = {"firing": max(before.firing, after.firing), "pending": max(before.pending, after.pending)}
    return before.model_copy(update={**counts, "has_marks": True})


def _build_state_item(rule_lookup: str, state: RuleState | None) -> Item:
    return {"id": _STATE, "rule": rule_lookup, "content": None if state is None else state.model_dump_json()}


def _build_version_token(state_item: Item) -> str:
    return json.dumps([state_item["_etag"], state_item.get("writes", [])])


def _state_item_from_version_token(record: RuleRecord) -> Item | None:
    """Return the rule's state item, with the ETag from the version token of ``record``; None if nothing is stored.

    The item has no content, because the token does not contain it.
    """
    if not record.token:
        return None
    etag, writes = json.loads(record.token)
    return {"id": _STATE, "rule": record.rule, "_etag": etag, "writes": writes}
