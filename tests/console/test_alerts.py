"""Tests of alerts in the console: active alerts, acknowledgement, rules with preview, and the number of alerts."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.console.visits import Console, open_console
from tests.service.local_service import Service, wait_until

EDITOR, VIEWER = "editor@plant-a.example", "viewer@plant-a.example"
RULES = "/oi-api/alert-rules"
FROM, TO = re.compile(r"^From \("), re.compile(r"^To \(")


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return a client with a token of an editor, after the simulators have sent messages."""
    client = service.create_client(EDITOR)
    wait_until(lambda: client.get("/oi-api/warm-queries/device-activity?timeRange=PT1H").json()["results"], bool, 60)
    return client


def test_an_editor_previews_a_rule_and_acknowledges_its_alert(service: Service, editor: httpx.Client) -> None:
    """An editor can preview a rule on past data, save it, and acknowledge the alert that it causes."""
    with open_console(service) as console:
        page = console.sign_in(EDITOR).open("alerts", "Alerts").page
        expect(page.get_by_text("No active alerts")).to_be_visible()
        page.get_by_role("button", name="Add rule").click()
        page.get_by_label("ID", exact=True).fill("activity")
        page.get_by_label("Name", exact=True).fill("Devices are active")
        page.get_by_label("Severity").select_option("critical")
        page.get_by_label("Surface").select_option("cooling")
        page.get_by_role("combobox", name="Query", exact=True).select_option("device-activity")
        page.get_by_label("Condition").select_option("any")
        console.check_appearance("alerts-editor")
        page.get_by_role("button", name="Preview on past data").click()
        expect(page.get_by_text(re.compile(r"Would have fired (once|\d+ times)"))).to_be_visible(timeout=30_000)
        console.check_appearance("alerts-preview")
        page.get_by_label("Past data of").select_option("between")
        page.get_by_label(FROM).fill("2026-01-05T09:00")
        page.get_by_label(TO).fill("2026-01-05T10:00")
        with page.expect_request(re.compile("to=2026-01-05T09%3A00%3A00")):
            page.get_by_role("button", name="Preview on past data").click()
        page.get_by_label(TO).fill("2026-01-05T08:00")
        expect(page.get_by_text("From must be before To.")).to_be_visible()
        page.get_by_role("main").get_by_role("button", name="Add rule").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Devices are active")
        page.get_by_role("button", name="Evaluate", exact=True).click()
        expect(page.get_by_role("region", name="Groups of the rule")).to_contain_text("yes")
        wait_until(lambda: editor.get(f"{RULES}/activity").json()["state"], lambda state: state == "firing")
        console.open("alerts", "Alerts")
        expect(page.get_by_role("link", name="Alerts 1 firing", exact=True)).to_be_visible()
        console.check_appearance("alerts-active")
        page.get_by_role("grid", name="Active alerts").get_by_role("row", name=re.compile("Devices are active")).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Comment").fill("Known test")
        dialog.get_by_role("button", name="Acknowledge").click()
        expect(page.get_by_role("grid", name="Active alerts")).to_contain_text(EDITOR)
        assert editor.delete(f"{RULES}/activity").status_code == 204
        wait_until(lambda: editor.get("/oi-api/alerts?state=firing").json()["alerts"], lambda found: not found)
        page.get_by_role("tab", name="History").click()
        history = page.get_by_role("grid", name="History of alerts")
        expect(history).to_contain_text("resolved")
        page.get_by_label("Started").select_option("between")
        page.get_by_label(TO).fill("2026-01-05T10:00")
        page.get_by_label(FROM).fill("2026-01-05T09:00")
        expect(page.get_by_role("heading", name="No alerts in this period")).to_be_visible()
        page.get_by_label("Started").select_option("86400")
        expect(history).to_contain_text("resolved")
        console.check_no_errors()


def test_a_viewer_can_read_but_not_change_alert_rules(console: Console, editor: httpx.Client) -> None:
    """Without the right to manage alerts, the page has no buttons to add, change or evaluate rules."""
    rule = {"name": "Silent pump", "severity": "info", "surface": "cooling", "kind": "absence", "every": "P1D"}
    stored = editor.put(f"{RULES}/pump-silent", json={**rule, "connections": ["pump-rig"], "after": "P1D"})
    assert stored.status_code == 201, stored.text
    page = console.sign_in(VIEWER).open("alerts?tab=rules", "Alerts").page
    expect(page.get_by_role("button", name="Add rule")).to_have_count(0)
    page.get_by_role("grid", name="Alert rules").get_by_role("row", name=re.compile("Silent pump")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Silent pump")
    expect(page.get_by_role("button", name="Evaluate", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Save"))).to_have_count(0)
    assert editor.delete(f"{RULES}/pump-silent").status_code == 204
