"""Tests of the console's inbox with more pending amendments than one page shows."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import WORKSPACE
from tests.console.test_amendments import ADMIN, EDITOR, create_amendment
from tests.console.visits import Console
from tests.service.local_service import Service

MINE = "Pending amendments of all scopes"
OTHERS = "Amendments that wait for another person"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with the sample workspace that only the tests of this module use."""
    running = Service(tmp_path_factory.mktemp("inbox-pages") / "data", WORKSPACE).start()
    yield running
    assert running.stop() == 0


def create_amendments(service: Service, member: str, scope: str, count: int) -> None:
    """Create this number of amendments as a member."""
    client = service.create_client(member)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: create_amendment(client, scope, f"Tank-{number}"), range(count)))


def expect_rows(page: Page, label: str, count: int) -> None:
    """Wait until a table has this number of rows, those outside the visible part included."""
    expect(page.get_by_role("grid", name=label)).to_have_attribute("aria-rowcount", str(count + 1))


def test_the_inbox_lists_decidable_amendments_behind_many_own_ones(console: Console, service: Service) -> None:
    """The inbox lists every amendment that the badge counts, even if many older ones are the reader's own.

    If further pages exist, the page says how many amendments it covers.
    """
    create_amendments(service, ADMIN, "own", 60)
    create_amendments(service, EDITOR, "theirs", 7)
    page = console.sign_in(ADMIN).open("inbox", "Inbox").page
    # The sample workspace has one draft.
    expect(page.get_by_role("link", name="Inbox 8 waiting")).to_be_visible()
    expect_rows(page, MINE, 7)
    expect_rows(page, OTHERS, 60)
    expect(page.get_by_role("button", name="Next")).to_have_count(0)

    create_amendments(service, ADMIN, "own", 130)
    create_amendments(service, EDITOR, "theirs", 64)
    page.get_by_role("button", name="Refresh").first.click()
    expect_rows(page, MINE, 71)
    expect_rows(page, OTHERS, 190)
    create_amendments(service, EDITOR, "theirs", 150)
    page.get_by_role("button", name="Refresh").first.click()
    expect(page.get_by_text("Page 1 covers 400 pending amendments; the next page has newer ones.")).to_be_visible()
    expect_rows(page, MINE, 210)
    console.check_appearance("inbox-pages")
    console.check_fits_a_phone("inbox-pages-phone")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("Page 2 covers 11 pending amendments.")).to_be_visible()
    expect_rows(page, MINE, 11)
