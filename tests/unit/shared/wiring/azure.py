"""Emulated Azure deployment: Cosmos DB and Key Vault emulators, Azurite, and the real SDKs."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from azure.cosmos.aio import CosmosClient
from azure.storage.blob.aio import BlobServiceClient

from emulators.cosmos import CosmosServer
from shared.backends.azure.blobs import BlobAccount
from shared.backends.azure.checkpoint_blobs import NOTES, STATES
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import create_containers
from shared.backends.azure.key_vault import Vault
from shared.settings import Settings
from shared.wiring import Services
from shared.wiring.cold_data import COLD
from shared.wiring.downloads import DOWNLOADS
from tests.azurite.running import Azurite
from tests.emulators.web_pubsub.serving import KEY
from tests.key_vault import KeyVaultDouble, Tokens

DATABASE = "workspace"


@dataclass
class Deployment:
    """Emulators that together replace the services of an Azure deployment."""

    cosmos: CosmosServer
    vault: KeyVaultDouble
    blobs: Azurite
    kusto_uri: str = "http://127.0.0.1:9"
    message_service: str = ""

    def services(self) -> Services:
        """Return the services of a new process with STORES=azure, which need no sign-in to Azure."""
        given = {"STORES": "azure", "KUSTO_URI": self.kusto_uri}
        given |= {"WEB_PUBSUB_ENDPOINT": self.message_service, "WEB_PUBSUB_ACCESS_KEY": KEY}
        wired = Services(Settings.read(given))
        backends = wired.backends
        cosmos = CosmosAccount(self.cosmos.endpoint, DATABASE, key=self.cosmos.key)
        blobs = BlobAccount("", connection_string=self.blobs.connection_string, retries=0)
        vault = Vault(self.vault.uri, credential=Tokens(), options=self.vault.options)
        backends.cosmos = backends.register_for_closing(cosmos)
        backends.blob_account = backends.register_for_closing(blobs)
        backends.key_vault = backends.register_for_closing(vault)
        return wired


@asynccontextmanager
async def deployment(folder: Path | None = None) -> AsyncIterator[Deployment]:
    """Start the emulators, and create containers and keys.

    Args:
        folder: folder for blobs; it allows a test to restart the blob service.
    """
    with CosmosServer() as server, KeyVaultDouble() as vault, ExitStack() as ends:
        blobs = Azurite(folder)
        ends.callback(blobs.stop)
        blobs.start()
        async with CosmosClient(server.endpoint, server.key) as client:
            await create_containers(await client.create_database(DATABASE))
        async with BlobServiceClient.from_connection_string(blobs.connection_string) as account:
            for name in (COLD, DOWNLOADS, NOTES, STATES):
                await account.create_container(name)
        settings = Settings()
        for key in (settings.token_key, settings.checkpoint_key):
            vault.keys.create_version(key)
        yield Deployment(server, vault, blobs)
