"""MCP tools that run warm queries (saved KQL queries) and read the newest telemetry messages.

One tool runs any query. In addition, each approved query has its own tool, with the query's parameters as arguments.

This module is separate from ``mcp`` because it is imported only at the first MCP request.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr

from functions.mcp_arguments import MESSAGES, QUERY_ARGUMENTS, ROWS, add_argument_descriptions, build_argument_schema
from functions.mcp_tools import build_output_schema
from functions.query_reply import build_query_reply
from functions.warm_queries import ExecuteQuery, Limit
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.administration import build_connection_not_found_error, build_surface_not_found_error
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.snapshot import Catalog
from shared.catalog.unique_names import build_unique_names_by_lookup
from shared.errors import WorkspaceError
from shared.http.messages import Request
from shared.http.operations import Operation
from shared.http.validation import validate_with_model
from shared.mcp_server.capabilities import (
    MAX_RESULT_CHARACTERS,
    Run,
    Schema,
    Tool,
    ToolResult,
    build_result_too_large_error,
)
from shared.openapi.generated_operations import must_send_parameter
from shared.openapi.schemas import build_schema_with_definitions
from shared.validation.names import find_nearest_names, format_nearest_names_suggestion
from shared.warm_queries.ports import EngineQuery
from shared.warm_queries.results import to_row_objects
from shared.warm_queries.service import DEFAULT_LIMIT
from shared.wiring import services

_RESERVED: Final = ("timeRange", "from", "to", "limit")
"""Names of the arguments of every query tool.

A declared parameter of a query with such a name becomes the argument ``p_<name>``, or ``p_p_<name>`` if the query also
declares ``p_<name>``.
"""
_GENERAL: Final = "run_warm_query"
"""Name of the tool that runs any query."""

_RESULT: Final[Schema] = {
    "type": "object",
    "properties": {
        "results": {"type": "array", "items": {"type": "object"}},
        "columns": {"type": "array", "items": {"type": "object"}},
        "rowCount": {"type": "integer"},
        "truncated": {"type": "boolean"},
    },
}
"""Short schema of the result of an approved query's tool; the tool that runs any query has the complete schema."""

_TIMEOUT_SECONDS: Final = 20
_KQL: Final = """declare query_parameters(connections:dynamic, window:timespan);
Telemetry
| where ConnectionLookup in (connections) and Timestamp between (ago(window) .. now())
| top 1000 by Timestamp desc
| project Timestamp, ConnectionLookup, DeviceId, MessageId, Payload"""


class QueryArguments(ExecuteQuery):
    """Time range and limit of a query; the limit is a JSON number, not a text."""

    limit: Limit = Field(DEFAULT_LIMIT, description="Maximum number of rows, 1 to 10000.")


class RunArguments(QueryArguments):
    """Arguments of the tool that runs any warm query."""

    lookup: Annotated[StrictStr, Field(min_length=1, description="Lookup key or API path of an approved query.")]
    parameters: dict[str, Any] = Field({}, description="Values of declared parameters by name.")


class _ToolNames:
    """Names of the MCP tools of approved queries, cached for one catalog."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._names: Mapping[str, WarmQuery] = {}

    def map_queries_by_tool_name(self, catalog: Catalog) -> Mapping[str, WarmQuery]:
        """Return the approved queries by the names of their tools."""
        if catalog is not self._catalog:
            approved = {key: stored for key, stored in catalog.queries.items() if stored.value.approval is not None}
            # Drafts have names as well, so that an approval does not change the name of another tool.
            names = build_unique_names_by_lookup(catalog.queries, "warm_query_")
            self._names = {names[lookup]: stored.value for lookup, stored in approved.items()}
            self._catalog = catalog
        return self._names


_NAMES: Final = _ToolNames()


def build_query_tools(execute_operation: Operation, catalog: Catalog) -> dict[str, Callable[[], Tool]]:
    """Return the functions that build the MCP tools for queries, by name of the tool.

    One tool runs any query, and each approved query has its own tool.

    Args:
        execute_operation: HTTP operation that runs warm queries; its reply determines the output schema of the tool
            that runs any query.
        catalog: catalog of the workspace.
    """
    builders = {
        name: partial(_build_approved_query_tool, name, query)
        for name, query in _NAMES.map_queries_by_tool_name(catalog).items()
    }
    return {_GENERAL: partial(_build_tool_that_runs_any_query, execute_operation), **builders}


def _build_tool_that_runs_any_query(execute_operation: Operation) -> Tool:
    async def run_any_query(arguments: Mapping[str, Any]) -> ToolResult:
        parsed = validate_with_model(RunArguments, _select_non_null_arguments(arguments))
        return await _run_query(parsed.lookup, parsed, parsed.parameters, "parameters.{}".format)

    return Tool(
        _GENERAL,
        "Run a warm query",
        "Run an approved warm query by its lookup or API path. Pass its declared parameters under `parameters`.",
        add_argument_descriptions(
            build_schema_with_definitions(RunArguments, "validation"),
            lookup="Lookup or API path of an approved query, for example pressure-5m.",
            limit=ROWS,
        ),
        build_output_schema(execute_operation),
        run_any_query,
    )


def _build_approved_query_tool(tool_name: str, query: WarmQuery) -> Tool:
    parameters = _map_parameters_by_argument_name(query.parameters)
    input_schema = {
        "type": "object",
        "properties": {
            **{argument: build_argument_schema(parameter) for argument, parameter in parameters.items()},
            **QUERY_ARGUMENTS,
        },
        "required": [argument for argument, parameter in parameters.items() if must_send_parameter(parameter)],
        "additionalProperties": False,
    }
    return Tool(
        tool_name,
        query.name,
        _build_query_tool_description(query),
        input_schema,
        _RESULT,
        _build_query_runner(query, parameters),
    )


def _map_parameters_by_argument_name(declared_parameters: Sequence[QueryParameter]) -> dict[str, QueryParameter]:
    """Return the declared parameters of a query by the names of the tool's arguments."""
    taken = {*_RESERVED, *(parameter.name for parameter in declared_parameters)}
    arguments: dict[str, QueryParameter] = {}
    for parameter in declared_parameters:
        name = parameter.name
        if name in _RESERVED:
            while name in taken:
                name = f"p_{name}"
        arguments[name] = parameter
    return arguments


def _build_query_tool_description(query: WarmQuery) -> str:
    approval = query.approval
    description = f"{query.description or query.name} (surface {query.surface})."
    if approval is None:
        return description
    return f"{description} Approved by {approval.approved_by} on {approval.approved_at:%Y-%m-%d}."


def _build_query_runner(query: WarmQuery, parameters: Mapping[str, QueryParameter]) -> Run:
    argument_names = {parameter.name: name for name, parameter in parameters.items()}

    async def run_this_query(arguments: Mapping[str, Any]) -> ToolResult:
        present = _select_non_null_arguments(arguments)
        values = {parameter.name: present[name] for name, parameter in parameters.items() if name in present}
        return await _run_query(
            query.lookup, validate_with_model(QueryArguments, present), values, argument_names.__getitem__
        )

    return run_this_query


async def _run_query(
    lookup: str, arguments: QueryArguments, parameter_values: Mapping[str, Any], get_field_name: Callable[[str], str]
) -> ToolResult:
    """Run an approved warm query.

    Args:
        lookup: lookup (short name in URLs) or API path of the query.
        arguments: time range and limit.
        parameter_values: values of the declared parameters, by name of the parameter.
        get_field_name: converts the name of a declared parameter to the name that errors state.
    """
    time_range = arguments.select_time_range(services().runtime.now())
    try:
        run = await services().queries.service.execute(
            lookup, time_range, arguments.limit, parameter_values, get_field_name
        )
    except WorkspaceError as error:
        if error.code != "WARM_QUERY_NOT_FOUND":
            raise
        approved = _NAMES.map_queries_by_tool_name(await services().catalog.get_current_catalog()).values()
        raise await add_nearest_names_to_error(error, lookup, [query.lookup for query in approved]) from None
    reply = await build_query_reply(Request("POST", "", "", {}, b""), run)
    return ToolResult(json_text=reply.body)


async def add_nearest_names_to_error(
    error: WorkspaceError, unknown_name: str, known_names: Iterable[str]
) -> WorkspaceError:
    """Return a copy of the error about an unknown lookup (short name) that also lists the most similar known names."""
    nearest = await services().runtime.run_in_thread(find_nearest_names, unknown_name, list(known_names))
    detail = f"{error.detail}{format_nearest_names_suggestion(nearest)}"
    return WorkspaceError(error.kind, error.code, detail, nearest=nearest)


def _select_non_null_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Remove arguments that are null from the arguments of an MCP tool, because null means the default."""
    return {name: value for name, value in arguments.items() if value is not None}


def _parse_integer(value: Any) -> int:
    """Return a JSON number as an integer; accept ``1.0``, because JSON does not distinguish ``1.0`` from ``1``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be a whole number")  # noqa: TRY004  pydantic catches ValueError
    return value


Whole = Annotated[int, BeforeValidator(_parse_integer)]


class TailArguments(BaseModel):
    """Arguments of the tool that reads the newest messages; messages with a timestamp in the future are excluded."""

    model_config = ConfigDict(extra="forbid")

    connection: StrictStr | None = Field(None, description="Lookup of a data connection. Default: all connections.")
    surface: StrictStr | None = Field(None, description="Lookup of a surface; only messages of its connections.")
    minutes: Whole = Field(60, ge=1, le=1440, description="Only messages of this many minutes before now.")
    limit: Whole = Field(20, ge=1, le=1000, description="Maximum number of messages.")


class TailMessage(TypedDict):
    """A telemetry message."""

    Timestamp: str
    ConnectionLookup: str
    DeviceId: str
    MessageId: str
    Payload: Any


class Tail(TypedDict):
    """Result of the tool that reads telemetry messages, newest first."""

    messages: list[TailMessage]


def build_newest_messages_tools(principal: Principal, catalog: Catalog) -> Sequence[Tool]:
    """Build the tool that reads the newest messages; none if the principal may not read the live stream."""
    if AccessRight.LIVE_STREAM_READ not in principal.rights:
        return ()

    async def read_newest_messages(arguments: Mapping[str, Any]) -> ToolResult:
        present = {name: value for name, value in arguments.items() if value is not None}
        return ToolResult(
            {"messages": await _query_newest_messages(validate_with_model(TailArguments, present), catalog)}
        )

    return (
        Tool(
            "tail_telemetry",
            "Tail telemetry",
            "Read the newest telemetry messages, optionally of one connection or surface.",
            add_argument_descriptions(build_schema_with_definitions(TailArguments, "validation"), limit=MESSAGES),
            build_schema_with_definitions(Tail, "serialization"),
            read_newest_messages,
        ),
    )


async def _query_newest_messages(arguments: TailArguments, catalog: Catalog) -> list[dict[str, Any]]:
    selected = sorted(await _select_connection_lookups(arguments, catalog))
    values = {
        "connections": f"dynamic({json.dumps(selected)})",
        "window": f"time({arguments.minutes // 60:02d}:{arguments.minutes % 60:02d}:00)",
    }
    if arguments.minutes == 1440:  # noqa: PLR2004  Kusto does not accept 24:00
        values["window"] = "time(1.00:00:00)"
    result = await services().queries.engine.execute(EngineQuery(_KQL, values, arguments.limit, _TIMEOUT_SECONDS))
    rows = result.rows[: arguments.limit]
    if sum(len(cell) for row in rows for cell in row if isinstance(cell, str)) > MAX_RESULT_CHARACTERS:
        raise build_result_too_large_error()
    return await services().runtime.run_in_thread_if_large(result.size, to_row_objects, result.columns, rows)


async def _select_connection_lookups(arguments: TailArguments, catalog: Catalog) -> set[str]:
    selected = set(catalog.connections)
    if arguments.connection is not None:
        if arguments.connection not in catalog.connections:
            raise await add_nearest_names_to_error(
                build_connection_not_found_error(arguments.connection), arguments.connection, catalog.connections
            )
        selected = {arguments.connection}
    if arguments.surface is not None:
        surface = catalog.surfaces.get(arguments.surface)
        if surface is None:
            raise await add_nearest_names_to_error(
                build_surface_not_found_error(arguments.surface), arguments.surface, catalog.surfaces
            )
        selected &= set(surface.value.connections)
    return selected
