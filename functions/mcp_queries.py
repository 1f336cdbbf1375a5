"""Tools that run warm queries: one for any of them, and one for each with its parameters at the top level."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field, StrictStr

from functions.mcp_tools import gives_of
from functions.query_reply import query_reply
from functions.warm_queries import ExecuteQuery, Limit
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.http.messages import Request
from shared.http.operations import Operation
from shared.http.validation import validated
from shared.mcp_server.capabilities import Run, Schema, Tool, ToolResult
from shared.openapi.schemas import inline_schema
from shared.openapi.warm_queries import build_parameter_schema
from shared.timestamps import rfc3339
from shared.warm_queries.results import QueryResult
from shared.warm_queries.service import DEFAULT_LIMIT
from shared.wiring import services

_OWN: Final = ("timeRange", "limit")
"""Arguments that every query has; a declared parameter of the same name is called ``p_<name>``."""


class QueryArguments(ExecuteQuery):
    """How much of a query's answer is wanted, where a limit is a number and no text."""

    limit: Limit = Field(DEFAULT_LIMIT, description="Most rows to return, 1 to 10000.")


class RunArguments(QueryArguments):
    """Which query is run, and with what."""

    lookup: Annotated[StrictStr, Field(min_length=1, description="Lookup key or API path of an approved query.")]
    parameters: dict[str, Any] = Field({}, description="Values of declared parameters by name.")


def query_tools(execute: Operation, catalog: Catalog) -> Iterable[Tool]:
    """Return the tool for any query, and those of the approved queries in order of their lookup keys."""
    approved = [stored for stored in catalog.queries.values() if stored.value.approval is not None]
    named = sorted(_named(approved), key=lambda pair: pair[1].lookup)
    gives = gives_of(execute)
    return [_any_query(gives), *(_tool(name, query, gives) for name, query in named)]


def _any_query(gives: Schema) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        wanted = validated(RunArguments, _present(arguments))
        return await _ran(wanted.lookup, wanted, wanted.parameters, "parameters.{}".format)

    return Tool(
        "run_warm_query",
        "Run a warm query",
        "Run an approved warm query by its lookup or API path. Give its declared parameters under `parameters`.",
        inline_schema(RunArguments, "validation"),
        gives,
        run,
    )


def _named(queries: Sequence[CatalogEntry[WarmQuery]]) -> Iterable[tuple[str, WarmQuery]]:
    """Yield each query with its tool's name; of two that would share one, the newer gets a mark of its lookup.

    A query therefore never takes the tool of one that was there before it.
    """
    taken: set[str] = set()
    for stored in sorted(queries, key=lambda each: (each.created_at, each.value.lookup)):
        query = stored.value
        name = f"warm_query_{query.lookup.replace('-', '_')}"
        while name in taken:
            name = f"{name}_{hashlib.sha256(query.lookup.encode()).hexdigest()[:6]}"
        taken.add(name)
        yield name, query


def _tool(name: str, query: WarmQuery, gives: Schema) -> Tool:
    names = {_argument(parameter.name): parameter for parameter in query.parameters}
    takes = {
        "type": "object",
        "properties": {
            **{given: _schema(parameter) for given, parameter in names.items()},
            **inline_schema(QueryArguments, "validation")["properties"],
        },
        "required": [given for given, parameter in names.items() if parameter.required],
        "additionalProperties": False,
    }
    return Tool(name, query.name, _description(query), takes, gives, _runner(query, names))


def _argument(parameter: str) -> str:
    return f"p_{parameter}" if parameter in _OWN else parameter


def _schema(parameter: QueryParameter) -> dict[str, Any]:
    return {**build_parameter_schema(parameter), "description": f"Kusto type {parameter.type}."}


def _description(query: WarmQuery) -> str:
    approval = query.approval
    told = f"{query.description or query.name} (surface {query.surface})."
    if approval is None:
        return told
    return f"{told} Approved by {approval.approved_by} at {rfc3339(approval.approved_at)}."


def _runner(query: WarmQuery, names: Mapping[str, QueryParameter]) -> Run:
    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        given = _present(arguments)
        values = {parameter.name: given[name] for name, parameter in names.items() if name in given}
        return await _ran(query.lookup, validated(QueryArguments, given), values, _argument)

    return run


async def _ran(lookup: str, wanted: QueryArguments, values: Mapping[str, Any], named: Any) -> ToolResult:
    run = await services().warm_queries.execute(lookup, wanted.time_range, wanted.limit, values, named)
    return ToolResult(await _content(run))


async def _content(run: QueryResult) -> dict[str, Any]:
    reply = await query_reply(Request("POST", "", "", {}, b""), run)
    content: dict[str, Any] = json.loads(reply.body)
    return content


def _present(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without those that are null, which asks for the default."""
    return {name: value for name, value in arguments.items() if value is not None}
