"""Test of the steps in the console from raw vibration data to an approved query that marks anomalies."""

import re

from playwright.sync_api import Page, expect

from tests.console.visits import Console
from tests.service.local_service import Service

KQL = """range Timestamp from datetime(2026-01-05) to datetime(2026-01-05 01:59) step 1m
| extend minute = tolong((Timestamp - datetime(2026-01-05)) / 1m)
| extend level = 0.03 + (minute * 37 % 101) * 0.00002 + iff(minute in (40, 90), 0.05, 0.0)
| make-series vibration = avg(level) on Timestamp from datetime(2026-01-05) to datetime(2026-01-05 02:00) step 1m
| extend anomalies = series_decompose_anomalies(vibration, 1.5, 0)
| render anomalychart with (anomalycolumns=anomalies)"""
SPIKES = [40, 90]


def check_chart(page: Page) -> None:
    """Check that the chart shows the line of the vibration and marks the anomalies in it."""
    expect(page.locator(".u-over")).to_be_visible()
    legend = page.get_by_role("list", name="Lines").get_by_role("listitem")
    expect(legend).to_have_text(["vibration", "vibration · anomalies"])


def test_a_chart_marks_anomalies_and_the_approved_query_returns_them(console: Console, service: Service) -> None:
    """A chart marks the anomalies of a series, and the saved query returns them after its approval."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    page.get_by_label("KQL", exact=True).fill(KQL)
    page.get_by_role("button", name="Run", exact=True).click()
    check_chart(page)
    page.locator(".u-over").scroll_into_view_if_needed()
    console.check_appearance("anomalies")
    page.get_by_role("button", name="Values as a table").click()
    values = page.get_by_role("region", name=re.compile("^Values: vibration"))
    expect(values.get_by_role("row").filter(has_text="2026-01-05 01:00:00")).to_contain_text("0.03")
    page.get_by_role("button", name=re.compile("^Save as a draft")).click()
    expect(page.get_by_label("KQL", exact=True)).to_have_value(KQL)
    page.get_by_label("ID", exact=True).fill("rig-anomalies")
    page.get_by_label("Name", exact=True).fill("Rig anomalies")
    page.get_by_label("Surface", exact=True).select_option("cooling")
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rig anomalies")
    with console.open_second() as other:
        approver = other.sign_in("approver@plant-a.example").open("queries/rig-anomalies", "Rig anomalies").page
        approver.get_by_role("button", name="Approve").click()
        approver.get_by_role("dialog", name=re.compile("Approve")).get_by_role("button", name="Approve").click()
        expect(approver.get_by_role("main")).to_contain_text("approver@plant-a.example")
        approver.get_by_role("tab", name="Run").click()
        approver.get_by_role("button", name="Run", exact=True).click()
        check_chart(approver)
        other.check_no_errors()
    reply = service.create_client("viewer@plant-a.example").get("/oi-api/warm-queries/rig-anomalies").json()
    (row,) = reply["results"]
    assert [index for index, mark in enumerate(row["anomalies"]) if mark] == SPIKES
    assert reply["visualization"]["anomalyColumns"] == ["anomalies"]
    removed = service.create_client("admin@plant-a.example").delete("/oi-api/warm-queries/rig-anomalies")
    assert removed.status_code == 204
