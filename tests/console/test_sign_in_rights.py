"""Tests that the navigation contains only pages that work if the token has a single access right."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from shared.auth.rights import AccessRight
from tests.console.visits import Console, open_console
from tests.service.local_service import Service

ADMIN = "admin@plant-a.example"
BROKEN_CHAIN = "Altered after it was recorded."
OPEN_TO_ALL = ["Keys and tokens", "Developers"]


@pytest.fixture(scope="module")
def browser(service: Service) -> Iterator[Console]:
    """Yield a browser that all tests of this module share."""
    with open_console(service) as made:
        yield made


@pytest.mark.parametrize("right", AccessRight, ids=str)
def test_with_one_right_all_pages_in_the_navigation_have_content(
    browser: Console, service: Service, right: AccessRight
) -> None:
    """For each single right, every page in the navigation has content, without error messages or 403 replies."""
    browser.forbidden.clear()
    browser.complaints.clear()
    page = browser.page
    token = service.create_client(ADMIN, right).headers["authorization"].removeprefix("Bearer ")
    page.goto(f"{service.url}/console/")
    page.get_by_label("API key or token").fill(token)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Sign out").wait_for()
    entries = page.get_by_role("navigation", name="Pages of the console").get_by_role("link")
    # A badge follows the title on a line of its own.
    titles = [text.partition("\n")[0] for text in entries.all_inner_texts()]
    assert titles[-2:] == OPEN_TO_ALL
    for place, title in enumerate(titles):
        entries.nth(place).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        main = page.get_by_role("main")
        expect(main.get_by_role("status", name=re.compile("^Loading"))).to_have_count(0, timeout=20_000)
        # A test of damaged chains may have left a chain that the background has found broken.
        expect(main.get_by_role("alert").filter(has_not_text=BROKEN_CHAIN), title).to_have_count(0)
        assert len(main.inner_text()) > len(title) + 40, title
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key or token").wait_for()
    browser.check_no_errors()
