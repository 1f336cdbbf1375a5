"""Chromium for tests of browser pages."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

# Debian's headless shell is the same browser without windows; it needs less than half of the processor time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
NO_CHROMIUM = "Chromium is not installed (Debian: apt-get install chromium chromium-headless-shell)"

# The default of five seconds is too short for a busy machine.
expect.set_options(timeout=30_000)


class SharedBrowser:
    """Chromium that all tests of a folder share; each test has a separate browser context.

    It is closed after the last test of the folder: Playwright's event loop occupies the thread until then, so that
    ``asyncio.run`` of a later test would fail.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._browser: Browser | None = None

    def get(self) -> Browser:
        """Return the browser; start it at the first call and after a crash."""
        if self._browser is None or not self._browser.is_connected():
            self.close()
            playwright = self._stack.enter_context(sync_playwright())
            # The sandbox of Chromium needs rights that a container does not have.
            self._browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            self._stack.callback(self._browser.close)
        return self._browser

    def close(self) -> None:
        """Close the browser if it is open."""
        self._browser = None
        self._stack.close()

    def close_before(self, next_test: Path | None, folder: Path) -> None:
        """Close the browser if the next test is outside the folder of the tests that share it."""
        if next_test is None or folder not in next_test.parents:
            self.close()


BROWSER = SharedBrowser()


@dataclass
class Visit:
    """Open browser page with its recorded errors and requests.

    Attributes:
        page: the page.
        origins: origins of its requests.
        complaints: errors on its console, and uncaught exceptions.
    """

    page: Page
    origins: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def open_page(address: str) -> Iterator[Visit]:
    """Context manager: open a page in a new browser context for the duration of the block."""
    context = BROWSER.get().new_context(viewport={"width": 1400, "height": 1000})
    visited = Visit(context.new_page())
    visited.page.on("request", lambda request: visited.origins.add(urlsplit(request.url).netloc))
    visited.page.on("pageerror", lambda error: visited.complaints.append(str(error)))
    visited.page.on(
        "console", lambda message: visited.complaints.append(message.text) if message.type == "error" else None
    )
    try:
        visited.page.goto(address)
        yield visited
    finally:
        context.close()
