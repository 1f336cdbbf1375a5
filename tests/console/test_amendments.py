"""Tests of the console's amendments page: creation, decision and timeline."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.chains import append_events, edit_record
from tests.console.visits import Console, open_console
from tests.service.local_service import Service

EDITOR, ADMIN = "editor@plant-a.example", "admin@plant-a.example"
AMENDMENTS = "/oi-api/provenance/amendments"


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return the client that creates the amendments."""
    return service.create_client(EDITOR)


def create_amendment(client: httpx.Client, scope: str, entity: str = "B-1", **properties: Any) -> dict[str, Any]:
    """Create an amendment over the API."""
    body = {"ScopeKey": scope, "EntityType": "Batch", "EntityID": entity, "ReasonCategory": "other", **properties}
    states = {"OriginalRecord": {"ph": 7, "unit": "pH"}, "AmendedRecord": {"ph": 7.2, "unit": "pH"}}
    reply = client.post(AMENDMENTS, json={**states, "ChangedFields": ["ph"], "ReasonText": "Misread.", **body})
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


def open_pending_amendments(console: Console, scope: str) -> Page:
    """Open the page with a scope's pending amendments."""
    console.open(f"amendments/{scope}", "Amendments")
    console.page.get_by_role("tab", name="To decide", selected=True).wait_for()
    return console.page


def test_only_another_user_can_approve_an_amendment(console: Console, editor: httpx.Client, tmp_path: Path) -> None:
    """The author of an amendment cannot approve it, but another user can."""
    append_events(editor, "two people", 2)
    console.sign_in(EDITOR).open("audit/DomainEvents/two people?record=2", "Audit log")
    page = console.page
    page.get_by_role("link", name="Amend this record").click()
    amended = page.get_by_label("Amended record")
    expect(page.get_by_label("Original record")).to_have_value(re.compile('"setpoint": 5.5'))
    expect(page.get_by_label("Original record")).not_to_be_editable()
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_text("The amended record equals the original.")).to_be_visible()
    amended.fill('{"setpoint": 5.25, "unit": "bar", "checked": true}')
    expect(page.get_by_text("Changed fields:").locator("xpath=..")).to_contain_text(re.compile("setpoint.*checked"))
    page.get_by_label("Reason in words").fill("The valve was set to 5.25.")
    console.check_appearance("amendments-new")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("row", name="setpoint")).to_contain_text("5.25")
    console.check_appearance("amendments-review")
    page.get_by_role("button", name="Send amendment").click()
    expect(page.get_by_text("Recorded as 000000000001; the status is pending")).to_be_visible()
    open_pending_amendments(console, "two people")
    own = page.get_by_role("article", name="Amendment 000000000001")
    expect(own.get_by_role("button", name="Approve")).to_be_disabled()
    expect(own.get_by_role("button", name="Reject")).to_be_disabled()
    expect(own).to_contain_text("You made this amendment; another person must approve or reject it.")
    with console.open_second() as second:
        other = open_pending_amendments(second.sign_in(ADMIN), "two people")
        second.check_appearance("amendments-queue")
        other.get_by_role("article", name="Amendment 000000000001").get_by_role("button", name="Approve").click()
        second.check_appearance("amendments-approve")
        other.get_by_role("dialog").get_by_role("button", name="Approve").click()
        expect(other.get_by_role("heading", name="No pending amendments")).to_be_visible()
        expect(other.get_by_role("region", name="Pending amendments")).to_be_focused()
        second.check_no_errors()
    page.get_by_role("link", name="rig-1").click()
    expect(page.get_by_role("article", name="Amendment 000000000001")).to_contain_text("approved")
    expect(page.get_by_role("article", name="Decision 000000000002")).to_contain_text(
        f"Approved: amendment 000000000001, by {ADMIN}"
    )
    console.check_appearance("amendments-timeline")
    page.get_by_role("tab", name="All amendments").click()
    listed = page.get_by_role("row", name=re.compile("^000000000001"))
    expect(listed.get_by_role("gridcell", name="approved")).to_be_visible()
    page.get_by_label("Made by").fill(EDITOR)
    expect(page.get_by_role("row", name=re.compile("^000000000002"))).to_have_count(0)
    expect(listed.get_by_role("gridcell", name="decided")).to_be_visible()
    console.open("amendments/two people/entity/rig-1", "Amendments")
    with page.expect_download() as download:
        page.get_by_role("button", name="Printable report").click()
    assert download.value.suggested_filename == "amendments-two_people-rig-1.html"
    download.value.save_as(tmp_path / "report.html")
    assert "The valve was set to 5.25." in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_rejection_requires_a_reason(console: Console, editor: httpx.Client) -> None:
    """Rejecting an amendment requires a reason, which the timeline shows."""
    create_amendment(editor, "rejected", "B-2")
    page = open_pending_amendments(console.sign_in(ADMIN), "rejected")
    page.get_by_role("button", name="Reject").click()
    asked = page.get_by_role("dialog", name="Reject amendment 000000000001")
    asked.get_by_role("button", name="Reject").click()
    expect(asked.get_by_text("Enter a reason")).to_be_visible()
    asked.get_by_label("Reason").fill("The meter shows 7.")
    console.check_appearance("amendments-reject")
    asked.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    page.get_by_role("tab", name="All amendments").click()
    page.get_by_role("gridcell", name="rejection of 000000000001").click()
    expect(page.get_by_role("article", name="Decision 000000000002")).to_contain_text("Reason: The meter shows 7.")


def test_a_late_decision_shows_the_earlier_decision(console: Console, editor: httpx.Client) -> None:
    """If two users decide an amendment at the same time, the second user sees the decision of the first user."""
    console.expected.append("409")
    made = create_amendment(editor, "raced")
    page = open_pending_amendments(console.sign_in(ADMIN), "raced")
    page.get_by_role("button", name="Approve").click()
    path = f"{AMENDMENTS}/{made['RecordID']}/reject"
    approver = console.service.create_client("approver@plant-a.example")
    assert approver.post(path, params={"scopeKey": "raced"}, json={"RejectionReason": "first"}).status_code == 200
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Another decision came first: the amendment is rejected")).to_be_visible()
    console.check_appearance("amendments-decided-meanwhile")
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()


def test_an_altered_amendment_has_a_banner(console: Console, editor: httpx.Client) -> None:
    """An amendment that was changed in the database has a banner and cannot be decided, and the list marks it.

    A banner also reports that the verification of the chain found it broken.
    """
    create_amendment(editor, "tampered", "B-7")
    edit_record(console.service, "tampered", 1, '"ph":7.2', '"ph":7.3', target="DomainAmendments")
    page = open_pending_amendments(console.sign_in(ADMIN), "tampered")
    altered = page.get_by_role("article", name="Amendment 000000000001")
    expect(altered.get_by_role("alert")).to_contain_text("Altered after it was recorded. Do not rely on these values.")
    expect(altered.get_by_role("button", name="Approve")).to_be_disabled()
    console.check_appearance("amendments-altered")
    page.get_by_role("tab", name="All amendments").click()
    expect(page.get_by_role("gridcell", name="altered")).to_be_visible()
    verify = "/oi-api/provenance/events/verify?target=DomainAmendments"
    assert editor.post(verify, json={"ScopeKey": "tampered"}).json()["ChainValid"] is False
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("found broken by the verification")


def test_missing_fields_and_invalid_json_are_marked_in_the_form(console: Console) -> None:
    """The form marks missing fields and invalid JSON, and sends nothing."""
    console.sign_in(EDITOR).open("amendments/scratch/new", "Amendments")
    page = console.page
    page.get_by_label("Original record").fill('{"a": 1, "a": 2}')
    page.get_by_label("Amended record").fill("{")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_text('The name "a" occurs twice')).to_be_visible()
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    page.get_by_label("Amended record").fill('{"text": "\\ud800"}')
    expect(page.get_by_text("contains a lone surrogate")).to_be_visible()
    expect(page.get_by_text("This field is required.")).to_have_count(2)
    console.check_appearance("amendments-faults")


def test_the_amendments_page_shows_error_replies(console: Console) -> None:
    """The page shows the code and request id of an error reply, and the form keeps its values."""
    console.expected.append("400")
    console.sign_in(EDITOR).open("amendments/refused/new", "Amendments")
    page = console.page
    page.get_by_label("Entity type").fill("Batch")
    page.get_by_label("Entity", exact=True).fill("B-1")
    page.get_by_label("Amended record").fill('{"deep": ' + "[" * 130 + "]" * 130 + "}")
    page.get_by_role("button", name="Review").click()
    page.get_by_role("button", name="Send amendment").click()
    expect(page.get_by_role("alert").filter(has_text="BODY_NOT_JSON")).to_contain_text("100 levels")
    expect(page.get_by_label("Entity", exact=True)).to_have_value("B-1")


def test_read_only_token_cannot_amend_or_decide(service: Service, editor: httpx.Client) -> None:
    """With a token that may only read, the page has no form for amendments, and its decision buttons are disabled."""
    create_amendment(editor, "reader")
    token = service.create_client(ADMIN, "Workspace.Amendment.Read").headers["Authorization"].removeprefix("Bearer ")
    with open_console(service) as console:
        page = console.page
        page.goto(f"{service.url}/console/")
        page.get_by_label("API key or token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        open_pending_amendments(console, "reader")
        expect(page.get_by_role("tab", name="New amendment")).to_have_count(0)
        expect(page.get_by_role("button", name="Approve")).to_be_disabled()
        expect(page.get_by_text("lacks Workspace.Amendment.Approve")).to_be_visible()
        page.get_by_role("link", name="B-1").click()
        expect(page.get_by_role("list", name="Timeline")).to_be_visible()
        expect(page.get_by_role("link", name="000000000001")).to_have_count(0)
        console.check_no_errors()


def test_the_amendments_page_without_amendments_shows_the_next_step(console: Console) -> None:
    """Without a scope, the page requests a scope; for an entity without amendments, it shows a message."""
    console.sign_in().open("amendments", "Amendments")
    page = console.page
    expect(page.get_by_role("heading", name="Which scope?")).to_be_visible()
    page.get_by_label("Scope").fill("quiet")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    page.get_by_role("tab", name="Entity").click()
    expect(page.get_by_role("heading", name="Which entity?")).to_be_visible()
    page.get_by_role("textbox", name="Entity").fill("B-9")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="No amendments of this entity")).to_be_visible()
    page.get_by_role("tab", name="All amendments").click()
    expect(page.get_by_role("heading", name="No amendments")).to_be_visible()
    console.check_appearance("amendments-empty")


def test_a_history_of_over_1000_amendments_is_marked_as_incomplete(console: Console, editor: httpx.Client) -> None:
    """For an entity with over 1,000 amendments the page shows the oldest amendments and a warning."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: create_amendment(editor, "often", "B-1000"), range(1_001)))
    console.sign_in(ADMIN).open("amendments/often/entity/B-1000", "Amendments")
    page = console.page
    expect(page.get_by_text("This list is incomplete")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has=page.get_by_role("article"))).to_have_count(1_000)
    expect(page.get_by_role("article", name="Amendment 000000001000")).to_have_count(1)
    expect(page.get_by_role("article", name="Amendment 000000001001")).to_have_count(0)
