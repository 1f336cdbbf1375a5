"""Tests of notifications and audit events about changes of alerts."""

from collections.abc import Sequence

from shared.alerts.models import Alert, AlertState, Mark, RuleState
from shared.alerts.notifications import MAX_PUBLISHED, Notifications
from shared.alerts.ports import RuleRecord
from shared.catalog.alert_rule_models import Severity
from shared.webhooks.events import WebhookEvent
from tests.unit.shared.alerts.fakes import AT, SECOND, ListAuditLog, ListOutbox, MemoryAlertStore


class CountingOutbox(ListOutbox):
    """Fake webhook outbox that records the number of events of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def publish(self, events: Sequence[WebhookEvent]) -> None:
        """Record the number of events."""
        self.sizes.append(len(events))
        await super().publish(events)


def build_alert(number: int) -> Alert:
    """Return an alert that has just fired; an alert with an odd number has also been resolved."""
    ended = number % 2 == 1
    return Alert(
        id=f"a{number}",
        rule="hot",
        name="Hot",
        severity=Severity.CRITICAL,
        surface="hall",
        runbook_url=None,
        labels={"device": str(number)},
        state=AlertState.RESOLVED if ended else AlertState.FIRING,
        value=9,
        started_at=AT,
        fired_at=AT,
        resolved_at=AT + SECOND if ended else None,
        marks=(Mark.FIRING, Mark.RESOLVED) if ended else (Mark.FIRING,),
    )


async def test_many_transitions_are_published_in_parts() -> None:
    """Thousands of transitions are published in parts, in order for each alert, and marked as done in one write."""
    store, outbox = MemoryAlertStore(), CountingOutbox()
    notifications = Notifications(store, outbox, ListAuditLog())
    number = 3 * MAX_PUBLISHED
    state = RuleState(rule="hot", revision="r", evaluated_at=AT, due_at=AT, firing=number // 2, has_marks=True)
    token = await store.try_save_rule_changes_and_return_token(
        RuleRecord("hot"), state, [build_alert(each) for each in range(number)]
    )
    assert token is not None
    settled = await notifications.publish_events_and_update_record(await store.load_rule_record("hot"))
    assert max(outbox.sizes) <= 2 * MAX_PUBLISHED
    assert len(outbox.events) == number + number // 2
    assert [key for key in outbox.events if key.endswith("/a1")] == ["alert.firing/a1", "alert.resolved/a1"]
    assert settled is not None
    assert [alert.id for alert in settled.alerts] == [f"a{each}" for each in range(0, number, 2)]
    assert not any(alert.marks for alert in store.alerts.values())
    assert not store.states["hot"].has_marks
