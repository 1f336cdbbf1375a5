"""The web console in Chromium: sign-in, navigation and checks."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Response, sync_playwright

from tests.pages.browser import CHROMIUM
from tests.service.local_service import ROOT, Service

AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
ARTEFACTS = Path(os.environ.get("ARTEFACTS") or ROOT / ".artefacts")
"""Folder of the screenshots."""

_SERIOUS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter((rule) => ["serious", "critical"].includes(rule.impact))
  .flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary}`))"""


@dataclass
class Console:
    """A browser with the console, and its recorded errors and requests.

    Attributes:
        page: Playwright's page.
        service: the service of the console.
        expected: texts of console errors that the test provokes.
        complaints: errors on the browser's console, and uncaught exceptions.
        origins: origins of all requests.
        forbidden: addresses that replied 403; the console must not make such requests.
    """

    page: Page
    service: Service
    expected: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    origins: set[str] = field(default_factory=set)
    forbidden: list[str] = field(default_factory=list)

    def sign_in(self, member: str = "") -> "Console":
        """Sign in with a new link as a member or the first administrator."""
        command = [sys.executable, "-m", "local.sign_in", "--data-dir", str(self.service.data_dir), "--as", member]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
        return self.follow(made.stdout.strip())

    def follow(self, link: str) -> "Console":
        """Open a sign-in link and wait for the shell."""
        self.page.goto(link)
        self.page.get_by_role("button", name="Sign out").wait_for()
        return self

    @contextmanager
    def open_second(self) -> "Iterator[Console]":
        """Yield a second, separate browser context for another user."""
        browser = self.page.context.browser
        assert browser is not None
        made = _open(browser, self.service, 1400)
        try:
            yield made
        finally:
            made.page.context.close()

    def open(self, path: str, heading: str) -> "Console":
        """Go to a hash route and wait for the page's heading."""
        self.page.goto(f"{self.service.url}/console/#/{path}")
        self.page.get_by_role("heading", level=1, name=heading, exact=True).wait_for()
        return self

    def set_theme(self, wanted: Literal["light", "dark"]) -> None:
        """Set the machine's preferred theme, and wait until the page uses it."""
        self.page.emulate_media(color_scheme=wanted, reduced_motion="reduce")
        self.page.locator(f"html[data-theme={wanted}]").wait_for()

    def find_barriers(self) -> list[str]:
        """Return axe's serious and critical findings on the current page."""
        found: list[str] = self.page.evaluate(_SERIOUS)
        return found

    def save_screenshot(self, name: str) -> None:
        """Save a screenshot for review."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png")

    def check_appearance(self, name: str) -> None:
        """Check accessibility in both themes, and save a screenshot of each."""
        for theme in ("light", "dark"):
            self.set_theme(theme)
            self.save_screenshot(f"{name}-{theme}")
            assert self.find_barriers() == [], f"{name}, {theme}"
        self.set_theme("light")

    def check_no_errors(self) -> None:
        """Fail on requests to other origins, unexpected errors, and 403 replies."""
        assert self.origins <= {urlsplit(self.service.url).netloc, ""}
        unexpected = [each for each in self.complaints if not any(text in each for text in self.expected)]
        assert unexpected == []
        assert self.forbidden == []


@contextmanager
def open_console(service: Service, width: int = 1400) -> Iterator[Console]:
    """Yield a new browser and close it."""
    with sync_playwright() as playwright:
        # The sandbox of Chromium needs rights that a container does not have.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield _open(browser, service, width)
        finally:
            browser.close()


def _open(browser: Browser, service: Service, width: int) -> Console:
    context = browser.new_context(viewport={"width": width, "height": 900}, timezone_id="Europe/Berlin")
    context.add_init_script(path=AXE)
    made = Console(context.new_page(), service)
    _watch(made)
    return made


def _watch(console: Console) -> None:
    def record_error(message: ConsoleMessage) -> None:
        if message.type == "error":
            console.complaints.append(f"{message.text} {message.location.get('url', '')}")

    def record_forbidden(response: Response) -> None:
        if response.status == 403:
            console.forbidden.append(response.url)

    console.page.on("request", lambda request: console.origins.add(urlsplit(request.url).netloc))
    console.page.on("response", record_forbidden)
    console.page.on("pageerror", lambda error: console.complaints.append(str(error)))
    console.page.on("console", record_error)
