"""Tests of the console's inbox: draft queries and pending amendments of all scopes, and the rejection of drafts."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import WORKSPACE
from tests.console.test_amendments import create_amendment
from tests.console.visits import Console
from tests.service.local_service import Service

EDITOR, APPROVER, VIEWER = "editor@plant-a.example", "approver@plant-a.example", "viewer@plant-a.example"
QUERIES = "/oi-api/warm-queries"
KQL = "Telemetry | summarize readings = count() by DeviceId"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with the sample workspace that only the tests of this module use."""
    running = Service(tmp_path_factory.mktemp("inbox") / "data", WORKSPACE).start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return the client that creates drafts and amendments."""
    return service.create_client(EDITOR)


def create_draft(client: httpx.Client, lookup: str, name: str) -> None:
    """Create or edit a query; it is then a draft."""
    reply = client.put(f"{QUERIES}/{lookup}", json={"name": name, "surface": "cooling", "kql": KQL})
    assert reply.status_code in (200, 201), reply.text


def remove_query(service: Service, lookup: str) -> None:
    """Remove a query that a test created."""
    assert service.create_client("admin@plant-a.example").delete(f"{QUERIES}/{lookup}").status_code == 204


def open_inbox_page(console: Console) -> Page:
    """Open the inbox."""
    return console.open("inbox", "Inbox").page


def read_badge(page: Page) -> int:
    """Return the number of pending decisions that the navigation shows next to the inbox."""
    link = page.get_by_role("link", name=re.compile(r"^Inbox"))
    expect(link).to_have_accessible_name(re.compile(r"\d+ waiting"))
    found = re.search(r"\d+", link.inner_text())
    assert found is not None
    return int(found[0])


def test_the_inbox_lists_pending_amendments_of_all_scopes(console: Console, editor: httpx.Client) -> None:
    """The inbox lists the pending amendments of all scopes; a click on a row opens the amendments of its scope."""
    create_amendment(editor, "inbox-a", "Tank-1")
    create_amendment(editor, "inbox-b", "Tank-2")
    newest = create_amendment(editor, "inbox-b", "Tank-3")
    page = open_inbox_page(console.sign_in(APPROVER))
    rows = page.get_by_role("grid", name="Pending amendments of all scopes")
    expect(rows).to_contain_text("Tank-1")
    expect(rows.get_by_role("row", name=re.compile("Tank-3"))).to_contain_text("inbox-b")
    expect(page.get_by_role("heading", name="Needs your decision")).to_be_visible()
    console.check_appearance("inbox")
    waiting = read_badge(page)
    rows.get_by_role("row", name=re.compile("Tank-2")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Amendments")
    shown = page.get_by_role("article", name="Amendment 000000000001")
    expect(shown).to_contain_text("Tank-2")
    expect(page.get_by_role("article", name=f"Amendment {newest['RecordID']}")).to_have_count(0)
    shown.get_by_role("button", name="Approve").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("link", name=f"Inbox {waiting - 1} waiting")).to_be_visible()
    open_inbox_page(console)
    expect(rows).to_contain_text("Tank-3")
    expect(rows).not_to_contain_text("Tank-2")


def test_a_draft_is_rejected_with_a_comment(console: Console, service: Service, editor: httpx.Client) -> None:
    """If a user rejects a draft with a comment, the page shows the comment until the editor changes the query."""
    create_draft(editor, "inbox-draft", "Draft of the inbox")
    page = open_inbox_page(console.sign_in(APPROVER))
    waiting = page.get_by_role("grid", name="Draft queries that wait for a decision")
    before = read_badge(page)
    waiting.get_by_role("row", name=re.compile("Draft of the inbox")).click()
    page.get_by_role("button", name="Reject").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Reject").click()
    expect(dialog.get_by_label("Comment")).to_have_accessible_description(re.compile("Enter a comment"))
    dialog.get_by_label("Comment").fill("Group by line, too.")
    console.check_appearance("query-reject")
    dialog.get_by_role("button", name="Reject").click()
    main = page.get_by_role("main")
    expect(main).to_contain_text("Rejected draft")
    expect(main).to_contain_text("Group by line, too.")
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    console.check_appearance("query-rejected")
    console.check_fits_a_phone("query-rejected-phone")
    expect(page.get_by_role("link", name=re.compile(rf"^Inbox {before} waiting"))).to_have_count(0)
    open_inbox_page(console)
    rejected = page.get_by_role("grid", name="Rejected drafts")
    expect(rejected).to_contain_text("Group by line, too.")
    expect(waiting).not_to_contain_text("Draft of the inbox")
    create_draft(editor, "inbox-draft", "Draft of the inbox, changed")
    page.get_by_role("button", name="Refresh").last.click()
    expect(page.get_by_role("grid", name="Draft queries")).to_contain_text("Draft of the inbox, changed")
    remove_query(service, "inbox-draft")


def test_a_changed_draft_is_not_rejected(console: Console, service: Service, editor: httpx.Client) -> None:
    """If a draft was changed after the approver opened it, Reject has no effect, and the page shows the newer text."""
    console.expected += ["412"]
    create_draft(editor, "inbox-raced", "Raced draft")
    page = console.sign_in(APPROVER).open("queries/inbox-raced", "Raced draft").page
    page.get_by_role("button", name="Reject").click()
    create_draft(editor, "inbox-raced", "Raced draft, changed")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("No.")
    dialog.get_by_role("button", name="Reject").click()
    expect(dialog).to_contain_text("It was not rejected")
    dialog.get_by_role("button", name="Show the current version").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Raced draft, changed")
    remove_query(service, "inbox-raced")


def test_a_viewer_cannot_decide_in_the_inbox(console: Console, service: Service, editor: httpx.Client) -> None:
    """Without the right to approve queries, the inbox has no buttons for decisions, and fits narrow screens."""
    create_draft(editor, "inbox-seen", "Draft for a viewer")
    page = open_inbox_page(console.sign_in(VIEWER))
    expect(page.get_by_role("heading", name="Needs your decision")).to_have_count(0)
    expect(page.get_by_role("link", name=re.compile("waiting"))).to_have_count(0)
    draft = page.get_by_role("row", name=re.compile("Draft for a viewer"))
    expect(draft).to_be_visible()
    expect(page.get_by_role("heading", name="Waits for another person")).to_be_visible()
    page.set_viewport_size({"width": 1024, "height": 900})
    console.check_fits("inbox-1024")
    console.check_fits_a_phone("inbox-390")
    draft.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Draft for a viewer")
    expect(page.get_by_role("button", name="Reject")).to_have_count(0)
    remove_query(service, "inbox-seen")


def test_the_console_opens_with_the_inbox(console: Console, service: Service, editor: httpx.Client) -> None:
    """The console opens with the inbox, where a user's own drafts are marked as waiting for another person."""
    create_draft(editor, "inbox-own", "Draft of the reader")
    page = console.sign_in_by_link(EDITOR).page
    expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
    others = page.get_by_role("grid", name="Draft queries that wait for another person")
    expect(others).to_contain_text("Draft of the reader")
    for title in ("Firing alerts", "Connections with errors", "Audit chains"):
        expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("No alert is firing")
    console.check_appearance("inbox-editor")
    remove_query(service, "inbox-own")


def test_the_inbox_lists_a_failing_connection(console: Console, service: Service) -> None:
    """The inbox lists a connection with an error and its reason; the number in the navigation counts this entry."""
    admin = service.create_client("admin@plant-a.example")
    hub = {"name": "Unreachable hub", "type": "CLOUD_EVENT_HUB", "enabled": True, "source": {"eventHub": "nowhere"}}
    assert admin.put("/oi-api/connections/inbox-hub", json=hub).status_code == 201
    page = open_inbox_page(console.sign_in(VIEWER))
    failing = page.get_by_role("grid", name="Connections with errors")
    expect(failing).to_contain_text("Unreachable hub")
    expect(page.get_by_role("link", name=re.compile("Connections 1 with errors"))).to_be_visible()
    console.check_appearance("inbox-connection")
    failing.get_by_role("row", name=re.compile("Unreachable hub")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Unreachable hub")
    assert admin.delete("/oi-api/connections/inbox-hub").status_code == 204
