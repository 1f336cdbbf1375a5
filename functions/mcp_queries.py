"""MCP tools that query telemetry: run any warm query, run one certain query, and read the newest messages.

The tool of a certain query has the parameters of the query as arguments.

Separate from ``mcp`` because it is imported at the first call of the protocol.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr

from functions.mcp_tools import build_output_schema
from functions.query_reply import build_query_reply
from functions.warm_queries import ExecuteQuery, Limit
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request
from shared.http.operations import Operation
from shared.http.validation import validate_model
from shared.mcp_server.capabilities import Run, Schema, Tool, ToolResult
from shared.openapi.schemas import inline_schema
from shared.openapi.warm_queries import build_parameter_schema
from shared.timestamps import rfc3339
from shared.warm_queries.ports import EngineQuery
from shared.warm_queries.results import QueryResult, to_row_objects
from shared.warm_queries.service import DEFAULT_LIMIT
from shared.wiring import services

_RESERVED: Final = ("timeRange", "limit")
"""Names of the arguments of every query tool.

A declared parameter of a query with such a name becomes the argument ``p_<name>``.
"""
_TIMEOUT_SECONDS: Final = 20
_KQL: Final = """declare query_parameters(connections:dynamic, window:timespan);
Telemetry
| where ConnectionLookup in (connections) and Timestamp between (ago(window) .. now())
| top 1000 by Timestamp desc
| project Timestamp, ConnectionLookup, DeviceId, MessageId, Payload"""


class QueryArguments(ExecuteQuery):
    """Time range and limit of a query; the limit is a JSON number instead of text."""

    limit: Limit = Field(DEFAULT_LIMIT, description="Maximum number of rows, 1 to 10000.")


class RunArguments(QueryArguments):
    """Arguments of the tool that runs any warm query."""

    lookup: Annotated[StrictStr, Field(min_length=1, description="Lookup key or API path of an approved query.")]
    parameters: dict[str, Any] = Field({}, description="Values of declared parameters by name.")


def build_query_tools(execute: Operation, catalog: Catalog) -> Iterable[Tool]:
    """Build the tool for all queries, and one tool for each approved query, sorted by lookup key."""
    approved = [stored for stored in catalog.queries.values() if stored.value.approval is not None]
    named = sorted(_assign_names(approved), key=lambda pair: pair[1].lookup)
    output_schema = build_output_schema(execute)
    return [_build_general_tool(output_schema), *(_build_tool(name, query, output_schema) for name, query in named)]


def _build_general_tool(output_schema: Schema) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        parsed = validate_model(RunArguments, _drop_nulls(arguments))
        return await _run_query(parsed.lookup, parsed, parsed.parameters, "parameters.{}".format)

    return Tool(
        "run_warm_query",
        "Run a warm query",
        "Run an approved warm query by its lookup or API path. Pass its declared parameters under `parameters`.",
        inline_schema(RunArguments, "validation"),
        output_schema,
        run,
    )


def _assign_names(queries: Sequence[CatalogEntry[WarmQuery]]) -> Iterable[tuple[str, WarmQuery]]:
    """Yield each query with the name of its tool.

    If two queries would get the same name, the newer one gets a suffix, so that the tool of a query never changes its
    name because of a newer query.
    """
    taken: set[str] = set()
    for stored in sorted(queries, key=lambda each: (each.created_at, each.value.lookup)):
        query = stored.value
        name = f"warm_query_{query.lookup.replace('-', '_')}"
        while name in taken:
            name = f"{name}_{hashlib.sha256(query.lookup.encode()).hexdigest()[:6]}"
        taken.add(name)
        yield name, query


def _build_tool(name: str, query: WarmQuery, output_schema: Schema) -> Tool:
    parameters = {_format_argument_name(parameter.name): parameter for parameter in query.parameters}
    input_schema = {
        "type": "object",
        "properties": {
            **{argument: _build_schema(parameter) for argument, parameter in parameters.items()},
            **inline_schema(QueryArguments, "validation")["properties"],
        },
        "required": [argument for argument, parameter in parameters.items() if parameter.required],
        "additionalProperties": False,
    }
    return Tool(name, query.name, _describe_query(query), input_schema, output_schema, _build_runner(query, parameters))


def _format_argument_name(parameter: str) -> str:
    return f"p_{parameter}" if parameter in _RESERVED else parameter


def _build_schema(parameter: QueryParameter) -> dict[str, Any]:
    return {**build_parameter_schema(parameter), "description": f"Kusto type {parameter.type}."}


def _describe_query(query: WarmQuery) -> str:
    approval = query.approval
    description = f"{query.description or query.name} (surface {query.surface})."
    if approval is None:
        return description
    return f"{description} Approved by {approval.approved_by} at {rfc3339(approval.approved_at)}."


def _build_runner(query: WarmQuery, parameters: Mapping[str, QueryParameter]) -> Run:
    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        present = _drop_nulls(arguments)
        values = {parameter.name: present[name] for name, parameter in parameters.items() if name in present}
        return await _run_query(query.lookup, validate_model(QueryArguments, present), values, _format_argument_name)

    return run


async def _run_query(
    lookup: str, arguments: QueryArguments, values: Mapping[str, Any], field_name: Callable[[str], str]
) -> ToolResult:
    run = await services().queries.service.execute(lookup, arguments.time_range, arguments.limit, values, field_name)
    return ToolResult(await _to_json(run))


async def _to_json(run: QueryResult) -> dict[str, Any]:
    reply = await build_query_reply(Request("POST", "", "", {}, b""), run)
    content: dict[str, Any] = json.loads(reply.body)
    return content


def _drop_nulls(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls, because a null selects the default."""
    return {name: value for name, value in arguments.items() if value is not None}


def _parse_integer(value: Any) -> Any:
    """Return a JSON number as an integer; ``1.0`` is accepted, because JSON does not distinguish it from ``1``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be a whole number")  # noqa: TRY004  pydantic catches ValueError
    return value


Whole = Annotated[int, BeforeValidator(_parse_integer)]


class TailArguments(BaseModel):
    """Arguments of the tool; messages with a timestamp in the future are excluded."""

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
    """Messages, newest first."""

    messages: list[TailMessage]


def build_tail_tools(principal: Principal, catalog: Catalog) -> Sequence[Tool]:
    """Build the tool; return no tool if the principal has no right to read the live stream."""
    if AccessRight.LIVE_STREAM_READ not in principal.rights:
        return ()

    async def tail(arguments: Mapping[str, Any]) -> ToolResult:
        present = {name: value for name, value in arguments.items() if value is not None}
        return ToolResult({"messages": await _read_messages(validate_model(TailArguments, present), catalog)})

    return (
        Tool(
            "tail_telemetry",
            "Tail telemetry",
            "Read the newest telemetry messages, optionally of one connection or surface.",
            inline_schema(TailArguments, "validation"),
            inline_schema(Tail, "serialization"),
            tail,
        ),
    )


async def _read_messages(arguments: TailArguments, catalog: Catalog) -> list[dict[str, Any]]:
    values = {
        "connections": f"dynamic({json.dumps(sorted(_select_connections(arguments, catalog)))})",
        "window": f"time({arguments.minutes // 60:02d}:{arguments.minutes % 60:02d}:00)",
    }
    if arguments.minutes == 1440:  # noqa: PLR2004  Kusto does not accept 24:00
        values["window"] = "time(1.00:00:00)"
    result = await services().queries.engine.execute(EngineQuery(_KQL, values, arguments.limit, _TIMEOUT_SECONDS))
    return to_row_objects(result.columns, result.rows[: arguments.limit])


def _select_connections(arguments: TailArguments, catalog: Catalog) -> set[str]:
    selected = set(catalog.connections)
    if arguments.connection is not None:
        if arguments.connection not in catalog.connections:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", "No data connection has this lookup.")
        selected = {arguments.connection}
    if arguments.surface is not None:
        surface = catalog.surfaces.get(arguments.surface)
        if surface is None:
            raise WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", "No surface has this lookup.")
        selected &= set(surface.value.connections)
    return selected
