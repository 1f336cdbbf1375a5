"""Tests that each client times out with its own error if a service accepts connections but never replies."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from azure.core.exceptions import AzureError

from emulators.cosmos import CosmosServer
from shared.backends.azure.blobs import AzureBlobStore, BlobAccount
from shared.backends.azure.checkpoint_blobs import BlobCheckpointStore
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CONTAINERS
from shared.backends.azure.cosmos_data_accounts import DataAccount, DataAccounts
from shared.backends.azure.event_hubs import EventHubsSender
from shared.backends.azure.identity import create_app_credential
from shared.backends.azure.key_vault import Vault, call_vault
from shared.backends.azure.kusto import KustoEngine, KustoTelemetryTable
from shared.backends.azure.web_pubsub import WebPubSub
from shared.backends.outbound_http import HttpOpenIdProvider
from shared.data_stores.models import AccountContainer, DatabaseAddress, Table
from shared.errors import Kind, WorkspaceError
from shared.telemetry.models import HubMessage
from shared.warm_queries.ports import EngineQuery
from tests.key_vault import Tokens
from tests.key_vault.server import TOKEN
from tests.unit.shared.backends.azure.cosmos_accounts import TABLES, create_tables

SHORT = 0.2
GIVEN_UP = 25.0
"""Far below the 230 s that a request has, and far above what the short waits of these tests come to."""

KEY = base64.b64encode(b"k" * 32).decode()
ACCESS_KEY = "an-access-key-of-32-letters-......"
QUERY = EngineQuery("T", {}, 1, 1)
PLACE = DatabaseAddress("mes", "orders")


class SilentServer:
    """Fake server that never replies, or sends single bytes endlessly."""

    def __init__(self) -> None:
        self.connections = 0
        self.connected = asyncio.Event()
        self.drips = False
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start to listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def host(self) -> str:
        """Host and port of the server."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://{self.host}"

    async def close(self) -> None:
        """Close every connection."""
        assert self._server is not None
        self._server.close()
        self._server.close_clients()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.connected.set()
        try:
            if self.drips:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
                while not writer.is_closing():
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(SHORT / 10)
            while await reader.read(65_536):
                pass
        except ConnectionError:
            pass
        finally:
            writer.close()


class StuckProducer:
    """Fake Event Hubs producer that never gets a connection."""

    async def create_batch(self, **_: str) -> Any:
        """Wait forever."""
        await asyncio.Event().wait()

    async def send_batch(self, *_: Any, **__: float) -> None:
        """Do nothing, because no batch is ever created."""
        raise AssertionError("no batch was created, so none can be sent")

    async def close(self) -> None:
        """Do nothing: this fake producer has no connection."""


@pytest.fixture
async def silent_server() -> AsyncIterator[SilentServer]:
    """Return a running server that never replies."""
    running = SilentServer()
    await running.start()
    yield running
    await running.close()


@pytest.fixture(autouse=True)
def no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that no client logs credentials when it fails."""
    caplog.set_level(logging.DEBUG)
    yield
    told = "\n".join(record.getMessage() + (record.exc_text or "") for record in caplog.get_records("call"))
    for secret in (KEY, ACCESS_KEY, TOKEN, "AccountKey="):
        assert secret not in told


async def check_fails(call: Callable[[], Awaitable[Any]], code: str, kind: Kind = Kind.UNAVAILABLE) -> None:
    """Check that a call fails within its timeout with the given error code."""
    with pytest.raises(WorkspaceError) as told:
        async with asyncio.timeout(GIVEN_UP):
            await call()
    assert (told.value.kind, told.value.code) == (kind, code)


async def test_a_query_times_out(silent_server: SilentServer) -> None:
    """If the reply to a query is missing or endless, the query fails after its timeout plus a margin."""
    for silent_server.drips in (False, True):
        engine = KustoEngine(silent_server.url, "Telemetry", margin_seconds=SHORT)
        await check_fails(lambda engine=engine: engine.execute(QUERY), "QUERY_TIMEOUT", Kind.TIMEOUT)  # type: ignore[misc]  # bound now
        await engine.close()
    assert silent_server.connections == 2


async def test_the_ingestion_of_a_file_times_out(silent_server: SilentServer) -> None:
    """If the reply to an ingestion is missing or endless, the ingestion fails after its timeout plus a margin."""

    async def locate_file(_: str) -> str:
        return "file"

    for silent_server.drips in (False, True):
        table = KustoTelemetryTable(
            silent_server.url, "Telemetry", locate_file, ingest_seconds=SHORT, margin_seconds=SHORT
        )
        await check_fails(lambda table=table: table.ingest("blob", "tag"), "QUERY_ENGINE_UNAVAILABLE")  # type: ignore[misc]  # bound now
        await table.close()
    assert silent_server.connections == 2


async def test_signing_in_to_the_query_engine_times_out(
    silent_server: SilentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the token endpoint or the cluster does not reply, a query fails after its timeout."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", silent_server.url)
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    engine = KustoEngine(f"https://{silent_server.host}", "Telemetry", margin_seconds=SHORT)
    await check_fails(lambda: engine.execute(QUERY), "QUERY_TIMEOUT", Kind.TIMEOUT)
    await engine.close()
    assert silent_server.connections >= 1


async def test_an_identity_request_times_out(silent_server: SilentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request for an identity's token has a timeout and few retries."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", silent_server.url)
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
    async with create_app_credential("", connect_seconds=SHORT, read_seconds=SHORT) as credential:
        with pytest.raises(AzureError):
            async with asyncio.timeout(GIVEN_UP):
                await credential.get_token("https://vault.azure.net/.default")
    assert 1 <= silent_server.connections <= 3


async def test_blob_storage_requests_time_out(silent_server: SilentServer) -> None:
    """Each attempt of a request to Blob Storage has a timeout."""
    connection_string = f"AccountName=a;AccountKey={KEY};BlobEndpoint={silent_server.url}/a"
    account = BlobAccount("", connection_string=connection_string, retries=1, read_seconds=SHORT)
    await check_fails(AzureBlobStore(account, "cold").require_available, "BLOB_STORE_UNAVAILABLE")
    await check_fails(lambda: AzureBlobStore(account, "cold").read("x"), "BLOB_STORE_UNAVAILABLE")
    await check_fails(lambda: BlobCheckpointStore(account).find_working_state("x"), "CHECKPOINTS_UNAVAILABLE")
    await account.close()


async def test_web_pubsub_requests_time_out(silent_server: SilentServer) -> None:
    """Requests to Web PubSub, including its lists, have a timeout."""
    service = WebPubSub(silent_server.url, "live", ACCESS_KEY, timeout_seconds=SHORT)
    await check_fails(lambda: service.publish("g", b"{}"), "LIVE_STREAM_UNAVAILABLE")
    await check_fails(lambda: service.has_streams("g"), "LIVE_STREAM_UNAVAILABLE")
    await check_fails(lambda: anext(aiter(service.iterate_streams("g"))), "LIVE_STREAM_UNAVAILABLE")
    await service.close()


async def test_event_hub_requests_time_out() -> None:
    """Connecting to an Event Hub and sending events share one timeout."""
    sender = EventHubsSender("hub.example", "", connect=lambda _: StuckProducer(), timeout_seconds=SHORT)
    await check_fails(lambda: sender.send("telemetry", [HubMessage(b"{}", "rig", {})]), "TELEMETRY_HUB_UNAVAILABLE")
    await sender.close()


async def test_key_vault_requests_time_out(silent_server: SilentServer) -> None:
    """Each attempt of a request to Key Vault, for a signature or a key, has a timeout."""
    options = {"connection_timeout": SHORT, "read_timeout": SHORT, "retry_total": 1}
    vault = Vault(f"https://{silent_server.host}", credential=Tokens(), options=options)
    await check_fails(
        lambda: call_vault(lambda: vault.check_key_exists("k"), "SIGNING_KEY_UNAVAILABLE", "k"),
        "SIGNING_KEY_UNAVAILABLE",
    )
    await vault.close()


async def test_workspace_account_requests_time_out(silent_server: SilentServer) -> None:
    """Requests to the Cosmos DB account of the workspace have a timeout."""
    account = CosmosAccount(silent_server.url, "workspace", key=KEY, read_seconds=SHORT)
    await check_fails(lambda: account.open_container(CONTAINERS[0].name), "PROVENANCE_UNAVAILABLE")
    await account.close()


async def test_data_store_requests_time_out(silent_server: SilentServer) -> None:
    """Requests to the Cosmos DB accounts of data stores and to Resource Manager have a timeout."""
    accounts = DataAccounts({PLACE.store: DataAccount(silent_server.url, "s", "g", "n", key=KEY)}, read_seconds=SHORT)
    table = Table(PLACE, AccountContainer("workorders", "/line"))
    await check_fails(lambda: accounts.open_container(table), "DATA_STORE_UNAVAILABLE")
    await accounts.close()


async def test_a_silent_data_store_does_not_delay_others(silent_server: SilentServer) -> None:
    """While the account of one data store does not respond, the accounts of other data stores can be opened."""
    async with CosmosServer() as server:
        await create_tables(server)
        sound, silent = TABLES["/line"], replace(TABLES["/line"], place=DatabaseAddress("silent", "orders"))
        accounts = DataAccounts(
            {
                silent.place.store: DataAccount(silent_server.url, key=KEY),
                sound.place.store: DataAccount(server.endpoint, key=server.key),
            }
        )
        waiting = asyncio.create_task(accounts.open_container(silent))
        async with asyncio.timeout(GIVEN_UP):
            await silent_server.connected.wait()
            assert (await accounts.open_container(sound)).id == sound.container.name
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await accounts.close()


async def test_identity_provider_requests_time_out(silent_server: SilentServer) -> None:
    """Requests for discovery and keys share one timeout.

    After a failure, further calls fail at once for ten seconds.
    """
    for silent_server.drips in (False, True):
        before = silent_server.connections
        provider = HttpOpenIdProvider(f"{silent_server.url}/.well-known/openid-configuration", seconds=SHORT)
        await check_fails(lambda provider=provider: provider.find_public_key("k"), "IDENTITY_PROVIDER_UNAVAILABLE")  # type: ignore[misc]  # bound now
        await check_fails(lambda provider=provider: provider.load_issuer(), "IDENTITY_PROVIDER_UNAVAILABLE")  # type: ignore[misc]  # the same
        assert silent_server.connections == before + 1
