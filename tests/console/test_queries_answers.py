"""Results in the console: truncation, cache, downloads, narrow screens and keyboard."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pyarrow import parquet

from tests.console.visits import Console, open_console
from tests.service.local_service import Service

WAVES = """range i from 0 to 719 step 1
| extend Timestamp = datetime(2026-01-05) + i * 1m, line = strcat("line ", tostring(i % 8))
| extend level = 40 + 8 * sin(i / 30.0 + i % 8), flow = 12 + i % 8, n = i"""
KEPT = {"name": "Kept", "surface": "cooling", "kql": "print now = 1", "cacheSeconds": 600}


@pytest.fixture
def cached_query(service: Service) -> Iterator[str]:
    """Yield the lookup of a query with cached results."""
    admin = service.caller("admin@plant-a.example")
    assert service.caller("editor@plant-a.example").put("/oi-api/warm-queries/kept", json=KEPT).status_code == 201
    assert admin.post("/oi-api/warm-queries/kept/approve").status_code == 200
    yield "kept"
    assert admin.delete("/oi-api/warm-queries/kept").status_code == 204


def run_ad_hoc(console: Console, kql: str, limit: str = "") -> Page:
    """Run a text ad hoc."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    page.get_by_label("KQL", exact=True).fill(kql)
    page.get_by_label("Maximum rows").fill(limit)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("region", name="About the result").wait_for()
    return page


def test_chart_lines_can_be_selected(console: Console) -> None:
    """A chart has one line per name and at most twelve; measurements are drawn first."""
    page = run_ad_hoc(console, WAVES)
    legend = page.locator(".u-legend .u-series")
    expect(legend).to_have_count(1 + 8)
    page.get_by_role("tablist", name="Form of the result").scroll_into_view_if_needed()
    page.locator(".u-over").hover()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    console.check_appearance("chart")
    page.get_by_role("checkbox", name="flow").check()
    expect(legend).to_have_count(1 + 12)
    expect(page.get_by_role("main")).to_contain_text("12 of 16 lines are drawn")
    page.get_by_role("checkbox", name="level").uncheck()
    expect(legend).to_have_count(1 + 8)


def test_truncated_result_is_marked_and_downloaded(console: Console, tmp_path: Path) -> None:
    """A truncated result shows a notice; CSV and Parquet contain the same rows."""
    page = run_ad_hoc(console, "range i from 1 to 9 step 1", "4")
    expect(page.get_by_role("status").filter(has_text="more than these 4 rows")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text()
    assert list(csv.reader(io.StringIO(text))) == [["i"], ["1"], ["2"], ["3"], ["4"]]
    assert saved.value.suggested_filename == "ad-hoc.csv"
    with page.expect_download() as saved:
        page.get_by_role("button", name="Parquet").click()
    saved.value.save_as(tmp_path / "rows.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pydict() == {"i": [1, 2, 3, 4]}


def test_cached_result_shows_its_age(console: Console, cached_query: str) -> None:
    """The second run of a cached query shows the time of the first."""
    page = console.sign_in("viewer@plant-a.example").open(f"queries/{cached_query}", "Kept").page
    about = page.get_by_role("region", name="About the result")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(about).to_contain_text("as of")
    expect(about).not_to_contain_text("cached")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(about).to_contain_text("cached")


def test_keyboard_opens_a_query(console: Console) -> None:
    """Arrow keys select a query, Enter opens it, and its heading takes the focus."""
    page = console.sign_in("viewer@plant-a.example").open("queries", "Queries").page
    grid = page.get_by_role("grid", name="Queries")
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Chiller temperature excursions")
    expect(heading).to_be_focused()


def test_pages_fit_a_narrow_screen(service: Service) -> None:
    """The query and developers pages fit a phone; only tables scroll horizontally."""
    with open_console(service, width=390) as console:
        page = console.sign_in().page
        for path, heading in (
            ("queries", "Queries"),
            ("queries/chiller-excursions", "Chiller temperature excursions"),
            ("queries/chiller-excursions/edit", "Edit query"),
            ("queries/-/ad-hoc", "Ad-hoc query"),
            ("developers", "Developers"),
        ):
            console.open(path, heading)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
            console.check_appearance(f"narrow-{path}")
        console.check_no_errors()
