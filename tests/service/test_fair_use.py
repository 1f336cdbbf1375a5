"""Tests of the quotas of a principal for live streams, unfinished downloads and stored download files."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_problem, wait_until
from tests.service.stream_client import build_stream_url, connect_stream, read_rejection, request_token

UNFINISHED = ("pending", "running")
STREAMS = 3
BODY = {"format": "jsonl", "dateRange": {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}}
LATHE = "/oi-api/downloads/data-connections/lathe"


def write_document(folder: Path, quotas: str) -> Path:
    """Write a workspace document with small quotas and return its path."""
    path = folder / "workspace.yaml"
    policies = "  provenance: {requireApproval: true}\n"
    text = WORKSPACE.read_text(encoding="utf-8")
    assert policies in text
    path.write_text(text.replace(policies, f"{policies}  quotas: {quotas}\n"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def limited_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service with small quotas."""
    folder = tmp_path_factory.mktemp("fair-use")
    quotas = f"{{streamsPerPrincipal: {STREAMS}, jobsPerPrincipal: 1, downloadBytes: 20000}}"
    running = Service(folder / "data", write_document(folder, quotas)).start()
    yield running
    assert running.stop() == 0


async def open_stream(stack: AsyncExitStack, url: str, bearer: str | None = None) -> ClientConnection | int:
    """Open a live stream that closes with the stack.

    Return the stream or, if the service rejects it, the status.
    """
    try:
        return await stack.enter_async_context(connect_stream(url, bearer))
    except InvalidStatus as refused:
        return refused.response.status_code


async def request_stream_url(service: Service, bearer: str) -> str:
    """Request a signed WebSocket URL that opens the live stream."""
    async with httpx.AsyncClient(base_url=service.url, trust_env=False) as http:
        reply = await http.get("/oi-api/live-stream/negotiate", headers={"Authorization": f"Bearer {bearer}"})
    return str(reply.json()["url"])


@pytest.mark.parametrize("member", ["viewer@t", "historian"])
async def test_streams_of_a_principal_are_limited(limited_service: Service, member: str) -> None:
    """The quota of live streams counts all tokens and URLs of a principal together, but no streams of others."""
    url = build_stream_url(limited_service)
    async with AsyncExitStack() as stack:
        for number in range(STREAMS):
            bearer = request_token(limited_service, member)
            address, credential = (url, bearer) if number else (await request_stream_url(limited_service, bearer), None)
            assert isinstance(await open_stream(stack, address, credential), ClientConnection)
        document = check_problem(
            await read_rejection(url, request_token(limited_service, member)), 429, "TOO_MANY_STREAMS"
        )
        assert (document["limit"], str(STREAMS) in document["detail"]) == (STREAMS, True)
        refused = await read_rejection(
            await request_stream_url(limited_service, request_token(limited_service, member))
        )
        assert int(refused.headers["retry-after"]) > 0
        check_problem(refused, 429, "TOO_MANY_STREAMS")
        assert isinstance(await open_stream(stack, url, request_token(limited_service, "admin@t")), ClientConnection)
        assert limited_service.create_client(member).get("/workspace/api/keys/whoami").status_code == 200
    await wait_until_no_stream_is_counted(limited_service, member)


async def test_members_with_any_id_open_streams(limited_service: Service) -> None:
    """A member whose id has characters outside Latin-1 opens streams with a token and with a signed URL."""
    admin = limited_service.create_client("admin@t")
    member = "审核@t"
    added = admin.put(f"/oi-api/team/{quote(member)}", json={"name": "Checker", "role": "Viewer"})
    assert added.status_code == 201, added.text
    key = admin.post("/workspace/api/keys", json={"name": "key", "principal": member}).json()["apiKey"]
    bearer = limited_service.create_anonymous_client(bearer=key).get("/workspace/api/keys/jwt").json()["Token"]
    async with AsyncExitStack() as stack:
        link = await request_stream_url(limited_service, bearer)
        assert isinstance(await open_stream(stack, link), ClientConnection)
        assert isinstance(await open_stream(stack, build_stream_url(limited_service), bearer), ClientConnection)


async def wait_until_no_stream_is_counted(service: Service, member: str) -> None:
    """Wait until a principal can open as many live streams as the quota allows; close them again."""
    bearer = request_token(service, member)
    async with asyncio.timeout(30):
        while True:
            async with AsyncExitStack() as stack:
                streams = [await open_stream(stack, build_stream_url(service), bearer) for _ in range(STREAMS)]
                if all(isinstance(each, ClientConnection) for each in streams):
                    return


async def test_concurrent_upgrades_respect_the_quota_of_live_streams(limited_service: Service) -> None:
    """If clients open too many live streams at once, only as many as the quota succeed; a closed one makes room."""
    bearer = request_token(limited_service, "editor@t")
    async with AsyncExitStack() as stack:
        found = await asyncio.gather(
            *(open_stream(stack, build_stream_url(limited_service), bearer) for _ in range(4 * STREAMS))
        )
        assert sum(isinstance(each, ClientConnection) for each in found) == STREAMS
        assert {each for each in found if isinstance(each, int)} == {429}
    await wait_until_no_stream_is_counted(limited_service, "editor@t")


async def test_streams_from_before_a_kill_are_not_counted(tmp_path: Path) -> None:
    """After a kill, the restarted host does not count live streams that were open before the kill."""
    own = Service(tmp_path / "data", write_document(tmp_path, f"{{streamsPerPrincipal: {STREAMS}}}")).start()
    async with AsyncExitStack() as stack:
        bearer = request_token(own, "viewer@t")
        for _ in range(STREAMS):
            assert isinstance(await open_stream(stack, build_stream_url(own), bearer), ClientConnection)
        own.kill()
    own.start()
    async with AsyncExitStack() as stack:
        for _ in range(STREAMS):
            assert isinstance(await open_stream(stack, build_stream_url(own), bearer), ClientConnection)
    own.stop()


async def test_unfinished_downloads_are_limited(limited_service: Service) -> None:
    """If more downloads start at once than the quota allows, the downloads above the quota are rejected.

    When one download completes, a new one can start.
    """
    headers = {"Authorization": f"Bearer {request_token(limited_service, 'editor@t')}"}
    async with httpx.AsyncClient(base_url=limited_service.url, headers=headers, trust_env=False, timeout=60) as http:
        replies = await asyncio.gather(*(http.post(LATHE, json=BODY) for _ in range(8)))
    refused = [reply for reply in replies if reply.status_code != 202]
    assert refused
    for reply in refused:
        document = check_problem(reply, 429, "TOO_MANY_JOBS")
        assert (document["limit"], reply.headers["retry-after"]) == (1, "30")
    editor = limited_service.create_client("editor@t")
    wait_until(lambda: editor.post(LATHE, json=BODY).status_code, lambda status: status == 202)
    wait_for_downloads(editor)


def wait_for_downloads(client: httpx.Client) -> list[dict[str, Any]]:
    """Wait until all downloads of the caller are completed, and return them."""

    def list_downloads() -> list[dict[str, Any]]:
        downloads: list[dict[str, Any]] = client.get("/oi-api/downloads").json()["downloads"]
        return downloads

    return wait_until(list_downloads, lambda jobs: all(job["status"] not in UNFINISHED for job in jobs), 60)


def test_stored_bytes_of_downloads_are_limited(limited_service: Service) -> None:
    """A download fails if it exceeds the quota of stored bytes; once the quota is used up, new downloads get 507."""
    admin = limited_service.create_client("admin@t")
    message = {"timestamp": "2026-01-05T08:00:00Z", "text": "x" * 12_000}
    address = "/oi-api/downloads/data-connections/press"
    assert admin.post("/oi-api/telemetry/press", json=[message]).status_code == 202
    wait = {"Prefer": "wait=60"}
    first = admin.post(address, json=BODY, headers=wait).json()
    assert (first["status"], first["files"][0]["bytes"] > 12_000) == ("completed", True)
    second = admin.post(address, json=BODY, headers=wait).json()
    assert (second["status"], second["files"]) == ("failed", [])
    assert second["errorCode"] == "DOWNLOAD_QUOTA_EXCEEDED"
    assert second["error"].startswith("DOWNLOAD_QUOTA_EXCEEDED: ")
    path = limited_service.data_dir.parent / "workspace.yaml"
    assert path.exists()


def test_reading_downloads_of_others_requires_the_right_to_manage_keys(service: Service) -> None:
    """Reading another principal's download requires the right Keys.Manage; without it, the reply is 404."""
    job = service.create_client("editor@t").post(LATHE, json=BODY, headers={"Prefer": "wait=60"}).json()
    narrow = service.create_client("admin@t", "Workspace.ColdData.Export")
    for reply in (narrow.get(job["statusUrl"]), narrow.delete(job["statusUrl"])):
        check_problem(reply, 404, "DOWNLOAD_NOT_FOUND")
    manager = service.create_client("admin@t", "Workspace.ColdData.Export,Workspace.Keys.Manage")
    assert manager.get(job["statusUrl"]).json()["files"] != []
