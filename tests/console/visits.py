"""The web console in the machine's own Chromium: signed in, watched, looked at."""

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
"""Where screenshots go."""

_SERIOUS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter((rule) => ["serious", "critical"].includes(rule.impact))
  .flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary}`))"""


@dataclass
class Console:
    """A browser with the console open, and what happened in it.

    Attributes:
        page: Playwright's page.
        service: what it talks to.
        expected: texts of errors on the browser's console that the test provokes.
        complaints: errors on the browser's console, and exceptions that nobody caught.
        origins: where requests went.
        forbidden: addresses that answered 403: the console shows what the token may, and asks for nothing else.
    """

    page: Page
    service: Service
    expected: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    origins: set[str] = field(default_factory=set)
    forbidden: list[str] = field(default_factory=list)

    def sign_in(self, member: str = "") -> "Console":
        """Sign in as a member, or the first administrator, by a link made for it; ends on the first page."""
        command = [sys.executable, "-m", "local.sign_in", "--data-dir", str(self.service.data_dir), "--as", member]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
        return self.follow(made.stdout.strip())

    def follow(self, link: str) -> "Console":
        """Open a sign-in link and wait for the shell."""
        self.page.goto(link)
        self.page.get_by_role("button", name="Sign out").wait_for()
        return self

    @contextmanager
    def another(self) -> "Iterator[Console]":
        """Give a second browser context beside this one, for somebody else; it shares nothing with it."""
        browser = self.page.context.browser
        assert browser is not None
        made = _opened(browser, self.service, 1400)
        try:
            yield made
        finally:
            made.page.context.close()

    def open(self, path: str, heading: str) -> "Console":
        """Go to an address behind ``#/`` and wait for the page's heading."""
        self.page.goto(f"{self.service.url}/console/#/{path}")
        self.page.get_by_role("heading", level=1, name=heading, exact=True).wait_for()
        return self

    def theme(self, wanted: Literal["light", "dark"]) -> None:
        """Let the machine prefer a theme, and wait until it is shown."""
        self.page.emulate_media(color_scheme=wanted, reduced_motion="reduce")
        self.page.locator(f"html[data-theme={wanted}]").wait_for()

    def barriers(self) -> list[str]:
        """Return what axe finds serious or critical on the page as it stands."""
        found: list[str] = self.page.evaluate(_SERIOUS)
        return found

    def picture(self, name: str) -> None:
        """Save a screenshot for people to look at."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png")

    def looks_right(self, name: str) -> None:
        """Check the page for barriers in both themes, and save a screenshot of each."""
        for theme in ("light", "dark"):
            self.theme(theme)
            self.picture(f"{name}-{theme}")
            assert self.barriers() == [], f"{name}, {theme}"
        self.theme("light")

    def stayed_clean(self) -> None:
        """Fail where the visit left the origin, raised an error, or asked for what its caller may not."""
        assert self.origins <= {urlsplit(self.service.url).netloc, ""}
        unexpected = [each for each in self.complaints if not any(text in each for text in self.expected)]
        assert unexpected == []
        assert self.forbidden == []


@contextmanager
def visiting(service: Service, width: int = 1400) -> Iterator[Console]:
    """Give a browser of its own, and close it."""
    with sync_playwright() as playwright:
        # The sandbox of Chromium needs rights that a container does not have.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield _opened(browser, service, width)
        finally:
            browser.close()


def _opened(browser: Browser, service: Service, width: int) -> Console:
    context = browser.new_context(viewport={"width": width, "height": 900}, timezone_id="Europe/Berlin")
    context.add_init_script(path=AXE)
    made = Console(context.new_page(), service)
    _watch(made)
    return made


def _watch(console: Console) -> None:
    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            console.complaints.append(f"{message.text} {message.location.get('url', '')}")

    def answered(response: Response) -> None:
        if response.status == 403:
            console.forbidden.append(response.url)

    console.page.on("request", lambda request: console.origins.add(urlsplit(request.url).netloc))
    console.page.on("response", answered)
    console.page.on("pageerror", lambda error: console.complaints.append(str(error)))
    console.page.on("console", said)
