"""Tests of the alert service for API callers: acknowledgements and trial evaluations."""

import pytest

from shared.errors import Kind, WorkspaceError
from shared.warm_queries.results import QueryResult
from tests.unit.shared.alerts.environment import COLD, FIRING, HOT, AlertWorkspace
from tests.unit.shared.alerts.fakes import (
    build_catalog,
    build_entry,
    build_result,
    build_rule,
)


async def test_an_acknowledgement_of_an_alert_is_audited_once(alert_workspace: AlertWorkspace) -> None:
    """An acknowledgement appends one audit event to the scope `alerts`; repeating it only returns the alert."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    service = alert_workspace.build_service()
    [alert_id] = alert_workspace.store.alerts
    first = await service.acknowledge(alert_id, "editor@t", "seen")
    again = await service.acknowledge(alert_id, "other@t", "me too")
    assert (first.acknowledged_by, again.acknowledged_by, again.comment) == ("editor@t", "editor@t", "seen")
    [event] = alert_workspace.audit_log.events.values()
    assert (event["Target"], event["ScopeKey"], event["UserID"]) == ("DomainEvents", "alerts", "editor@t")
    assert (event["ActionType"], event["EntityID"]) == ("Alert.Acknowledged", alert_id)
    await alert_workspace.run_scheduler_after()
    assert alert_workspace.store.alerts[alert_id].acknowledged_by == "editor@t"
    assert alert_workspace.outbox.list_transitions() == [FIRING]


async def test_an_acknowledgement_survives_a_crash_before_its_event(alert_workspace: AlertWorkspace) -> None:
    """If the audit log fails, the acknowledgement is still stored, and the background job appends its event.

    The event is also appended if provenance was removed after the acknowledgement.
    """
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    [alert_id] = alert_workspace.store.alerts
    alert_workspace.audit_log.failures = 1
    await alert_workspace.build_service().acknowledge(alert_id, "editor@t", None)
    assert alert_workspace.audit_log.events == {}
    alert_workspace.audited = False
    alert_workspace.scheduler = alert_workspace.start_scheduler()
    await alert_workspace.run_scheduler_after(1)
    assert len(alert_workspace.audit_log.events) == 1
    await alert_workspace.run_scheduler_after(60)
    assert len(alert_workspace.audit_log.events) == 1


async def test_an_acknowledgement_without_provenance_is_stored(alert_workspace: AlertWorkspace) -> None:
    """Without an audit log, an acknowledgement is stored, but not audited, also if provenance is added later."""
    alert_workspace.audited = False
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    [alert_id] = alert_workspace.store.alerts
    await alert_workspace.build_service().acknowledge(alert_id, "editor@t", None)
    assert alert_workspace.store.alerts[alert_id].marks == ()
    alert_workspace.audited = True
    await alert_workspace.run_scheduler_after(60)
    assert (alert_workspace.store.alerts[alert_id].acknowledged_by, alert_workspace.audit_log.events) == (
        "editor@t",
        {},
    )


@pytest.mark.parametrize(("rows", "code"), [(COLD, "ALERT_RESOLVED"), (HOT, "ALERT_NOT_FOUND")])
async def test_only_active_alerts_can_be_acknowledged(
    alert_workspace: AlertWorkspace, rows: QueryResult, code: str
) -> None:
    """Acknowledging a resolved or unknown alert is rejected."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.result = rows
    await alert_workspace.run_scheduler_after()
    alert_id = "unknown" if code == "ALERT_NOT_FOUND" else next(iter(alert_workspace.store.alerts))
    with pytest.raises(WorkspaceError) as raised:
        await alert_workspace.build_service().acknowledge(alert_id, "editor@t", None)
    assert raised.value.code == code


async def test_a_trial_of_a_rule_changes_nothing(alert_workspace: AlertWorkspace) -> None:
    """A trial evaluation of a rule shows which alerts would fire, even if the rule is disabled; it changes nothing."""
    entry = build_entry(build_rule(enabled=False, groupBy=["device"]))
    alert_workspace.catalog = build_catalog(entry)
    alert_workspace.queries.result = build_result({"device": "a", "value": 9.0}, {"device": "b", "value": 1.0})
    trial = await alert_workspace.build_service().run_trial_evaluation(entry)
    assert [(dict(one.labels), one.value, one.would_fire) for one in trial.alerts] == [
        ({"device": "a"}, 9.0, True),
        ({"device": "b"}, 1.0, False),
    ]
    assert (trial.rows, trial.error) == (2, None)
    assert (alert_workspace.store.states, alert_workspace.store.alerts, alert_workspace.outbox.events) == (
        {},
        {},
        {},
    )
    alert_workspace.queries.result = WorkspaceError(Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "x")
    failed = await alert_workspace.build_service().run_trial_evaluation(entry)
    assert (failed.alerts, failed.rows) == ((), 0)
    assert "is a draft" in (failed.error or "")


async def test_a_trial_of_a_rule_considers_its_hold_time() -> None:
    """In a trial of a rule with `for`, an alert would fire only if it has been pending for this time."""
    entry = build_entry(build_rule(**{"for": "PT1M"}))
    workspace = AlertWorkspace(build_catalog(entry))
    workspace.queries.result = HOT
    service = workspace.build_service()
    assert [one.would_fire for one in (await service.run_trial_evaluation(entry)).alerts] == [False]
    await workspace.run_scheduler_after(0)
    workspace.time.advance(60)
    assert [one.would_fire for one in (await service.run_trial_evaluation(entry)).alerts] == [True]
