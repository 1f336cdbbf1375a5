"""The workspace's document-store accounts in Cosmos DB, opened on first use."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.documents import DatabaseAccount
from azure.identity.aio import DefaultAzureCredential

from shared.backends.azure.cosmos_account import CONNECT_SECONDS, OPEN_SECONDS, READ_SECONDS, SINGLE_TRY_OPTIONS
from shared.backends.azure.cosmos_data_requests import retry_read
from shared.backends.azure.cosmos_requests import CosmosUsage
from shared.backends.azure.cosmos_transport import create_single_try_transport
from shared.backends.azure.identity import app_identity
from shared.data_stores.errors import document_not_found, table_not_found, unavailable
from shared.data_stores.models import Table
from shared.errors import WorkspaceError
from shared.observability import logs

_RESOURCE: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/Microsoft\.DocumentDB/databaseAccounts/(?P<name>[^/]+)",
    re.IGNORECASE,
)
_LOG = logs.get_logger("cosmos")


@dataclass(frozen=True, slots=True)
class DataAccount:
    """An account of Cosmos DB.

    Attributes:
        endpoint: its address.
        subscription: the Azure subscription that it is in.
        group: the resource group there.
        name: its own name.
        key: the account's key, for test servers and emulators; empty to sign in with the identity.
    """

    endpoint: str
    subscription: str = ""
    group: str = ""
    name: str = ""
    key: str = ""


def data_accounts(setting: str, dns_suffix: str) -> dict[str, DataAccount]:
    """Return the accounts that a setting names, by the lookup of their store.

    Args:
        setting: ``lookup=resource id`` with commas between.
        dns_suffix: of the accounts' addresses.

    Raises:
        ValueError: a part has another form.
    """
    accounts = {}
    for part in filter(None, (part.strip() for part in setting.split(","))):
        lookup, _, resource = part.partition("=")
        found = _RESOURCE.fullmatch(resource.strip())
        if found is None:
            raise ValueError(f"DATA_STORE_ACCOUNTS: {lookup} names no Cosmos DB account's resource id")
        endpoint = f"https://{found['name']}.{dns_suffix}:443/"
        accounts[lookup.strip()] = DataAccount(endpoint, found["subscription"], found["group"], found["name"])
    return accounts


class DataAccounts:
    """Gives the containers of the accounts.

    Args:
        accounts: by the lookup of their store.
        client_id: of the user-assigned identity to sign in with; empty for the system-assigned one.
        read_seconds: how long a reply may take.

    Attributes:
        usage: counters of everything that goes through these accounts.
    """

    def __init__(
        self, accounts: Mapping[str, DataAccount], *, client_id: str = "", read_seconds: float = READ_SECONDS
    ) -> None:
        self.usage = CosmosUsage()
        self.accounts = accounts
        self._client_id = client_id
        self._read_seconds = read_seconds
        self._opening = asyncio.Lock()
        self._clients: dict[str, CosmosClient] = {}
        self._credential: DefaultAzureCredential | None = None
        self._containers: dict[Table, ContainerProxy] = {}

    async def container(self, table: Table) -> ContainerProxy:
        """Return the container of a table.

        Raises:
            WorkspaceError: NOT_FOUND ``TABLE_NOT_FOUND``; UNAVAILABLE; THROTTLED; FORBIDDEN.
        """
        if table not in self._containers:
            client = await self._client(table.place.store)
            container = client.get_database_client(table.place.database).get_container_client(table.container.name)
            try:
                # What it says of the partition key is kept by the SDK.
                await retry_read(lambda: container.read(response_hook=self.usage.count_reply), self.usage)
            except WorkspaceError as error:
                raise (table_not_found() if error.code == document_not_found().code else error) from error
            self._containers[table] = container
        return self._containers[table]

    def forget(self, table: Table) -> None:
        """Look a container up again the next time."""
        self._containers.pop(table, None)

    async def close(self) -> None:
        """Close the connections."""
        self._containers.clear()
        while self._clients:
            await self._clients.popitem()[1].close()
        credential, self._credential = self._credential, None
        if credential is not None:
            await credential.close()

    def credential(self) -> DefaultAzureCredential:
        """Return the identity to sign in with."""
        if self._credential is None:
            self._credential = app_identity(self._client_id)
        return self._credential

    async def _client(self, store: str) -> CosmosClient:
        if store not in self._clients:
            async with self._opening:
                if store not in self._clients:
                    self._clients[store] = await self._opened(store)
        return self._clients[store]

    async def _opened(self, store: str) -> CosmosClient:
        account = self.accounts.get(store)
        if account is None:
            _LOG.error("DATA_STORE_ACCOUNTS names no account of a store", extra=logs.fields(store=store))
            raise unavailable()
        waits: dict[str, Any] = {"connection_timeout": CONNECT_SECONDS, "read_timeout": self._read_seconds}
        credential = account.key or self.credential()
        client = CosmosClient(
            account.endpoint, credential, transport=create_single_try_transport(), **SINGLE_TRY_OPTIONS, **waits
        )
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await client.__aenter__()
                _refuse_unfit(await client._get_database_account())  # noqa: SLF001  the SDK has no public way
        except BaseException as error:
            # A client that failed to open would keep its connections.
            await client.close()
            if not isinstance(error, Exception) or isinstance(error, WorkspaceError):
                raise
            _LOG.exception("a document-store account cannot be opened", extra=logs.fields(store=store))
            raise unavailable() from error
        return client


def _refuse_unfit(account: DatabaseAccount) -> None:
    """Refuse an account with several write regions: an ETag holds within one region only.

    Raises:
        WorkspaceError: UNAVAILABLE.
    """
    if account._EnableMultipleWritableLocations or len(account.WritableLocations) > 1:  # noqa: SLF001  as above
        _LOG.error("a document-store account is refused: it has several write regions")
        raise unavailable()
