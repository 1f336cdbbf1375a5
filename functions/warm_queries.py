"""HTTP operations that run warm queries and ad-hoc queries."""

import re
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, StrictStr, WithJsonSchema

from functions.query_reply import build_query_reply
from functions.replies import warm_queries as replies
from shared.auth.rights import AccessRight
from shared.catalog.kql_restrictions import check_query
from shared.catalog.parameters import DURATION_PATTERN, MAX_DURATION, parse_duration
from shared.errors import FieldError, ValidationErrors, invalid_fields
from shared.http.messages import Reply, Request
from shared.http.operations import Call, Group
from shared.warm_queries.service import DEFAULT_LIMIT, MAX_LIMIT
from shared.wiring import services
from shared.worker_threads import run_in_worker

GROUP = Group("warm-queries")
MAX_TIME_RANGE = timedelta(days=366)
PARAMETER_PREFIX = "p."


def _parse_time_range(text: Any) -> timedelta:
    if not isinstance(text, str):
        raise ValueError("must be an ISO 8601 duration")  # noqa: TRY004  pydantic catches ValueError
    duration = parse_duration(text)
    if not timedelta(0) < duration <= MAX_TIME_RANGE:
        raise ValueError("must be positive and at most 366 days")
    return duration


def _check_limit(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_LIMIT:
        raise ValueError(f"must be a whole number from 1 to {MAX_LIMIT}")
    return value


def _parse_limit(text: str) -> int:
    return _check_limit(int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None)


DURATION: Final = {
    "type": "string",
    "pattern": rf"^\+?{DURATION_PATTERN}$",
    "maxLength": MAX_DURATION,
    "examples": ["PT15M", "P1DT12H", "P7D"],
}
"""Schema of all accepted forms, which are more than the format ``duration`` allows; it cannot express the maximum."""
_ROWS: Final = {"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_LIMIT}

TimeRange = Annotated[timedelta | None, BeforeValidator(_parse_time_range), WithJsonSchema(DURATION)]
Limit = Annotated[int, BeforeValidator(_check_limit), WithJsonSchema(_ROWS)]
LimitText = Annotated[int, BeforeValidator(_parse_limit), WithJsonSchema(_ROWS)]


class ExecuteQuery(BaseModel):
    """Time range and limit of a query."""

    time_range: TimeRange = Field(
        None,
        alias="timeRange",
        description="ISO 8601 duration, at most P366D; only rows within this duration before now.",
    )
    limit: LimitText = Field(DEFAULT_LIMIT, description="Maximum number of rows, 1 to 10000.")


class AdHocBody(BaseModel):
    """Request body of an ad-hoc query."""

    query: StrictStr = Field(validation_alias=AliasChoices("query", "Query"), description="KQL.")
    time_range: TimeRange = Field(
        None,
        alias="timeRange",
        description="ISO 8601 duration, at most P366D; only rows within this duration before now.",
    )
    limit: Limit = Field(DEFAULT_LIMIT, description="Maximum number of rows, 1 to 10000.")


@GROUP.endpoint(
    "GET",
    "oi-api/warm-queries/{*lookup}",
    right=AccessRight.WARM_QUERY_EXECUTE,
    query=ExecuteQuery,
    extra_parameters=(f"{PARAMETER_PREFIX}*",),
    docs=replies.EXECUTED,
)
async def execute_warm_query(call: Call[ExecuteQuery]) -> Reply:
    """Run an approved warm query by its lookup key or API path."""
    return await _execute_query(call, call.path["lookup"])


@GROUP.endpoint(
    "GET",
    "api/workspaces/explorer/warm-queries/{queryId}",
    right=AccessRight.WARM_QUERY_EXECUTE,
    query=ExecuteQuery,
    extra_parameters=(f"{PARAMETER_PREFIX}*",),
    docs=replies.EXECUTED,
)
async def execute_warm_query_by_id(call: Call[ExecuteQuery]) -> Reply:
    """Run an approved warm query by its query id."""
    return await _execute_query(call, call.path["queryId"])


async def _check_kql(call: Call[Any, AdHocBody], faults: ValidationErrors) -> None:
    if faults.has_valid("query", "Query"):
        with faults.collect():
            await run_in_worker(len(call.body.query), check_query, call.body.query)


@GROUP.endpoint(
    "POST",
    "oi-api/warm-queries",
    right=AccessRight.WARM_QUERY_AD_HOC,
    body=AdHocBody,
    check=_check_kql,
    docs=replies.AD_HOC,
)
async def execute_ad_hoc(call: Call[Any, AdHocBody]) -> Reply:
    """Run an ad-hoc KQL query."""
    body = call.body
    run = await services().queries.service.execute_ad_hoc(body.query, body.time_range, body.limit)
    return await build_query_reply(call.request, run)


async def _execute_query(call: Call[ExecuteQuery], lookup: str) -> Reply:
    arguments = _parse_arguments(call.request)
    run = await services().queries.service.execute(lookup, call.query.time_range, call.query.limit, arguments)
    return await build_query_reply(call.request, run)


def _parse_arguments(request: Request) -> dict[str, str]:
    pairs = [(name, value) for name, value in request.query_pairs if name.startswith(PARAMETER_PREFIX)]
    arguments = {name.removeprefix(PARAMETER_PREFIX): value for name, value in pairs}
    if len(arguments) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise invalid_fields([FieldError(name, "is repeated; send it once") for name in repeated])
    return arguments
