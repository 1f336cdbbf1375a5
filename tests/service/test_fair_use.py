"""Quotas of a principal: open live streams, unfinished downloads, and bytes of their files."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_problem, wait_until
from tests.service.stream_client import build_stream_url, connect_stream, read_rejection, request_token

STREAMS = 3
BODY = {"format": "jsonl", "dateRange": {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}}
LATHE = "/oi-api/downloads/data-connections/lathe"


def workspace(folder: Path, quotas: str) -> Path:
    """Write a workspace document with quotas, and return its path."""
    path = folder / "workspace.yaml"
    policies = "  provenance: {requireApproval: true}\n"
    text = WORKSPACE.read_text(encoding="utf-8")
    assert policies in text
    path.write_text(text.replace(policies, f"{policies}  quotas: {quotas}\n"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with small quotas."""
    folder = tmp_path_factory.mktemp("fair-use")
    quotas = f"{{streamsPerPrincipal: {STREAMS}, jobsPerPrincipal: 1, downloadBytes: 20000}}"
    running = Service(folder / "data", workspace(folder, quotas)).start()
    yield running
    assert running.stop() == 0


async def opened(stack: AsyncExitStack, url: str, bearer: str | None = None) -> ClientConnection | int:
    """Open a stream until the stack closes; return it, or the status of its refusal."""
    try:
        return await stack.enter_async_context(connect_stream(url, bearer))
    except InvalidStatus as refused:
        return refused.response.status_code


async def negotiated(service: Service, bearer: str) -> str:
    """Return a negotiated link."""
    async with httpx.AsyncClient(base_url=service.url, trust_env=False) as http:
        reply = await http.get("/oi-api/live-stream/negotiate", headers={"Authorization": f"Bearer {bearer}"})
    return str(reply.json()["url"])


@pytest.mark.parametrize("member", ["viewer@t", "historian"])
async def test_streams_of_a_principal_are_bounded(small: Service, member: str) -> None:
    """Streams count over all tokens and links, also of services; another principal and requests are not affected."""
    url = build_stream_url(small)
    async with AsyncExitStack() as stack:
        for number in range(STREAMS):
            bearer = request_token(small, member)
            address, credential = (url, bearer) if number else (await negotiated(small, bearer), None)
            assert isinstance(await opened(stack, address, credential), ClientConnection)
        document = check_problem(await read_rejection(url, request_token(small, member)), 429, "TOO_MANY_STREAMS")
        assert (document["limit"], str(STREAMS) in document["detail"]) == (STREAMS, True)
        refused = await read_rejection(await negotiated(small, request_token(small, member)))
        assert int(refused.headers["retry-after"]) > 0
        check_problem(refused, 429, "TOO_MANY_STREAMS")
        assert isinstance(await opened(stack, url, request_token(small, "admin@t")), ClientConnection)
        assert small.caller(member).get("/workspace/api/keys/whoami").status_code == 200
    await all_are_free(small, member)


async def all_are_free(service: Service, member: str) -> None:
    """Wait until a principal can open all its streams, and close them."""
    bearer = request_token(service, member)
    async with asyncio.timeout(30):
        while True:
            async with AsyncExitStack() as stack:
                streams = [await opened(stack, build_stream_url(service), bearer) for _ in range(STREAMS)]
                if all(isinstance(each, ClientConnection) for each in streams):
                    return


async def test_upgrades_at_once_do_not_exceed_the_quota(small: Service) -> None:
    """Of streams opened at the same moment exactly as many open as allowed, and their ends make room again."""
    bearer = request_token(small, "editor@t")
    async with AsyncExitStack() as stack:
        found = await asyncio.gather(*(opened(stack, build_stream_url(small), bearer) for _ in range(4 * STREAMS)))
        assert sum(isinstance(each, ClientConnection) for each in found) == STREAMS
        assert {each for each in found if isinstance(each, int)} == {429}
    await all_are_free(small, "editor@t")


async def test_a_killed_host_leaves_no_places_behind(tmp_path: Path) -> None:
    """After a power cut the new host counts no streams of the old one."""
    own = Service(tmp_path / "data", workspace(tmp_path, f"{{streamsPerPrincipal: {STREAMS}}}")).start()
    async with AsyncExitStack() as stack:
        bearer = request_token(own, "viewer@t")
        for _ in range(STREAMS):
            assert isinstance(await opened(stack, build_stream_url(own), bearer), ClientConnection)
        own.kill()
    own.start()
    async with AsyncExitStack() as stack:
        for _ in range(STREAMS):
            assert isinstance(await opened(stack, build_stream_url(own), bearer), ClientConnection)
    own.stop()


async def test_unfinished_downloads_are_bounded(small: Service) -> None:
    """Of downloads started at once only as many run as allowed; when they have ended there is room again."""
    headers = {"Authorization": f"Bearer {request_token(small, 'editor@t')}"}
    async with httpx.AsyncClient(base_url=small.url, headers=headers, trust_env=False, timeout=60) as http:
        replies = await asyncio.gather(*(http.post(LATHE, json=BODY) for _ in range(8)))
    refused = [reply for reply in replies if reply.status_code != 202]
    assert refused
    for reply in refused:
        document = check_problem(reply, 429, "TOO_MANY_JOBS")
        assert (document["limit"], reply.headers["retry-after"]) == (1, "30")
    editor = small.caller("editor@t")
    wait_until(lambda: editor.post(LATHE, json=BODY).status_code, lambda status: status == 202)
    wait_for_the_end(editor)


def wait_for_the_end(client: httpx.Client) -> list[dict[str, Any]]:
    """Return the caller's downloads once all have ended."""

    def listed() -> list[dict[str, Any]]:
        downloads: list[dict[str, Any]] = client.get("/oi-api/downloads").json()["downloads"]
        return downloads

    return wait_until(listed, lambda all_: not any(each["status"] in ("pending", "running") for each in all_), 60)


def test_stored_bytes_are_bounded(small: Service) -> None:
    """A download that would pass the limit fails with the code; when the limit is reached, none starts (507)."""
    admin = small.caller("admin@t")
    message = {"timestamp": "2026-01-05T08:00:00Z", "text": "x" * 12_000}
    address = "/oi-api/downloads/data-connections/press"
    assert admin.post("/oi-api/telemetry/press", json=[message]).status_code == 202
    wait = {"Prefer": "wait=60"}
    first = admin.post(address, json=BODY, headers=wait).json()
    assert (first["status"], first["files"][0]["bytes"] > 12_000) == ("completed", True)
    second = admin.post(address, json=BODY, headers=wait).json()
    assert (second["status"], second["files"]) == ("failed", [])
    assert second["error"].startswith("DOWNLOAD_QUOTA_EXCEEDED: ")
    path = small.data_dir.parent / "workspace.yaml"
    assert path.exists()


def test_downloads_belong_to_their_principal(service: Service) -> None:
    """Only a token with Keys.Manage opens another principal's download: an administrator's narrow token gets 404."""
    job = service.caller("editor@t").post(LATHE, json=BODY, headers={"Prefer": "wait=60"}).json()
    narrow = service.caller("admin@t", "Workspace.ColdData.Export")
    for reply in (narrow.get(job["statusUrl"]), narrow.delete(job["statusUrl"])):
        check_problem(reply, 404, "DOWNLOAD_NOT_FOUND")
    manager = service.caller("admin@t", "Workspace.ColdData.Export,Workspace.Keys.Manage")
    assert manager.get(job["statusUrl"]).json()["files"] != []
