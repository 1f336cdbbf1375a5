"""Tests of whole tasks of four roles (engineer, approver, auditor, administrator) on screens of three widths.

Each step is checked in both themes; a table of screens states with which theme a task begins.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.chains import append_events
from tests.console.conftest import WORKSPACE
from tests.console.test_amendments import create_amendment
from tests.console.visits import Console, Theme, open_console
from tests.service.local_service import Service, wait_until

ADMIN, EDITOR = "admin@plant-a.example", "editor@plant-a.example"
APPROVER, AUDITOR = "approver@plant-a.example", "viewer@plant-a.example"
KQL = "Telemetry | summarize readings = count() by DeviceId"

type Screen = tuple[int, Theme]

STREAM_MS = 90_000
"""Time limit of the first live data after the start of the service."""
WIDE_FIRST: list[Screen] = [(1440, "light"), (1024, "dark"), (390, "light")]
DARK_FIRST: list[Screen] = [(1440, "dark"), (1024, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with the sample workspace and messages of its simulators, which only these tests change."""
    running = Service(tmp_path_factory.mktemp("journeys") / "data", WORKSPACE).start()
    reader = running.create_client(EDITOR)
    activity = "/oi-api/warm-queries/device-activity?timeRange=PT1H"
    wait_until(lambda: reader.get(activity).json()["results"], bool, 60)
    yield running
    assert running.stop() == 0


@contextmanager
def open_as_member(service: Service, screen: Screen, member: str, *, touch: bool = False) -> Iterator[Console]:
    """Open the console and sign in as a member; at the end, errors and rejected requests fail the test."""
    width, theme = screen
    with open_console(service, width, touch=touch) as console:
        # Before the page loads, because a change during its start can go unnoticed.
        console.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        console.sign_in_by_link(member).set_theme(theme)
        yield console
        console.check_no_errors()


def open_page(console: Console, title: str) -> Page:
    """Open a page by its link in the navigation; on a narrow screen, open the menu first."""
    page = console.page
    menu = page.get_by_role("button", name="Menu")
    if menu.is_visible():
        menu.click()
    page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^{title}")).click()
    expect_heading(page, title)
    return page


def press_button(container: Page | Locator, name: str) -> None:
    """Press the button that has exactly this name."""
    container.get_by_role("button", name=name, exact=True).click()


def expect_heading(page: Page, text: str) -> None:
    """Wait until the page has this heading."""
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


@pytest.mark.parametrize("screen", WIDE_FIRST)
def test_an_engineer_writes_a_query_and_amends_a_record(service: Service, screen: Screen) -> None:
    """An engineer reads live data, writes a query for approval, and amends a record of the audit log."""
    width, _ = screen
    lookup, scope = f"engineer-{width}", f"engineer-{width}"
    append_events(service.create_client(EDITOR), scope, 2)
    with open_as_member(service, screen, EDITOR) as console:
        page = open_page(console, "Overview")
        expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
        console.check_fits_in_both_themes(f"engineer-overview-{width}")
        open_page(console, "Queries")
        press_button(page, "New query")
        page.get_by_label("ID", exact=True).fill(lookup)
        page.get_by_label("Name", exact=True).fill(f"Readings, {width}")
        page.get_by_label("Surface", exact=True).select_option("cooling")
        page.get_by_label("KQL", exact=True).fill(KQL)
        console.check_fits_in_both_themes(f"engineer-query-{width}")
        press_button(page, "Save as a draft")
        expect_heading(page, f"Readings, {width}")
        expect(page.get_by_role("main")).to_contain_text("Draft, until another person approves it")
        console.check_fits_in_both_themes(f"engineer-draft-{width}")
        console.open(f"audit/DomainEvents/{scope}?record=2", "Audit log")
        page.get_by_role("link", name="Amend this record").click()
        page.get_by_label("Amended record").fill('{"setpoint": 5.25, "unit": "bar"}')
        page.get_by_label("Reason in words").fill("The valve was set to 5.25.")
        press_button(page, "Review")
        console.check_fits_in_both_themes(f"engineer-amendment-{width}")
        press_button(page, "Send amendment")
        expect(page.get_by_text("the status is pending")).to_be_visible()


@pytest.mark.parametrize("screen", DARK_FIRST)
def test_an_approver_decides_from_the_inbox(service: Service, screen: Screen) -> None:
    """From the inbox, an approver opens and approves a draft query, and opens and rejects an amendment."""
    width, _ = screen
    editor, scope, entity = service.create_client(EDITOR), f"approver-{width}", f"Tank-{width}"
    name = f"Waits, {width}"
    body = {"name": name, "surface": "cooling", "kql": KQL}
    assert editor.put(f"/oi-api/warm-queries/approver-{width}", json=body).status_code == 201
    create_amendment(editor, scope, entity)
    with open_as_member(service, screen, APPROVER) as console:
        page = console.page
        console.check_fits_in_both_themes(f"approver-inbox-{width}")
        page.get_by_role("row").filter(has_text=name).click()
        expect_heading(page, name)
        press_button(page, "Approve")
        console.check_fits_in_both_themes(f"approver-approval-{width}")
        press_button(page.get_by_role("dialog"), "Approve")
        expect(page.get_by_role("main")).to_contain_text(APPROVER)
        page.get_by_role("tab", name="Run").click()
        press_button(page, "Run")
        expect(page.get_by_role("region", name="About the result")).to_contain_text(f"by {APPROVER}")
        console.check_fits_in_both_themes(f"approver-result-{width}")
        open_page(console, "Inbox")
        page.get_by_role("row").filter(has_text=entity).click()
        press_button(page, "Reject")
        page.get_by_role("dialog").get_by_label("Reason").fill("The meter shows 7.")
        console.check_fits_in_both_themes(f"approver-rejection-{width}")
        press_button(page.get_by_role("dialog"), "Reject")
        expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
        open_page(console, "Inbox")
        expect(page.get_by_role("main")).not_to_contain_text(entity)


@pytest.mark.parametrize("screen", WIDE_FIRST)
def test_an_auditor_finds_a_change_and_verifies_its_chain(service: Service, screen: Screen) -> None:
    """An auditor can filter a chain, read a change, verify the chain, and read the amendments of an entity."""
    width, _ = screen
    editor, scope = service.create_client(EDITOR), f"auditor-{width}"
    append_events(editor, scope, 3)
    append_events(editor, scope, 1, ActionType="BatchReleased", EntityType="Batch")
    create_amendment(editor, scope, "B-1")
    with open_as_member(service, screen, AUDITOR) as console:
        page = open_page(console, "Audit log")
        page.get_by_role("radio", name="Plant events").check(force=True)
        page.get_by_label("Scope").fill(scope)
        press_button(page, "Open")
        expect(page.get_by_text("4 records shown")).to_be_visible()
        page.get_by_label("Action").fill("BatchReleased")
        press_button(page, "Apply")
        expect(page.get_by_text("1 record shown")).to_be_visible()
        console.check_fits_in_both_themes(f"auditor-filtered-{width}")
        page.get_by_role("row").filter(has_text="000000000004").click()
        record = page.get_by_role("region", name="Record 000000000004")
        expect(record).to_contain_text("Matches the content (checked in this browser)")
        console.check_fits_in_both_themes(f"auditor-record-{width}")
        press_button(page, "Verify chain")
        verdict = page.get_by_role("dialog")
        expect(verdict.get_by_text("4 records, all sound.")).to_be_visible()
        console.check_fits_in_both_themes(f"auditor-verified-{width}")
        verdict.get_by_role("button", name="Close").last.click()
        console.open(f"amendments/{scope}/entity/B-1", "Amendments")
        expect(page.get_by_role("article", name="Amendment 000000000001")).to_contain_text("Misread.")
        with page.expect_download():
            press_button(page, "Printable report")
        console.check_fits_in_both_themes(f"auditor-entity-{width}")
        open_page(console, "Audit scopes")
        expect(page.get_by_role("grid", name="Chains of the audit log")).to_contain_text(scope)
        console.check_fits_in_both_themes(f"auditor-scopes-{width}")


@pytest.mark.parametrize("screen", DARK_FIRST)
def test_an_administrator_adds_and_disables_a_member(service: Service, screen: Screen) -> None:
    """An administrator can add a member, create its key, disable it, and see these changes in the audit log."""
    width, _ = screen
    member, name = f"clerk-{width}@plant-a.example", f"Clerk {width}"
    with open_as_member(service, screen, ADMIN) as console:
        page = open_page(console, "Team")
        press_button(page, "Add member")
        page.get_by_label("ID", exact=True).fill(member)
        page.get_by_label("Name", exact=True).fill(name)
        console.check_fits_in_both_themes(f"administrator-member-{width}")
        press_button(page, "Add member")
        expect_heading(page, name)
        open_page(console, "Keys and tokens")
        page.get_by_role("tab", name="API keys").click()
        press_button(page, "Create an API key")
        page.get_by_label("Name", exact=True).fill(f"key of {name}")
        page.get_by_label("Belongs to", exact=True).fill(member)
        press_button(page, "Create the key")
        expect(page.get_by_role("region", name=re.compile("Your new API key"))).to_be_visible()
        console.check_fits_in_both_themes(f"administrator-key-{width}")
        press_button(page, "I have copied it")
        open_page(console, "Team")
        page.get_by_role("row").filter(has_text=name).click()
        press_button(page, "Disable")
        console.check_fits_in_both_themes(f"administrator-disable-{width}")
        press_button(page.get_by_role("dialog"), "Disable the member")
        expect(page.get_by_text("This member is disabled.")).to_be_visible()
        changes = page.get_by_role("listitem").filter(has_text="Updated")
        expect(changes).to_contain_text(ADMIN)
        expect(changes.get_by_role("row", name="enabled")).to_contain_text("false")
        console.check_fits_in_both_themes(f"administrator-disabled-{width}")
