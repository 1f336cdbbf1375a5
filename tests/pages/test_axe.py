"""Tests of the accessibility check of browser pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.pages.axe import AXE, find_accessibility_violations
from tests.pages.browser import BROWSER, CHROMIUM, NO_CHROMIUM

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
    pytest.mark.skipif(not AXE.is_file(), reason="axe is not installed; run `make assets` (needs npm)"),
]

# A button and a link without names, faint text, and faults of less impact: no main landmark, no heading of level 1.
PAGE = """<!doctype html><html lang="en"><title>t</title>
<button></button><a href="#a"></a><p style="color: #ccc">faint</p>
<div id="third-party"><img src="a.png"></div></html>"""


@pytest.fixture
def page() -> Iterator[Page]:
    """Return a page with barriers."""
    opened = BROWSER.get().new_page()
    opened.set_content(PAGE)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("rules", "found"),
    [(None, ["button-name", "color-contrast", "link-name"]), (["color-contrast", "region"], ["color-contrast"])],
)
def test_serious_findings_are_returned(page: Page, rules: list[str] | None, found: list[str]) -> None:
    """The serious and critical findings of the given rules, or of all rules, are returned; others are not."""
    assert sorted(barrier.split(":")[0] for barrier in find_accessibility_violations(page, rules)) == found
