"""Containers of document-store databases."""

from typing import Any

from pydantic import BaseModel, Field, StrictStr

from functions.idempotency import answered_once
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
    """A container as its maker asks for it."""

    name: StrictStr
    partition_key_path: StrictStr = Field(alias="partitionKeyPath")
    data_class: DataClass = Field(alias="dataClass")


async def _sound_container(call: Call[Any, ContainerBody], faults: ValidationErrors) -> None:
    check_container(faults, call.body.name, call.body.partition_key_path, call.body.data_class)


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.DATA_STORE_READ, docs=replies.LISTED)
async def list_containers(call: Call) -> Reply:
    """List the containers of a database, those that others made too."""
    return json_reply([_shown(container) for container in await services().containers.list(call.path["lookup"])])


@GROUP.endpoint(
    "POST",
    _ROUTE,
    right=AccessRight.DATA_STORE_MANAGE,
    body=ContainerBody,
    check=_sound_container,
    docs=replies.CREATED,
)
@answered_once
async def create_container(call: Call[Any, ContainerBody]) -> Reply:
    """Create a container in a database; its partition key path cannot change later."""
    body = call.body
    container = Container(name=body.name, partition_key_path=body.partition_key_path, data_class=body.data_class)
    made = await services().containers.create(call.principal, call.path["lookup"], container)
    return json_reply(_shown(made), 201)


@GROUP.endpoint("DELETE", _ROUTE + "/{containerName}", right=AccessRight.DATA_STORE_MANAGE, docs=replies.DELETED)
async def delete_container(call: Call) -> Reply:
    """Remove the record of a container that does not exist in the account."""
    await services().containers.delete(call.principal, call.path["lookup"], call.path["containerName"])
    return Reply(204)


def _shown(container: ContainerSummary) -> dict[str, Any]:
    return {
        "name": container.name,
        "partitionKeyPath": container.partition_key_path,
        "dataClass": container.data_class,
        "Declared": container.declared,
        "provisioned": container.provisioned,
    }
