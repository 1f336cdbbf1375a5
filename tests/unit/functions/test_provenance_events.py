"""Tests of the limits of verifications that a principal requests."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from functions.amendments import HTML
from functions.http_blueprint import get_pipeline
from shared import wiring
from shared.backends.embedded.provenance import SqliteChainStore
from shared.catalog.document import load_document
from shared.provenance import verifier
from shared.provenance.ports import ChainKey, Tip
from shared.provenance.verifier import ChainVerifier
from shared.settings import Settings
from shared.warm_queries.disconnects import watch_for_disconnect
from shared.wiring import Services
from tests.unit.functions.azure_plant import AMENDMENTS, EVENTS, Instance
from tests.unit.shared.provenance.chains import get_workspace_id

DOCUMENT = """\
workspace: {id: plant-a, name: Plant A}
team: [{id: ann@t, name: Ann, role: Admin}, {id: bob@t, name: Bob, role: Admin}]
policies: {provenance: {requireApproval: true}}
"""
VERIFY, REPORT = f"{EVENTS}/verify", f"{AMENDMENTS}/chain?scopeKey=line-1&entityId=B-1"


class SilentStore(SqliteChainStore):
    """Fake chain store that never replies to a verification; ``reads`` has an entry for each one that began."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads: asyncio.Queue[ChainKey] = asyncio.Queue()

    async def read_tip(self, chain: ChainKey) -> Tip:
        """Wait forever."""
        self.reads.put_nowait(chain)
        await asyncio.Event().wait()
        return await super().read_tip(chain)


class SlowService:
    """Service whose verifications never end, with a client that stays connected until the test disconnects it."""

    def __init__(self, app: Instance, store: SilentStore, tokens: dict[str, str]) -> None:
        self.app = app
        self.store = store
        self.disconnected = asyncio.Event()
        self._tokens = tokens

    async def start_verification(self, member: str) -> asyncio.Task[Any]:
        """Start a verification, and return its task when the verification has begun to read."""
        return await self._start_and_wait_for_verification(self.request("POST", VERIFY, member, {}))

    async def start_report(self, member: str) -> asyncio.Task[Any]:
        """Start a printed report, and return its task when the verification for it has begun to read."""
        return await self._start_and_wait_for_verification(self.request("GET", REPORT, member, accept=HTML))

    async def _start_and_wait_for_verification(self, request: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        async def wait_for_disconnect() -> None:
            await self.disconnected.wait()

        async def send_until_disconnect() -> Any:
            with watch_for_disconnect(wait_for_disconnect):
                return await request

        task = asyncio.create_task(send_until_disconnect())
        await self.store.reads.get()
        return task

    async def request(self, method: str, address: str, member: str, body: Any = None, **headers: str) -> Any:
        """Send a request of a member."""
        return await self.app.request(method, address, self._tokens[member], body, **headers)


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowService]:
    """Yield a service whose verifications never end."""
    services = Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    await services.provenance.catalog_service.apply(load_document(DOCUMENT, "test"), "apply")
    app = Instance(services, monkeypatch)
    tokens: dict[str, str] = {}
    for member in ("ann@t", "bob@t"):
        key = await services.access.api_keys.issue_without_rights_check("apply", member, "test")
        tokens[member] = await app.issue_token(key.api_key)
    store = SilentStore(tmp_path / "silent.sqlite")
    services.provenance.verifier = ChainVerifier(store, get_workspace_id)
    monkeypatch.setattr(verifier, "SLOT_SECONDS", 0)
    yield SlowService(app, store, tokens)
    await store.close()
    await services.close()
    wiring.services.cache_clear()
    get_pipeline.cache_clear()


async def test_a_principal_can_have_two_verifications_at_once(service: SlowService) -> None:
    """A third verification of a principal is throttled, and verifications of other principals start at once.

    A printed report is then made without a verification. When the client disconnects, its verifications end.
    """
    # Without the limits, the verifications would never end.
    async with asyncio.timeout(30):
        running = [await service.start_verification("ann@t") for _ in range(2)]
        third = await service.request("POST", VERIFY, "ann@t", {})
        assert (third.status, third.body["code"], third.headers["Retry-After"]) == (429, "THROTTLED", "5")
        assert (await service.request("GET", REPORT, "ann@t", accept=HTML)).status == 200
        running += [await service.start_verification("bob@t"), await service.start_report("bob@t")]
        service.disconnected.set()
        ended = await asyncio.gather(*running, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in ended)
