"""Tests of the console's audit page: reading, filtering, verifying, proving, exporting and writing records."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.chains import append_events, destroy_record, edit_record, wait_for_checkpoint
from tests.console.visits import Console, open_console
from tests.service.local_service import Service

EDITOR = "editor@plant-a.example"


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return the client that writes the events."""
    return service.create_client(EDITOR)


def open_events(console: Console, scope: str, record: int | None = None) -> Page:
    """Open the events of a scope and, if a record is given, the panel of this record."""
    console.open(f"audit/DomainEvents/{scope}" + (f"?record={record}" if record else ""), "Audit log")
    console.page.get_by_role("grid").wait_for()
    return console.page


def read_record_ids(page: Page) -> list[str]:
    """Return the RecordIDs in the table."""
    return page.get_by_role("row").locator("td:first-child").all_inner_texts()


def find_dialog(page: Page, title: str) -> Locator:
    """Return the open dialog with this title."""
    return page.get_by_role("dialog", name=title)


def test_new_audit_records_do_not_move_the_list(console: Console, editor: httpx.Client) -> None:
    """Records that arrive while the list is open do not move the rows; a bar shows the number of new records."""
    append_events(editor, "arrivals", 3)
    page = open_events(console.sign_in(), "arrivals")
    before = ["000000000003", "000000000002", "000000000001"]
    assert read_record_ids(page) == before
    append_events(editor, "arrivals", 2)
    bar = page.get_by_role("button", name="2 newer records: show them")
    bar.wait_for()
    assert read_record_ids(page) == before
    bar.click()
    expect(page.locator("td").first).to_have_text("000000000005")
    assert read_record_ids(page) == ["000000000005", "000000000004", *before]


def test_scrolling_loads_older_records(console: Console, editor: httpx.Client) -> None:
    """Scrolling down loads older records until the first one; a filter can start the list at any record."""
    append_events(editor, "long", 230)
    page = open_events(console.sign_in(), "long")
    expect(page.get_by_text("200 records shown")).to_be_visible()
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    expect(page.get_by_text("230 records shown: all matching records.")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("gridcell", name="000000000001", exact=True)).to_be_visible()
    page.get_by_label("Up to record").fill("15")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("td").first).to_have_text("000000000015")
    expect(page.get_by_text("15 records shown")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("td").first).to_have_text("000000000230")
    expect(page.get_by_label("Up to record")).to_have_value("")


def test_filters_of_the_audit_page_survive_a_reload(console: Console, editor: httpx.Client) -> None:
    """Filters reduce the list and survive a reload; if no record matches, the page shows a message."""
    append_events(editor, "filtered", 2)
    append_events(editor, "filtered", 1, ActionType="BatchReleased", EntityType="Batch")
    page = open_events(console.sign_in(), "filtered")
    page.get_by_label("Action").fill("BatchReleased")
    page.get_by_label("Who").fill(EDITOR)
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("1 record shown")).to_be_visible()
    assert read_record_ids(page) == ["000000000003"]
    page.reload()
    expect(page.get_by_text("1 record shown")).to_be_visible()
    page.get_by_label("From").fill("2200-01-01T00:00")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="No record matches")).to_be_visible()
    console.check_appearance("audit-nothing-matches")
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("3 records shown")).to_be_visible()


def test_an_audit_record_can_be_opened_by_keyboard(console: Console, editor: httpx.Client) -> None:
    """Arrow keys and Enter open a record, which shows its change and the verified links to its neighbours."""
    append_events(editor, "keys", 3)
    page = open_events(console.sign_in("viewer@plant-a.example"), "keys")
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    record = page.get_by_role("region", name="Record 000000000002")
    expect(record.get_by_role("row", name="setpoint")).to_contain_text("5.5")
    expect(record).to_contain_text("Matches the content (checked in this browser)")
    expect(record).to_contain_text("the Hash of 000000000001")
    expect(record).to_contain_text("links to this one")
    console.check_appearance("audit-record")
    record.get_by_role("button", name="Open 000000000001").click()
    first = page.get_by_role("region", name="Record 000000000001")
    expect(first).to_contain_text("the chain's genesis hash")
    expect(first.get_by_role("button", name="Older record")).to_be_disabled()


def test_verification_shows_the_position_of_a_break(console: Console, editor: httpx.Client) -> None:
    """The page verifies a valid chain; after an edit in the database file, the picture shows where the chain breaks."""
    append_events(editor, "broken", 6)
    page = open_events(console.sign_in(), "broken")
    page.get_by_role("button", name="Verify chain").click()
    verdict = find_dialog(page, "Verification of Plant events of broken")
    expect(verdict.get_by_text("The chain is intact")).to_be_visible()
    expect(verdict.get_by_text("6 records, all sound.")).to_be_visible()
    console.check_appearance("audit-verified")
    edit_record(console.service, "broken", 4, '"setpoint":7.5', '"setpoint":7.6', rehash=True)
    verdict.get_by_role("button", name="Verify again").click()
    expect(verdict.get_by_text("The chain is broken", exact=True)).to_be_visible()
    expect(verdict.get_by_role("listitem").filter(has_text="000000000005")).to_contain_text("broken")
    expect(verdict.get_by_role("listitem").filter(has_text="000000000004")).to_contain_text("sound")
    expect(verdict.get_by_role("listitem").filter(has_text="000000000006")).to_contain_text("not verified")
    expect(verdict.get_by_role("img", name=re.compile("the chain is broken at 000000000005"))).to_be_visible()
    expect(verdict.get_by_role("status").or_(verdict.get_by_role("alert")).first).to_contain_text("does not link")
    advice = verdict.get_by_role("region", name="What to do now")
    expect(advice).to_contain_text("admin@plant-a.example")
    expect(advice.get_by_role("link", name="Export a bundle")).to_have_attribute("href", "#/scopes/bundles")
    console.check_appearance("audit-broken")
    verdict.get_by_role("link", name="000000000005").click()
    expect(page.get_by_role("region", name="Record 000000000005")).to_contain_text("not the Hash of 000000000004")


def test_damaged_record_shows_its_content_and_broken_links(console: Console, editor: httpx.Client) -> None:
    """For a record with invalid content, the page shows the stored content and broken links, and offers no proof."""
    append_events(editor, "damaged", 3)
    destroy_record(console.service, "damaged", 2)
    page = open_events(console.sign_in(), "damaged")
    page.get_by_role("gridcell", name="damaged", exact=True).click()
    record = page.get_by_role("region", name="Record 000000000002")
    expect(record.get_by_role("alert")).to_contain_text("This record is damaged in the store")
    expect(record).to_contain_text("garbage")
    expect(record).to_contain_text("The content does not match its hash: altered or damaged.")
    expect(record.get_by_role("button", name="Prove this record")).to_have_count(0)
    console.check_appearance("audit-damaged")


def test_an_altered_record_has_a_banner_and_a_mark_in_the_list(console: Console, editor: httpx.Client) -> None:
    """An altered record is marked by a banner, in the list, and in the picture, whose links are intact.

    A verification from its panel shows the banner of the chain.
    """
    append_events(editor, "altered", 4)
    edit_record(console.service, "altered", 2, '"setpoint":5.5', '"setpoint":5.6')
    page = open_events(console.sign_in(), "altered")
    expect(page.get_by_role("row").filter(has_text="altered")).to_have_count(1)
    page.get_by_role("row", name=re.compile("000000000002")).click()
    record = page.get_by_role("region", name="Record 000000000002")
    banner = record.get_by_role("alert")
    expect(banner).to_contain_text("Altered after it was recorded. Do not rely on these values.")
    expect(banner).to_contain_text("The content does not match its hash: altered or damaged.")
    expect(record.get_by_role("alert").or_(record.get_by_role("table")).first).to_have_role("alert")
    banner.get_by_text("What to do now").click()
    console.check_appearance("audit-altered")
    console.check_fits_a_phone("audit-altered-phone")
    record.get_by_role("button", name="Verify this record and its chain").click()
    verdict = find_dialog(page, "Verification of Plant events of altered")
    expect(verdict.get_by_role("img", name=re.compile("000000000002 was altered or damaged"))).to_be_visible()
    expect(verdict.get_by_role("listitem").filter(has_text="000000000001")).to_contain_text("sound")
    expect(verdict.get_by_role("region", name="What to do now")).to_be_visible()
    console.check_appearance("audit-altered-verdict")
    page.keyboard.press("Escape")
    expect(page.get_by_role("alert").filter(has_text="found broken by the verification")).to_be_visible()


def test_an_incomplete_export_shows_the_command_for_the_whole_chain(
    console: Console, editor: httpx.Client, tmp_path: Path
) -> None:
    """An export contains the matching records; if it is incomplete, the page shows the command for the whole chain."""
    made = append_events(editor, "export it", 4)
    page = open_events(console.sign_in(), "export it")
    page.get_by_role("button", name="Export", exact=True).click()
    export = find_dialog(page, "Export of Plant events of export it")
    with page.expect_download() as download:
        export.get_by_role("button", name="Export", exact=True).click()
    assert download.value.suggested_filename == "provenance-DomainEvents-export_it.json"
    download.value.save_as(tmp_path / "export.json")
    assert json.loads((tmp_path / "export.json").read_text(encoding="utf-8")) == made
    expect(export.get_by_text("The file contains all matching records.")).to_be_visible()
    export.get_by_label("Maximum records").fill("2")
    export.get_by_label("Format").select_option("csv")
    expect(export.get_by_text("provenance-DomainEvents-export_it.json, ")).to_be_visible()
    with page.expect_download() as download:
        export.get_by_role("button", name="Export", exact=True).click()
    download.value.save_as(tmp_path / "export.csv")
    assert len((tmp_path / "export.csv").read_text(encoding="utf-8").splitlines()) == 3
    expect(export.get_by_text("The file is incomplete")).to_be_visible()
    expect(export.get_by_role("region")).to_contain_text(f"fetch {console.service.url} --target DomainEvents")
    console.check_appearance("audit-export")


def test_an_event_can_be_written_in_the_form(console: Console, editor: httpx.Client) -> None:
    """The form marks missing and invalid values; a stored event is opened on the page."""
    append_events(editor, "by hand", 1)
    page = open_events(console.sign_in(EDITOR), "by hand")
    page.get_by_role("button", name="Write an event").click()
    form = find_dialog(page, "Write to Plant events of by hand")
    form.get_by_label("State after").fill('{"level": 9007199254740993}')
    form.get_by_role("button", name="Write event").click()
    expect(form.get_by_text("This field is required.")).to_have_count(3)
    expect(form.get_by_text("is too large for an exact JSON integer")).to_be_visible()
    console.check_appearance("audit-write")
    form.get_by_label("Action").fill("LevelRead")
    form.get_by_label("Entity type").fill("Tank")
    form.get_by_label("Entity", exact=True).fill("T-1")
    form.get_by_label("State after").fill('{"level": 12.5}')
    form.get_by_role("button", name="Write event").click()
    record = page.get_by_role("region", name="Record 000000000002")
    expect(record).to_contain_text("LevelRead")
    expect(record).to_contain_text(EDITOR)
    expect(page.locator("td").first).to_have_text("000000000002")


def test_a_read_only_token_can_read_and_prove_records(service: Service, editor: httpx.Client) -> None:
    """With a read-only token, a user can read and prove records; the page hides buttons for all other actions."""
    append_events(editor, "read only", 2)
    wait_for_checkpoint(editor, "read only", 2)
    token = service.create_client(EDITOR, "Workspace.Provenance.Read").headers["Authorization"].removeprefix("Bearer ")
    with open_console(service) as console:
        page = console.page
        page.goto(f"{service.url}/console/")
        page.get_by_label("API key or token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        open_events(console, "read only", record=2)
        page.get_by_role("button", name="Prove this record").click()
        expect(page.get_by_text("Proven", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        for missing in ("Verify", "Export", "Write an event", "Amend this record"):
            expect(page.get_by_role("main").get_by_text(missing)).to_have_count(0)
        console.check_no_errors()


def test_recent_scopes_are_forgotten_at_sign_out(console: Console, editor: httpx.Client) -> None:
    """The page suggests recently opened scopes first, until the user signs out."""
    append_events(editor, "remembered", 1)
    console.sign_in().open("audit/DomainEvents", "Audit log")
    page = console.page
    expect(page.get_by_role("heading", name="Which scope?")).to_be_visible()
    console.check_appearance("audit-no-scope")
    page.get_by_label("Scope").fill("remembered")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("grid").wait_for()
    page.reload()
    page.get_by_role("grid").wait_for()
    suggested = page.locator("datalist option").evaluate_all("each => each.map(one => one.value)")
    assert suggested[0] == "remembered"
    console.open("audit/DomainEvents/another", "Audit log")
    expect(page.get_by_label("Scope")).to_have_value("another")
    page.get_by_role("radio", name="Access").check()
    expect(page.get_by_role("gridcell", name="Token.Issued").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key or token").wait_for()
    assert page.evaluate("sessionStorage.length") == 0


def test_the_audit_page_of_an_empty_chain_shows_the_next_step(console: Console) -> None:
    """For an empty chain, the page shows the next step; a verification reports that nothing was checked."""
    console.sign_in().open("audit/DomainEvents/never-written", "Audit log")
    page = console.page
    expect(page.get_by_role("heading", name="No records yet")).to_be_visible()
    page.get_by_role("button", name="Verify chain").click()
    expect(page.get_by_text("The chain has no records")).to_be_visible()


def test_a_narrow_screen_shows_the_open_record_above_the_list(service: Service, editor: httpx.Client) -> None:
    """On a narrow screen the open record is above the list, without horizontal scrolling."""
    append_events(editor, "narrow", 2)
    with open_console(service, width=390) as console:
        page = open_events(console.sign_in(), "narrow", record=1)
        expect(page.get_by_role("region", name="Record 000000000001")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        console.check_appearance("audit-narrow")
        console.check_no_errors()
