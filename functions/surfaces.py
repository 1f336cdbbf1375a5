"""HTTP operations on surfaces (groups of data connections): list, read, create, replace, delete."""

from collections.abc import Mapping
from typing import Any, ClassVar

from functions.catalog_items import (
    LIVE_MEMBERS,
    add_field_errors,
    build_item_list_reply,
    build_item_reply,
    check_conditional_headers,
    check_lookup,
    get_caller,
    get_catalog_administration,
    last_change_to_json,
)
from functions.conditions import parse_conditional_headers
from functions.paging import CatalogPageQuery, build_cursor_check, select_page
from functions.reply_docs import alert_rules as replies
from shared.auth.rights import AccessRight
from shared.catalog.administration import build_surface_not_found_error
from shared.catalog.fields import DECLARED
from shared.catalog.item_checks import find_surface_errors
from shared.catalog.items import ItemKind
from shared.catalog.models import Lookup, Surface
from shared.catalog.ports import CatalogItem
from shared.catalog.snapshot import Catalog
from shared.errors import ValidationErrors
from shared.http.messages import Reply
from shared.http.operations import Call, Group, ServerManagedProperties, StrictBody
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.validation.names import Name
from shared.wiring import services

GROUP = Group("surfaces")
_ROUTE = "oi-api/surfaces/{lookup}"


class SurfaceBody(StrictBody):
    """Request body that defines a surface."""

    validation_context: ClassVar[Mapping[str, Any]] = DECLARED

    name: Name
    description: str | None = None
    connections: list[Lookup]


@GROUP.endpoint(
    "GET",
    "oi-api/surfaces",
    right=AccessRight.CATALOG_READ,
    query=CatalogPageQuery,
    check=build_cursor_check("surfaces"),
    docs=replies.SURFACES_LISTED,
)
async def list_surfaces(call: Call[CatalogPageQuery]) -> Reply:
    """Return the surfaces, sorted by lookup.

    A surface is a named group of data connections. Its lookup is its short name in URLs.
    """
    catalog = await services().catalog.get_current_catalog()
    page, cursor = select_page("surfaces", catalog.surfaces, call.query)
    queries = _group_query_lookups_by_surface(catalog)

    def surface_to_json(lookup: str) -> dict[str, Any]:
        return _surface_to_json(catalog.items[ItemKind.SURFACE, lookup], catalog.surfaces[lookup].value, queries)

    return await build_item_list_reply("surfaces", page, cursor, surface_to_json)


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.CATALOG_READ, docs=replies.SURFACE_READ)
async def read_surface(call: Call) -> Reply:
    """Return a surface.

    A surface is a named group of data connections.
    """
    catalog = await services().catalog.get_current_catalog()
    if call.path["lookup"] not in catalog.surfaces:
        raise build_surface_not_found_error(call.path["lookup"])
    return build_item_reply(
        await _find_queries_and_build_surface_json(catalog.items[ItemKind.SURFACE, call.path["lookup"]])
    )


async def _read_current_surface(path_parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored surface (group of connections) as JSON.

    If it does not exist, return an object with only its lookup (short name in URLs) and an empty list of queries.
    """
    item = await get_catalog_administration().find(ItemKind.SURFACE, path_parameters["lookup"])
    return (
        {"lookup": path_parameters["lookup"], "queries": []}
        if item is None
        else await _find_queries_and_build_surface_json(item)
    )


async def _check_surface(call: Call[Any, SurfaceBody], faults: ValidationErrors) -> None:
    check_lookup(faults, call.path["lookup"])
    check_conditional_headers(faults, call.request)
    if faults.has_valid_fields("connections"):
        stored = await services().provenance.catalog_service.load()
        known = (item.key for item in stored.items if item.kind == ItemKind.CONNECTION)
        made = Surface.model_construct(lookup="any", name="any", connections=tuple(call.body.connections))
        add_field_errors(faults, find_surface_errors(made, known))


@GROUP.endpoint(
    "PUT",
    _ROUTE,
    right=AccessRight.CATALOG_MANAGE,
    body=SurfaceBody,
    server_set=ServerManagedProperties(
        frozenset(replies.SurfaceDefinition.__annotations__)
        - map_accepted_names_to_documented_names(SurfaceBody).keys(),
        _read_current_surface,
        volatile=LIVE_MEMBERS,
    ),
    check=_check_surface,
    docs=replies.SURFACE_PUT,
)
async def put_surface(call: Call[Any, SurfaceBody]) -> Reply:
    """Create a surface, or replace its definition.

    A surface is a named group of data connections.
    """
    lookup, body = call.path["lookup"], call.body
    made = Surface(lookup=lookup, name=body.name, description=body.description, connections=tuple(body.connections))
    replaced = await get_catalog_administration().put(
        get_caller(call), ItemKind.SURFACE, lookup, lambda _: made, parse_conditional_headers(call.request)
    )
    return build_item_reply(await _find_queries_and_build_surface_json(replaced.item), is_new=replaced.is_new)


@GROUP.endpoint("DELETE", _ROUTE, right=AccessRight.CATALOG_MANAGE, docs=replies.SURFACE_DELETED)
async def delete_surface(call: Call) -> Reply:
    """Delete a surface that has no warm queries.

    A surface is a named group of data connections, a warm query a saved KQL query.
    """
    lookup, condition = call.path["lookup"], parse_conditional_headers(call.request)
    await get_catalog_administration().delete(get_caller(call), ItemKind.SURFACE, lookup, condition)
    return Reply(204)


def _group_query_lookups_by_surface(catalog: Catalog) -> dict[str, list[str]]:
    """Return the lookups (ids in URLs) of the saved queries of each surface (group of connections), by surface."""
    grouped: dict[str, list[str]] = {}
    for lookup in sorted(catalog.queries):
        grouped.setdefault(catalog.queries[lookup].value.surface, []).append(lookup)
    return grouped


async def _find_queries_and_build_surface_json(item: CatalogItem) -> dict[str, Any]:
    surface = Surface.model_validate(item.definition)
    return _surface_to_json(
        item, surface, _group_query_lookups_by_surface(await services().catalog.get_current_catalog())
    )


def _surface_to_json(
    item: CatalogItem, surface: Surface, query_lookups_by_surface: Mapping[str, list[str]]
) -> dict[str, Any]:
    return {
        **surface.model_dump(mode="json"),
        "queries": query_lookups_by_surface.get(item.key, []),
        **last_change_to_json(item),
    }
