"""Cosmos DB account of the workspace. An account without the required consistency is rejected."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from azure.core.pipeline.transport import AsyncHttpTransport
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.documents import DatabaseAccount
from azure.identity.aio import DefaultAzureCredential

from shared.backends.azure.cosmos_containers import DEFINITIONS
from shared.backends.azure.cosmos_requests import CosmosUsage, build_unavailable_error, retry_read
from shared.backends.azure.cosmos_transport import create_single_try_transport
from shared.backends.azure.identity import create_app_credential
from shared.backends.azure.shared_attempts import SharedAttempts
from shared.errors import WorkspaceError
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 10
"""Timeout of a reply in seconds. Cosmos DB ends a batch after 5 s; a reply that takes twice as long is lost."""

OPEN_SECONDS: Final = 20
"""Timeout in seconds for opening the account; the SDK tries up to four times to read the account's regions."""

_CONSISTENT: Final = frozenset({"Strong", "BoundedStaleness"})
SINGLE_TRY_OPTIONS: Final[Mapping[str, Any]] = {
    # If the SDK retried a batch, the retry could conflict with its own first attempt. 0 throttle retries would mean
    # the default of 9. Without endpoint discovery, the SDK does not retry 503 and 403/3 either.
    "retry_total": 0,
    "retry_throttle_total": -1,
    "enable_endpoint_discovery": False,
    "enable_compact_utf8_item_writes": True,
}
_LOG = logs.get_logger("cosmos")


class CosmosAccount:
    """Client of one database in a Cosmos DB account, opened on first use.

    Args:
        endpoint: URL of the account.
        database: name of the database.
        client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        key: key of the account, for test servers and emulators; empty to sign in with the identity.
        read_seconds: timeout of a reply in seconds.
        create_transport: creates the HTTP transport of the client when the account is opened.
        runtime: clock, randomness and threads.

    Attributes:
        usage: counters of all requests to this account.
        runtime: clock, randomness and threads, also for the stores in this account.
    """

    def __init__(
        self,
        endpoint: str,
        database: str,
        *,
        client_id: str = "",
        key: str = "",
        read_seconds: float = READ_SECONDS,
        create_transport: Callable[[], AsyncHttpTransport[Any, Any]] = create_single_try_transport,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self.usage = CosmosUsage()
        self.runtime = runtime
        self._endpoint = endpoint
        self._database = database
        self._client_id = client_id
        self._key = key
        self._read_seconds = read_seconds
        self._create_transport = create_transport
        self._opening = SharedAttempts()
        self._checks: defaultdict[str, SharedAttempts] = defaultdict(SharedAttempts)
        self._opened: asyncio.Task[CosmosClient] | None = None
        self._client: CosmosClient | None = None
        self._credential: DefaultAzureCredential | None = None
        self._containers: dict[str, ContainerProxy] = {}

    async def open_container(self, name: str) -> ContainerProxy:
        """Return the client of one of the service's own containers; check the container's definition at the first use.

        Raises:
            WorkspaceError: UNAVAILABLE if the account does not respond, has an unsafe consistency level or several
                write regions, or if the container differs from its definition.
        """
        if name not in self._containers:
            client = await self._get_or_open_client()
            async with self._checks[name].hold_lock_or_raise_shared_failure():
                if name not in self._containers:
                    self._containers[name] = await self._check_definition_and_open_container(client, name)
        return self._containers[name]

    async def close(self) -> None:
        """Close the connections to the Cosmos DB account; an opening that has not ended is cancelled."""
        if self._opened is not None:
            self._opened.cancel()
            await asyncio.wait({self._opened})
            self._opened = None
        await self._close_client()

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        credential, self._credential = self._credential, None
        self._containers.clear()
        if client is not None:
            await client.close()
        if credential is not None:
            await credential.close()

    async def _get_or_open_client(self) -> CosmosClient:
        async with self._opening.hold_lock_or_raise_shared_failure():
            if self._opened is None:
                self._opened = asyncio.create_task(self._open_client())
            # Callers can have shorter timeouts than the opening. If a cancelled caller ended it, the next caller would
            # open the account from the beginning.
            return await asyncio.shield(self._opened)

    async def _open_client(self) -> CosmosClient:
        try:
            self._client = self._create_client()
            async with asyncio.timeout(OPEN_SECONDS):
                _reject_unsuitable_account(await connect_and_read_account(self._client))
        except BaseException as error:
            self._opened = None
            # Otherwise a client that failed to open would not close its connections.
            await self._close_client()
            if not isinstance(error, Exception) or isinstance(error, WorkspaceError):
                raise
            _LOG.exception("the Cosmos DB account cannot be opened")
            raise build_unavailable_error() from error
        return self._client

    def _create_client(self) -> CosmosClient:
        credential: str | DefaultAzureCredential = self._key
        if not credential:
            credential = create_app_credential(self._client_id)
            self._credential = credential
        timeouts: dict[str, Any] = {"connection_timeout": CONNECT_SECONDS, "read_timeout": self._read_seconds}
        return CosmosClient(
            self._endpoint, credential, transport=self._create_transport(), **SINGLE_TRY_OPTIONS, **timeouts
        )

    async def _check_definition_and_open_container(self, client: CosmosClient, name: str) -> ContainerProxy:
        container = client.get_database_client(self._database).get_container_client(name)
        try:
            properties = await retry_read(
                lambda: container.read(response_hook=self.usage.record_reply), self.usage, self.runtime
            )
        except WorkspaceError:
            raise
        except Exception as error:
            _LOG.exception("a container cannot be read", extra=logs.fields(container=name))
            detail = f"Cosmos DB container {name} cannot be read; check that it exists and that the app has access."
            raise build_unavailable_error(detail) from error
        faults = "; ".join(DEFINITIONS[name].describe_differences(properties))
        if faults:
            # Most stores replace the error by their own error, which does not name the faults.
            _LOG.error("a container cannot be used", extra=logs.fields(container=name, reason=faults))
            raise build_unavailable_error(f"Cosmos DB container {name} cannot be used: {faults}.")
        return container


async def connect_and_read_account(client: CosmosClient) -> DatabaseAccount:
    """Open the connections of an SDK client, and return the properties of its account.

    Afterwards, the client sends all requests to the global address of the account. The SDK would otherwise use regional
    addresses if per-partition automatic failover is enabled.

    Raises:
        AzureError, OSError, TimeoutError: the account does not respond or rejects the request.
    """
    await client.__aenter__()
    manager: Any = client.client_connection._global_endpoint_manager  # noqa: SLF001  the SDK has no public way
    account: DatabaseAccount = manager._database_account_cache  # noqa: SLF001  as above
    # With per-partition automatic failover, azure-cosmos 4.17 sends reads to several regions. Without endpoint
    # discovery it knows no region, and each read raises RuntimeError.
    account._EnablePerPartitionFailoverBehavior = False  # noqa: SLF001  as above
    # Every five minutes, the SDK would read the account again, for the failover and for endpoint discovery only. If
    # that failed once, or the first check of the endpoints did, every request would log the error.
    manager.refresh_time_interval_in_ms = math.inf
    manager.refresh_task.cancel()
    manager.refresh_task = None
    return account


def _reject_unsuitable_account(account: DatabaseAccount) -> None:
    """Reject an account in which conditional writes are not reliable or a read can miss earlier writes.

    Raises:
        WorkspaceError: UNAVAILABLE for several write regions or a consistency below bounded staleness.
    """
    level = str((account.ConsistencyPolicy or {}).get("defaultConsistencyLevel", "none"))
    reason = ""
    if account._EnableMultipleWritableLocations or len(account.WritableLocations) > 1:  # noqa: SLF001  the SDK has no public way
        reason = "The Cosmos DB account has several write regions; use one, so that conditional writes are reliable."
    elif level not in _CONSISTENT:
        reason = f"The Cosmos DB account has consistency {level}; bounded staleness or strong is required."
    if reason:
        _LOG.error("the Cosmos DB account is rejected", extra=logs.fields(reason=reason))
        raise build_unavailable_error(reason)
