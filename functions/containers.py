"""HTTP operations on the containers of a database: list, create, delete."""

from typing import Any

from pydantic import BaseModel, Field, StrictStr

from functions.idempotency import make_idempotent
from functions.replies import data_stores as replies
from shared.auth.rights import AccessRight
from shared.catalog.models import Container, DataClass
from shared.data_stores.containers import ContainerSummary, check_container
from shared.errors import ValidationErrors
from shared.http.messages import Reply, json_reply
from shared.http.operations import Call, Group
from shared.wiring import services

GROUP = Group("containers")
_ROUTE = "oi-api/data-stores/{lookup}/containers"


class ContainerBody(BaseModel):
    """Request body that creates a container."""

    name: StrictStr
    partition_key_path: StrictStr = Field(alias="partitionKeyPath")
    data_class: DataClass = Field(alias="dataClass")


async def _check_container(call: Call[Any, ContainerBody], faults: ValidationErrors) -> None:
    check_container(faults, call.body.name, call.body.partition_key_path, call.body.data_class)


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.DATA_STORE_READ, docs=replies.LISTED)
async def list_containers(call: Call) -> Reply:
    """List the containers of a database.

    The list includes containers of the account that were not created through this API.
    """
    return json_reply(
        [_to_json(container) for container in await services().data_stores.containers.list(call.path["lookup"])]
    )


@GROUP.endpoint(
    "POST",
    _ROUTE,
    right=AccessRight.DATA_STORE_MANAGE,
    body=ContainerBody,
    check=_check_container,
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
    return json_reply(_to_json(created), 201)


@GROUP.endpoint("DELETE", _ROUTE + "/{containerName}", right=AccessRight.DATA_STORE_MANAGE, docs=replies.DELETED)
async def delete_container(call: Call) -> Reply:
    """Delete the declaration of a container that does not exist in the account."""
    await services().data_stores.containers.delete(call.principal, call.path["lookup"], call.path["containerName"])
    return Reply(204)


def _to_json(container: ContainerSummary) -> dict[str, Any]:
    return {
        "name": container.name,
        "partitionKeyPath": container.partition_key_path,
        "dataClass": container.data_class,
        "Declared": container.declared,
        "provisioned": container.provisioned,
    }
