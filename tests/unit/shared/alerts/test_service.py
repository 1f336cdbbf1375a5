"""Tests of the alert service for API callers: acknowledgements and trial evaluations."""

import pytest

from shared.errors import Kind, WorkspaceError
from shared.warm_queries.results import QueryResult
from tests.unit.shared.alerts.environment import COLD, FIRING, HOT, Plant
from tests.unit.shared.alerts.fakes import (
    build_catalog,
    build_entry,
    build_result,
    build_rule,
)


async def test_an_acknowledgement_of_an_alert_is_audited_once(alert_environment: Plant) -> None:
    """An acknowledgement appends one audit event to the scope `alerts`; repeating it only returns the alert."""
    alert_environment.queries.result = HOT
    await alert_environment.run_scheduler_after(0)
    service = alert_environment.build_service()
    [alert_id] = alert_environment.store.alerts
    first = await service.acknowledge(alert_id, "editor@t", "seen")
    again = await service.acknowledge(alert_id, "other@t", "me too")
    assert (first.acknowledged_by, again.acknowledged_by, again.comment) == ("editor@t", "editor@t", "seen")
    [event] = alert_environment.audit_log.events.values()
    assert (event["Target"], event["ScopeKey"], event["UserID"]) == ("DomainEvents", "alerts", "editor@t")
    assert (event["ActionType"], event["EntityID"]) == ("Alert.Acknowledged", alert_id)
    await alert_environment.run_scheduler_after()
    assert alert_environment.store.alerts[alert_id].acknowledged_by == "editor@t"
    assert alert_environment.outbox.list_transitions() == [FIRING]


async def test_an_acknowledgement_survives_a_crash_before_its_event(alert_environment: Plant) -> None:
    """If the audit log fails, the acknowledgement is still stored, and the background job appends its event."""
    alert_environment.queries.result = HOT
    await alert_environment.run_scheduler_after(0)
    [alert_id] = alert_environment.store.alerts
    alert_environment.audit_log.failures = 1
    await alert_environment.build_service().acknowledge(alert_id, "editor@t", None)
    assert alert_environment.audit_log.events == {}
    alert_environment.scheduler = alert_environment.start_scheduler()
    await alert_environment.run_scheduler_after(1)
    assert len(alert_environment.audit_log.events) == 1
    await alert_environment.run_scheduler_after(60)
    assert len(alert_environment.audit_log.events) == 1


async def test_an_acknowledgement_without_provenance_is_stored(alert_environment: Plant) -> None:
    """Without an audit log, an acknowledgement is stored and a warning is logged."""
    alert_environment.audited = False
    alert_environment.queries.result = HOT
    await alert_environment.run_scheduler_after(0)
    [alert_id] = alert_environment.store.alerts
    await alert_environment.build_service().acknowledge(alert_id, "editor@t", None)
    assert (alert_environment.store.alerts[alert_id].acknowledged_by, alert_environment.audit_log.events) == (
        "editor@t",
        {},
    )


@pytest.mark.parametrize(("rows", "code"), [(COLD, "ALERT_RESOLVED"), (HOT, "ALERT_NOT_FOUND")])
async def test_only_active_alerts_can_be_acknowledged(alert_environment: Plant, rows: QueryResult, code: str) -> None:
    """Acknowledging a resolved or unknown alert is an error."""
    alert_environment.queries.result = HOT
    await alert_environment.run_scheduler_after(0)
    alert_environment.queries.result = rows
    await alert_environment.run_scheduler_after()
    alert_id = "unknown" if code == "ALERT_NOT_FOUND" else next(iter(alert_environment.store.alerts))
    with pytest.raises(WorkspaceError) as raised:
        await alert_environment.build_service().acknowledge(alert_id, "editor@t", None)
    assert raised.value.code == code


async def test_a_trial_of_a_rule_changes_nothing(alert_environment: Plant) -> None:
    """A trial evaluation shows which alerts would fire, also of a disabled rule; it stores and publishes nothing."""
    entry = build_entry(build_rule(enabled=False, groupBy=["device"]))
    alert_environment.catalog = build_catalog(entry)
    alert_environment.queries.result = build_result({"device": "a", "value": 9.0}, {"device": "b", "value": 1.0})
    trial = await alert_environment.build_service().try_rule(entry)
    assert [(dict(one.labels), one.value, one.would_fire) for one in trial.alerts] == [
        ({"device": "a"}, 9.0, True),
        ({"device": "b"}, 1.0, False),
    ]
    assert (trial.rows, trial.error) == (2, None)
    assert (alert_environment.store.states, alert_environment.store.alerts, alert_environment.outbox.events) == (
        {},
        {},
        {},
    )
    alert_environment.queries.result = WorkspaceError(Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "x")
    failed = await alert_environment.build_service().try_rule(entry)
    assert (failed.alerts, failed.rows) == ((), 0)
    assert "is a draft" in (failed.error or "")


async def test_a_trial_of_a_rule_considers_its_hold_time() -> None:
    """In a trial of a rule with `for`, an alert would fire only if it has been pending for this time."""
    entry = build_entry(build_rule(**{"for": "PT1M"}))
    plant = Plant(build_catalog(entry))
    plant.queries.result = HOT
    service = plant.build_service()
    assert [one.would_fire for one in (await service.try_rule(entry)).alerts] == [False]
    await plant.run_scheduler_after(0)
    plant.time.advance(60)
    assert [one.would_fire for one in (await service.try_rule(entry)).alerts] == [True]
