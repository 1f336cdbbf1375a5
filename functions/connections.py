"""HTTP operations on data connections: list, read, create, replace, delete."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from functions.catalog_items import (
    LIVE_MEMBERS,
    add_field_errors,
    build_item_reply,
    check_conditional_headers,
    check_lookup,
    get_caller,
    get_catalog_administration,
    last_change_to_json,
)
from functions.conditions import parse_conditional_headers
from functions.paging import CatalogPageQuery, build_cursor_check, select_page
from functions.reply_docs import connections as replies
from functions.serialized_items import SerializedItems, build_serialized_list_reply
from shared.auth.rights import AccessRight
from shared.catalog.administration import build_connection_not_found_error
from shared.catalog.fields import DECLARED
from shared.catalog.item_checks import find_connection_errors
from shared.catalog.items import ItemKind
from shared.catalog.models import Connection, ConnectionType, SignalDefinition, Simulator, Source
from shared.catalog.ports import CatalogItem
from shared.catalog.signal_models import MAX_SIGNALS
from shared.errors import ValidationErrors
from shared.http.messages import Reply
from shared.http.operations import Call, Group, ServerManagedProperties, StrictBody
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.telemetry.connection_status import connection_statistics_to_json
from shared.telemetry.ports import ConnectionState
from shared.validation.names import Name
from shared.wiring import services

GROUP = Group("connections")
_ROUTE = "oi-api/connections/{lookup}"


class ConnectionBody(StrictBody):
    """Request body that defines a connection; if `enabled` is omitted, the stored value stays."""

    validation_context: ClassVar[Mapping[str, Any]] = DECLARED

    name: Name
    type: ConnectionType
    enabled: bool = True
    source: Source = Source()
    simulator: Simulator | None = None
    # Pydantic stops validating a list at the first item above max_length, but validates all items of a tuple.
    signals: list[SignalDefinition] = Field([], max_length=MAX_SIGNALS)


@GROUP.endpoint(
    "GET",
    "oi-api/connections",
    right=AccessRight.CATALOG_READ,
    query=CatalogPageQuery,
    check=build_cursor_check("connections"),
    docs=replies.LISTED,
)
async def list_connections(call: Call[CatalogPageQuery]) -> Reply:
    """Return the data connections with their status, sorted by lookup.

    The lookup of a connection is its short name in URLs.
    """
    catalog = await services().catalog.get_current_catalog()
    page, cursor = select_page("connections", catalog.connections, call.query)
    states = await services().telemetry.connection_states.load_states_by_connection()
    items = (catalog.items[ItemKind.CONNECTION, lookup] for lookup in page)
    versions = [
        (item.key, _ConnectionVersion(item, states.get(item.key), catalog.list_surface_lookups_of_connection(item.key)))
        for item in items
    ]
    texts = await _SERIALIZED.serialize(versions, len(catalog.connections), services().runtime)
    return build_serialized_list_reply("connections", texts, cursor)


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.CATALOG_READ, docs=replies.READ)
async def read_connection(call: Call) -> Reply:
    """Return a data connection with its status."""
    catalog = await services().catalog.get_current_catalog()
    if call.path["lookup"] not in catalog.connections:
        raise build_connection_not_found_error(call.path["lookup"])
    return build_item_reply(
        await _find_state_and_build_connection_json(catalog.items[ItemKind.CONNECTION, call.path["lookup"]])
    )


async def _read_current_connection(path_parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored connection as JSON with its read-only properties.

    The body of a PUT may omit a read-only property, or must repeat its value; live values may differ. If the connection
    does not exist, return an object with its lookup (short name in URLs) and an empty list of surfaces (groups of
    connections).
    """
    item = await get_catalog_administration().find(ItemKind.CONNECTION, path_parameters["lookup"])
    return (
        {"lookup": path_parameters["lookup"], "surfaces": []}
        if item is None
        else await _find_state_and_build_connection_json(item)
    )


async def _check_connection(call: Call[Any, ConnectionBody], faults: ValidationErrors) -> None:
    check_lookup(faults, call.path["lookup"])
    check_conditional_headers(faults, call.request)
    if faults.has_valid_fields("type", "source", "simulator", "signals"):
        body = call.body
        made = Connection.model_construct(
            lookup="any",
            name="any",
            type=body.type,
            source=body.source,
            simulator=body.simulator,
            signals=tuple(body.signals),
        )
        add_field_errors(faults, find_connection_errors(made))


@GROUP.endpoint(
    "PUT",
    _ROUTE,
    right=AccessRight.CATALOG_MANAGE,
    body=ConnectionBody,
    server_set=ServerManagedProperties(
        frozenset(replies.ConnectionDefinition.__annotations__)
        - map_accepted_names_to_documented_names(ConnectionBody).keys(),
        _read_current_connection,
        volatile=LIVE_MEMBERS,
    ),
    check=_check_connection,
    docs=replies.PUT,
)
async def put_connection(call: Call[Any, ConnectionBody]) -> Reply:
    """Create a data connection, or replace its definition."""
    lookup, condition = call.path["lookup"], parse_conditional_headers(call.request)
    build = partial(_build_connection, lookup, call.body)
    replaced = await get_catalog_administration().put(get_caller(call), ItemKind.CONNECTION, lookup, build, condition)
    return build_item_reply(await _find_state_and_build_connection_json(replaced.item), is_new=replaced.is_new)


@GROUP.endpoint("DELETE", _ROUTE, right=AccessRight.CATALOG_MANAGE, docs=replies.DELETED)
async def delete_connection(call: Call) -> Reply:
    """Delete a data connection that belongs to no surface.

    A surface is a named group of data connections.
    """
    lookup, condition = call.path["lookup"], parse_conditional_headers(call.request)
    await get_catalog_administration().delete(get_caller(call), ItemKind.CONNECTION, lookup, condition)
    return Reply(204)


def _build_connection(lookup: str, body: ConnectionBody, stored_connection: Mapping[str, Any] | None) -> Connection:
    """Build the connection from a request body; if the body omits `enabled`, use the value of ``stored_connection``."""
    kept = stored_connection is not None and "enabled" not in body.model_fields_set
    return Connection(
        lookup=lookup,
        name=body.name,
        type=body.type,
        enabled=bool(stored_connection.get("enabled", True))
        if kept and stored_connection is not None
        else body.enabled,
        source=body.source,
        simulator=body.simulator,
        signals=tuple(body.signals),
    )


class _ConnectionVersion(NamedTuple):
    """Cache key of a connection's JSON text; it contains all values from which the text is built."""

    item: CatalogItem
    state: ConnectionState | None
    surfaces: tuple[str, ...]


async def _find_state_and_build_connection_json(item: CatalogItem) -> dict[str, Any]:
    states = await services().telemetry.connection_states.load_states_by_connection()
    surfaces = (await services().catalog.get_current_catalog()).list_surface_lookups_of_connection(item.key)
    return _connection_to_json(_ConnectionVersion(item, states.get(item.key), surfaces))


def _connection_to_json(version: _ConnectionVersion) -> dict[str, Any]:
    connection = Connection.model_validate(version.item.definition)
    derived = services().telemetry.statuses.derive_status(connection, version.state)
    return {
        **connection.model_dump(mode="json", by_alias=True),
        "status": derived.status,
        "statusReason": derived.reason,
        "stats": connection_statistics_to_json(version.state),
        "surfaces": list(version.surfaces),
        **last_change_to_json(version.item),
    }


_SERIALIZED = SerializedItems(_connection_to_json)
