"""Tests of the checks of an alert rule against its query."""

from typing import Any

import pytest

from shared.alerts.rule_checks import find_query_errors
from shared.catalog.models import WarmQuery
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.ports import Column
from tests.unit.shared.alerts.fakes import build_rule

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

    async def resolve_or_error(self, _: WarmQuery) -> tuple[Column, ...] | WorkspaceError:
        """Return the columns, or raise the error, that the test has set."""
        return self.result


async def find_errors(result: Any = COLUMNS, **changes: Any) -> list[str]:
    """Check an alert rule; return its invalid fields."""
    return [error.field for error in await find_query_errors(build_rule(**changes), QUERY, Columns(result))]  # type: ignore[arg-type]


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
    """If a rule has a parameter or column that its query lacks, this field is reported."""
    assert await find_errors(**changes) == fields


async def test_a_misspelt_column_gets_a_suggestion() -> None:
    """The error about an unknown column suggests the most similar column, or lists all columns."""
    rule = build_rule(condition={"column": "valu", "operator": "gt", "value": 1}, groupBy=["zzzzzzzz"])
    near, far = await find_query_errors(rule, QUERY, Columns((Column("value", "real"),)))  # type: ignore[arg-type]
    assert "did you mean `value`?" in near.message
    assert "its columns are value" in far.message


async def test_a_query_that_the_engine_rejects_is_an_error_of_the_rule() -> None:
    """If the engine rejects the query, this is an error of the rule; if the engine fails, the error is raised."""
    assert await find_errors(WorkspaceError(Kind.INVALID, "KQL_INVALID", "no such table")) == ["query"]
    with pytest.raises(WorkspaceError):
        await find_errors(DOWN)


async def test_errors_are_reported_without_the_engine() -> None:
    """If the engine does not respond, errors that do not concern columns are still reported."""
    assert await find_errors(DOWN, parameters={"devices": "rig-1"}) == ["parameters.devices"]
