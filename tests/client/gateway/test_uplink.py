"""Tests of the gateway's requests: API key, compression, and the time that the service states."""

import asyncio
import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest
from oi.errors import SignInError
from oi.gateway.clock import ReceiveClock
from oi.gateway.settings import ServiceSettings
from oi.gateway.uplink import Uplink

TOKEN = {"Token": "t", "ExpiresAt": "2999-01-01T00:00:00+00:00"}


class FakeService:
    """Fake service that accepts only one API key."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.requests: list[httpx.Request] = []

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Issue a token for the accepted key, and accept all other requests."""
        if request.url.path.endswith("/jwt"):
            if request.headers["Authorization"] != f"Bearer {self.key}":
                return httpx.Response(401, json={"code": "KEY_REVOKED", "detail": "The key was revoked."})
            return httpx.Response(200, json=TOKEN)
        self.requests.append(request)
        return httpx.Response(202, json={"accepted": 1}, headers={"Date": "Mon, 05 Jan 2026 08:00:00 GMT"})


@pytest.fixture
def fake_service(monkeypatch: pytest.MonkeyPatch) -> FakeService:
    """Return the fake service, to which all requests of the gateway go."""
    made, client = FakeService("good"), httpx.AsyncClient

    def connect(**options: Any) -> httpx.AsyncClient:
        return client(transport=httpx.MockTransport(made.reply_to_request), **options)

    monkeypatch.setattr(httpx, "AsyncClient", connect)
    return made


async def test_large_batches_are_compressed_and_the_service_time_is_stored(
    fake_service: FakeService, tmp_path: Path
) -> None:
    """Large batches are compressed and small batches are not.

    Each reply sets the time that the gateway uses as the service's time.
    """
    (tmp_path / "key").write_text("good")
    clock = ReceiveClock(lambda: 0.0, lambda: 0.0)
    uplink = Uplink(ServiceSettings("https://plant.example", tmp_path / "key"), clock)
    large = b'{"value":1}\n' * 500
    await uplink.send("press", b"{}\n")
    await uplink.send("a/b", large)
    await uplink.close()
    small, compressed = fake_service.requests
    assert (small.content, "Content-Encoding" in small.headers) == (b"{}\n", False)
    assert (gzip.decompress(compressed.content), compressed.headers["Content-Encoding"]) == (large, "gzip")
    assert compressed.url.raw_path == b"/oi-api/telemetry/a%2Fb"
    assert compressed.headers["Content-Type"] == "application/x-ndjson"
    assert clock.now() == 1_767_600_000.0


async def test_the_key_file_is_read_again_after_a_rejection(fake_service: FakeService, tmp_path: Path) -> None:
    """If the service rejects the key, the gateway reads the key file again, so that a new key needs no restart."""
    (tmp_path / "key").write_text("old")
    uplink = Uplink(ServiceSettings("https://plant.example", tmp_path / "key"), ReceiveClock())
    for _ in range(2):
        sent = [uplink.send("press", b"{}\n") for _ in range(3)]
        failures = await asyncio.gather(*sent, return_exceptions=True)
        assert [type(each) for each in failures] == [SignInError] * 3
    (tmp_path / "key").write_text("good")
    await uplink.send("press", b"{}\n")
    await uplink.close()
    assert len(fake_service.requests) == 1
