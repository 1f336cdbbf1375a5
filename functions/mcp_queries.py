"""MCP tools that run warm queries: one for all queries, and one per query with its parameters as arguments."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field, StrictStr

from functions.mcp_tools import build_output_schema
from functions.query_reply import build_query_reply
from functions.warm_queries import ExecuteQuery, Limit
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.http.messages import Request
from shared.http.operations import Operation
from shared.http.validation import validate_model
from shared.mcp_server.capabilities import Run, Schema, Tool, ToolResult
from shared.openapi.schemas import inline_schema
from shared.openapi.warm_queries import build_parameter_schema
from shared.timestamps import rfc3339
from shared.warm_queries.results import QueryResult
from shared.warm_queries.service import DEFAULT_LIMIT
from shared.wiring import services

_RESERVED: Final = ("timeRange", "limit")
"""Arguments of every query tool; a declared parameter with the same name becomes ``p_<name>``."""


class QueryArguments(ExecuteQuery):
    """Time range and limit of a query; the limit is a JSON number instead of text."""

    limit: Limit = Field(DEFAULT_LIMIT, description="Maximum number of rows, 1 to 10000.")


class RunArguments(QueryArguments):
    """Arguments of the tool that runs any warm query."""

    lookup: Annotated[StrictStr, Field(min_length=1, description="Lookup key or API path of an approved query.")]
    parameters: dict[str, Any] = Field({}, description="Values of declared parameters by name.")


def build_query_tools(execute: Operation, catalog: Catalog) -> Iterable[Tool]:
    """Return the tool for all queries and one tool per approved query, sorted by lookup key."""
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
    run = await services().warm_queries.execute(lookup, arguments.time_range, arguments.limit, values, field_name)
    return ToolResult(await _to_json(run))


async def _to_json(run: QueryResult) -> dict[str, Any]:
    reply = await build_query_reply(Request("POST", "", "", {}, b""), run)
    content: dict[str, Any] = json.loads(reply.body)
    return content


def _drop_nulls(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls; a null selects the default."""
    return {name: value for name, value in arguments.items() if value is not None}
