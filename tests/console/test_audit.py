"""The audit page: reading, filtering, verifying, proving, exporting and writing records."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.chains import destroyed, edited, signed, written
from tests.console.visits import Console, visiting
from tests.service.local_service import Service

EDITOR = "editor@plant-a.example"


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Who writes the events that the tests look at."""
    return service.caller(EDITOR)


def opened(console: Console, scope: str, record: int | None = None) -> Page:
    """Open a scope's events, and a record of them."""
    console.open(f"audit/DomainEvents/{scope}" + (f"?record={record}" if record else ""), "Audit log")
    console.page.get_by_role("grid").wait_for()
    return console.page


def listed(page: Page) -> list[str]:
    """Return the RecordIDs that the table shows."""
    return page.get_by_role("row").locator("td:first-child").all_inner_texts()


def dialog(page: Page, title: str) -> Locator:
    """Return an open dialog."""
    return page.get_by_role("dialog", name=title)


def test_records_stay_put_while_others_arrive(console: Console, editor: httpx.Client) -> None:
    """Newest first; what arrives waits behind a bar that counts it, and moves no row."""
    written(editor, "arrivals", 3)
    page = opened(console.sign_in(), "arrivals")
    before = ["000000000003", "000000000002", "000000000001"]
    assert listed(page) == before
    written(editor, "arrivals", 2)
    bar = page.get_by_role("button", name="2 newer records: show them")
    bar.wait_for()
    assert listed(page) == before
    bar.click()
    expect(page.locator("td").first).to_have_text("000000000005")
    assert listed(page) == ["000000000005", "000000000004", *before]


def test_long_lists_are_read_as_the_reader_scrolls(console: Console, editor: httpx.Client) -> None:
    """Older records follow at the end, down to the first; a reader may begin at any record."""
    written(editor, "long", 230)
    page = opened(console.sign_in(), "long")
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


def test_filters_stand_in_the_address(console: Console, editor: httpx.Client) -> None:
    """Filters narrow the list, say when nothing matches, and come back with the address."""
    written(editor, "filtered", 2)
    written(editor, "filtered", 1, ActionType="BatchReleased", EntityType="Batch")
    page = opened(console.sign_in(), "filtered")
    page.get_by_label("Action").fill("BatchReleased")
    page.get_by_label("Who").fill(EDITOR)
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("1 record shown")).to_be_visible()
    assert listed(page) == ["000000000003"]
    page.reload()
    expect(page.get_by_text("1 record shown")).to_be_visible()
    page.get_by_label("From").fill("2200-01-01T00:00")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="No record matches")).to_be_visible()
    console.looks_right("audit-nothing-matches")
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("3 records shown")).to_be_visible()


def test_record_is_reached_by_the_keyboard(console: Console, editor: httpx.Client) -> None:
    """Arrow keys and Enter open a record, with its change, its links and what the browser made of them."""
    written(editor, "keys", 3)
    page = opened(console.sign_in("viewer@plant-a.example"), "keys")
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    record = page.get_by_role("region", name="Record 000000000002")
    expect(record.get_by_role("row", name="setpoint")).to_contain_text("5.5")
    expect(record).to_contain_text("equals the digest of the content, computed here")
    expect(record).to_contain_text("the Hash of 000000000001")
    expect(record).to_contain_text("links to this one")
    console.looks_right("audit-record")
    record.get_by_role("button", name="Open 000000000001").click()
    first = page.get_by_role("region", name="Record 000000000001")
    expect(first).to_contain_text("the chain's genesis hash")
    expect(first.get_by_role("button", name="Older record")).to_be_disabled()


def test_chain_is_verified_and_its_break_is_shown_at_its_place(console: Console, editor: httpx.Client) -> None:
    """A sound chain is told so; after an edit in the database file the picture shows where it broke."""
    # The chain may not be signed yet: its checkpoint is asked for all the same.
    console.expected.append("404")
    written(editor, "broken", 6)
    page = opened(console.sign_in(), "broken")
    page.get_by_role("button", name="Verify chain").click()
    verdict = dialog(page, "Verification of Plant events of broken")
    expect(verdict.get_by_text("The chain is valid")).to_be_visible()
    expect(verdict.get_by_text("6 records, all sound.")).to_be_visible()
    console.looks_right("audit-verified")
    edited(console.service, "broken", 4, '"setpoint":7.5', '"setpoint":7.6', mend=True)
    verdict.get_by_role("button", name="Verify again").click()
    expect(verdict.get_by_text("The chain is broken", exact=True)).to_be_visible()
    expect(verdict.get_by_role("listitem").filter(has_text="000000000005")).to_contain_text("broken")
    expect(verdict.get_by_role("listitem").filter(has_text="000000000004")).to_contain_text("sound")
    expect(verdict.get_by_role("listitem").filter(has_text="000000000006")).to_contain_text("not verified")
    expect(verdict.get_by_role("img", name=re.compile("the chain is broken at 000000000005"))).to_be_visible()
    expect(verdict.get_by_role("status").or_(verdict.get_by_role("alert")).first).to_contain_text("does not link")
    console.looks_right("audit-broken")
    verdict.get_by_role("link", name="000000000005").click()
    expect(page.get_by_role("region", name="Record 000000000005")).to_contain_text("not the Hash of 000000000004")


def test_damaged_record_is_shown_as_such(console: Console, editor: httpx.Client) -> None:
    """What stands in its place is shown, its neighbours say that they do not link, and no proof is offered."""
    written(editor, "damaged", 3)
    destroyed(console.service, "damaged", 2)
    page = opened(console.sign_in(), "damaged")
    page.get_by_role("gridcell", name="damaged", exact=True).click()
    record = page.get_by_role("region", name="Record 000000000002")
    expect(record.get_by_role("alert")).to_contain_text("This record is damaged in the store")
    expect(record).to_contain_text("garbage")
    expect(record).to_contain_text("not the digest of the content")
    expect(record.get_by_role("button", name="Prove this record")).to_have_count(0)
    console.looks_right("audit-damaged")


def test_export_is_saved_and_a_prefix_says_so(console: Console, editor: httpx.Client, tmp_path: Path) -> None:
    """The file holds what matches; one that is a prefix is told, with the command that fetches the whole chain."""
    made = written(editor, "export it", 4)
    page = opened(console.sign_in(), "export it")
    page.get_by_role("button", name="Export", exact=True).click()
    export = dialog(page, "Export of Plant events of export it")
    with page.expect_download() as download:
        export.get_by_role("button", name="Export", exact=True).click()
    assert download.value.suggested_filename == "provenance-DomainEvents-export_it.json"
    download.value.save_as(tmp_path / "export.json")
    assert json.loads((tmp_path / "export.json").read_text(encoding="utf-8")) == made
    expect(export.get_by_text("The file contains all matching records.")).to_be_visible()
    export.get_by_label("Maximum records").fill("2")
    export.get_by_label("Format").select_option("csv")
    with page.expect_download() as download:
        export.get_by_role("button", name="Export", exact=True).click()
    download.value.save_as(tmp_path / "export.csv")
    assert len((tmp_path / "export.csv").read_text(encoding="utf-8").splitlines()) == 3
    expect(export.get_by_text("The file is incomplete")).to_be_visible()
    expect(export.get_by_role("region")).to_contain_text(f"fetch {console.service.url} --target DomainEvents")
    console.looks_right("audit-export")


def test_event_is_written(console: Console, editor: httpx.Client) -> None:
    """What is missing or no JSON is said at its field; the stored event is opened."""
    written(editor, "by hand", 1)
    page = opened(console.sign_in(EDITOR), "by hand")
    page.get_by_role("button", name="Write an event").click()
    form = dialog(page, "Write to Plant events of by hand")
    form.get_by_label("State after").fill('{"level": 9007199254740993}')
    form.get_by_role("button", name="Write event").click()
    expect(form.get_by_text("This field is required.")).to_have_count(3)
    expect(form.get_by_text("ust be an integer within")).to_be_visible()
    console.looks_right("audit-write")
    form.get_by_label("Action").fill("LevelRead")
    form.get_by_label("Entity type").fill("Tank")
    form.get_by_label("Entity", exact=True).fill("T-1")
    form.get_by_label("State after").fill('{"level": 12.5}')
    form.get_by_role("button", name="Write event").click()
    record = page.get_by_role("region", name="Record 000000000002")
    expect(record).to_contain_text("LevelRead")
    expect(record).to_contain_text(EDITOR)
    expect(page.locator("td").first).to_have_text("000000000002")


def test_reader_without_further_rights_is_offered_reading_alone(service: Service, editor: httpx.Client) -> None:
    """A token that only reads sees records and proves them; what it may not do is not there, and nothing is refused."""
    written(editor, "read only", 2)
    signed(editor, "read only", 2)
    token = service.caller(EDITOR, "Workspace.Provenance.Read").headers["Authorization"].removeprefix("Bearer ")
    with visiting(service) as console:
        page = console.page
        page.goto(f"{service.url}/console/")
        page.get_by_label("API key or token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        opened(console, "read only", record=2)
        page.get_by_role("button", name="Prove this record").click()
        expect(page.get_by_text("Proven", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        for missing in ("Verify", "Export", "Write an event", "Amend it"):
            expect(page.get_by_role("main").get_by_text(missing)).to_have_count(0)
        console.stayed_clean()


def test_scopes_are_offered_again_until_the_reader_signs_out(console: Console, editor: httpx.Client) -> None:
    """A scope is asked for; those that were opened in this tab are offered, to nobody after a sign-out."""
    written(editor, "remembered", 1)
    console.sign_in().open("audit/DomainEvents", "Audit log")
    page = console.page
    expect(page.get_by_role("heading", name="Which scope?")).to_be_visible()
    console.looks_right("audit-no-scope")
    page.get_by_label("Scope").fill("remembered")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("grid").wait_for()
    page.reload()
    page.get_by_role("grid").wait_for()
    assert page.locator("datalist option").evaluate_all("each => each.map(one => one.value)") == ["remembered"]
    page.get_by_role("radio", name="Access").check()
    expect(page.get_by_role("gridcell", name="Token.Issued").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key or token").wait_for()
    assert page.evaluate("sessionStorage.length") == 0


def test_scope_that_nobody_wrote_to_says_what_to_do(console: Console) -> None:
    """An empty chain says how it gets its first record; verified, that nothing was checked."""
    console.sign_in().open("audit/DomainEvents/never-written", "Audit log")
    page = console.page
    expect(page.get_by_role("heading", name="No records yet")).to_be_visible()
    page.get_by_role("button", name="Verify chain").click()
    expect(page.get_by_text("Nothing was checked")).to_be_visible()


def test_narrow_screen_shows_the_record_first(service: Service, editor: httpx.Client) -> None:
    """On a narrow screen the open record stands above the list, and nothing is cut off sideways."""
    written(editor, "narrow", 2)
    with visiting(service, width=390) as console:
        page = opened(console.sign_in(), "narrow", record=1)
        expect(page.get_by_role("region", name="Record 000000000001")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        console.looks_right("audit-narrow")
        console.stayed_clean()
