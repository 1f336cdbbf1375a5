"""Tests of the live stream in a browser, which cannot set headers on WebSockets."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.pages.browser import CHROMIUM, NO_CHROMIUM
from tests.service.local_service import Service
from tests.service.stream_client import build_stream_url, request_token

PAGE = """<!doctype html><title>live</title><script>
const ways = WAYS, heard = {};
function tell(name, what) {
  heard[name] ??= what;
  if (Object.keys(heard).length === Object.keys(ways).length)
    fetch("/heard", {method: "POST", body: JSON.stringify(heard)});
}
for (const [name, [url, protocols]] of Object.entries(ways)) {
  const stream = new WebSocket(url, protocols);
  stream.onmessage = event => tell(name, [stream.protocol, JSON.parse(event.data).ID]);
  stream.onclose = event => tell(name, ["closed", String(event.code)]);
}
</script>"""
WAIT_SECONDS = 60


@asynccontextmanager
async def _serve_page(
    connection_ways: dict[str, list[object]], reported_impulses: asyncio.Future[dict[str, Any]]
) -> AsyncIterator[str]:
    """Serve the test page, store the impulses that the page reports, and yield the page's URL."""

    async def serve_page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE.replace("WAYS", json.dumps(connection_ways)), content_type="text/html")

    async def store_impulse(request: web.Request) -> web.Response:
        if not reported_impulses.done():
            reported_impulses.set_result(json.loads(await request.text()))
        return web.Response(status=204)

    app = web.Application()
    app.router.add_get("/", serve_page)
    app.router.add_post("/heard", store_impulse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
async def test_a_browser_receives_impulses(service: Service, tmp_path: Path) -> None:
    """A page of another origin receives impulses with its token as subprotocol, query parameter, or signed URL."""
    bearer = request_token(service, "viewer@t")
    link = (
        service.create_anonymous_client(bearer=bearer)
        .get("/oi-api/live-stream/negotiate?connection=lathe")
        .json()["url"]
    )
    ways: dict[str, list[object]] = {
        "subprotocol": [build_stream_url(service, connection="lathe"), [f"bearer.{bearer}"]],
        "parameter": [build_stream_url(service, connection="lathe", token=bearer), []],
        "link": [link, []],
    }
    details: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    async with _serve_page(ways, details) as address:
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        browser = await asyncio.create_subprocess_exec(
            str(CHROMIUM),
            *options,
            "--remote-debugging-port=0",
            address,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        sending = asyncio.create_task(_send_telemetry(service))
        try:
            heard = await asyncio.wait_for(details, WAIT_SECONDS)
        finally:
            sending.cancel()
            # Debian starts the browser from a shell script, so the signal goes to the whole process group.
            os.killpg(browser.pid, signal.SIGTERM)
            await browser.wait()
    assert {name: protocol for name, (protocol, _) in heard.items()} == {
        "subprotocol": f"bearer.{bearer}",
        "parameter": "",
        "link": "",
    }
    assert all(str(identifier).startswith("browser-") for _, identifier in heard.values())


async def _send_telemetry(service: Service) -> None:
    """Send telemetry repeatedly until the page has received an impulse."""
    editor = service.create_client("editor@t")
    for number in range(1_000):
        await asyncio.to_thread(editor.post, "/oi-api/telemetry/lathe", json={"messageId": f"browser-{number}"})
        await asyncio.sleep(0.2)
