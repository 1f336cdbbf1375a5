"""Containers of document stores.

The adapter manages the containers through Azure Resource Manager, because Cosmos DB's own API would require the account
key.

Tested with the genuine SDK against a test server; never run against Azure.

This module is separate from ``cosmos_documents`` because requests for documents do not need the management SDK.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.core.polling.base_polling import BadResponse, BadStatus, OperationFailed
from azure.mgmt.cosmosdb.aio import CosmosDBManagementClient
from azure.mgmt.cosmosdb.models import (
    ContainerPartitionKey,
    SqlContainerCreateUpdateParameters,
    SqlContainerCreateUpdateProperties,
    SqlContainerGetResults,
    SqlContainerResource,
)

from shared.backends.azure.cosmos_account import CONNECT_SECONDS
from shared.backends.azure.cosmos_data_accounts import DataAccount, DataAccounts
from shared.data_stores.errors import (
    build_container_exists_error,
    build_container_outcome_unknown_error,
    build_store_unavailable_error,
    build_throttled_error,
)
from shared.data_stores.models import AccountContainer, DatabaseAddress
from shared.errors import WorkspaceError
from shared.observability import logs

POLL_SECONDS: Final = 2
READ_SECONDS: Final = 30
CREATE_SECONDS: Final = 150
"""Timeout in seconds of the creation of a container; Azure Functions ends a request after 230 s."""
_HASH_VERSION: Final = 2
_SERVER_ERRORS: Final = 500
_AMBIGUOUS: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT})
"""Rejections that are possible although an attempt whose reply was lost has started the creation."""
_LOG = logs.get_logger("cosmos")


class CosmosContainerStore:
    """Implementation of ContainerStore: manages Cosmos DB containers through Azure Resource Manager.

    The app's identity requires the role Cosmos DB Operator on the accounts.

    Args:
        accounts: accounts of the document stores.
        options: more options of the SDK's management client, for instance for a sovereign cloud.
    """

    def __init__(self, accounts: DataAccounts, **options: Any) -> None:
        self._accounts = accounts
        self._options = options
        self._clients: dict[str, CosmosDBManagementClient] = {}

    async def close(self) -> None:
        """Close the connections to Azure Resource Manager."""
        while self._clients:
            await self._clients.popitem()[1].close()

    async def list(self, database: DatabaseAddress) -> Sequence[AccountContainer]:
        account = self._require_account(database)
        with _convert_azure_errors():
            listed = self._get_or_open_client(account).sql_resources.list_sql_containers(
                account.group, account.name, database.database
            )
            try:
                found = [_container_from_result(result) async for result in listed]
            except ResourceNotFoundError:
                return ()
        return sorted(found, key=lambda container: container.name)

    async def find_container(self, database: DatabaseAddress, name: str) -> AccountContainer | None:
        account = self._require_account(database)
        with _convert_azure_errors():
            try:
                found = await self._get_or_open_client(account).sql_resources.get_sql_container(
                    account.group, account.name, database.database, name
                )
            except ResourceNotFoundError:
                return None
        return _container_from_result(found)

    async def create_container(self, database: DatabaseAddress, container: AccountContainer) -> None:
        # The request below would change an existing container.
        if await self.find_container(database, container.name) is not None:
            raise build_container_exists_error()
        account = self._require_account(database)
        key = ContainerPartitionKey(paths=[container.partition_key_path], kind="Hash", version=_HASH_VERSION)
        resource = SqlContainerResource(id=container.name, partition_key=key)
        wanted = SqlContainerCreateUpdateParameters(properties=SqlContainerCreateUpdateProperties(resource=resource))
        with _convert_container_creation_errors():
            poller = await self._get_or_open_client(account).sql_resources.begin_create_update_sql_container(
                account.group, account.name, database.database, container.name, wanted, polling_interval=POLL_SECONDS
            )
            async with asyncio.timeout(CREATE_SECONDS):
                await poller.result()

    def _require_account(self, database: DatabaseAddress) -> DataAccount:
        account = self._accounts.accounts.get(database.store)
        if account is None:
            _LOG.error(
                "a data store of the workspace has no account in DATA_STORE_ACCOUNTS",
                extra=logs.fields(store=database.store),
            )
            raise build_store_unavailable_error()
        return account

    def _get_or_open_client(self, account: DataAccount) -> CosmosDBManagementClient:
        if account.subscription not in self._clients:
            credential = self._accounts.get_or_create_credential()
            # A reply with Retry-After is passed on to the caller.
            retries: dict[str, Any] = {"retry_total": 2, "retry_status": 0, "retry_on_status_codes": []}
            timeouts = {"connection_timeout": CONNECT_SECONDS, "read_timeout": READ_SECONDS}
            client = CosmosDBManagementClient(
                credential, account.subscription, **{**retries, **timeouts, **self._options}
            )
            self._clients[account.subscription] = client
        return self._clients[account.subscription]


def _container_from_result(result: SqlContainerGetResults) -> AccountContainer:
    resource = result.properties.resource if result.properties else None
    if resource is None:
        raise build_store_unavailable_error()
    paths = resource.partition_key.paths if resource.partition_key else None
    # A hierarchical partition key has several paths.
    return AccountContainer(resource.id, ",".join(paths or ()))


@contextmanager
def _convert_azure_errors() -> Iterator[None]:
    try:
        yield
    except HttpResponseError as error:
        raise _error_from_rejection(error) from error
    except (AzureError, OSError, TimeoutError) as error:
        _LOG.exception("Resource Manager does not answer")
        raise build_store_unavailable_error() from error


@contextmanager
def _convert_container_creation_errors() -> Iterator[None]:
    """Context manager: convert the errors of a block that creates a container.

    Unless an error proves that no container was created, the result counts as unknown, because Resource Manager
    continues the creation after a timeout or a lost reply.
    """
    try:
        yield
    except (AzureError, OSError, TimeoutError) as error:
        if isinstance(error, HttpResponseError) and _is_proof_of_no_creation(error):
            raise _error_from_rejection(error) from error
        _LOG.exception("the result of the creation of a container is unknown")
        raise build_container_outcome_unknown_error() from error


def _is_proof_of_no_creation(error: HttpResponseError) -> bool:
    """Return whether Resource Manager rejected the creation of a container, or reports that the creation has failed."""
    if isinstance(error.inner_exception, OperationFailed):
        return True
    is_reply_to_poll = isinstance(error.inner_exception, BadStatus | BadResponse)
    status = error.status_code or 0
    return not is_reply_to_poll and HTTPStatus.BAD_REQUEST <= status < _SERVER_ERRORS and status not in _AMBIGUOUS


def _error_from_rejection(error: HttpResponseError) -> WorkspaceError:
    if error.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        headers: Any = getattr(error.response, "headers", {})
        retry_after = headers.get("Retry-After", "")
        return build_throttled_error(float(retry_after) if retry_after.isdecimal() else 1)
    _LOG.error("Resource Manager rejected a request", extra=logs.fields(status=error.status_code), exc_info=error)
    return build_store_unavailable_error()
