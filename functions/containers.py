"""HTTP operations on data stores (databases with the users' documents) and on their containers."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, Field, StrictStr

from functions.catalog_items import (
    LIVE_MEMBERS,
    build_item_reply,
    check_conditional_headers,
    compute_item_etag,
    get_caller,
    get_catalog_administration,
    last_change_to_json,
)
from functions.conditions import parse_conditional_headers
from functions.idempotency import make_idempotent
from functions.reply_docs import containers as replies
from shared.auth.rights import AccessRight
from shared.catalog.administration import find_item
from shared.catalog.items import ItemKind, build_container_key
from shared.catalog.models import Container, DataClass, DataStore, Verb
from shared.catalog.ports import CatalogItem
from shared.catalog.snapshot import Catalog
from shared.data_stores.containers import (
    NAME,
    PATH,
    ContainerChange,
    ContainerSummary,
    apply_container_change,
    build_container_not_found_error,
    check_data_class_change,
    check_new_container,
)
from shared.data_stores.tables import build_database_not_found_error
from shared.errors import ValidationErrors, WorkspaceError
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group, ServerManagedProperties, StrictBody
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.wiring import services

GROUP = Group("containers")
_ROUTE = "oi-api/data-stores/{lookup}/containers"


class ContainerBody(BaseModel):
    """Request body that creates a container."""

    name: StrictStr = Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"})
    partition_key_path: StrictStr = Field(alias="partitionKeyPath", json_schema_extra={"pattern": f"^{PATH.pattern}$"})
    data_class: DataClass = Field(alias="dataClass")


async def _check_new_container(call: Call[Any, ContainerBody], faults: ValidationErrors) -> None:
    check_new_container(faults, call.body.name, call.body.partition_key_path, call.body.data_class)


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.DATA_STORE_READ, docs=replies.LISTED)
async def list_containers(call: Call) -> Reply:
    """List the containers of a database.

    The list includes containers of the Cosmos DB account that were not created through this API.
    """
    return build_json_reply(
        [
            _container_to_json(container)
            for container in await services().data_stores.containers.list(call.path["lookup"])
        ]
    )


@GROUP.endpoint(
    "POST",
    _ROUTE,
    right=AccessRight.DATA_STORE_MANAGE,
    body=ContainerBody,
    check=_check_new_container,
    docs=replies.CREATED,
)
@make_idempotent
async def create_container(call: Call[Any, ContainerBody]) -> Reply:
    """Create a container in a database.

    The partition key path of a container cannot be changed later.
    """
    body = call.body
    container = Container(name=body.name, partition_key_path=body.partition_key_path, data_class=body.data_class)
    created = await services().data_stores.containers.create(call.principal, call.path["lookup"], container)
    return build_json_reply(_container_to_json(created), 201)


@GROUP.endpoint("DELETE", _ROUTE + "/{containerName}", right=AccessRight.DATA_STORE_MANAGE, docs=replies.DELETED)
async def delete_container(call: Call) -> Reply:
    """Delete the catalog record of a container; the container must not exist in the Cosmos DB account."""
    lookup, name, condition = call.path["lookup"], call.path["containerName"], parse_conditional_headers(call.request)
    await services().data_stores.containers.delete_container_record(call.principal, lookup, name, condition)
    return Reply(204)


class ContainerRecordBody(StrictBody):
    """Request body that changes the catalog record of a container; omitted properties keep their values.

    The partition key path cannot be changed; it may be sent back with its current value.
    """

    data_class: DataClass | None = Field(None, alias="dataClass")
    expose: list[Verb] | None = None
    partition_key_path: str | None = Field(None, alias="partitionKeyPath")


@GROUP.endpoint("GET", "oi-api/data-stores", right=AccessRight.DATA_STORE_READ, docs=replies.STORES_LISTED)
async def list_data_stores(_: Call) -> Reply:
    """Return the data stores with their databases and declared containers."""
    catalog = await services().catalog.get_current_catalog()
    # A data store can have many containers.
    return await services().runtime.run_in_thread(_build_data_stores_reply, catalog)


@GROUP.endpoint("GET", _ROUTE + "/{containerName}", right=AccessRight.DATA_STORE_READ, docs=replies.RECORD_READ)
async def read_container(call: Call) -> Reply:
    """Return the catalog record of a container."""
    return build_item_reply(_container_record_to_json(await _get_container_record(call.path)))


async def _read_current_container(path_parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the catalog record of a container as JSON; only the container's name if there is no record."""
    key = build_container_key(path_parameters["lookup"], path_parameters["containerName"])
    item = await get_catalog_administration().find(ItemKind.CONTAINER, key)
    return {"name": path_parameters["containerName"]} if item is None else _container_record_to_json(item)


async def _check_container_record(call: Call[Any, ContainerRecordBody], faults: ValidationErrors) -> None:
    check_conditional_headers(faults, call.request)
    key = build_container_key(call.path["lookup"], call.path["containerName"])
    if call.body.data_class is DataClass.EVIDENCE:
        item = await get_catalog_administration().find(ItemKind.CONTAINER, key)
        check_data_class_change(faults, None if item is None else item.definition, call.body.data_class)


@GROUP.endpoint(
    "PUT",
    _ROUTE + "/{containerName}",
    right=AccessRight.DATA_STORE_MANAGE,
    body=ContainerRecordBody,
    server_set=ServerManagedProperties(
        frozenset(replies.ContainerRecord.__annotations__)
        - map_accepted_names_to_documented_names(ContainerRecordBody).keys(),
        _read_current_container,
        volatile=LIVE_MEMBERS,
    ),
    check=_check_container_record,
    docs=replies.RECORD_PUT,
)
async def put_container(call: Call[Any, ContainerRecordBody]) -> Reply:
    """Change the data class or the exposed operations of a declared container."""
    body, condition = call.body, parse_conditional_headers(call.request)
    try:
        item = await _get_container_record(call.path)
    except WorkspaceError as error:
        if error.code == "CONTAINER_NOT_FOUND":
            condition.check_write_allowed(None)
        raise
    change = ContainerChange(
        body.data_class, None if body.expose is None else frozenset(body.expose), body.partition_key_path
    )
    build = partial(apply_container_change, change)
    replaced = await get_catalog_administration().put(get_caller(call), ItemKind.CONTAINER, item.key, build, condition)
    return build_item_reply(_container_record_to_json(replaced.item))


async def _get_container_record(path_parameters: Mapping[str, str]) -> CatalogItem:
    """Return the catalog record of the Cosmos DB container that the URL path names.

    Raises:
        WorkspaceError: NOT_FOUND ``DATABASE_NOT_FOUND``, or ``CONTAINER_NOT_FOUND`` if the catalog has no record.
    """
    stored = await services().provenance.catalog_service.load()
    item = find_item(
        stored, ItemKind.CONTAINER, build_container_key(path_parameters["lookup"], path_parameters["containerName"])
    )
    if item is not None:
        return item
    if (await services().catalog.get_current_catalog()).find_database(path_parameters["lookup"]) is None:
        raise build_database_not_found_error(path_parameters["lookup"])
    raise build_container_not_found_error()


def _build_data_stores_reply(catalog: Catalog) -> Reply:
    stores = [_data_store_to_json(catalog.data_stores[lookup].value, catalog) for lookup in sorted(catalog.data_stores)]
    return build_json_reply({"dataStores": stores})


def _data_store_to_json(store: DataStore, catalog: Catalog) -> dict[str, Any]:
    described: dict[str, Any] = store.model_dump(mode="json", by_alias=True)
    for database in described["databases"]:
        for container in database["containers"]:
            key = build_container_key(database["lookup"], container["name"])
            container["etag"] = compute_item_etag(catalog.items[ItemKind.CONTAINER, key])
    return described


def _container_record_to_json(item: CatalogItem) -> dict[str, Any]:
    container = Container.model_validate(item.definition)
    return {**container.model_dump(mode="json", by_alias=True), "Declared": True, **last_change_to_json(item)}


def _container_to_json(container: ContainerSummary) -> dict[str, Any]:
    return {
        "name": container.name,
        "partitionKeyPath": container.partition_key_path,
        "dataClass": container.data_class,
        "Declared": container.declared,
        "provisioned": container.provisioned,
    }
