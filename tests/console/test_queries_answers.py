"""Tests of results in the console: truncation, cache, downloads, narrow screens and keyboard."""

import csv
import io
import re
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
FITS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture
def cached_query(service: Service) -> Iterator[str]:
    """Yield the lookup (id in URLs) of a query whose results are cached."""
    admin = service.create_client("admin@plant-a.example")
    assert (
        service.create_client("editor@plant-a.example").put("/oi-api/warm-queries/kept", json=KEPT).status_code == 201
    )
    assert admin.post("/oi-api/warm-queries/kept/approve").status_code == 200
    yield "kept"
    assert admin.delete("/oi-api/warm-queries/kept").status_code == 204


def run_ad_hoc(console: Console, kql: str, limit: str = "") -> Page:
    """Run a KQL text on the page for ad-hoc queries."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    page.get_by_label("KQL", exact=True).fill(kql)
    page.get_by_label("Row limit").fill(limit)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("region", name="About the result").wait_for()
    return page


def test_chart_lines_can_be_selected(console: Console) -> None:
    """A chart draws at most twelve lines, measurements first; the user can select the lines."""
    page = run_ad_hoc(console, WAVES)
    legend = page.get_by_role("list", name="Lines").get_by_role("listitem")
    expect(legend).to_have_count(8)
    page.get_by_role("tablist", name="Form of the result").scroll_into_view_if_needed()
    page.locator(".u-over").hover()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    console.check_appearance("chart")
    page.get_by_role("checkbox", name="flow").check()
    expect(legend).to_have_count(12)
    expect(page.get_by_role("main")).to_contain_text("12 of 16 lines are drawn")
    page.get_by_role("checkbox", name="level").uncheck()
    expect(legend).to_have_count(8)


def test_chart_has_tooltip_zoom_and_table(console: Console) -> None:
    """A chart shows the values at the pointer, zooms by dragging, can hide lines, and has a table."""
    page = run_ad_hoc(console, WAVES)
    over = page.locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    over.hover(position={"x": box["width"] / 2, "y": 100})
    tooltip = page.locator("figure strong", has_text=re.compile(r"^2026-01-05 \d\d:\d\d"))
    expect(tooltip).to_be_visible()
    expect(tooltip.locator("..").locator("dt")).to_have_count(8)
    console.check_appearance("chart-tooltip")
    page.get_by_role("button", name="line 3", exact=True).click()
    over.hover(position={"x": box["width"] / 2, "y": 100})
    expect(tooltip.locator("..").locator("dt")).to_have_count(7)
    box = over.bounding_box()
    assert box is not None
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 100, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Reset zoom").click()
    expect(page.get_by_text("Drag to zoom")).to_be_visible()
    reader = page.get_by_role("slider", name=re.compile("level over Timestamp"))
    reader.focus()
    reader.press("Home")
    first = reader.get_attribute("aria-valuetext") or ""
    assert first.startswith("2026-01-05 01:00:00; line 0 ")
    reader.press("ArrowRight")
    expect(reader).not_to_have_attribute("aria-valuetext", first)
    page.get_by_role("button", name="Values as a table").click()
    expect(page.get_by_role("region", name=re.compile("^Values: level"))).to_contain_text("2026-01-05 01:00:00")
    page.get_by_role("button", name="Times in Europe/Berlin").click()
    expect(page.get_by_role("region", name=re.compile("^Values: level"))).to_contain_text("2026-01-05 00:00:00")
    page.get_by_role("button", name="Times in UTC").click()


def test_truncated_result_is_marked_and_downloaded(console: Console, tmp_path: Path) -> None:
    """The page marks a truncated result; CSV and Parquet downloads contain the same rows."""
    page = run_ad_hoc(console, "range i from 1 to 9 step 1", "4")
    expect(page.get_by_role("status").filter(has_text="cut off after 4 rows")).to_be_visible()
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
    """If a result comes from the cache, the page shows the time at which the query was executed."""
    page = console.sign_in("viewer@plant-a.example").open(f"queries/{cached_query}", "Kept").page
    about = page.get_by_role("region", name="About the result")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(about).to_contain_text("as of")
    expect(about).not_to_contain_text("cached")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(about).to_contain_text("cached")


def test_a_query_can_be_opened_by_keyboard(console: Console) -> None:
    """Arrow keys select a query in the list, and Enter opens it; the heading of its page then has the focus."""
    page = console.sign_in("viewer@plant-a.example").open("queries", "Queries").page
    grid = page.get_by_role("grid", name="Queries")
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Chiller temperature excursions")
    expect(heading).to_be_focused()


def test_query_results_fit_a_narrow_screen(service: Service) -> None:
    """On a narrow screen only the table of a result scrolls sideways; the page does not."""
    with open_console(service, width=390) as console:
        page = run_ad_hoc(console, WAVES)
        expect(page.locator("canvas")).to_be_visible()
        assert page.evaluate(FITS)
        console.check_appearance("narrow-chart")
        page.get_by_role("tab", name="Table").click()
        expect(page.get_by_role("region", name="Rows of the result")).to_be_visible()
        assert page.evaluate(FITS)
        page.get_by_role("region", name="Rows of the result").scroll_into_view_if_needed()
        console.check_appearance("narrow-rows")
        console.check_no_errors()


def test_an_absolute_time_range_is_sent_and_is_in_the_address(console: Console) -> None:
    """A run between two times sends the times in UTC; the address of the result repeats the run.

    The fields use the selected time zone.
    """
    page = console.sign_in().open("queries/latest-readings", "Latest readings").page
    page.get_by_label("Time range").select_option("between")
    page.get_by_label("From (UTC+1)").fill("2026-01-05T09:00")
    page.get_by_label("To (UTC+1)").fill("2026-01-05T10:00")
    with page.expect_request(re.compile("warm-queries/latest-readings")) as sent:
        page.get_by_role("button", name="Run", exact=True).click()
    assert "from=2026-01-05T08%3A00%3A00.000Z&to=2026-01-05T09%3A00%3A00.000Z" in sent.value.url
    page.get_by_role("region", name="About the result").wait_for()
    page.reload()
    expect(page.get_by_label("From (UTC+1)")).to_have_value("2026-01-05T09:00")
    page.get_by_role("button", name="Times in Europe/Berlin").click()
    expect(page.get_by_label("From (UTC)")).to_have_value("2026-01-05T08:00")
    console.check_appearance("query-absolute-range")


def test_an_incomplete_date_is_an_error_and_no_query_runs(console: Console) -> None:
    """A date of which only a part is filled in is an error at its field, and no query runs over other times."""
    page = console.sign_in().open("queries/latest-readings", "Latest readings").page
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "latest-readings?" in request.url else None)
    page.get_by_label("Time range").select_option("between")
    page.get_by_label("From (UTC+1)").fill("2026-01-05T09:00")
    end, run = page.get_by_label("To (UTC+1)"), page.get_by_role("button", name="Run", exact=True)
    end.fill("")
    end.press_sequentially("01")
    run.click()
    incomplete = "Complete the date, with a year of four digits, and the time, or clear the field."
    expect(page.get_by_role("alert")).to_have_text(incomplete)
    end.press("Enter")
    expect(end).to_be_focused()
    end.fill("2026-01-05T10:00")
    run.click()
    page.get_by_role("region", name="About the result").wait_for()
    assert ["to=2026-01-05T09" in url for url in sent] == [True]


def test_pages_for_queries_and_developers_fit_a_narrow_screen(service: Service) -> None:
    """On a phone, the pages for queries and developers do not scroll sideways; only tables do."""
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
            assert page.evaluate(FITS), path
            console.check_appearance(f"narrow-{path}")
        console.check_no_errors()
