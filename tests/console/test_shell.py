"""The shell of the web console: session, navigation, themes and keyboard."""

import re

from playwright.sync_api import expect

from tests.console.visits import Console, open_console
from tests.service.local_service import Service

TITLES = ["Overview", "Queries", "Downloads", "Data", "Audit log", "Amendments", "Keys and tokens", "Developers"]


def test_sign_in_link_opens_all_pages(console: Console) -> None:
    """The printed link signs in and removes its code; each page opens and is accessible."""
    page = console.follow(console.service.sign_in_link).page
    assert "sign-in" not in page.url
    expect(page.get_by_role("banner")).to_contain_text("Plant A")
    entries = page.get_by_role("navigation", name="Pages of the console").get_by_role("link")
    expect(entries).to_have_text(TITLES)
    for title in reversed(TITLES):
        entries.get_by_text(title, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        expect(page).to_have_title(f"{title} - Workspace console")
        console.check_appearance(f"page-{title}")


def test_pasted_key_signs_in_and_out(console: Console) -> None:
    """A pasted key signs in and is not stored; the session survives a reload until sign-out."""
    page, key = console.page, console.service.key("viewer@plant-a.example")
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


def test_used_link_shows_an_error(console: Console) -> None:
    """A used link shows how to create another, also in an open tab."""
    console.expected.append("401")
    console.page.goto(f"{console.service.url}/console/")
    console.page.goto(f"{console.service.url}/console/#sign-in=used-code-used-code-used-code")
    expect(console.page.get_by_role("alert")).to_contain_text("python -m local.sign_in")
    assert "sign-in=" not in console.page.url


def test_page_without_its_right(console: Console) -> None:
    """A page without its rights shows the missing ones and sends no request."""
    console.sign_in("viewer@plant-a.example").open("downloads", "Downloads")
    expect(console.page.get_by_role("main")).to_contain_text("Workspace.ColdData.Export")
    console.open("nothing", "Page not found")


def test_keyboard_alone(console: Console) -> None:
    """The skip link is the first tab stop and skips the navigation."""
    console.sign_in()
    page = console.page
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert "#main" not in page.url


def test_narrow_screen(service: Service) -> None:
    """On a narrow screen the navigation is folded, without horizontal scrolling."""
    with open_console(service, width=390) as console:
        page = console.sign_in().page
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


def test_theme_is_chosen(console: Console) -> None:
    """The toggle switches the theme, which survives a reload."""
    console.sign_in().set_theme("light")
    console.page.get_by_role("button", name="Dark theme").click()
    console.page.locator("html[data-theme=dark]").wait_for()
    console.page.reload()
    console.page.locator("html[data-theme=dark]").wait_for()
    console.page.get_by_role("button", name="Light theme").click()
    console.page.locator("html[data-theme=light]").wait_for()


def test_colours_change_at_once_without_motion(console: Console) -> None:
    """With reduced motion a change of the theme starts no transition."""
    page = console.sign_in().page
    console.set_theme("light")
    running = """() => {
      document.documentElement.dataset.theme = "dark";
      getComputedStyle(document.body).color;
      return document.getAnimations().filter((each) => each instanceof CSSTransition).length;
    }"""
    assert page.evaluate(running) == 0
