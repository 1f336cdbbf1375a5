"""Chromium, controlled by tests of the browser pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NO_CHROMIUM = "Chromium is not installed (Debian: apt-get install chromium)"

# The default of five seconds is too short for a busy machine.
expect.set_options(timeout=30_000)


@dataclass
class Visit:
    """An open page and its events.

    Attributes:
        page: the page.
        origins: origins of its requests.
        complaints: errors on its console, and uncaught exceptions.
    """

    page: Page
    origins: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def visit(address: str) -> Iterator[Visit]:
    """Open a page in a new browser, and close the browser afterwards."""
    with sync_playwright() as playwright:
        # The sandbox of Chromium needs rights that a container does not have.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        visited = Visit(browser.new_page(viewport={"width": 1400, "height": 1000}))
        visited.page.on("request", lambda request: visited.origins.add(urlsplit(request.url).netloc))
        visited.page.on("pageerror", lambda error: visited.complaints.append(str(error)))
        visited.page.on(
            "console", lambda message: visited.complaints.append(message.text) if message.type == "error" else None
        )
        try:
            visited.page.goto(address)
            yield visited
        finally:
            browser.close()
