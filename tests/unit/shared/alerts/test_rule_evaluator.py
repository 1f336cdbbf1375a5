"""Tests of storing evaluations: changed, disabled and deleted rules, and unpublished transitions."""

from datetime import timedelta

import pytest

from shared.alerts.models import RuleStatus
from shared.errors import Kind, WorkspaceError
from tests.unit.shared.alerts.environment import FIRING, HOT, RESOLVED, Plant
from tests.unit.shared.alerts.fakes import (
    AT,
    build_absence_rule,
    build_catalog,
    build_entry,
    build_rule,
)


@pytest.mark.parametrize("change", ["deleted", "disabled"])
async def test_the_end_of_a_rule_resolves_its_alerts(plant: Plant, change: str) -> None:
    """If a rule is deleted or disabled, its alerts and its error are resolved at once."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    await plant.run()
    disabled = build_entry(build_rule(enabled=False), AT, plant.time.now)
    plant.catalog = build_catalog(*([disabled] if change == "disabled" else []), version=2)
    assert (await plant.run(1))[2:] == [RESOLVED, RESOLVED]
    await plant.run(1)
    assert len(plant.outbox.events) == 4
    assert plant.store.states.keys() == ({"hot"} if change == "disabled" else set())
    assert [alert.state.value for alert in plant.store.alerts.values()] == ["resolved"]
    assert len(plant.queries.calls) == 2


async def test_a_rule_that_was_created_again_has_new_alerts(plant: Plant) -> None:
    """If a rule is deleted and created again between two runs, its old alert is resolved."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.catalog = build_catalog(build_entry(build_rule(), plant.time.now + timedelta(seconds=1)), version=2)
    assert sorted(await plant.run(2)) == [FIRING, FIRING, RESOLVED]
    assert sorted(alert.state.value for alert in plant.store.alerts.values()) == ["firing", "resolved"]


async def test_a_failing_rule_that_was_created_again_has_no_old_alerts(plant: Plant) -> None:
    """If a rule is deleted and created again, its old alert is resolved even if the new query fails."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    plant.catalog = build_catalog(build_entry(build_rule(), plant.time.now + timedelta(seconds=1)), version=2)
    assert sorted(await plant.run(2)) == [FIRING, FIRING, RESOLVED]
    assert [alert.state.value for alert in plant.store.alerts.values()] == ["resolved"]
    assert (plant.get_status(), plant.store.states["hot"].firing) == (RuleStatus.ERROR, 0)


async def test_an_acknowledgement_during_an_evaluation_is_audited(plant: Plant) -> None:
    """If appending the event of an acknowledgement fails during an evaluation, the evaluation appends it afterwards."""
    plant.queries.result = HOT
    await plant.run(0)
    [alert_id] = plant.store.alerts

    async def acknowledge_alert() -> None:
        plant.audit_log.failures = 1
        await plant.build_service().acknowledge(alert_id, "editor@t", None)
        assert plant.audit_log.events == {}

    plant.queries.gate = acknowledge_alert
    await plant.run()
    assert len(plant.audit_log.events) == 1
    assert plant.store.alerts[alert_id].acknowledged_by == "editor@t"


async def test_a_changed_rule_is_evaluated_at_once(plant: Plant) -> None:
    """A rule that was changed by a PUT is evaluated in the next run, before its due time."""
    plant.queries.result = HOT
    await plant.run(0)
    raised = build_rule(condition={"column": "value", "operator": "gt", "value": 50})
    plant.catalog = build_catalog(build_entry(raised, AT, AT + timedelta(seconds=1)), version=2)
    assert await plant.run(1) == [FIRING, RESOLVED]


async def test_a_disabled_connection_resolves_its_alert_at_once() -> None:
    """If a connection is disabled, its alert is resolved at once, before the rule's due time."""
    entry = build_entry(build_absence_rule(every="P1D"))
    plant = Plant(build_catalog(entry))
    assert await plant.run(600) == [("alert.firing", "silent")]
    plant.catalog = build_catalog(entry, version=2, connections={})
    assert (await plant.run(1))[1:] == [("alert.resolved", "silent")]


async def test_unpublished_transitions_are_published_later(plant: Plant) -> None:
    """If the outbox fails after a transition was stored, a later run publishes the transition once."""
    plant.queries.result = HOT
    plant.outbox.failures = 2
    assert await plant.run(0) == []
    assert plant.get_status() is RuleStatus.FIRING
    plant.scheduler = plant.start_scheduler()
    assert await plant.run(1) == [FIRING]
    assert await plant.run(1) == [FIRING]
    assert len(plant.queries.calls) == 1
