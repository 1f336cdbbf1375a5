"""Tests of accessibility and width of pages after their data have loaded."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console.conftest import WORKSPACE
from tests.console.visits import Console, open_console
from tests.service.local_service import Service

WIDTHS = pytest.mark.parametrize("width", [1440, 1024, 390])
NARROW_WIDTHS = pytest.mark.parametrize("width", [1024, 390])
"""Widths for pages that another test checks on a wide screen."""
EDITOR = "editor@plant-a.example"
STREAM_MS = 90_000
ROWS = b"time;device;pressure\n2026-01-05T08:00:00Z;gw-1;4,25\n2026-01-05T08:00:10Z;gw-1;4,5\nnone;gw-1;4,75\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with the sample workspace that the tests of this module may change."""
    running = Service(tmp_path_factory.mktemp("filled-pages") / "data", WORKSPACE).start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def filled_console(service: Service, width: int) -> Iterator[Console]:
    """Yield a console of this width in which an editor is signed in.

    After the test, fail if the console has reported an error.
    """
    with open_console(service, width=width) as made:
        yield made.sign_in()
        made.check_no_errors()


def check_page(console: Console, name: str, width: int) -> None:
    """Check that the page is accessible in both themes and not wider than the screen."""
    console.check_appearance(f"filled-{name}-{width}")
    console.check_fits(f"filled-{name}-{width}-fits")


@NARROW_WIDTHS
def test_the_overview_with_data_is_accessible(filled_console: Console, width: int) -> None:
    """The overview with live charts and the table of connections is accessible."""
    page = filled_console.open("overview", "Overview").page
    expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
    expect(page.get_by_role("grid", name="Connections").get_by_role("row")).not_to_have_count(1)
    check_page(filled_console, "overview", width)


@WIDTHS
def test_the_import_page_is_accessible(filled_console: Console, width: int) -> None:
    """The mapping, the preview with its problems, a waiting import, and a finished one are accessible."""
    page = filled_console.open("imports", "Imports").page
    page.get_by_role("combobox", name="Connection", exact=True).select_option("line-gateway")
    page.locator("input[type=file]").set_input_files(
        {"name": f"pressures-{width}.csv", "mimeType": "text/csv", "buffer": ROWS}
    )
    page.get_by_role("combobox", name="Column with the device ID").select_option("device")
    page.get_by_role("button", name="Upload and preview").click()
    expect(page.get_by_role("table", name="First messages")).to_contain_text("gw-1")
    check_page(filled_console, "imports-preview", width)
    job = page.get_by_role("article").filter(has_text=f"pressures-{width}.csv")
    job.get_by_role("button", name="Preview and start").click()
    expect(page.get_by_role("dialog").get_by_role("table", name="First messages")).to_contain_text("gw-1")
    check_page(filled_console, "imports-continue", width)
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    page.get_by_role("button", name="Start import").click()
    expect(job).to_contain_text("rejected", timeout=STREAM_MS)
    expect(page.locator("input[type=file]")).to_have_value("")
    check_page(filled_console, "imports-job", width)


@WIDTHS
def test_database_and_table_pages_with_a_document_are_accessible(
    filled_console: Console, service: Service, width: int
) -> None:
    """The page of a database with containers and the page of a table with a document are accessible."""
    made = service.create_client(EDITOR).post(
        "/oi-api/data-stores/mes/databases/orders/tables/workorders", json={"id": f"filled-{width}", "line": "filled"}
    )
    assert made.status_code == 201, made.text
    page = filled_console.open("data", "Data").page
    expect(page.get_by_role("region", name="Containers of orders")).to_contain_text("workorders")
    check_page(filled_console, "data", width)
    filled_console.open("data/orders/mes/workorders", "Data")
    expect(page.get_by_role("grid", name="Documents of workorders")).to_contain_text(f"filled-{width}")
    check_page(filled_console, "documents", width)


@NARROW_WIDTHS
def test_a_workspace_document_is_accessible(filled_console: Console, width: int) -> None:
    """The page of the workspace document is accessible while it shows the current text."""
    page = filled_console.open("document", "Workspace document").page
    expect(page.get_by_role("region", name="Current workspace document")).to_contain_text("id: plant-a")
    check_page(filled_console, "document", width)
