"""Tests of evaluating alert rules, and of checking a rule against its warm query."""

from datetime import timedelta
from typing import Any

import pytest

from shared.alerts.evaluation import list_rule_errors_against_query
from shared.alerts.models import RuleStatus
from shared.catalog.models import AlertRule, WarmQuery
from shared.errors import FieldError, Kind, WorkspaceError
from shared.telemetry.ports import ConnectionState
from shared.warm_queries.ports import Column
from tests.unit.shared.alerts.environment import FIRING, HOT, RESOLVED, AlertWorkspace
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
async def test_a_failing_query_neither_fires_nor_resolves_alerts(
    alert_workspace: AlertWorkspace, error: WorkspaceError, reason: str
) -> None:
    """If a query fails, the rule's state is error with the reason, alerts stay, and one warning is published."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.result = error
    assert await alert_workspace.run_scheduler_after() == [FIRING, FIRING]
    assert await alert_workspace.run_scheduler_after() == [FIRING, FIRING]
    state = alert_workspace.store.states["hot"]
    assert (state.status, reason in (state.error or ""), state.firing) == (RuleStatus.ERROR, True, 1)
    warning = list(alert_workspace.outbox.events.values())[1]
    assert (warning.severity, warning.data["severity"], warning.data["value"]) == ("warning", "warning", None)
    assert reason in warning.data["labels"]["error"]
    alert_workspace.queries.result = HOT
    assert await alert_workspace.run_scheduler_after() == [FIRING, FIRING, RESOLVED]
    assert list(alert_workspace.outbox.events.values())[2].data["alertId"] == warning.data["alertId"]
    assert len(alert_workspace.store.alerts) == 1


async def test_stored_durations_with_fractions_of_a_microsecond_are_evaluated() -> None:
    """A rule that an earlier version stored with a fraction of a microsecond is evaluated with rounded durations."""
    fraction = "PT33.3333333S"
    rules = build_rule(every=fraction, timeRange=fraction), build_absence_rule(every=fraction, after=fraction)
    workspace = AlertWorkspace(build_catalog(*map(build_entry, rules)))
    await workspace.run_scheduler_after(0)
    [(_, (time_range, _))] = workspace.queries.calls
    assert time_range == timedelta(seconds=33, microseconds=333_333)
    assert (workspace.get_status("hot"), workspace.get_status("silent")) == (RuleStatus.OK, RuleStatus.OK)


async def test_a_missing_query_or_column_is_an_error_of_the_rule(alert_workspace: AlertWorkspace) -> None:
    """If a rule's query is deleted or lacks a column of the rule, the rule's state is error."""
    alert_workspace.queries.result = build_result({"other": 9.0})
    await alert_workspace.run_scheduler_after(0)
    assert alert_workspace.store.states["hot"].error == "The query has no column 'value'."
    alert_workspace.catalog = build_catalog(build_entry(build_rule()), queries={})
    await alert_workspace.run_scheduler_after()
    assert alert_workspace.store.states["hot"].error == "The warm query 'temperatures' does not exist."
    assert len(alert_workspace.outbox.events) == 1


async def test_an_absence_rule_fires_for_each_silent_connection() -> None:
    """An absence rule fires after a connection was silent for the rule's time, and resolves at the next message."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_absence_rule())))
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 1, AT)}
    assert await workspace.run_scheduler_after(60) == []
    assert await workspace.run_scheduler_after(300) == [("alert.firing", "silent")]
    [event] = workspace.outbox.events.values()
    assert (event.data["labels"], event.connections) == ({"connection": "press"}, frozenset({"press"}))
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 2, workspace.time.now)}
    assert await workspace.run_scheduler_after(60) == [("alert.firing", "silent"), ("alert.resolved", "silent")]
    assert workspace.queries.calls == []


QUERY = WarmQuery.model_validate(
    {
        "lookup": "temperatures",
        "name": "T",
        "surface": "hall",
        "kql": "Telemetry | where Timestamp > _startTime | project value, device",
        "parameters": [{"name": "device", "type": "string", "default": ""}],
    }
)


COLUMNS = (Column("value", "real"), Column("device", "string"))
DOWN = WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "down")


class Columns:
    """Fake source of a query's columns that returns or raises what the test has set."""

    def __init__(self, result: tuple[Column, ...] | WorkspaceError) -> None:
        self.result = result

    async def resolve_columns_or_error(self, _: WarmQuery) -> tuple[Column, ...] | WorkspaceError:
        """Return the columns, or raise the error, that the test has set."""
        return self.result


async def find_invalid_fields(result: Any = COLUMNS, **changes: Any) -> list[str]:
    """Check an alert rule against its query, and return the names of the rule's invalid fields."""
    return [error.field for error in await find_errors(build_rule(**changes), result)]


async def find_errors(
    rule: AlertRule, result: Any, *, query: WarmQuery = QUERY, is_query_readable: bool = True
) -> list[FieldError]:
    """Check an alert rule against its query, whose columns or error the engine returns."""
    columns: Any = Columns(result)
    return await list_rule_errors_against_query(rule, query, columns, is_query_readable=is_query_readable)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"parameters": {"device": "rig-1"}, "groupBy": ["device"]}, []),
        ({"parameters": {"devices": "rig-1"}}, ["parameters.devices"]),
        ({"parameters": {"device": 7}}, ["parameters.device"]),
        ({"condition": {"column": "valu", "operator": "gt", "value": 1}}, ["condition.column"]),
        ({"groupBy": ["device", "line"]}, ["groupBy[1]"]),
    ],
)
async def test_parameters_and_columns_must_be_those_of_the_query(changes: dict[str, Any], fields: list[str]) -> None:
    """If a rule names a parameter or column that its query lacks, the error lists the rule's field with this name."""
    assert await find_invalid_fields(**changes) == fields


async def test_a_misspelt_column_gets_a_suggestion() -> None:
    """The error about an unknown column suggests the most similar column, or lists all columns."""
    rule = build_rule(condition={"column": "valu", "operator": "gt", "value": 1}, groupBy=["zzzzzzzz"])
    near, far = await find_errors(rule, (Column("value", "real"),))
    assert "did you mean `value`?" in near.message
    assert "its columns are value" in far.message


async def test_an_undeclared_column_of_bag_unpack_gets_a_hint() -> None:
    """If the query calls ``bag_unpack``, the error about an unknown column says that the query must declare it."""
    query = QUERY.model_copy(update={"kql": "Telemetry | evaluate bag_unpack(Payload)"})
    [readable] = await find_errors(build_rule(), (Column("DeviceId", "string"),), query=query)
    assert "must declare the columns of bag_unpack" in readable.message
    [other] = await find_errors(build_rule(), (Column("DeviceId", "string"),), query=query, is_query_readable=False)
    assert other.message == "is not a column of the query"


async def test_the_errors_for_a_caller_who_may_not_read_the_query_name_nothing_of_it() -> None:
    """Without the right to read the query, errors contain no columns or parameters of it, and no engine's message."""
    rule = build_rule(condition={"column": "valu", "operator": "gt", "value": 1}, groupBy=["zzzzzzzz"])
    errors = await find_errors(rule, (Column("value", "real"),), is_query_readable=False)
    assert [(error.field, error.message) for error in errors] == [
        ("condition.column", "is not a column of the query"),
        ("groupBy[0]", "is not a column of the query"),
    ]
    [error] = await find_errors(build_rule(parameters={"devise": "a"}), COLUMNS, is_query_readable=False)
    assert (error.field, error.message) == ("parameters.devise", "is not a parameter of this query")
    rejection = WorkspaceError(Kind.INVALID, "QUERY_INVALID", "unknown column `secret`")
    [error] = await find_errors(build_rule(), rejection, is_query_readable=False)
    assert (error.field, error.message) == ("query", "the query engine rejects this query")


async def test_a_query_that_the_engine_rejects_is_an_error_of_the_rule() -> None:
    """If the engine rejects a rule's query, the rule gets an error; if the engine fails, the failure is raised."""
    assert await find_invalid_fields(WorkspaceError(Kind.INVALID, "KQL_INVALID", "no such table")) == ["query"]
    with pytest.raises(WorkspaceError):
        await find_invalid_fields(DOWN)


async def test_rule_errors_are_reported_while_the_engine_does_not_respond() -> None:
    """If the engine does not respond, errors that do not concern columns are still reported."""
    assert await find_invalid_fields(DOWN, parameters={"devices": "rig-1"}) == ["parameters.devices"]
