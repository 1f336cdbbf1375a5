"""Tests of the console's frame: session, navigation, themes and keyboard."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.visits import Console, open_console
from tests.service.local_service import Service

TITLES = [
    *("Inbox", "Overview", "Alerts", "Queries", "Downloads", "Imports", "Data"),
    *("Audit log", "Audit scopes", "Amendments", "Signatures"),
    *("Team", "Connections", "Surfaces", "Tables", "Webhooks", "Policies", "Workspace document"),
    *("Keys and tokens", "Developers"),
]


def test_sign_in_link_opens_all_pages(console: Console) -> None:
    """The printed link signs the user in and leaves the address; each page in the navigation opens, accessibly."""
    page = console.open_sign_in_link(console.service.sign_in_link).page
    assert "sign-in" not in page.url
    expect(page.get_by_role("banner")).to_contain_text("Plant A")
    entries = page.get_by_role("navigation", name="Pages of the console").get_by_role("link")
    expect(entries).to_have_text([re.compile(f"^{title}") for title in TITLES])
    for title in reversed(TITLES):
        entries.filter(has_text=re.compile(f"^{title}")).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        expect(page).to_have_title(f"{title} - Workspace console")
        console.check_appearance(f"page-{title}")


def test_a_pasted_key_signs_the_user_in_and_is_not_stored(console: Console) -> None:
    """A pasted key signs the user in and is not stored; the session survives a reload until the sign-out."""
    page, key = console.page, console.service.read_api_key("viewer@plant-a.example")
    page.goto(f"{console.service.url}/console/")
    page.get_by_label("API key or token").wait_for()
    console.check_appearance("sign-in")
    page.get_by_label("API key or token").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    expect(page.get_by_role("link", name="Downloads")).to_have_count(0)
    kept = "JSON.stringify([{...sessionStorage}, {...localStorage}, location.href, document.documentElement.outerHTML])"
    assert key not in page.evaluate(kept)
    page.reload()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key or token").wait_for()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    page.get_by_label("API key or token").wait_for()


def test_rejected_credential_shows_an_error(console: Console) -> None:
    """An invalid credential shows the service's message, code and request id."""
    console.expected.append("401")
    page = console.page
    page.goto(f"{console.service.url}/console/")
    page.get_by_label("API key or token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text(re.compile("UNAUTHENTICATED.*request", re.DOTALL))
    console.check_appearance("sign-in-refused")


def test_a_used_sign_in_link_shows_an_error(console: Console) -> None:
    """If a sign-in link was used before, an error states how to create a new link."""
    console.expected.append("401")
    console.page.goto(f"{console.service.url}/console/")
    console.page.goto(f"{console.service.url}/console/#sign-in=used-code-used-code-used-code")
    expect(console.page.get_by_role("alert")).to_contain_text("python -m local.sign_in")
    assert "sign-in=" not in console.page.url


def test_a_page_without_its_right_sends_no_request(console: Console) -> None:
    """If the user lacks the right that a page requires, the page names the right and sends no request."""
    console.sign_in("viewer@plant-a.example").open("downloads", "Downloads")
    expect(console.page.get_by_role("main")).to_contain_text("Workspace.ColdData.Export")
    console.open("nothing", "Page not found")


def test_the_first_tab_stop_skips_the_navigation(console: Console) -> None:
    """The first tab stop is a link that skips the navigation."""
    console.sign_in_by_link()
    page = console.page
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert "#main" not in page.url


def test_a_narrow_screen_shows_a_menu_button_instead_of_the_navigation(service: Service) -> None:
    """On a narrow screen a menu button replaces the navigation, and the page does not scroll sideways."""
    with open_console(service, width=390) as console:
        page = console.sign_in_by_link().page
        menu = page.get_by_role("button", name="Menu")
        expect(menu).to_have_attribute("aria-expanded", "false")
        expect(page.get_by_role("link", name="Queries")).to_be_hidden()
        menu.click()
        console.check_appearance("narrow")
        page.get_by_role("link", name="Queries").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Queries")
        expect(menu).to_have_attribute("aria-expanded", "false")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        console.check_no_errors()


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_every_page_fits_the_screen(service: Service, width: int) -> None:
    """No page in the navigation scrolls sideways on a desktop, a tablet or a phone."""
    with open_console(service, width=width) as console:
        page = console.sign_in_by_link().page
        links = page.locator("#navigation a")
        links.first.wait_for(state="attached")
        addresses: list[str] = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
        assert len(addresses) == len(TITLES)
        for address, title in zip(addresses, TITLES, strict=True):
            console.open(address.removeprefix("#/"), title)
            page.get_by_role("main").locator("h2, form, table").first.wait_for()
            console.set_theme("dark" if TITLES.index(title) % 2 else "light")
            console.save_screenshot(f"fits-{width}-{title}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), title
        console.check_no_errors()


def test_escape_and_a_click_outside_close_the_menu(service: Service) -> None:
    """Escape closes the menu and returns the focus to the menu's button; a click outside also closes the menu."""
    with open_console(service, width=390) as console:
        page = console.sign_in_by_link().page
        menu = page.get_by_role("button", name="Menu")
        menu.click()
        page.keyboard.press("Escape")
        expect(menu).to_have_attribute("aria-expanded", "false")
        expect(menu).to_be_focused()
        menu.click()
        expect(page.get_by_role("link", name="Queries")).to_be_visible()
        page.mouse.click(370, 700)
        expect(page.get_by_role("link", name="Queries")).to_be_hidden()
        console.check_no_errors()


def test_the_theme_survives_a_reload(console: Console) -> None:
    """A button switches the theme, and the choice survives a reload."""
    console.sign_in_by_link().set_theme("light")
    console.page.get_by_role("button", name="Dark theme").click()
    console.page.locator("html[data-theme=dark]").wait_for()
    console.page.reload()
    console.page.locator("html[data-theme=dark]").wait_for()
    console.page.get_by_role("button", name="Light theme").click()
    console.page.locator("html[data-theme=light]").wait_for()


def test_audit_log_is_in_utc_and_other_pages_in_the_local_zone(console: Console) -> None:
    """By default the audit log shows UTC and other pages the local time zone; the user's choices survive a reload."""
    page = console.sign_in().open("queries", "Queries").page
    zone = page.get_by_role("banner").get_by_role("button", name="Times in")
    expect(zone).to_have_text(re.compile(r"Europe/Berlin \(UTC\+\d\)"))
    console.open("audit", "Audit log")
    expect(zone).to_have_text(re.compile("^Times in UTC"))
    grid = page.get_by_role("grid", name="Records, newest first")
    stamp = grid.locator("time").first
    shown = (stamp.get_attribute("datetime") or "")[:19].replace("T", " ")
    expect(stamp).to_have_text(shown)
    zone.click()
    expect(stamp).not_to_have_text(shown)
    page.reload()
    expect(zone).to_have_text(re.compile("Europe/Berlin"))


def test_with_reduced_motion_the_theme_changes_without_a_transition(console: Console) -> None:
    """If the user prefers reduced motion, the colours change without a transition when the theme changes."""
    page = console.sign_in_by_link().page
    console.set_theme("light")
    running = """() => {
      document.documentElement.dataset.theme = "dark";
      getComputedStyle(document.body).color;
      return document.getAnimations().filter((each) => each instanceof CSSTransition).length;
    }"""
    assert page.evaluate(running) == 0
