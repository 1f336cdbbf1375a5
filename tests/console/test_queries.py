"""Tests of queries in the console: list, execution, charts and the ad-hoc editor."""

import re

from playwright.sync_api import Page, expect

from tests.console.visits import Console

TEN_THOUSAND = """range i from 1 to 10000 step 1
| extend square = i * i, half = i / 2.0, text = strcat('row ', tostring(i)), big = 9007199254740993"""


def run_query(page: Page) -> None:
    """Run the page's query and wait until its result has a summary."""
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("region", name="About the result").wait_for()


def enter_kql(page: Page, kql: str) -> None:
    """Enter a KQL text into the ad-hoc editor."""
    page.get_by_label("KQL", exact=True).fill(kql)


def test_the_list_of_queries_can_be_filtered_by_words_and_state(console: Console) -> None:
    """The list of queries can be filtered by words and state, and the address contains the filters.

    Each row shows the approver of its query.
    """
    page = console.sign_in("viewer@plant-a.example").open("queries", "Queries").page
    grid = page.get_by_role("grid", name="Queries")
    expect(grid.get_by_role("row", name="Pressure per five minutes")).to_contain_text("admin@plant-a.example")
    console.check_appearance("queries")
    page.get_by_label("Search").fill("vibration")
    page.get_by_label("State").select_option("draft")
    expect(grid.get_by_role("row")).to_have_count(2)
    expect(grid).to_contain_text("draft-vibration")
    assert "state=draft" in page.url
    assert page.get_by_role("button", name="New query").count() == 0
    page.get_by_label("Search").fill("no such words")
    page.get_by_role("button", name="Show all queries").click()
    expect(grid).to_contain_text("pressure-5m")


def test_a_query_is_run_and_charted(console: Console) -> None:
    """The result has a chart, a table and the approver; opening its address runs the query again."""
    page = console.sign_in().open("queries/chiller-temperature-5m", "Chiller supply temperature").page
    page.get_by_label("Time range").select_option("P1D")
    run_query(page)
    about = page.get_by_role("region", name="About the result")
    expect(about).to_contain_text("Approved by admin@plant-a.example")
    assert "timeRange=P1D" in page.url
    console.check_appearance("query-run")
    if page.get_by_role("tab", name="Chart").count():
        expect(page.locator(".u-over")).to_be_visible()
        # The columns are aggregations of the signal `temperature` of the surface's chillers.
        expect(page.get_by_text("The band is the expected range: 4.2 to 8.8 °C.")).to_be_visible()
    page.get_by_role("tab", name="Table").click()
    expect(page.get_by_role("region", name="Rows of the result")).to_contain_text("avgTemperature real")
    console.check_appearance("query-run-table")
    page.get_by_role("tab", name="Definition").click()
    expect(page.get_by_role("region", name="KQL of Chiller supply temperature")).to_contain_text("bin(Timestamp, 5m)")
    console.check_appearance("query-definition")
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_role("tabpanel").last).to_contain_text("Created")
    console.check_appearance("query-history")


def test_an_invalid_query_parameter_is_reported_at_its_field(console: Console) -> None:
    """The page shows the service's error about a parameter, a time range or a limit at the input field for it."""
    console.expected.append("400")
    page = console.sign_in().open("queries/chiller-excursions", "Chiller temperature excursions").page
    page.get_by_label("low").fill("warm")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("low")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("low")).to_have_accessible_description(re.compile("must be a number"))
    console.check_appearance("query-bad-parameter")
    page.get_by_label("low").fill("4.5")
    run_query(page)
    expect(page.get_by_label("low")).not_to_have_attribute("aria-invalid", "true")


def test_an_engine_error_is_marked_in_the_editor(console: Console) -> None:
    """The editor marks a syntax error at its line and column; Ctrl+Enter runs the text."""
    console.expected.append("400")
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    enter_kql(page, "Telemetry\n| where Nope == 1\n| take 5")
    page.get_by_label("KQL", exact=True).press("Control+Enter")
    expect(page.get_by_role("alert").first).to_contain_text("Line 2, column 9")
    expect(page.locator("[data-line='2'][data-column='9']")).to_be_attached()
    console.check_appearance("ad-hoc-error")
    page.get_by_role("button", name="Go there").click()
    at = "document.activeElement.selectionStart"
    assert page.evaluate(at) == len("Telemetry\n| where ")
    enter_kql(page, "Telemetry | summarize n = count() by ConnectionLookup, bin(Timestamp, 1m)")
    page.get_by_label("KQL", exact=True).press("Control+Enter")
    expect(page.get_by_role("region", name="About the result")).to_contain_text("this query has no approval")
    expect(page.locator("[data-line]")).to_have_count(0)
    console.check_appearance("ad-hoc")


def test_a_result_of_ten_thousand_rows_can_be_scrolled(console: Console) -> None:
    """A result with 10,000 rows can be scrolled to the last row, and only visible rows are rendered."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    enter_kql(page, TEN_THOUSAND)
    page.get_by_label("Row limit").fill("10000")
    run_query(page)
    table = page.get_by_role("region", name="Rows of the result")
    expect(table).to_contain_text("row 1")
    expect(table).to_contain_text("9007199254740993")
    assert page.locator("tbody tr").count() < 60
    table.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(table).to_contain_text("row 10000")
    assert page.locator("tbody tr").count() < 60
    table.evaluate("box => { box.scrollTop = 0; }")
    expect(table.get_by_text("row 1", exact=True)).to_be_visible()
    console.check_appearance("rows")
