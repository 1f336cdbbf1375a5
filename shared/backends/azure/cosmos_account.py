"""Opens the workspace's Cosmos DB account, and refuses the kinds that cannot keep what it must."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.documents import DatabaseAccount
from azure.identity.aio import DefaultAzureCredential

from shared.backends.azure.cosmos_containers import DEFINITIONS
from shared.backends.azure.cosmos_requests import CosmosUsage, retry_read, unavailable
from shared.backends.azure.cosmos_transport import create_single_try_transport
from shared.backends.azure.identity import app_identity
from shared.errors import WorkspaceError
from shared.observability import logs

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 10
"""A batch has 5 s on the service; whoever waits twice as long waits for a reply that was lost."""

OPEN_SECONDS: Final = 20
"""The SDK asks for the account's regions four times, with pauses."""

_CONSISTENT: Final = frozenset({"Strong", "BoundedStaleness"})
SINGLE_TRY_OPTIONS: Final[Mapping[str, Any]] = {
    # A batch that the SDK sends again meets its own first try as a conflict. 0 throttle retries would mean the
    # default of 9; without endpoint discovery 503 and 403/3 are not sent again either.
    "retry_total": 0,
    "retry_throttle_total": -1,
    "enable_endpoint_discovery": False,
    "enable_compact_utf8_item_writes": True,
}
_LOG = logs.get_logger("cosmos")


class CosmosAccount:
    """An account's database, opened on first use.

    Args:
        endpoint: the account's address.
        database: its name.
        client_id: of the user-assigned identity to sign in with; empty for the system-assigned one.
        key: the account's key, for test servers and emulators; empty to sign in with the identity.
        read_seconds: how long a reply may take.

    Attributes:
        usage: counters of everything that goes through this account.
    """

    def __init__(
        self, endpoint: str, database: str, *, client_id: str = "", key: str = "", read_seconds: float = READ_SECONDS
    ) -> None:
        self.usage = CosmosUsage()
        self._endpoint = endpoint
        self._database = database
        self._client_id = client_id
        self._key = key
        self._read_seconds = read_seconds
        self._opening = asyncio.Lock()
        self._client: CosmosClient | None = None
        self._credential: DefaultAzureCredential | None = None
        self._containers: dict[str, ContainerProxy] = {}

    async def container(self, name: str) -> ContainerProxy:
        """Return one of the service's own containers, found fit.

        Raises:
            WorkspaceError: UNAVAILABLE; the account does not answer, or its definition or the container's is unfit.
        """
        if name not in self._containers:
            async with self._opening:
                if name not in self._containers:
                    self._containers[name] = await self._checked(await self._opened(), name)
        return self._containers[name]

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        credential, self._credential = self._credential, None
        self._containers.clear()
        if client is not None:
            await client.close()
        if credential is not None:
            await credential.close()

    async def _opened(self) -> CosmosClient:
        if self._client is None:
            try:
                self._client = self._made()
                async with asyncio.timeout(OPEN_SECONDS):
                    await self._client.__aenter__()
                    _refuse_unfit(await self._client._get_database_account())  # noqa: SLF001  the SDK has no public way
            except BaseException as error:
                # A client that failed to open would keep its connections.
                await self.close()
                if not isinstance(error, Exception) or isinstance(error, WorkspaceError):
                    raise
                _LOG.exception("the Cosmos DB account cannot be opened")
                raise unavailable() from error
        return self._client

    def _made(self) -> CosmosClient:
        credential: str | DefaultAzureCredential = self._key
        if not credential:
            credential = app_identity(self._client_id)
            self._credential = credential
        waits: dict[str, Any] = {"connection_timeout": CONNECT_SECONDS, "read_timeout": self._read_seconds}
        return CosmosClient(
            self._endpoint, credential, transport=create_single_try_transport(), **SINGLE_TRY_OPTIONS, **waits
        )

    async def _checked(self, client: CosmosClient, name: str) -> ContainerProxy:
        container = client.get_database_client(self._database).get_container_client(name)
        try:
            properties = await retry_read(lambda: container.read(response_hook=self.usage.count_reply), self.usage)
        except WorkspaceError:
            raise
        except Exception as error:
            _LOG.exception("a container cannot be read", extra=logs.fields(container=name))
            raise unavailable(f"has no container {name}") from error
        faults = DEFINITIONS[name].faults(properties)
        if faults:
            raise unavailable(f"does not take container {name}: {'; '.join(faults)}")
        return container


def _refuse_unfit(account: DatabaseAccount) -> None:
    """Refuse an account on which a compare-and-swap, or a read after it, may not hold.

    Raises:
        WorkspaceError: UNAVAILABLE; several write regions, or a consistency below bounded staleness.
    """
    level = str((account.ConsistencyPolicy or {}).get("defaultConsistencyLevel", "none"))
    reason = ""
    if account._EnableMultipleWritableLocations or len(account.WritableLocations) > 1:  # noqa: SLF001  as above
        reason = "does not take an account with several write regions: a tip could be replaced twice"
    elif level not in _CONSISTENT:
        reason = f"does not take an account of consistency {level}: bounded staleness or strong is needed"
    if reason:
        _LOG.error("the Cosmos DB account is refused", extra=logs.fields(reason=reason))
        raise unavailable(reason)
