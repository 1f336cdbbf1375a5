"""Tests of evaluating alert rules: failing queries, and silent connections."""

import pytest

from shared.alerts.models import RuleStatus
from shared.errors import Kind, WorkspaceError
from shared.telemetry.ports import ConnectionState
from tests.unit.shared.alerts.environment import FIRING, HOT, RESOLVED, Plant
from tests.unit.shared.alerts.fakes import (
    AT,
    build_absence_rule,
    build_catalog,
    build_entry,
    build_result,
    build_rule,
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (WorkspaceError(Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "x"), "is a draft"),
        (WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "The query took too long."), "took too long"),
        (WorkspaceError(Kind.INVALID, "QUERY_INVALID", "no such column"), "no such column"),
    ],
)
async def test_a_failing_query_neither_fires_nor_resolves(plant: Plant, error: WorkspaceError, reason: str) -> None:
    """If a query fails, the rule's state is error with the reason, alerts stay, and one warning is published."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.queries.result = error
    assert await plant.run() == [FIRING, FIRING]
    assert await plant.run() == [FIRING, FIRING]
    state = plant.store.states["hot"]
    assert (state.status, reason in (state.error or ""), state.firing) == (RuleStatus.ERROR, True, 1)
    warning = list(plant.outbox.events.values())[1]
    assert (warning.severity, warning.data["severity"], warning.data["value"]) == ("warning", "warning", None)
    assert reason in warning.data["labels"]["error"]
    plant.queries.result = HOT
    assert await plant.run() == [FIRING, FIRING, RESOLVED]
    assert list(plant.outbox.events.values())[2].data["alertId"] == warning.data["alertId"]
    assert len(plant.store.alerts) == 1


async def test_a_missing_query_or_column_is_an_error(plant: Plant) -> None:
    """If a rule's query is deleted or lacks a column of the rule, the rule's state is error."""
    plant.queries.result = build_result({"other": 9.0})
    await plant.run(0)
    assert plant.store.states["hot"].error == "The query has no column 'value'."
    plant.catalog = build_catalog(build_entry(build_rule()), queries={})
    await plant.run()
    assert plant.store.states["hot"].error == "The warm query 'temperatures' does not exist."
    assert len(plant.outbox.events) == 1


async def test_silence_fires_for_each_connection() -> None:
    """An absence rule fires after a connection was silent for its time, and resolves at the next message."""
    plant = Plant(build_catalog(build_entry(build_absence_rule())))
    plant.connections.states = {"press": ConnectionState("CONNECTED", 1, AT)}
    assert await plant.run(60) == []
    assert await plant.run(300) == [("alert.firing", "silent")]
    [event] = plant.outbox.events.values()
    assert (event.data["labels"], event.connections) == ({"connection": "press"}, frozenset({"press"}))
    plant.connections.states = {"press": ConnectionState("CONNECTED", 2, plant.time.now)}
    assert await plant.run(60) == [("alert.firing", "silent"), ("alert.resolved", "silent")]
    assert plant.queries.calls == []
