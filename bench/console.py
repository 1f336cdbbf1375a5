"""Benchmark of the web console in a browser: its size, Lighthouse scores, and the speed of scrolling a long table."""

import gzip
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, Route, sync_playwright

from bench.figures import Figure, ToolMissingError
from bench.running import MEMBER, ROOT, RunningService, run_service
from tests.node import find_node
from tests.pages.browser import CHROMIUM, NO_CHROMIUM

BUILT = ROOT / "static" / "console"
LIGHTHOUSE = Path(__file__).with_name("lighthouse")
RUNS = 3
ROWS = 10_000
FRAMES = 240

_SCROLL = """frames => new Promise((done) => {
  const box = document.querySelector("[role=grid]");
  const times = [];
  let before = performance.now();
  const frame = (now) => {
    times.push(now - before);
    before = now;
    box.scrollTop += 640;
    times.length > frames ? done(times.slice(1)) : requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def measure_console() -> Iterator[Figure]:
    """Measure the size of the built web console, its pages with Lighthouse, and scrolling in Chromium.

    Raises:
        ToolMissingError: the console is not built, or (after its size is measured) Chromium or Lighthouse is missing.
    """
    if not (BUILT / "index.html").is_file():
        raise ToolMissingError("the console is not built: run make assets, which requires npm")
    sizes = {path.name: len(gzip.compress(path.read_bytes(), mtime=0)) for path in BUILT.rglob("*") if path.is_file()}
    yield Figure("console_size", sum(sizes.values()), "bytes", at_most=250_000, detail={"files": len(sizes)})
    if CHROMIUM is None:
        raise ToolMissingError(NO_CHROMIUM)
    if find_node() is None or not (LIGHTHOUSE / "node_modules" / "lighthouse").is_dir():
        raise ToolMissingError("Lighthouse is not installed: make bench installs it with npm")
    with run_service() as running:
        yield from _measure_pages(running)
        yield from _measure_table(running)


def _measure_pages(running: RunningService) -> Iterator[Figure]:
    """Run Lighthouse several times on the sign-in page and on the overview; yield the worse of both medians."""
    runs = {
        "signIn": [_run_lighthouse(f"{running.url}/console/") for _ in range(RUNS)],
        "overview": [_run_lighthouse(_create_sign_in_link(running)) for _ in range(RUNS)],
    }

    def compute_medians(figure: str) -> dict[str, float]:
        return {name: statistics.median(run[figure] for run in each) for name, each in runs.items()}

    failing = {name: each[-1]["failing"] for name, each in runs.items()}
    for name in ("performance", "accessibility"):
        detail = {**compute_medians(name), "failing": failing, "runs": RUNS}
        yield Figure(f"console_{name}", min(compute_medians(name).values()), "points", at_least=95, detail=detail)
    paint = compute_medians("firstPaintSeconds")
    more = {"largestPaintSeconds": compute_medians("largestPaintSeconds"), "blockedMs": compute_medians("blockedMs")}
    yield Figure("console_first_paint", max(paint.values()), "s", at_most=1, detail={**paint, **more})


def _run_lighthouse(address: str) -> dict[str, Any]:
    environment = {**os.environ, "CHROMIUM": str(CHROMIUM)}
    command = [str(find_node()), "measure.mjs", address]
    done = subprocess.run(command, cwd=LIGHTHOUSE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Lighthouse failed: {done.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _create_sign_in_link(running: RunningService) -> str:
    """Create a one-time sign-in link for the console of the running service and return the link."""
    command = [sys.executable, "-m", "local.sign_in", "--data-dir", str(running.folder), "--as", MEMBER]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _measure_table(running: RunningService) -> Iterator[Figure]:
    """Yield the time between frames and the CPU time per frame while a table of many simulated rows is scrolled.

    The time between frames depends on the machine's load and has no bound. The CPU time of the page's thread per frame
    must be shorter than a frame at 60 Hz.
    """
    with sync_playwright() as playwright:
        # A container lacks the rights that Chromium's sandbox requires.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.route("**/workspace/api/keys", _reply_with_many_keys)
            times, work = _measure_scrolling(page, running)
        finally:
            browser.close()
    detail = {"rows": ROWS, "medianMs": round(statistics.median(times), 2), "longestMs": round(times[-1], 2)}
    yield Figure("console_table_frame_p95", times[int(len(times) * 0.95)], "ms", detail=detail)
    yield Figure("console_table_frame_work", work, "ms", at_most=16.7, detail={"rows": ROWS, "frames": FRAMES})


def _measure_scrolling(page: Page, running: RunningService) -> tuple[list[float], float]:
    """Scroll the table; return the sorted milliseconds between frames, and the CPU milliseconds per frame."""
    page.goto(_create_sign_in_link(running))
    page.get_by_role("button", name="Sign out").wait_for()
    page.goto(f"{running.url}/console/#/keys/keys")
    page.get_by_role("grid").wait_for()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _read_busy_seconds(session)
    times: list[float] = page.evaluate(_SCROLL, FRAMES)
    return sorted(times), 1000 * (_read_busy_seconds(session) - before) / FRAMES


def _read_busy_seconds(session: CDPSession) -> float:
    """Return the CPU seconds that the main thread of the page has used so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def _reply_with_many_keys(route: Route) -> None:
    at = "2026-01-05T08:00:00.000000Z"
    key: dict[str, Any] = {
        "principal": MEMBER,
        "accessRights": [],
        "createdAt": at,
        "expiresAt": None,
        "revokedAt": None,
    }
    keys = [
        {**key, "keyId": f"K{number:07}", "name": f"dashboard {number}", "lastUsedAt": at if number % 2 else None}
        for number in range(ROWS)
    ]
    route.fulfill(json={"keys": keys})
