"""HTTP operations that run warm queries (saved, approved KQL queries) and ad-hoc queries.

This module is separate from ``mcp_queries`` because it is a different endpoint group.
"""

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, StrictStr, WithJsonSchema

from functions.conditions import parse_if_none_match
from functions.query_reply import RowFormat, build_query_reply, is_reply_columnar
from functions.reply_docs import warm_queries as replies
from shared.auth.rights import AccessRight
from shared.catalog.durations import DURATION_PATTERN, MAX_DURATION
from shared.catalog.kql_restrictions import check_query_restrictions
from shared.errors import ValidationErrors
from shared.http.deprecations import FORMER_NAMES, DeprecatedAlias, ModelWithAliases
from shared.http.messages import Reply, Request
from shared.http.operations import Call, Group
from shared.warm_queries.service import DEFAULT_LIMIT, MAX_LIMIT
from shared.warm_queries.time_ranges import (
    TimeRange,
    parse_rfc3339_or_milliseconds,
    parse_time_range_duration,
    select_time_range,
)
from shared.wiring import services

GROUP = Group("warm-queries")
PARAMETER_PREFIX = "p."


def _validate_limit(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_LIMIT:
        raise ValueError(f"must be a whole number from 1 to {MAX_LIMIT}")
    return value


def _parse_limit(text: str) -> int:
    return _validate_limit(int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None)


DURATION: Final = {
    "type": "string",
    "pattern": rf"^\+?{DURATION_PATTERN}$",
    "maxLength": MAX_DURATION,
    "examples": ["PT15M", "P1DT12H", "P7D"],
}
"""JSON schema of a duration: accepts more forms than the format ``duration``; it cannot express the maximum."""
_ROWS: Final = {"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_LIMIT}

TIME: Final = {
    "anyOf": [
        {"type": "string", "format": "date-time", "examples": ["2026-01-05T08:00:00Z"]},
        {"type": "integer", "format": "int64", "minimum": 0, "examples": [1767600000000]},
    ]
}
Duration = Annotated[timedelta | None, BeforeValidator(parse_time_range_duration), WithJsonSchema(DURATION)]
Time = Annotated[datetime | None, BeforeValidator(parse_rfc3339_or_milliseconds), WithJsonSchema(TIME)]
Limit = Annotated[int, BeforeValidator(_validate_limit), WithJsonSchema(_ROWS)]
LimitText = Annotated[int, BeforeValidator(_parse_limit), WithJsonSchema(_ROWS)]


class TimeSelection(BaseModel):
    """Query parameters that limit the time range of a query: a duration before now, or two times."""

    time_range: Duration = Field(
        None,
        alias="timeRange",
        description="ISO 8601 duration, at most P366D; only rows within this duration before now.",
    )
    start: Time = Field(
        None,
        alias="from",
        description="Only rows from this time on: RFC 3339 text, or milliseconds since 1970. Not with `timeRange`.",
    )
    end: Time = Field(
        None,
        alias="to",
        description="Only rows before this time, at most 366 days after `from`: RFC 3339 text, or milliseconds since "
        "1970. Requires `from`.",
    )

    def select_time_range(self, now: datetime) -> TimeRange | None:
        """Return the selected time range; None for all times. Raise INVALID if the fields contradict each other."""
        return select_time_range(self.time_range, self.start, self.end, now)


class ExecuteQuery(TimeSelection):
    """Parameters of a query's execution: time range, and maximum number of rows."""

    limit: LimitText = Field(DEFAULT_LIMIT, description="Maximum number of rows, 1 to 10000.")


class FormatQuery(BaseModel):
    """Query parameter with the format of the reply."""

    format: RowFormat | None = Field(None, description="Format of the reply; has priority over the header Accept.")


class ExecuteRestQuery(ExecuteQuery, FormatQuery):
    """URL query parameters of the operation that runs a warm query."""


class AdHocBody(TimeSelection, ModelWithAliases):
    """Request body of an ad-hoc query."""

    query: Annotated[StrictStr, DeprecatedAlias("Query", FORMER_NAMES)] = Field(
        validation_alias=AliasChoices("query", "Query"), description="KQL."
    )
    limit: Limit = Field(DEFAULT_LIMIT, description="Maximum number of rows, 1 to 10000.")


async def _check_execute_query(call: Call[ExecuteRestQuery], faults: ValidationErrors) -> None:
    _check_time_selection(call.query, faults)
    # Otherwise the handler parses the header; parsing thousands of ETags twice would block the event loop for too long.
    if faults:
        with faults.collect_raised_error():
            parse_if_none_match(call.request)


def _check_time_selection(selection: TimeSelection, faults: ValidationErrors) -> None:
    if faults.has_valid_fields("timeRange", "from", "to"):
        with faults.collect_raised_error():
            selection.select_time_range(services().runtime.now())


@GROUP.endpoint(
    "GET",
    "oi-api/warm-queries/{*lookup}",
    right=AccessRight.WARM_QUERY_EXECUTE,
    query=ExecuteRestQuery,
    extra_parameters=(f"{PARAMETER_PREFIX}*",),
    check=_check_execute_query,
    docs=replies.EXECUTED,
)
async def execute_warm_query(call: Call[ExecuteRestQuery]) -> Reply:
    """Run an approved warm query by its lookup key or API path.

    A warm query is a saved KQL query. Its lookup key is its short name in URLs.
    """
    return await _execute_query(call, call.path["lookup"])


@GROUP.endpoint(
    "GET",
    "api/workspaces/explorer/warm-queries/{queryId}",
    right=AccessRight.WARM_QUERY_EXECUTE,
    query=ExecuteRestQuery,
    extra_parameters=(f"{PARAMETER_PREFIX}*",),
    check=_check_execute_query,
    docs=replies.EXECUTED,
)
async def execute_warm_query_by_id(call: Call[ExecuteRestQuery]) -> Reply:
    """Run an approved warm query by its query id.

    A warm query is a saved KQL query.
    """
    return await _execute_query(call, call.path["queryId"])


async def _check_ad_hoc_query(call: Call[FormatQuery, AdHocBody], faults: ValidationErrors) -> None:
    _check_time_selection(call.body, faults)
    if faults.has_valid_fields("query", "Query"):
        with faults.collect_raised_error():
            await services().runtime.run_in_thread_if_large(
                len(call.body.query), check_query_restrictions, call.body.query
            )


@GROUP.endpoint(
    "POST",
    "oi-api/warm-queries",
    right=AccessRight.WARM_QUERY_AD_HOC,
    query=FormatQuery,
    body=AdHocBody,
    check=_check_ad_hoc_query,
    docs=replies.AD_HOC,
)
async def execute_ad_hoc(call: Call[FormatQuery, AdHocBody]) -> Reply:
    """Run an ad-hoc KQL query."""
    body = call.body
    time_range = body.select_time_range(services().runtime.now())
    by_column = is_reply_columnar(call.request, call.query.format)
    run = await services().queries.service.execute_ad_hoc(
        body.query, time_range, body.limit, allows_column_values=by_column
    )
    return await build_query_reply(call.request, run, call.query.format)


async def _execute_query(call: Call[ExecuteRestQuery], lookup: str) -> Reply:
    condition = parse_if_none_match(call.request)
    arguments, repeated = _parse_query_arguments(call.request)
    time_range = call.query.select_time_range(services().runtime.now())
    by_column = is_reply_columnar(call.request, call.query.format)
    run = await services().queries.service.execute(
        lookup, time_range, call.query.limit, arguments, repeated_names=repeated, allows_column_values=by_column
    )
    return await build_query_reply(call.request, run, call.query.format, condition)


class _QueryArguments(NamedTuple):
    """Arguments of a query by parameter name, and the names that the query string contains repeatedly."""

    values: dict[str, str]
    repeated_names: set[str]


def _parse_query_arguments(request: Request) -> _QueryArguments:
    """Parse the query parameters ``p.<name>`` of a request."""
    arguments: dict[str, str] = {}
    repeated: set[str] = set()
    for field, value in request.query_pairs:
        if field.startswith(PARAMETER_PREFIX):
            name = field.removeprefix(PARAMETER_PREFIX)
            if name in arguments:
                repeated.add(name)
            arguments[name] = value
    return _QueryArguments(arguments, repeated)
