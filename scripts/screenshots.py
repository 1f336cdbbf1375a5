"""Take new screenshots of the web console for the README: ``python -m scripts.screenshots``.

The script starts the service with the sample workspace and a temporary data folder. The screenshots show simulated live
telemetry in the light and in the dark theme.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from tests.console.visits import Console, open_console
from tests.pages.browser import CHROMIUM, NO_CHROMIUM
from tests.service.local_service import ROOT, Service

PICTURES: Final = ROOT / "docs" / "images"
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_LIVE_SECONDS: Final = 55
"""Seconds of live telemetry on the chart; the simulated plant sends a message each second."""


def main() -> None:
    """Write both screenshots to docs/images; exit with a message if Chromium is missing."""
    if CHROMIUM is None:
        sys.exit(NO_CHROMIUM)
    with TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data", ROOT / "samples" / "workspace.yaml").start()
        try:
            with open_console(service, width=1280) as console:
                _save_screenshots(console.sign_in())
        finally:
            service.stop()


def _save_screenshots(console: Console) -> None:
    console.open("overview", "Overview")
    console.page.set_viewport_size({"width": 1280, "height": 1040})
    console.page.get_by_text("1 min", exact=True).click()
    console.page.wait_for_timeout(_LIVE_SECONDS * 1000)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for theme in THEMES:
        console.set_theme(theme)
        console.page.screenshot(path=PICTURES / f"console-{theme}.png")


if __name__ == "__main__":
    main()
