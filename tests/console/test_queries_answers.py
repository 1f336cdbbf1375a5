"""Answers in the console: cut off, kept, saved as files, on narrow screens, by the keyboard."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pyarrow import parquet

from tests.console.visits import Console, visiting
from tests.service.local_service import Service

WAVES = """range i from 0 to 719 step 1
| extend Timestamp = datetime(2026-01-05) + i * 1m, line = strcat("line ", tostring(i % 8))
| extend level = 40 + 8 * sin(i / 30.0 + i % 8), flow = 12 + i % 8, n = i"""
KEPT = {"name": "Kept", "surface": "cooling", "kql": "print now = 1", "cacheSeconds": 600}


@pytest.fixture
def kept(service: Service) -> Iterator[str]:
    """Return the lookup of a query whose answers are kept."""
    admin = service.caller("admin@plant-a.example")
    assert service.caller("editor@plant-a.example").put("/oi-api/warm-queries/kept", json=KEPT).status_code == 201
    assert admin.post("/oi-api/warm-queries/kept/approve").status_code == 200
    yield "kept"
    assert admin.delete("/oi-api/warm-queries/kept").status_code == 204


def asked(console: Console, kql: str, limit: str = "") -> Page:
    """Run a text ad hoc."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    page.get_by_label("KQL", exact=True).fill(kql)
    page.get_by_label("Maximum rows").fill(limit)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("region", name="About the result").wait_for()
    return page


def test_lines_are_told_apart_and_chosen(console: Console) -> None:
    """Names split lines, measurements are drawn first, others on demand, a dozen at most."""
    page = asked(console, WAVES)
    legend = page.locator(".u-legend .u-series")
    expect(legend).to_have_count(1 + 8)
    page.get_by_role("tablist", name="Form of the result").scroll_into_view_if_needed()
    page.locator(".u-over").hover()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    console.looks_right("chart")
    page.get_by_role("checkbox", name="flow").check()
    expect(legend).to_have_count(1 + 12)
    expect(page.get_by_role("main")).to_contain_text("12 of 16 lines are drawn")
    page.get_by_role("checkbox", name="level").uncheck()
    expect(legend).to_have_count(1 + 8)


def test_an_answer_that_is_cut_off_says_so_and_is_saved(console: Console, tmp_path: Path) -> None:
    """More rows than asked for are told of; CSV and Parquet hold those that are shown."""
    page = asked(console, "range i from 1 to 9 step 1", "4")
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


def test_a_kept_answer_says_how_old_it_is(console: Console, kept: str) -> None:
    """The second run of a query whose answers are kept says that its rows are the first one's."""
    page = console.sign_in("viewer@plant-a.example").open(f"queries/{kept}", "Kept").page
    about = page.get_by_role("region", name="About the result")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(about).to_contain_text("as of")
    expect(about).not_to_contain_text("cached")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(about).to_contain_text("cached")


def test_the_list_is_used_by_the_keyboard(console: Console) -> None:
    """Arrow keys choose a query, Enter opens it, and its heading takes the focus."""
    page = console.sign_in("viewer@plant-a.example").open("queries", "Queries").page
    grid = page.get_by_role("grid", name="Queries")
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Chiller temperature excursions")
    expect(heading).to_be_focused()


def test_narrow_screens_cut_nothing_off(service: Service) -> None:
    """List, run, form and developers page fit a telephone; tables scroll in themselves."""
    with visiting(service, width=390) as console:
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
            console.looks_right(f"narrow-{path}")
        console.stayed_clean()
