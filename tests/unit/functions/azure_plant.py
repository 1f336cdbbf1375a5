"""Instances of the function app with STORES=azure that run in the test process and use emulators.

The local host cannot run these tests, because it uses the embedded hub and stores. Cosmos DB and Key Vault are emulated
at the wire protocol, Azurite stores the blobs, the query engine is the embedded Kusto, and a log file replaces Event
Hubs.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from functions.http_blueprint import get_pipeline
from shared import wiring
from shared.backends.embedded.hub import HubWriter
from shared.http.messages import Request
from shared.telemetry.models import IMPULSES_HUB
from shared.wiring import Services
from tests.emulators.kusto.endpoints import Endpoint, start_emulator
from tests.unit.shared.wiring.azure import Deployment

SAMPLE = Path(__file__).parents[3] / "samples/workspace.yaml"
ADMIN, EDITOR, QUALITY = "admin@plant-a.example", "editor@plant-a.example", "approver@plant-a.example"
EVENTS, AMENDMENTS = "/oi-api/provenance/events", "/oi-api/provenance/amendments"


class Instance:
    """Instance of the function app with its own set of services, like an app in another process."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self.services = services
        monkeypatch.setattr(wiring, "Services", lambda *_: services)
        wiring.services.cache_clear()
        get_pipeline.cache_clear()

    async def request(self, method: str, address: str, bearer: str = "", body: Any = None, **headers: str) -> Any:
        """Send a request; return status, headers and body of the reply."""
        path, _, query = address.partition("?")
        sent = {"authorization": f"Bearer {bearer}"} if bearer else {}
        sent |= {"content-type": "application/json"} | {name.replace("_", "-"): each for name, each in headers.items()}
        content = b"" if body is None else json.dumps(body).encode()
        reply = await get_pipeline().serve(Request(method, path, query, sent, content))
        is_json = "json" in reply.headers.get("Content-Type", "")
        return SimpleNamespace(
            status=reply.status, headers=reply.headers, body=json.loads(reply.body) if is_json else reply.body
        )

    async def issue_token(self, key: str) -> str:
        """Return a token for an API key."""
        reply = await self.request("GET", "/workspace/api/keys/jwt", key)
        assert reply.status == 200, reply.body
        return str(reply.body["Token"])


class Plant:
    """Emulators of all Azure services, with a Kusto emulator that reads telemetry from the log file of the event hub.

    Args:
        deployment: emulators of the other Azure services.
        folder: folder of the hub's log and the tables.
    """

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.deployment = deployment
        self._folder = folder
        self._port = "0"
        self.kusto: Endpoint

    async def start(self) -> None:
        """Create an empty hub and empty tables, and start the query engine."""
        (self._folder / "tables").mkdir()
        hub = self.hub()
        await hub.send(IMPULSES_HUB, [])
        await hub.close()
        self.start_engine()

    def hub(self) -> HubWriter:
        """Open the log file that replaces Event Hubs, and return its writer."""
        return HubWriter(self._folder / "hub.sqlite")

    def start_engine(self) -> None:
        """Start the query engine; after a restart it has the same port."""
        tables, hub = str(self._folder / "tables"), str(self._folder / "hub.sqlite")
        self.kusto = start_emulator(self._folder / "kusto.log", "--data", tables, "--hub", hub, "--port", self._port)
        self._port = self.kusto.url.rpartition(":")[2]
        self.deployment.kusto_uri = self.kusto.url

    def services(self) -> Services:
        """Return a new set of services, as another process of the app has."""
        services = self.deployment.services()
        services.telemetry.sender = services.backends.register_for_closing(self.hub())
        return services
