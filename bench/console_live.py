"""Benchmark: share of telemetry that the console's live chart shows, and processor load of the browser."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
from playwright.sync_api import Page, sync_playwright

from bench.figures import Figure, ToolMissingError
from bench.running import RunningService, run_service
from tests.pages.browser import CHROMIUM, NO_CHROMIUM

EVENTS_PER_SECOND = 1_000
POSTS_PER_SECOND = 10
SECONDS = 10
DEVICES = 4
_CONNECTION = "line"
_BUILT = Path(__file__).parents[1] / "static" / "console" / "index.html"
_PATIENCE_MS = 120_000


def measure_console_live() -> Iterator[Figure]:
    """Send telemetry at a constant rate while a real browser shows twelve series in the live chart.

    The CPU time of the page's thread is measured per 1,000 events, so that the figure also holds if a busy machine
    sends fewer events per second.

    Raises:
        ToolMissingError: the console is not built, or Chromium is missing.
    """
    if CHROMIUM is None:
        raise ToolMissingError(NO_CHROMIUM)
    if not _BUILT.is_file():
        raise ToolMissingError("the console is not built: run make assets, which requires npm")
    with run_service() as running, sync_playwright() as playwright:
        # A container lacks the rights that Chromium's sandbox requires.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": 1400, "height": 1400})
            yield from _measure_live_chart(page, running)
        finally:
            browser.close()


def _measure_live_chart(page: Page, running: RunningService) -> Iterator[Figure]:
    _open_live_chart(page, running)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read_page_cpu_seconds() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

    before, started = read_page_cpu_seconds(), time.perf_counter()
    sending = threading.Thread(target=asyncio.run, args=(_send_events(running),))
    sending.start()
    page.get_by_text("123,456").first.wait_for(timeout=_PATIENCE_MS)
    took = time.perf_counter() - started
    busy = read_page_cpu_seconds() - before
    sending.join()
    taken = int(re.sub(r"\D", "", page.get_by_text(re.compile(r"^[\d,]+ messages$")).inner_text()))
    sent = EVENTS_PER_SECOND * SECONDS + 1
    detail = {"eventsPerSecond": round(sent / took), "series": DEVICES * 3, "seconds": round(took, 1)}
    per_thousand = busy / sent * 1000
    yield Figure("console_live_taken", taken / sent, "ratio", at_least=1.0, detail=detail)
    yield Figure("console_live_busy", per_thousand, "s per 1,000 events", at_most=0.25, detail=detail)


def _open_live_chart(page: Page, running: RunningService) -> None:
    """Open the live chart with all series selected, and wait until the page shows the state "live"."""
    names = [f"{_CONNECTION}/d{device}/{field}" for device in range(DEVICES) for field in ("pressure", "flow", "rpm")]
    fields = ",".join(name.replace("/", "%2F") for name in names)
    page.goto(f"{running.url}/console/#/overview?connection={_CONNECTION}&window=60&fields={fields}")
    page.get_by_label("API key or token").fill(running.token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("status").filter(has_text="live").wait_for(timeout=_PATIENCE_MS)


async def _send_events(running: RunningService) -> None:
    """Send telemetry at a constant rate; the last event has a unique value, by which the page recognises the end."""
    size = EVENTS_PER_SECOND // POSTS_PER_SECOND
    url = f"{running.url}/oi-api/telemetry/{_CONNECTION}"
    async with aiohttp.ClientSession(headers=running.headers) as session:
        started = asyncio.get_running_loop().time()
        for post in range(SECONDS * POSTS_PER_SECOND):
            await asyncio.sleep(started + post / POSTS_PER_SECOND - asyncio.get_running_loop().time())
            async with session.post(
                url, json=[_build_message(post * size + number) for number in range(size)]
            ) as reply:
                reply.raise_for_status()
        async with session.post(url, json={**_build_message(0), "pressure": 123_456}) as reply:
            reply.raise_for_status()


def _build_message(number: int) -> dict[str, object]:
    device = f"d{number % DEVICES}"
    return {"deviceId": device, "pressure": number % 97, "flow": number % 31 / 4, "rpm": 1_400 + number % 211}
