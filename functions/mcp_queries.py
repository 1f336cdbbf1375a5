"""One tool for each approved warm query, with its parameters at the top level."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from functions.mcp_tools import Ask, asked, gives_of, text_of
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.snapshot import Catalog
from shared.http.operations import Operation
from shared.mcp_server.offers import Outcome, Run, Schema, Tool
from shared.openapi.schemas import parameters_of
from shared.openapi.warm_queries import parameter_schema
from shared.timestamps import rfc3339

_OWN: Final = ("timeRange", "limit")
"""Arguments that every query has; a declared parameter of the same name is called ``p_<name>``."""


def query_tools(execute: Operation, catalog: Catalog, ask: Ask) -> Iterable[Tool]:
    """Return the tools of the approved queries, in order of their lookup keys."""
    approved = [catalog.queries[lookup].value for lookup in sorted(catalog.queries)]
    approved = [query for query in approved if query.approval is not None]
    general = {
        one["name"]: {**one["schema"], "description": one["description"]} for one in parameters_of(execute.query)
    }
    gives = gives_of(execute)
    return [_tool(name, query, execute, general, gives, ask) for name, query in _named(approved)]


def _named(queries: Sequence[WarmQuery]) -> Iterable[tuple[str, WarmQuery]]:
    """Yield each query with its tool's name; of two that would share one, the later gets a mark of its lookup."""
    taken: set[str] = set()
    for query in queries:
        name = f"warm_query_{query.lookup.replace('-', '_')}"
        if name in taken:
            name = f"{name}_{hashlib.sha256(query.lookup.encode()).hexdigest()[:6]}"
        taken.add(name)
        yield name, query


def _tool(name: str, query: WarmQuery, execute: Operation, general: Mapping[str, Any], gives: Schema, ask: Ask) -> Tool:
    names = {_argument(parameter): parameter for parameter in query.parameters}
    takes = {
        "type": "object",
        "properties": {**{given: _schema(parameter) for given, parameter in names.items()}, **general},
        "required": [given for given, parameter in names.items() if parameter.required],
        "additionalProperties": False,
    }
    return Tool(name, query.name, _description(query), takes, gives, _runner(query, execute, names, ask))


def _argument(parameter: QueryParameter) -> str:
    return f"p_{parameter.name}" if parameter.name in _OWN else parameter.name


def _schema(parameter: QueryParameter) -> dict[str, Any]:
    return {**parameter_schema(parameter), "description": f"Kusto type {parameter.type}."}


def _description(query: WarmQuery) -> str:
    approval = query.approval
    told = f"{query.description or query.name} (surface {query.surface})."
    if approval is None:
        return told
    return f"{told} Approved by {approval.approved_by} at {rfc3339(approval.approved_at)}."


def _runner(query: WarmQuery, execute: Operation, names: Mapping[str, QueryParameter], ask: Ask) -> Run:
    route = execute.route.replace("{*lookup}", query.lookup)

    async def run(arguments: Mapping[str, Any]) -> Outcome:
        pairs = []
        for given, value in arguments.items():
            if value is not None:
                name = given if given in _OWN else f"p.{names[given].name if given in names else given}"
                pairs.append((name, text_of(value)))
        return await asked(ask, execute.method, route, pairs)

    return run
