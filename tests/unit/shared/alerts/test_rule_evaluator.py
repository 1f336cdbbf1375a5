"""Tests of storing evaluations: changed, disabled and deleted rules, and unpublished transitions."""

from datetime import timedelta

import pytest

from shared.alerts.models import RuleStatus
from shared.errors import Kind, WorkspaceError
from tests.unit.shared.alerts.environment import FIRING, HOT, RESOLVED, AlertWorkspace
from tests.unit.shared.alerts.fakes import (
    AT,
    build_absence_rule,
    build_catalog,
    build_entry,
    build_rule,
)


@pytest.mark.parametrize("change", ["deleted", "disabled"])
async def test_the_end_of_a_rule_resolves_its_alerts(alert_workspace: AlertWorkspace, change: str) -> None:
    """If a rule is deleted or disabled, its alerts and its error are resolved at once."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    await alert_workspace.run_scheduler_after()
    disabled = build_entry(build_rule(enabled=False), AT, alert_workspace.time.now)
    alert_workspace.catalog = build_catalog(*([disabled] if change == "disabled" else []), version=2)
    assert (await alert_workspace.run_scheduler_after(1))[2:] == [RESOLVED, RESOLVED]
    await alert_workspace.run_scheduler_after(1)
    assert len(alert_workspace.outbox.events) == 4
    assert alert_workspace.store.states.keys() == ({"hot"} if change == "disabled" else set())
    assert [alert.state.value for alert in alert_workspace.store.alerts.values()] == ["resolved"]
    assert len(alert_workspace.queries.calls) == 2


async def test_a_rule_that_was_created_again_has_new_alerts(alert_workspace: AlertWorkspace) -> None:
    """If a rule is deleted and created again between two runs, its old alert is resolved."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.catalog = build_catalog(
        build_entry(build_rule(), alert_workspace.time.now + timedelta(seconds=1)), version=2
    )
    assert sorted(await alert_workspace.run_scheduler_after(2)) == [FIRING, FIRING, RESOLVED]
    assert sorted(alert.state.value for alert in alert_workspace.store.alerts.values()) == ["firing", "resolved"]


async def test_a_failing_rule_that_was_created_again_has_no_old_alerts(alert_workspace: AlertWorkspace) -> None:
    """If a rule is deleted and created again, its old alert is resolved even if the new query fails."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    alert_workspace.catalog = build_catalog(
        build_entry(build_rule(), alert_workspace.time.now + timedelta(seconds=1)), version=2
    )
    assert sorted(await alert_workspace.run_scheduler_after(2)) == [FIRING, FIRING, RESOLVED]
    assert [alert.state.value for alert in alert_workspace.store.alerts.values()] == ["resolved"]
    assert (alert_workspace.get_status(), alert_workspace.store.states["hot"].firing) == (RuleStatus.ERROR, 0)


async def test_an_acknowledgement_during_an_evaluation_is_audited(alert_workspace: AlertWorkspace) -> None:
    """If appending the event of an acknowledgement fails during an evaluation, the evaluation appends it afterwards."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    [alert_id] = alert_workspace.store.alerts

    async def acknowledge_alert() -> None:
        alert_workspace.audit_log.failures = 1
        await alert_workspace.build_service().acknowledge(alert_id, "editor@t", None)
        assert alert_workspace.audit_log.events == {}

    alert_workspace.queries.gate = acknowledge_alert
    await alert_workspace.run_scheduler_after()
    assert len(alert_workspace.audit_log.events) == 1
    assert alert_workspace.store.alerts[alert_id].acknowledged_by == "editor@t"


async def test_a_changed_rule_is_evaluated_at_once(alert_workspace: AlertWorkspace) -> None:
    """A rule that was changed by a PUT is evaluated in the next run, before its due time."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    raised = build_rule(condition={"column": "value", "operator": "gt", "value": 50})
    alert_workspace.catalog = build_catalog(build_entry(raised, AT, AT + timedelta(seconds=1)), version=2)
    assert await alert_workspace.run_scheduler_after(1) == [FIRING, RESOLVED]


async def test_a_disabled_connection_resolves_its_alert_at_once() -> None:
    """If a connection is disabled, its alert is resolved at once, before the rule's due time."""
    entry = build_entry(build_absence_rule(every="P1D"))
    workspace = AlertWorkspace(build_catalog(entry))
    assert await workspace.run_scheduler_after(600) == [("alert.firing", "silent")]
    workspace.catalog = build_catalog(entry, version=2, connections={})
    assert (await workspace.run_scheduler_after(1))[1:] == [("alert.resolved", "silent")]


async def test_unpublished_transitions_are_published_later(alert_workspace: AlertWorkspace) -> None:
    """If the outbox fails after a transition was stored, a later run publishes the transition once."""
    alert_workspace.queries.result = HOT
    alert_workspace.outbox.failures = 2
    assert await alert_workspace.run_scheduler_after(0) == []
    assert alert_workspace.get_status() is RuleStatus.FIRING
    alert_workspace.scheduler = alert_workspace.start_scheduler()
    assert await alert_workspace.run_scheduler_after(1) == [FIRING]
    assert await alert_workspace.run_scheduler_after(1) == [FIRING]
    assert len(alert_workspace.queries.calls) == 1
