"""Browser with the web console for tests: sign-in, navigation and checks."""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Response, ViewportSize, expect

from local.sign_in.codes import build_sign_in_link, open_sign_in_codes
from tests.pages.axe import find_accessibility_violations
from tests.pages.browser import BROWSER
from tests.service.local_service import Service

type Theme = Literal["light", "dark"]

ARTEFACTS = os.environ.get("ARTEFACTS", "")
"""Folder of the screenshots; empty for none."""

_CHECKPOINT = "/oi-api/provenance/checkpoint?"
"""Replies 404 until the service signs the first checkpoint of a chain, up to a minute after its first record."""

_COLOUR_RULES = ("color-contrast", "link-in-text-block")
"""Rules of axe whose findings depend on the theme, which consists of colours only."""


@dataclass
class Console:
    """Browser with the console, which records errors and requests.

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
        """Store a session of the given member or, without one, of the first administrator; ``open`` then uses it.

        The console itself is not loaded, because its first page would send requests that most tests do not need.
        """
        with self.service.create_anonymous_client() as client:
            reply = client.post("/local/sign-in", json={"code": self._create_code(member)})
        assert reply.status_code == 200, reply.text
        session = {**reply.json(), "until": reply.json()["expiresAt"]}
        self.page.goto(f"{self.service.url}/console/favicon.svg")
        self.page.evaluate("session => sessionStorage.setItem('workspace-console', JSON.stringify(session))", session)
        return self

    def sign_in_by_link(self, member: str = "") -> "Console":
        """Sign in with a new sign-in link, as the given member or as the first administrator; show the first page."""
        return self.open_sign_in_link(build_sign_in_link(self.service.url, self._create_code(member)))

    def _create_code(self, member: str) -> str:
        codes = open_sign_in_codes(self.service.data_dir)
        # Another thread, because Playwright's event loop occupies this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(codes.create(member))).result()

    def open_sign_in_link(self, link: str) -> "Console":
        """Open a sign-in link and wait until the console shows its navigation."""
        self.page.goto(link)
        self.page.get_by_role("button", name="Sign out").wait_for()
        return self

    @contextmanager
    def open_second(self) -> "Iterator[Console]":
        """Yield a second browser context, in which another user can sign in."""
        browser = self.page.context.browser
        assert browser is not None
        made = _open_page(browser, self.service, 1400)
        try:
            yield made
        finally:
            made.page.context.close()

    def open(self, path: str, heading: str) -> "Console":
        """Go to a page by its hash route and wait for its heading."""
        self.page.goto(f"{self.service.url}/console/#/{path}")
        self.page.get_by_role("heading", level=1, name=heading, exact=True).wait_for()
        return self

    def set_theme(self, wanted: Theme) -> None:
        """Set the preferred theme of the browser, and wait until the page uses it."""
        self.page.emulate_media(color_scheme=wanted, reduced_motion="reduce")
        self.page.locator(f"html[data-theme={wanted}]").wait_for()

    def list_themes(self) -> tuple[Theme, Theme]:
        """Return the theme of the page and the other theme."""
        return ("dark", "light") if self.page.locator("html[data-theme=dark]").count() else ("light", "dark")

    def find_accessibility_violations(self, rules: Sequence[str] | None = None) -> list[str]:
        """Return the serious and critical accessibility findings of axe on the page, for the given rules or for all."""
        return find_accessibility_violations(self.page, rules)

    def save_screenshot(self, name: str) -> None:
        """Save a screenshot for review if ``ARTEFACTS`` names a folder."""
        if ARTEFACTS:
            self.page.screenshot(path=Path(ARTEFACTS) / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png")

    def check_appearance(self, name: str) -> None:
        """Check accessibility in both themes, and save a screenshot of each; then the page has the other theme."""
        current, other = self.list_themes()
        # A colour in a transition would be measured as it is in between.
        self.page.emulate_media(reduced_motion="reduce")
        self._check_theme(name, current)
        self.set_theme(other)
        self._check_theme(name, other, _COLOUR_RULES)

    def _check_theme(self, name: str, theme: Theme, rules: Sequence[str] | None = None) -> None:
        self.save_screenshot(f"{name}-{theme}")
        barriers = self.find_accessibility_violations(rules)
        assert barriers == [], f"{name}, {theme}: {barriers}"

    def check_fits(self, name: str) -> None:
        """Check that the page does not scroll sideways, and save a screenshot."""
        self.save_screenshot(name)
        page_width, screen_width = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert page_width <= screen_width, f"{name} is {page_width} px wide on a screen of {screen_width} px"

    def check_fits_a_phone(self, name: str) -> None:
        """Check at the width of a phone that the page does not scroll sideways; then restore the width."""
        size = self.page.viewport_size
        assert size is not None
        self.page.set_viewport_size({"width": 390, "height": 900})
        self.check_fits(name)
        self.page.set_viewport_size(size)

    def check_fits_in_both_themes(self, name: str) -> None:
        """Check in both themes that the page does not scroll sideways; then restore the previous theme."""
        for theme in reversed(self.list_themes()):
            self.set_theme(theme)
            self.check_fits(f"{name}-{theme}")

    def check_no_errors(self, *other_urls: str) -> None:
        """Fail if the browser has requested another origin, reported an unexpected error, or received a 403 reply.

        Args:
            other_urls: URLs of the servers besides the service that the browser may use.
        """
        assert self.origins <= {urlsplit(url).netloc for url in (self.service.url, *other_urls)} | {""}
        unexpected = [each for each in self.complaints if not any(text in each for text in self.expected)]
        assert unexpected == [], unexpected
        assert self.forbidden == []


def paste_text(field: Locator, text: str) -> None:
    """Replace the text of a field from the clipboard.

    Playwright's ``fill`` sends an input event for each line of the text, which takes seconds for long texts.
    """
    page = field.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    field.press("ControlOrMeta+a")
    field.press("ControlOrMeta+v")
    expect(field).to_have_value(text)


@contextmanager
def open_console(service: Service, width: int = 1400, *, touch: bool = False) -> Iterator[Console]:
    """Yield a new browser context with the given screen, and close it afterwards."""
    made = _open_page(BROWSER.get(), service, width, touch=touch)
    try:
        yield made
    finally:
        # A handler of the test that still changes a reply would fail in the next test.
        made.page.unroute_all(behavior="ignoreErrors")
        made.page.context.close()


def _open_page(browser: Browser, service: Service, width: int, *, touch: bool = False) -> Console:
    screen = ViewportSize(width=width, height=900)
    context = browser.new_context(viewport=screen, has_touch=touch, timezone_id="Europe/Berlin")
    made = Console(context.new_page(), service)
    _watch_for_errors(made)
    return made


def _watch_for_errors(console: Console) -> None:
    def record_error(message: ConsoleMessage) -> None:
        address = message.location.get("url", "")
        if message.type == "error" and not (" 404 " in message.text and _CHECKPOINT in address):
            console.complaints.append(f"{message.text} {address}")

    def record_forbidden(response: Response) -> None:
        if response.status == 403:
            console.forbidden.append(response.url)

    console.page.on("request", lambda request: console.origins.add(urlsplit(request.url).netloc))
    console.page.on("response", record_forbidden)
    console.page.on("pageerror", lambda error: console.complaints.append(str(error)))
    console.page.on("console", record_error)
