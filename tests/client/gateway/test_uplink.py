"""Tests of the gateway's requests: API key, compression, and the time that the service states."""

import asyncio
import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest
from oi.errors import ApiError, ForbiddenError, InvalidRequestError, SignInError
from oi.gateway.clock import ReceiveClock
from oi.gateway.settings import ServiceSettings
from oi.gateway.uplink import Uplink

from tests.client.gateway.http_service import HTML, JSON, TOKEN, HttpReply, serve_replies


class FakeService:
    """Fake service that accepts only one API key; the keys `narrow` and `weak` lack a binding and a right."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.requests: list[httpx.Request] = []

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Issue a token for the accepted key, and accept all other requests."""
        credential = request.headers["Authorization"].removeprefix("Bearer ")
        if request.url.path.endswith("/jwt"):
            if credential == "weak":
                return httpx.Response(400, json={"code": "INVALID_REQUEST", "errors": [{"field": "scopes"}]})
            if credential not in {self.key, "narrow"}:
                return httpx.Response(401, json={"code": "KEY_REVOKED", "detail": "The key was revoked."})
            return httpx.Response(200, json={**TOKEN, "Token": credential})
        if credential == "narrow":
            return httpx.Response(403, json={"code": "CONNECTION_NOT_ALLOWED"})
        self.requests.append(request)
        content = request.content
        count = (gzip.decompress(content) if "Content-Encoding" in request.headers else content).count(b"\n")
        return httpx.Response(202, json={"accepted": count}, headers={"Date": "Mon, 05 Jan 2026 08:00:00 GMT"})


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
    assert clock.now_unix_seconds() == 1_767_600_000.0


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


@pytest.mark.parametrize("old_key", ["narrow", "weak"])
async def test_a_replaced_key_is_used_after_any_refusal(
    fake_service: FakeService, tmp_path: Path, old_key: str
) -> None:
    """The next request after a refused one uses a replaced API key, or the same key again if the file is empty."""
    path = tmp_path / "key"
    path.write_text(old_key)
    uplink = Uplink(ServiceSettings("https://plant.example", path), ReceiveClock())
    for content in (old_key, ""):
        path.write_text(content)
        with pytest.raises((ForbiddenError, InvalidRequestError)):
            await uplink.send("press", b"{}\n")
    path.write_text("good")
    await uplink.send("press", b"{}\n")
    await uplink.close()
    assert len(fake_service.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        (200, HTML, b"<html>Maintenance</html>"),
        (202, HTML, b"<html>Maintenance</html>"),
        (200, JSON, b'{"accepted": 2}'),
        (202, JSON, b'{"accepted": 1}'),
        (202, JSON, b"[2]"),
        (302, HTML, b""),
    ],
)
async def test_a_reply_that_does_not_confirm_all_messages_is_an_error(reply: HttpReply, tmp_path: Path) -> None:
    """Messages are accepted only if the reply is that of the service and confirms all of them.

    The time of another reply is not the time of the service.
    """
    (tmp_path / "key").write_text("good")
    clock = ReceiveClock(lambda: 0.0, lambda: 0.0)
    with serve_replies(lambda _: reply) as url:
        uplink = Uplink(ServiceSettings(url, tmp_path / "key"), clock)
        with pytest.raises(ApiError) as raised:
            await uplink.send("press", b"{}\n{}\n")
        await uplink.close()
    assert (raised.value.status, clock.now_unix_seconds()) == (reply[0], 0.0)
