"""Tests of whole tasks on a phone by touch, and with the keyboard alone."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.test_journeys import AUDITOR, EDITOR, STREAM_MS, WIDE_FIRST, Screen, expect_heading, open_as_member
from tests.console.visits import Theme, open_console
from tests.service.local_service import Service

MAX_TABS = 80
"""More tab stops than any page has before an element of these journeys."""

# Chromium itself outlines the calendar button inside a date field, which scripts cannot see.
SHOWS_FOCUS = """document.activeElement.matches("body, [type=datetime-local]")
  || getComputedStyle(document.activeElement).outlineStyle !== "none" """


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_engineer_uses_charts_queries_and_alerts_on_a_phone_by_touch(service: Service, theme: Theme) -> None:
    """On a phone, charts, a query, alerts and the inbox can be used by touch, without sideways scrolling."""
    with open_as_member(service, (390, theme), EDITOR, touch=True) as console:
        page = console.page
        open_page_by_touch(page, "Overview")
        expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
        page.get_by_role("button", name="Show a table").tap()
        expect(page.get_by_role("region", name="Values of the charts")).to_be_visible()
        console.check_fits(f"phone-values-{theme}")
        open_page_by_touch(page, "Queries")
        page.get_by_role("gridcell", name="Chiller temperature excursions").tap()
        page.get_by_role("button", name="Run", exact=True).tap()
        expect(page.get_by_role("region", name="About the result")).to_be_visible()
        console.check_fits(f"phone-result-{theme}")
        page.get_by_role("button", name="Copy as…").tap()
        expect(page.get_by_role("dialog")).to_be_visible()
        console.check_fits(f"phone-dialog-{theme}")
        page.get_by_role("dialog").get_by_role("button", name="Close").last.tap()
        open_page_by_touch(page, "Alerts")
        page.get_by_role("button", name="Add rule").tap()
        page.get_by_label("Name", exact=True).wait_for()
        console.check_fits(f"phone-rule-{theme}")
        open_page_by_touch(page, "Inbox")
        expect(page.get_by_role("heading", name="Firing alerts")).to_be_visible()
        console.check_fits(f"phone-inbox-{theme}")


def open_page_by_touch(page: Page, title: str) -> None:
    """Open the menu and then a page, by touch."""
    page.get_by_role("button", name="Menu").tap()
    page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^{title}")).tap()
    expect_heading(page, title)


@pytest.mark.parametrize("screen", WIDE_FIRST)
def test_an_auditor_uses_the_keyboard_alone(service: Service, screen: Screen) -> None:
    """All steps from sign-in to sign-out work with the keyboard alone."""
    width, theme = screen
    with open_console(service, width) as console:
        page = console.page
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.goto(f"{service.url}/console/")
        press_tab_until(page, page.get_by_label("API key or token"))
        page.keyboard.insert_text(service.read_api_key(AUDITOR))
        page.keyboard.press("Enter")
        expect_heading(page, "Inbox")
        open_by_keyboard(page, "Queries")
        press_tab_until(page, page.get_by_role("grid", name="Queries"))
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        press_tab_until(page, page.get_by_role("button", name="Run", exact=True))
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="About the result")).to_be_visible()
        press_tab_until(page, page.get_by_role("button", name="Copy as…"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Copy as…")).to_be_focused()
        open_by_keyboard(page, "Audit log")
        press_tab_until(page, page.get_by_role("grid"))
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name=re.compile("^Record "))).to_be_visible()
        press_tab_until(page, page.get_by_role("button", name="Sign out"), backwards=True)
        page.keyboard.press("Enter")
        page.get_by_label("API key or token").wait_for()
        console.check_no_errors()


def open_by_keyboard(page: Page, title: str) -> None:
    """Open a page from the navigation with the keyboard; on a narrow screen, open the menu first."""
    menu = page.get_by_role("button", name="Menu")
    if menu.is_visible():
        press_tab_until(page, menu, backwards=True)
        page.keyboard.press("Enter")
    link = page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^{title}"))
    press_tab_until(page, link, backwards=not menu.is_visible())
    page.keyboard.press("Enter")
    expect_heading(page, title)
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def press_tab_until(page: Page, target: Locator, *, backwards: bool = False) -> None:
    """Press Tab until the target has the focus; check that each element before it shows its focus."""
    target.wait_for()
    for _ in range(MAX_TABS):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        assert page.evaluate(SHOWS_FOCUS), page.evaluate("document.activeElement.outerHTML")
    raise AssertionError(f"the element has no focus after pressing Tab {MAX_TABS} times")
