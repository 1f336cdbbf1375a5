"""Resolvers of GraphQL fields, and the scalars DateTime (RFC 3339 with a time zone) and JSON (any JSON value).

All resolvers except those of executeQuery, rows and schema are synchronous functions of one catalog snapshot.

This module is separate from ``service``, which runs requests, because it contains one function for each field of the
schema.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson
from ariadne import MutationType, ObjectType, QueryType, ScalarType
from graphql import (
    BooleanValueNode,
    FloatValueNode,
    GraphQLError,
    GraphQLResolveInfo,
    IntValueNode,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    StringValueNode,
    ValueNode,
    VariableNode,
)

from shared.auth.rights import AccessRight
from shared.catalog.models import Connection, Surface, WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.errors import FieldError, Kind, WorkspaceError, build_invalid_field_error, build_invalid_fields_error
from shared.graphql_api.error_codes import MAX_REPLY_BYTES
from shared.graphql_api.paging import ListPage, PageRequest
from shared.graphql_api.request import GraphQLRequest
from shared.runtime import Runtime
from shared.text_formats.serialisation import iterate_json_parts_of_rows, join_parts_up_to
from shared.text_formats.strict_json import MAX_DEPTH
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.warm_queries.ports import Column
from shared.warm_queries.results import QueryResult
from shared.warm_queries.service import DEFAULT_LIMIT, MAX_LIMIT
from shared.warm_queries.time_ranges import (
    TimeRange,
    parse_rfc3339_or_milliseconds,
    parse_time_range_duration,
    select_time_range,
)

_MAX_DIGITS: Final = 4_000
"""Maximum digits of an integer literal, near the interpreter's limit, as in a JSON body."""

MAX_REPEATED_CHARACTERS: Final = 1_000_000
"""Maximum size of the repetitions of variables in one literal, as JSON text; the first use of each does not count."""

DATE_TIME = ScalarType("DateTime")
JSON = ScalarType("JSON")
MAX_INT: Final = 2**31 - 1

type Info = GraphQLResolveInfo[GraphQLRequest]

QUERY = QueryType()
MUTATION = MutationType()


@DATE_TIME.serializer
def serialise_date_time(value: datetime) -> str:
    """Serialise a value of the scalar DateTime as RFC 3339 text in UTC."""
    return format_rfc3339(value)


@DATE_TIME.value_parser
def require_date_time_text(value: Any) -> str:
    """Check the value of a GraphQL variable of the scalar type DateTime and return it unchanged.

    Such a variable can only be used inside ``parameters``, which contains JSON values.

    Raises:
        GraphQLError: if the value is not an RFC 3339 date-time with a time zone.
    """
    if not isinstance(value, str):
        raise GraphQLError("DateTime: must be RFC 3339 text")
    try:
        parse_rfc3339(value)
    except ValueError as error:
        raise GraphQLError(f"DateTime: {error}") from None
    return value


@JSON.value_parser
def require_finite_json_value(value: Any) -> Any:
    """Check a value of the scalar JSON and return it unchanged.

    Raises:
        GraphQLError: if the value is NaN or infinite.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise GraphQLError("JSON: a number is outside the range of a double")
    return value


@JSON.literal_parser
def parse_json_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
    """Convert a literal in a GraphQL document to a value of the scalar JSON.

    Raises:
        GraphQLError: if the literal is an enum value, contains a duplicate property, has more than ``MAX_DEPTH``
            levels (the levels in the values of variables do not count), or repeats too much of its variables.
    """
    return _parse_nested_literal(node, _VariableValues(variables or {}), MAX_DEPTH)


class _VariableValues:
    """Values of the variables in one literal; a literal of many repetitions of a large value would be huge."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._sizes: dict[str, int | None] = {}
        self._repeated_characters = 0

    def get_value_of(self, node: VariableNode) -> Any:
        """Return the value of a variable.

        Raises:
            GraphQLError: if the literal repeats more than ``MAX_REPEATED_CHARACTERS`` of its variables.
        """
        name = node.name.value
        value = self._values.get(name)
        if name not in self._sizes:
            # Only the size of a variable that is used again matters.
            self._sizes[name] = None
            return value
        size = self._sizes[name] = self._sizes[name] or len(json.dumps(value))
        self._repeated_characters += size
        if self._repeated_characters > MAX_REPEATED_CHARACTERS:
            detail = f"JSON: repetitions of variables must have at most {MAX_REPEATED_CHARACTERS} characters"
            raise GraphQLError(detail, node)
        return value


def _parse_nested_literal(node: ValueNode, variables: _VariableValues, max_levels: int) -> Any:
    match node:
        case ListValueNode() | ObjectValueNode() if max_levels == 0:
            raise GraphQLError(f"JSON: must not be nested deeper than {MAX_DEPTH} levels", node)
        case VariableNode():
            return variables.get_value_of(node)
        case ListValueNode():
            return [_parse_nested_literal(item, variables, max_levels - 1) for item in node.values]
        case ObjectValueNode():
            return _parse_object_literal(node, variables, max_levels)
        case _:
            return _parse_scalar_literal(node)


def _parse_scalar_literal(node: ValueNode) -> Any:
    match node:
        case NullValueNode():
            return None
        case StringValueNode() | BooleanValueNode():
            return node.value
        case IntValueNode():
            if len(node.value) > _MAX_DIGITS:
                raise GraphQLError(f"JSON: an integer must have at most {_MAX_DIGITS} digits", node)
            return int(node.value)
        case FloatValueNode():
            return require_finite_json_value(float(node.value))
        case _:
            raise GraphQLError("JSON: must be a JSON value, not an enum value; write texts in quotes", node)


def _parse_object_literal(node: ObjectValueNode, variables: _VariableValues, max_levels: int) -> dict[str, Any]:
    members = {field.name.value: _parse_nested_literal(field.value, variables, max_levels - 1) for field in node.fields}
    if len(members) != len(node.fields):
        raise GraphQLError("JSON: the object has a duplicate property", node)
    return members


def _require_catalog_read(info: Info) -> GraphQLRequest:
    """Check that the caller has the right to read the catalog, and return the context of the GraphQL request."""
    request: GraphQLRequest = info.context
    request.principal.require_right(AccessRight.CATALOG_READ)
    return request


@QUERY.field("queries")
def list_queries(_: Any, info: Info, surface: str | None = None, **paging: Any) -> ListPage:
    """Resolve the field ``queries``: return a page of saved queries, optionally of one surface (connection group)."""
    request = _require_catalog_read(info)
    if surface is None:
        return PageRequest(**paging).select_page("queries", request.sorted_queries)
    known = request.catalog.surfaces
    lookup = surface if surface in known else next((key for key, one in known.items() if one.value.name == surface), "")
    return PageRequest(**paging).select_page("queries", request.queries_by_surface.get(lookup, []))


@QUERY.field("query")
def find_query(_: Any, info: Info, name: str) -> CatalogEntry[WarmQuery] | None:
    """Resolve the field ``query``: return the saved KQL query with this name or lookup (id in URLs)."""
    return _require_catalog_read(info).find_query_by_name_or_lookup(name)


@QUERY.field("connections")
def list_connections(_: Any, info: Info, status: str | None = None, **paging: Any) -> ListPage:
    """Resolve the field ``connections``: return a page of connections, optionally only connections with one status."""
    request = _require_catalog_read(info)
    ordered = request.sorted_connections if status is None else request.connections_by_status.get(status, [])
    return PageRequest(**paging).select_page("connections", ordered)


@QUERY.field("connection")
def find_connection(_: Any, info: Info, *, id: str) -> CatalogEntry[Connection] | None:  # noqa: A002  name in the GraphQL schema
    """Resolve the field ``connection``: return the connection with this id."""
    return _require_catalog_read(info).catalog.connections.get(id)


@QUERY.field("surfaces")
def list_surfaces(_: Any, info: Info, **paging: Any) -> ListPage:
    """Resolve the field ``surfaces``: return a page of surfaces (groups of connections)."""
    return PageRequest(**paging).select_page("surfaces", _require_catalog_read(info).sorted_surfaces)


@QUERY.field("surface")
def find_surface(_: Any, info: Info, *, id: str) -> CatalogEntry[Surface] | None:  # noqa: A002  name in the GraphQL schema
    """Resolve the field ``surface``: return the surface (group of connections) with this id."""
    return _require_catalog_read(info).catalog.surfaces.get(id)


@QUERY.field("workspace")
def describe_workspace(_: Any, info: Info) -> dict[str, Any]:
    """Resolve the field ``workspace``: return the workspace's id, name and description, and the number of its items."""
    catalog = _require_catalog_read(info).catalog
    if catalog.workspace is None:
        raise WorkspaceError(Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", "No workspace document has been applied yet.")
    counts = {
        "connectionCount": len(catalog.connections),
        "surfaceCount": len(catalog.surfaces),
        "queryCount": len(catalog.queries),
    }
    return {**catalog.workspace.model_dump(include={"id", "name", "description"}), "stats": counts}


@MUTATION.field("executeQuery")
async def execute_query(
    _: Any, info: Info, name: str, parameters: Any = None, limit: int | None = None, **times: str | None
) -> dict[str, Any]:
    """Resolve the field ``executeQuery``: run an approved saved KQL query and return its result.

    ``times`` are the optional arguments ``timeRange``, ``from`` and ``to``.
    """
    request: GraphQLRequest = info.context
    request.principal.require_right(AccessRight.WARM_QUERY_EXECUTE)
    arguments = {} if parameters is None else parameters
    if not isinstance(arguments, dict):
        raise build_invalid_field_error("parameters", "must be an object that contains the parameters by name")
    most = DEFAULT_LIMIT if limit is None else limit
    if not 1 <= most <= MAX_LIMIT:
        raise build_invalid_field_error("limit", f"must be a whole number from 1 to {MAX_LIMIT}")
    time_range = _read_time_range(times, request.runtime.now())
    found = request.find_query_by_name_or_lookup(name) or request.catalog.find_query(name)
    if found is None:
        detail = f"No warm query has the name, lookup or API path {name[:64]!r}."
        raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", detail)
    run = await request.warm_queries.execute(found.value.lookup, time_range, most, arguments, "parameters.{}".format)
    return _to_execution_result(run, _RowsOnDemand(run, request.runtime))


def _read_time_range(time_arguments: Mapping[str, str | None], now: datetime) -> TimeRange | None:
    """Return the time range of the arguments ``timeRange``, ``from`` and ``to``; None without them."""
    parsers: Mapping[str, Callable[[Any], Any]] = {
        "timeRange": parse_time_range_duration,
        "from": parse_rfc3339_or_milliseconds,
        "to": parse_rfc3339_or_milliseconds,
    }
    values: dict[str, Any] = dict.fromkeys(parsers)
    errors: list[FieldError] = []
    for name, text in time_arguments.items():
        try:
            values[name] = None if text is None else parsers[name](text)
        except ValueError as error:
            errors.append(FieldError(name, str(error)))
    if errors:
        raise build_invalid_fields_error(errors)
    return select_time_range(values["timeRange"], values["from"], values["to"], now)


class _RowsOnDemand:
    """Rows of a query result that are serialised only if the request selects them, and then once for all aliases."""

    def __init__(self, run: QueryResult, runtime: Runtime) -> None:
        self._run = run
        self._runtime = runtime
        self._lock = asyncio.Lock()
        self._is_serialised = False
        self._text: bytes | None = None

    async def serialise(self) -> bytes | None:
        """Return the JSON text of all rows, with commas between the rows; None if it is too large for a reply."""
        async with self._lock:
            if not self._is_serialised:
                self._text = await self._runtime.run_in_thread_if_large(self._run.size, _serialise_rows, self._run)
                self._is_serialised = True
            return self._text


def _serialise_rows(query_result: QueryResult) -> bytes | None:
    return join_parts_up_to(iterate_json_parts_of_rows(query_result.rows, query_result.size), MAX_REPLY_BYTES)


async def _resolve_rows(result: Mapping[str, Any], info: Info) -> list[orjson.Fragment]:
    """Resolve the field ``rows``: return a list whose only element is the JSON text of all rows; ``[]`` without rows.

    With one element for each row, the GraphQL library would process each row on the event loop, and would then
    serialise all rows in one call.
    """
    text: bytes | None = await result["rows"].serialise()
    info.context.count_row_bytes(MAX_REPLY_BYTES + 1 if text is None else len(text))
    return [orjson.Fragment(text)] if text else []


def _to_execution_result(query_result: QueryResult, rows: _RowsOnDemand) -> dict[str, Any]:
    approval = query_result.approval
    return {
        "columns": query_result.columns,
        "rows": rows,
        "meta": {
            "rowCount": len(query_result.rows),
            "executionTime": round(query_result.execution_ms),
            "truncated": query_result.truncated,
        },
        "governance": {
            "queryApprovedBy": approval and approval.approved_by,
            "queryApprovedAt": approval and approval.approved_at,
        },
    }


def _resolve_query_schema(stored: CatalogEntry[WarmQuery], info: Info) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Resolve the field ``schema``: return a query's result columns.

    If the columns are unknown, return an empty list and record an error.

    The result must not be null, because GraphQL would then set the enclosing list to null.
    """
    prefetched = info.context.prefetched
    if prefetched is None:
        return _load_columns(stored, info)
    try:
        return {"columns": prefetched.get_columns(stored.value.lookup)}
    except WorkspaceError as error:
        return _record_error_and_build_empty_schema(error, info)


async def _load_columns(stored: CatalogEntry[WarmQuery], info: Info) -> dict[str, Any]:
    try:
        known: tuple[Column, ...] = await info.context.columns.load(stored.value.lookup)
    except WorkspaceError as error:
        return _record_error_and_build_empty_schema(error, info)
    return {"columns": known}


def _resolve_columns(result: Mapping[str, Any], info: Info) -> Sequence[Column]:
    """Resolve the field ``columns`` of a query's schema or result; it counts the fields of the columns."""
    columns: Sequence[Column] = result["columns"]
    info.context.count_fields_of_nested_list(len(columns), info)
    return columns


def _record_error_and_build_empty_schema(error: WorkspaceError, info: Info) -> dict[str, Any]:
    failure = GraphQLError(error.detail, info.field_nodes, path=info.path.as_list(), original_error=error)
    info.context.failures.append(failure)
    return {"columns": ()}


def _build_connection_stats(stored: CatalogEntry[Connection], info: Info) -> dict[str, Any]:
    state = info.context.states.get(stored.value.lookup)
    return {
        "messagesReceived": 0 if state is None else min(state.messages_received, MAX_INT),
        "lastMessage": None if state is None else state.last_message,
    }


def _build_approval_object(stored: CatalogEntry[WarmQuery], _: Info) -> dict[str, Any] | None:
    approval = stored.value.approval
    if approval is None:
        return None
    signature = None if approval.signature is None else approval.signature.model_dump(by_alias=True)
    return {"approvedBy": approval.approved_by, "approvedAt": approval.approved_at, "signature": signature}


def _build_nested_list_resolver[T](
    list_items: Callable[[GraphQLRequest, T], Sequence[Any]],
) -> Callable[[CatalogEntry[T], Info], Sequence[Any]]:
    """Return a resolver for a list of a connection, surface or query; it counts the fields of the list's items."""

    def resolve_list(stored: CatalogEntry[T], info: Info) -> Sequence[Any]:
        items = list_items(info.context, stored.value)
        info.context.count_fields_of_nested_list(len(items), info)
        return items

    return resolve_list


def _build_edges(page: ListPage, _: Info) -> list[dict[str, Any]]:
    return [{"node": node, "cursor": page.to_cursor(node)} for node in page.nodes]


def _build_catalog_entry_type(type_name: str, /, **fields: str) -> ObjectType:
    """Build the resolvers of a GraphQL type for catalog entries.

    ``fields`` maps each field of the type to an attribute of the item. The fields ``createdAt`` and ``updatedAt`` are
    added.
    """
    object_type = ObjectType(type_name)
    for field_name, attribute in fields.items():
        object_type.set_field(field_name, lambda stored, _, attribute=attribute: getattr(stored.value, attribute))
    object_type.set_field("createdAt", lambda stored, _: stored.created_at)
    object_type.set_field("updatedAt", lambda stored, _: stored.updated_at)
    return object_type


def _build_page_type(type_name: str) -> ObjectType:
    """Build the resolvers of the GraphQL type of a page, such as ``QueryConnection``."""
    object_type = ObjectType(type_name)
    object_type.set_field("edges", _build_edges)
    object_type.set_field("totalCount", lambda page, _: page.total)
    object_type.set_field("pageInfo", lambda page, _: {"hasNextPage": page.has_next, "endCursor": page.end_cursor})
    return object_type


WARM_QUERY = _build_catalog_entry_type("WarmQuery", name="name", description="description", kql="kql", lookup="lookup")
WARM_QUERY.set_field("approval", _build_approval_object)
WARM_QUERY.set_field("surface", lambda stored, info: info.context.catalog.surfaces.get(stored.value.surface))
WARM_QUERY.set_field("schema", _resolve_query_schema)
WARM_QUERY.set_field("parameters", _build_nested_list_resolver(lambda _, query: query.parameters))
QUERY_SCHEMA = ObjectType("QuerySchema")
QUERY_SCHEMA.set_field("columns", _resolve_columns)
QUERY_PARAMETER = ObjectType("QueryParameter")
QUERY_PARAMETER.set_field("required", lambda parameter, _: parameter.is_required)
CONNECTION = _build_catalog_entry_type("Connection", id="lookup", name="name", type="type")
CONNECTION.set_field("status", lambda stored, info: info.context.derive_connection_status(stored.value))
CONNECTION.set_field("surfaces", _build_nested_list_resolver(GraphQLRequest.list_surfaces_of_connection))
CONNECTION.set_field("stats", _build_connection_stats)
EXECUTION_RESULT = ObjectType("ExecuteQueryResult")
EXECUTION_RESULT.set_field("columns", _resolve_columns)
EXECUTION_RESULT.set_field("rows", _resolve_rows)
SURFACE = _build_catalog_entry_type("Surface", id="lookup", name="name", description="description")
SURFACE.set_field("connections", _build_nested_list_resolver(GraphQLRequest.list_connections_of_surface))
SURFACE.set_field("queries", _build_nested_list_resolver(GraphQLRequest.list_queries_of_surface))

TYPES = (
    QUERY,
    MUTATION,
    EXECUTION_RESULT,
    WARM_QUERY,
    QUERY_SCHEMA,
    QUERY_PARAMETER,
    CONNECTION,
    SURFACE,
    *(_build_page_type(name) for name in ("QueryConnection", "ConnectionConnection", "SurfaceConnection")),
)
