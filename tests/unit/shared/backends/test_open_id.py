"""Tests of OpenID Connect discovery."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from shared.backends.open_id import KEYS_MAX_AGE_SECONDS, MIN_REFRESH_SECONDS, HttpOpenIdProvider
from shared.errors import WorkspaceError
from tests.virtual_time import VirtualTime


class Tenant:
    """Fake Entra ID tenant whose public keys a test can change.

    Attributes:
        keys: the published keys.
        discovery: the discovery document; None for one that fits.
        requests: number of requests for the discovery document.
    """

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [{"kid": "k1", "kty": "EC"}]
        self.discovery: Any = None
        self.requests = 0
        self.url = ""

    async def discover(self, _: web.Request) -> web.Response:
        """Return the discovery document."""
        self.requests += 1
        return web.json_response(self.discovery or {"issuer": "https://issuer/", "jwks_uri": f"{self.url}/keys"})

    async def list_keys(self, _: web.Request) -> web.Response:
        """Return the public keys of the tenant."""
        return web.json_response({"keys": self.keys})


@pytest.fixture
async def tenant() -> AsyncIterator[Tenant]:
    """Run a server for a fake tenant."""
    made = Tenant()
    app = web.Application()
    app.add_routes([web.get("/discovery", made.discover), web.get("/keys", made.list_keys)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    yield made
    await runner.cleanup()


def build_provider(tenant: Tenant) -> tuple[HttpOpenIdProvider, VirtualTime]:
    """Return an OpenID provider and its clock."""
    time = VirtualTime()
    return HttpOpenIdProvider(f"{tenant.url}/discovery", runtime=time.runtime), time


async def test_keys_are_cached_for_an_hour(tenant: Tenant) -> None:
    """The provider's public keys are cached for an hour, so that checking tokens causes no requests."""
    provider, time = build_provider(tenant)
    assert await provider.load_issuer() == "https://issuer/"
    assert await provider.find_public_key("k1") == {"kid": "k1", "kty": "EC"}
    assert tenant.requests == 1
    time.advance(KEYS_MAX_AGE_SECONDS)
    await provider.load_issuer()
    assert tenant.requests == 2


async def test_an_unknown_key_is_looked_for_at_most_every_ten_seconds(tenant: Tenant) -> None:
    """An unknown key id reloads the keys at most every ten seconds, so that forged ids cause few requests."""
    provider, time = build_provider(tenant)
    await provider.load_issuer()
    tenant.keys.append({"kid": "k2"})
    assert await provider.find_public_key("k2") is None
    time.advance(MIN_REFRESH_SECONDS)
    assert await provider.find_public_key("k2") == {"kid": "k2"}
    assert await provider.find_public_key("k3") is None
    assert tenant.requests == 2


@pytest.mark.parametrize("discovery", [[1], {"issuer": "x"}, {"issuer": "x", "jwks_uri": "http://127.0.0.1:9/"}])
async def test_a_failure_is_not_repeated_at_once(tenant: Tenant, discovery: Any) -> None:
    """Concurrent callers share one attempt to load the keys; after a failure, callers get its error for ten seconds."""
    provider, time = build_provider(tenant)
    tenant.discovery = discovery
    for _ in range(3):
        with pytest.raises(WorkspaceError) as raised:
            await provider.load_issuer()
        assert raised.value.code == "IDENTITY_PROVIDER_UNAVAILABLE"
    assert tenant.requests == 1
    tenant.discovery = None
    time.advance(MIN_REFRESH_SECONDS)
    assert await provider.load_issuer() == "https://issuer/"
