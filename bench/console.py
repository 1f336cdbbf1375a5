"""Benchmark of the web console in a browser: its size, Lighthouse scores, and the speed of scrolling a long table."""

import gzip
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import CDPSession, Page, Route, sync_playwright

from bench.figures import Figure, ToolMissingError
from bench.running import ROOT, RunningService, run_service
from tests.node import find_node
from tests.pages.browser import CHROMIUM, NO_CHROMIUM

BUILT = ROOT / "static" / "console"
LIGHTHOUSE = Path(__file__).with_name("lighthouse")
PAGES = ROOT / "console" / "src" / "pages.ts"
RUNS = 3
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
LEAST_SCORE = 95
ADMINISTRATOR = "admin@bench"
"""Member who may open every page."""

VIEWS = (
    "alerts?tab=history",
    "alerts?tab=rules",
    "alerts?view=new",
    "amendments/line-1",
    "amendments/line-1/new",
    "audit/DomainEvents",
    "audit/PlatformConfig?record=1",
    "connections/line",
    "connections?view=new",
    "data/orders",
    "document/apply",
    "keys/applications",
    "keys/keys",
    "keys/revoke",
    "queries/-/ad-hoc",
    "queries/-/new",
    "queries/newest",
    "queries/newest/edit",
    "scopes/bundles",
    "surfaces/hall",
    "surfaces?view=new",
    "team/editor@bench",
    "team?view=new",
    "webhooks?view=new",
)
"""URL paths of further views: each page has a first view, and some pages have further views with their own path."""

ROWS = 10_000
FRAMES = 240

_CONSENT = urlencode(
    {
        "response_type": "code",
        "client_id": "oi",
        "redirect_uri": "http://127.0.0.1/callback",
        "scope": "Workspace.Catalog.Read",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
    }
)
"""Query parameters for the consent page: an authorization request of the workspace's OAuth client."""

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
    """Measure the size of the built web console, run Lighthouse on its pages, and measure scrolling in Chromium.

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
        yield from _measure_pages_with_lighthouse(running)
        yield from _measure_table_frame_times(running)


def _measure_pages_with_lighthouse(running: RunningService) -> Iterator[Figure]:
    """Run Lighthouse on the sign-in page and on every page after sign-in; yield the lowest score of each category."""
    signed_in = {name: f"{running.url}/console/#/{name}" for name in _list_page_url_paths()}
    pages = _run_lighthouse_and_find_median_runs(running, {"signIn": f"{running.url}/console/"}, signed_in=False)
    pages |= _run_lighthouse_and_find_median_runs(running, signed_in, signed_in=True)
    for category in CATEGORIES:
        scores = {name: page[category] for name, page in pages.items()}
        failing = {name: page["failing"] for name, page in pages.items() if page[category] < LEAST_SCORE}
        detail = {"pages": scores, "failing": failing}
        name = f"console_{category.replace('-', '_')}"
        yield Figure(name, min(scores.values()), "points", at_least=LEAST_SCORE, detail=detail)
    paint = {name: page["firstPaintSeconds"] for name, page in pages.items()}
    more = {name: page["largestPaintSeconds"] for name, page in pages.items()}
    detail = {"pages": paint, "largestPaintSeconds": more}
    yield Figure("console_first_paint", max(paint.values()), "s", at_most=1, detail=detail)


def _list_page_url_paths() -> list[str]:
    """Return the URL paths of all pages in the console's route table, and of the tabs and forms in ``VIEWS``."""
    entries = PAGES.read_text(encoding="utf-8").split('path: "')[1:]
    paths = [entry.split('"')[0] for entry in entries]
    return [f"consent?{_CONSENT}" if path == "consent" else path for path in paths] + list(VIEWS)


def _run_lighthouse_and_find_median_runs(
    running: RunningService, page_urls: dict[str, str], *, signed_in: bool
) -> dict[str, dict[str, Any]]:
    """Run Lighthouse on all pages, and again on pages with a low score; return the median run of each page by name.

    Args:
        running: service with the console.
        page_urls: URL of each page by name.
        signed_in: whether the browser signs in before it opens the pages.
    """
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in page_urls}
    for _ in range(RUNS):
        again = [
            name
            for name, each in runs.items()
            if not each or _find_run_with_median_performance(each)["performance"] < LEAST_SCORE
        ]
        link = _create_sign_in_link(running) if signed_in else "-"
        for name, run in zip(again, _run_lighthouse(link, [page_urls[name] for name in again]), strict=True):
            runs[name].append(run)
    return {name: _find_run_with_median_performance(each) for name, each in runs.items()}


def _find_run_with_median_performance(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return sorted(runs, key=lambda run: run["performance"])[len(runs) // 2]


def _run_lighthouse(sign_in_link: str, page_urls: list[str]) -> list[dict[str, Any]]:
    if not page_urls:
        return []
    environment = {**os.environ, "CHROMIUM": str(CHROMIUM)}
    command = [str(find_node()), "measure.mjs", sign_in_link, *page_urls]
    done = subprocess.run(command, cwd=LIGHTHOUSE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Lighthouse failed: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _create_sign_in_link(running: RunningService) -> str:
    """Create a one-time sign-in link for the console of the running service and return the link."""
    command = [sys.executable, "-m", "local.sign_in", "--data-dir", str(running.folder), "--as", ADMINISTRATOR]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _measure_table_frame_times(running: RunningService) -> Iterator[Figure]:
    """Yield the time between frames and the CPU time per frame while a table of many simulated rows is scrolled.

    The time between frames has no bound, because it depends on the machine's load. The CPU time of the page's thread
    per frame must be less than a frame's duration at 60 Hz.
    """
    with sync_playwright() as playwright:
        # A container lacks the rights that Chromium's sandbox requires.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.route("**/workspace/api/keys", _reply_with_many_api_keys)
            times, work = _measure_scrolling(page, running)
        finally:
            browser.close()
    detail = {"rows": ROWS, "medianMs": round(statistics.median(times), 2), "longestMs": round(times[-1], 2)}
    yield Figure("console_table_frame_p95", times[int(len(times) * 0.95)], "ms", detail=detail)
    yield Figure("console_table_frame_work", work, "ms", at_most=16.7, detail={"rows": ROWS, "frames": FRAMES})


class _FrameTimes(NamedTuple):
    """Sorted milliseconds between frames, and the CPU milliseconds per frame."""

    between_frames: list[float]
    cpu_per_frame: float


def _measure_scrolling(page: Page, running: RunningService) -> _FrameTimes:
    """Scroll the table, and measure the times of the frames."""
    page.goto(_create_sign_in_link(running))
    page.get_by_role("button", name="Sign out").wait_for()
    page.goto(f"{running.url}/console/#/keys/keys")
    page.get_by_role("grid").wait_for()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _read_page_cpu_seconds(session)
    times: list[float] = page.evaluate(_SCROLL, FRAMES)
    return _FrameTimes(sorted(times), 1000 * (_read_page_cpu_seconds(session) - before) / FRAMES)


def _read_page_cpu_seconds(session: CDPSession) -> float:
    """Return the CPU seconds that the main thread of the page has used so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def _reply_with_many_api_keys(route: Route) -> None:
    at = "2026-01-05T08:00:00.000000Z"
    key: dict[str, Any] = {
        "principal": ADMINISTRATOR,
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
