"""The amendments page: made by one, decided by another, read as a timeline."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.chains import written
from tests.console.visits import Console, visiting
from tests.service.local_service import Service

EDITOR, ADMIN = "editor@plant-a.example", "admin@plant-a.example"
AMENDMENTS = "/oi-api/provenance/amendments"


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Who makes the amendments that the tests look at."""
    return service.caller(EDITOR)


def create_amendment(client: httpx.Client, scope: str, entity: str = "B-1", **members: Any) -> dict[str, Any]:
    """Make an amendment over the API."""
    body = {"ScopeKey": scope, "EntityType": "Batch", "EntityID": entity, "ReasonCategory": "other", **members}
    states = {"OriginalRecord": {"ph": 7, "unit": "pH"}, "AmendedRecord": {"ph": 7.2, "unit": "pH"}}
    reply = client.post(AMENDMENTS, json={**states, "ChangedFields": ["ph"], "ReasonText": "Misread.", **body})
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


def queue(console: Console, scope: str) -> Page:
    """Open the amendments of a scope that wait for a decision."""
    console.open(f"amendments/{scope}", "Amendments")
    console.page.get_by_role("tab", name="To decide", selected=True).wait_for()
    return console.page


def test_record_is_amended_by_one_and_approved_by_another(
    console: Console, editor: httpx.Client, tmp_path: Path
) -> None:
    """From the record to its amendment, reviewed and sent; its author cannot decide it, somebody else approves it."""
    written(editor, "two people", 2)
    console.sign_in(EDITOR).open("audit/DomainEvents/two people?record=2", "Audit log")
    page = console.page
    page.get_by_role("link", name="Amend it").click()
    amended = page.get_by_label("Amended record")
    expect(page.get_by_label("Original record")).to_have_value(re.compile('"setpoint": 5.5'))
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_text("The amended record equals the original.")).to_be_visible()
    amended.fill('{"setpoint": 5.25, "unit": "bar", "checked": true}')
    expect(page.get_by_text("Changed fields:").locator("xpath=..")).to_contain_text(re.compile("setpoint.*checked"))
    page.get_by_label("Reason in words").fill("The valve was set to 5.25.")
    console.looks_right("amendments-new")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("row", name="setpoint")).to_contain_text("5.25")
    console.looks_right("amendments-review")
    page.get_by_role("button", name="Send amendment").click()
    expect(page.get_by_text("It is record 000000000001, pending")).to_be_visible()
    queue(console, "two people")
    own = page.get_by_role("article", name="Amendment 000000000001")
    expect(own.get_by_role("button", name="Approve")).to_be_disabled()
    expect(own.get_by_role("button", name="Reject")).to_be_disabled()
    expect(own).to_contain_text("You made this amendment; another person must decide it.")
    with console.another() as second:
        other = queue(second.sign_in(ADMIN), "two people")
        second.looks_right("amendments-queue")
        other.get_by_role("article", name="Amendment 000000000001").get_by_role("button", name="Approve").click()
        second.looks_right("amendments-approve")
        other.get_by_role("dialog").get_by_role("button", name="Approve").click()
        expect(other.get_by_role("heading", name="No pending amendments")).to_be_visible()
        second.stayed_clean()
    page.get_by_role("link", name="rig-1").click()
    expect(page.get_by_role("article", name="Amendment 000000000001")).to_contain_text("approved")
    expect(page.get_by_role("article", name="Decision 000000000002")).to_contain_text(
        f"Approved: amendment 000000000001, by {ADMIN}"
    )
    console.looks_right("amendments-timeline")
    with page.expect_download() as download:
        page.get_by_role("button", name="Printable report").click()
    assert download.value.suggested_filename == "amendments-two_people-rig-1.html"
    download.value.save_as(tmp_path / "report.html")
    assert "The valve was set to 5.25." in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_rejection_says_why(console: Console, editor: httpx.Client) -> None:
    """A rejection is not sent without a reason, which stands in the timeline then."""
    create_amendment(editor, "rejected", "B-2")
    page = queue(console.sign_in(ADMIN), "rejected")
    page.get_by_role("button", name="Reject").click()
    asked = page.get_by_role("dialog", name="Reject amendment 000000000001")
    asked.get_by_role("button", name="Reject").click()
    expect(asked.get_by_text("Enter a reason")).to_be_visible()
    asked.get_by_label("Reason").fill("The meter shows 7.")
    console.looks_right("amendments-reject")
    asked.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    page.get_by_role("tab", name="All amendments").click()
    page.get_by_role("gridcell", name="rejection of 000000000001").click()
    expect(page.get_by_role("article", name="Decision 000000000002")).to_contain_text("Reason: The meter shows 7.")


def test_amendment_that_was_decided_meanwhile_says_so(console: Console, editor: httpx.Client) -> None:
    """Who comes second is told how it was decided, and reloads."""
    console.expected.append("409")
    made = create_amendment(editor, "raced")
    page = queue(console.sign_in(ADMIN), "raced")
    page.get_by_role("button", name="Approve").click()
    path = f"{AMENDMENTS}/{made['RecordID']}/reject"
    approver = console.service.caller("approver@plant-a.example")
    assert approver.post(path, params={"scopeKey": "raced"}, json={"RejectionReason": "first"}).status_code == 200
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Another decision came first: the amendment is rejected")).to_be_visible()
    console.looks_right("amendments-decided-meanwhile")
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()


def test_what_is_no_json_is_said_at_its_field(console: Console) -> None:
    """An amendment from scratch names what is missing and what is no JSON; nothing is sent."""
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
    console.looks_right("amendments-faults")


def test_what_the_service_refuses_is_said(console: Console) -> None:
    """A refusal of the service is shown with its code and request, and the form keeps what was entered."""
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


def test_reader_is_offered_reading_alone(service: Service, editor: httpx.Client) -> None:
    """A token that only reads amendments makes and decides none, says why, and meets no refusal."""
    create_amendment(editor, "reader")
    token = service.caller(ADMIN, "Workspace.Amendment.Read").headers["Authorization"].removeprefix("Bearer ")
    with visiting(service) as console:
        page = console.page
        page.goto(f"{service.url}/console/")
        page.get_by_label("API key or token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        queue(console, "reader")
        expect(page.get_by_role("tab", name="New amendment")).to_have_count(0)
        expect(page.get_by_role("button", name="Approve")).to_be_disabled()
        expect(page.get_by_text("lacks Workspace.Amendment.Approve")).to_be_visible()
        page.get_by_role("link", name="B-1").click()
        expect(page.get_by_role("list", name="Timeline")).to_be_visible()
        expect(page.get_by_role("link", name="000000000001")).to_have_count(0)
        console.stayed_clean()


def test_no_scope_and_no_entity_say_what_to_do(console: Console) -> None:
    """Without a scope one is asked for; an entity without amendments says so."""
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
    console.looks_right("amendments-empty")


def test_long_history_says_that_it_is_not_all(console: Console, editor: httpx.Client) -> None:
    """Of an entity with more than 1,000 amendments the oldest are shown, and called a prefix."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: create_amendment(editor, "often", "B-1000"), range(1_001)))
    console.sign_in(ADMIN).open("amendments/often/entity/B-1000", "Amendments")
    page = console.page
    expect(page.get_by_text("This list is incomplete")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has=page.get_by_role("article"))).to_have_count(1_000)
    expect(page.get_by_role("article", name="Amendment 000000001000")).to_have_count(1)
    expect(page.get_by_role("article", name="Amendment 000000001001")).to_have_count(0)
