"""Warm queries and ad-hoc queries."""

import re
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, StrictStr, WithJsonSchema

from functions.query_reply import query_reply
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


def _time_range(text: Any) -> timedelta:
    if not isinstance(text, str):
        raise ValueError("an ISO 8601 duration is expected")  # noqa: TRY004  pydantic catches ValueError
    duration = parse_duration(text)
    if not timedelta(0) < duration <= MAX_TIME_RANGE:
        raise ValueError("must be more than nothing and at most 366 days")
    return duration


def _limit(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_LIMIT:
        raise ValueError(f"a whole number from 1 to {MAX_LIMIT} is expected")
    return value


def _limit_text(text: str) -> int:
    return _limit(int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None)


DURATION: Final = {
    "type": "string",
    "pattern": rf"^\+?{DURATION_PATTERN}$",
    "maxLength": MAX_DURATION,
    "examples": ["PT15M", "P1DT12H", "P7D"],
}
"""Every form that is read, more than the format ``duration`` has; how long a time it may be, no pattern can say."""
_ROWS: Final = {"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_LIMIT}

TimeRange = Annotated[timedelta | None, BeforeValidator(_time_range), WithJsonSchema(DURATION)]
Limit = Annotated[int, BeforeValidator(_limit), WithJsonSchema(_ROWS)]
LimitText = Annotated[int, BeforeValidator(_limit_text), WithJsonSchema(_ROWS)]


class ExecuteQuery(BaseModel):
    """How much of a query's answer is wanted."""

    time_range: TimeRange = Field(
        None, alias="timeRange", description="ISO 8601 duration: only rows of the last so much time, at most P366D."
    )
    limit: LimitText = Field(DEFAULT_LIMIT, description="Most rows to return, 1 to 10000.")


class AdHocBody(BaseModel):
    """A caller's own query."""

    query: StrictStr = Field(validation_alias=AliasChoices("query", "Query"), description="KQL.")
    time_range: TimeRange = Field(None, alias="timeRange", description="As on a warm query.")
    limit: Limit = Field(DEFAULT_LIMIT, description="As on a warm query.")


@GROUP.endpoint(
    "GET",
    "oi-api/warm-queries/{*lookup}",
    right=AccessRight.WARM_QUERY_EXECUTE,
    query=ExecuteQuery,
    further=(f"{PARAMETER_PREFIX}*",),
    docs=replies.EXECUTED,
)
async def execute_warm_query(call: Call[ExecuteQuery]) -> Reply:
    """Run an approved query by its lookup key or API path."""
    return await _execute(call, call.path["lookup"])


@GROUP.endpoint(
    "GET",
    "api/workspaces/explorer/warm-queries/{queryId}",
    right=AccessRight.WARM_QUERY_EXECUTE,
    query=ExecuteQuery,
    further=(f"{PARAMETER_PREFIX}*",),
    docs=replies.EXECUTED,
)
async def execute_warm_query_by_id(call: Call[ExecuteQuery]) -> Reply:
    """Run an approved query at the address that it got when it was made."""
    return await _execute(call, call.path["queryId"])


async def _sound_query(call: Call[Any, AdHocBody], faults: ValidationErrors) -> None:
    if faults.readable("query", "Query"):
        with faults.gathered():
            await run_in_worker(len(call.body.query), check_query, call.body.query)


@GROUP.endpoint(
    "POST",
    "oi-api/warm-queries",
    right=AccessRight.WARM_QUERY_AD_HOC,
    body=AdHocBody,
    check=_sound_query,
    docs=replies.AD_HOC,
)
async def execute_ad_hoc(call: Call[Any, AdHocBody]) -> Reply:
    """Run the caller's own query."""
    wanted = call.body
    run = await services().warm_queries.execute_ad_hoc(wanted.query, wanted.time_range, wanted.limit)
    return await query_reply(call.request, run)


async def _execute(call: Call[ExecuteQuery], lookup: str) -> Reply:
    wanted = call.query
    arguments = _arguments(call.request)
    run = await services().warm_queries.execute(lookup, wanted.time_range, wanted.limit, arguments)
    return await query_reply(call.request, run)


def _arguments(request: Request) -> dict[str, str]:
    given = [(name, value) for name, value in request.query_pairs() if name.startswith(PARAMETER_PREFIX)]
    arguments = {name.removeprefix(PARAMETER_PREFIX): value for name, value in given}
    if len(arguments) != len(given):
        names = [name for name, _ in given]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise invalid_fields([FieldError(name, "is given more than once") for name in twice])
    return arguments
