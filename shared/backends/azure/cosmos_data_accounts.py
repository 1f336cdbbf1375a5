"""Cosmos DB accounts with the users' documents (document stores of the workspace), opened on first use."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.documents import DatabaseAccount
from azure.identity.aio import DefaultAzureCredential

from shared.backends.azure.cosmos_account import (
    CONNECT_SECONDS,
    OPEN_SECONDS,
    READ_SECONDS,
    SINGLE_TRY_OPTIONS,
    connect_and_read_account,
)
from shared.backends.azure.cosmos_data_requests import retry_document_read
from shared.backends.azure.cosmos_requests import CosmosUsage
from shared.backends.azure.cosmos_transport import create_single_try_transport
from shared.backends.azure.identity import create_app_credential
from shared.backends.azure.shared_attempts import SharedAttempts
from shared.data_stores.errors import (
    build_document_not_found_error,
    build_store_unavailable_error,
    build_table_not_found_error,
)
from shared.data_stores.models import Table
from shared.errors import WorkspaceError
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

_RESOURCE: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/Microsoft\.DocumentDB/databaseAccounts/(?P<name>[^/]+)",
    re.IGNORECASE,
)
_LOG = logs.get_logger("cosmos")


@dataclass(frozen=True, slots=True)
class DataAccount:
    """Cosmos DB account of a document store.

    Attributes:
        endpoint: URL of the account.
        subscription: id of the Azure subscription that contains the account.
        group: resource group of the account.
        name: name of the account.
        key: key of the account, for test servers and emulators; empty to sign in with the identity.
    """

    endpoint: str
    subscription: str = ""
    group: str = ""
    name: str = ""
    key: str = ""


def parse_data_accounts_by_store(setting_value: str, dns_suffix: str) -> dict[str, DataAccount]:
    """Parse the setting ``DATA_STORE_ACCOUNTS``; return the accounts by the short name (lookup) of the document store.

    Args:
        setting_value: comma-separated entries ``lookup=resource id``.
        dns_suffix: DNS suffix of the accounts' addresses.

    Raises:
        ValueError: an entry is malformed.
    """
    accounts = {}
    for part in filter(None, (part.strip() for part in setting_value.split(","))):
        lookup, _, resource = part.partition("=")
        found = _RESOURCE.fullmatch(resource.strip())
        if found is None:
            raise ValueError(
                f"DATA_STORE_ACCOUNTS: the value of {lookup} must be the resource id of a Cosmos DB account"
            )
        endpoint = f"https://{found['name']}.{dns_suffix}:443/"
        accounts[lookup.strip()] = DataAccount(endpoint, found["subscription"], found["group"], found["name"])
    return accounts


class DataAccounts:
    """Clients of the document stores' accounts, opened on first use.

    Args:
        accounts: Cosmos DB accounts by the short name in URLs (lookup) of their document store.
        client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        read_seconds: timeout of a reply in seconds.
        runtime: clock, randomness and threads.

    Attributes:
        usage: counters of all requests to these accounts.
        runtime: clock, randomness and threads, also for the stores in these accounts.
    """

    def __init__(
        self,
        accounts: Mapping[str, DataAccount],
        *,
        client_id: str = "",
        read_seconds: float = READ_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self.usage = CosmosUsage()
        self.runtime = runtime
        self.accounts = accounts
        self._client_id = client_id
        self._read_seconds = read_seconds
        self._opening = {store: SharedAttempts() for store in accounts}
        self._clients: dict[str, CosmosClient] = {}
        self._credential: DefaultAzureCredential | None = None
        self._containers: dict[Table, ContainerProxy] = {}

    async def open_container(self, table: Table) -> ContainerProxy:
        """Return the client of the Cosmos DB container that stores a table's documents.

        Raises:
            WorkspaceError: NOT_FOUND ``TABLE_NOT_FOUND`` if the container does not exist; UNAVAILABLE, THROTTLED or
                FORBIDDEN if the account rejects the request.
        """
        if table not in self._containers:
            client = await self._get_or_open_client(table.place.store)
            container = client.get_database_client(table.place.database).get_container_client(table.container.name)
            try:
                # The SDK caches the partition key of the reply.
                await retry_document_read(
                    lambda: container.read(response_hook=self.usage.record_reply), self.usage, self.runtime
                )
            except WorkspaceError as error:
                raise (
                    build_table_not_found_error() if error.code == build_document_not_found_error().code else error
                ) from error
            self._containers[table] = container
        return self._containers[table]

    def remove_cached_container(self, table: Table) -> None:
        """Remove the container of a table from this object's cache of containers."""
        self._containers.pop(table, None)

    async def close(self) -> None:
        """Close the connections to all accounts."""
        self._containers.clear()
        while self._clients:
            await self._clients.popitem()[1].close()
        credential, self._credential = self._credential, None
        if credential is not None:
            await credential.close()

    def get_or_create_credential(self) -> DefaultAzureCredential:
        """Return the Azure credential with which the app signs in."""
        if self._credential is None:
            self._credential = create_app_credential(self._client_id)
        return self._credential

    async def _get_or_open_client(self, store_lookup: str) -> CosmosClient:
        if store_lookup not in self.accounts:
            _LOG.error(
                "a data store of the workspace has no account in DATA_STORE_ACCOUNTS",
                extra=logs.fields(store=store_lookup),
            )
            raise build_store_unavailable_error()
        async with self._opening[store_lookup].hold_lock_or_raise_shared_failure():
            if store_lookup not in self._clients:
                self._clients[store_lookup] = await self._open_client(store_lookup)
        return self._clients[store_lookup]

    async def _open_client(self, store_lookup: str) -> CosmosClient:
        account = self.accounts[store_lookup]
        timeouts: dict[str, Any] = {"connection_timeout": CONNECT_SECONDS, "read_timeout": self._read_seconds}
        credential = account.key or self.get_or_create_credential()
        client = CosmosClient(
            account.endpoint, credential, transport=create_single_try_transport(), **SINGLE_TRY_OPTIONS, **timeouts
        )
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                _reject_unsuitable_account(await connect_and_read_account(client))
        except BaseException as error:
            # Otherwise a client that failed to open would not close its connections.
            await client.close()
            if not isinstance(error, Exception) or isinstance(error, WorkspaceError):
                raise
            _LOG.exception("a document-store account cannot be opened", extra=logs.fields(store=store_lookup))
            raise build_store_unavailable_error() from error
        return client


def _reject_unsuitable_account(account: DatabaseAccount) -> None:
    """Reject an account with several write regions, because ETags are valid in one region only.

    Raises:
        WorkspaceError: UNAVAILABLE if the account has several write regions.
    """
    if account._EnableMultipleWritableLocations or len(account.WritableLocations) > 1:  # noqa: SLF001  the SDK has no public way
        _LOG.error("a document-store account is rejected: it has several write regions")
        raise build_store_unavailable_error()
