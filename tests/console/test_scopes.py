"""Tests of the console's page of all audit chains, and of the banner about a broken chain."""

import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.chains import append_events, edit_record
from tests.console.visits import Console
from tests.service.local_service import Service

EDITOR, VIEWER = "editor@plant-a.example", "viewer@plant-a.example"
WARNING = "Altered after it was recorded. Do not rely on these values."


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return the client that writes the records."""
    return service.create_client(EDITOR)


def open_chain_list(console: Console, query: str = "") -> Page:
    """Open the list of chains."""
    console.open(f"scopes{query}", "Audit scopes")
    console.page.get_by_role("grid", name="Chains of the audit log").wait_for()
    return console.page


def test_each_listed_chain_links_to_its_records(console: Console, editor: httpx.Client) -> None:
    """Each row of the list shows the counts of a chain; a click on the row opens the chain in the audit log."""
    append_events(editor, "listed scope", 3)
    page = open_chain_list(console.sign_in(VIEWER))
    chains = page.get_by_role("grid", name="Chains of the audit log")
    expect(chains.get_by_role("row", name=re.compile("Configuration"))).to_contain_text("(whole workspace)")
    console.check_appearance("scopes")
    page.get_by_label("Container").select_option("DomainEvents")
    expect(page).to_have_url(re.compile(r"#/scopes\?target=DomainEvents$"))
    expect(chains.get_by_role("row", name=re.compile("Configuration"))).to_have_count(0)
    row = chains.get_by_role("row", name=re.compile("listed scope"))
    expect(row.get_by_role("gridcell").nth(4)).to_have_text("3")
    expect(row).to_contain_text("Not verified yet")
    row.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
    expect(page).to_have_url(re.compile("#/audit/DomainEvents/listed%20scope$"))


def test_chains_are_listed_in_pages(console: Console, editor: httpx.Client) -> None:
    """A list of more than 100 chains has buttons for the next and the previous page."""
    for number in range(101):
        append_events(editor, f"paged {number:03d}", 1)
    page = open_chain_list(console.sign_in(VIEWER), "?target=DomainEvents")
    pages = page.get_by_role("navigation", name="Pages", exact=True)
    expect(pages).to_contain_text(re.compile(r"1\D100, and more"))
    pages.get_by_role("button", name="Next").click()
    expect(pages).to_contain_text(re.compile(r"101\D"))
    expect(pages.get_by_role("button", name="Next")).to_be_disabled()
    pages.get_by_role("button", name="Previous").click()
    expect(pages).to_contain_text(re.compile(r"1\D100, and more"))


def replace_replies_with_broken_chain(page: Page, scope: str) -> None:
    """Replace replies of the service so that the list shows a scope as broken."""

    def change_reply(route: Route) -> None:
        address = route.request.url
        reply = route.fetch(url=re.sub("verdict=broken&?", "", address))
        listed: dict[str, Any] = reply.json()
        for row in listed["scopes"]:
            if row["scopeKey"] == scope:
                row |= {"lastVerdict": "broken", "lastVerifiedAt": "2026-01-05T08:00:00.000000Z"}
        if "verdict=broken" in address:
            listed["scopes"] = [row for row in listed["scopes"] if row["lastVerdict"] == "broken"]
        route.fulfill(response=reply, json=listed)

    page.route("**/oi-api/provenance/scopes*", change_reply)


def test_a_broken_chain_has_a_banner(console: Console, editor: httpx.Client) -> None:
    """A red banner names each broken chain, on the list with any filter and on the audit page of the chain."""
    append_events(editor, "found broken", 2)
    append_events(editor, "sound", 1)
    page = console.sign_in(VIEWER).page
    replace_replies_with_broken_chain(page, "found broken")
    open_chain_list(console, "?target=AccessControl")
    banner = page.get_by_role("alert").filter(has_text=WARNING)
    expect(banner.get_by_role("link", name="Plant events of found broken")).to_be_visible()
    page.get_by_label("Container").select_option("DomainEvents")
    expect(page.get_by_role("row", name=re.compile("found broken"))).to_contain_text("Broken")
    console.check_appearance("scopes-broken")
    banner.get_by_role("link", name="Plant events of found broken").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
    expect(banner).to_contain_text("Plant events of found broken")
    console.check_appearance("audit-broken")
    console.open("audit/DomainEvents/sound", "Audit log")
    expect(page.get_by_role("grid")).to_contain_text("000000000001")
    expect(banner).to_have_count(0)


def test_a_verification_on_the_audit_page_shows_the_banner(
    console: Console, service: Service, editor: httpx.Client
) -> None:
    """If a verification on the audit page finds a broken chain, the banner appears at once."""
    append_events(editor, "altered meanwhile", 4)
    edit_record(service, "altered meanwhile", 2, '"setpoint":5.5', '"setpoint":5.0')
    console.sign_in(VIEWER).open("audit/DomainEvents/altered meanwhile", "Audit log")
    page = console.page
    expect(page.get_by_role("grid")).to_contain_text("000000000004")
    banner = page.get_by_role("alert").filter(has_text=WARNING)
    expect(banner).to_have_count(0)
    page.get_by_role("button", name="Verify chain").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The chain is broken")
    dialog.get_by_role("button", name="Close").last.click()
    expect(banner).to_contain_text("Plant events of altered meanwhile")


def test_an_audit_bundle_can_be_created_and_downloaded(console: Console, editor: httpx.Client, tmp_path: Path) -> None:
    """A user can download the selected chains as one zip file with receipts.

    The page shows the progress of the bundle.
    """
    append_events(editor, "bundled", 3)
    page = console.sign_in(EDITOR).open("scopes/bundles", "Audit scopes").page
    expect(page.get_by_role("button", name="Start bundle")).to_be_disabled()
    page.get_by_label("Search chains").fill("bundled")
    page.get_by_role("checkbox", name="Plant events of bundled").check()
    page.get_by_label("Search chains").fill("configuration")
    page.get_by_role("button", name="Select all 1").click()
    expect(page.get_by_role("status").filter(has_text="chains selected")).to_contain_text("2 of")
    page.get_by_role("checkbox", name="Add a receipt for each record").check()
    console.check_appearance("scopes-bundle-form")
    page.get_by_role("button", name="Start bundle").click()
    made = page.get_by_role("article", name=re.compile("^Plant events of bundled, Configuration, completed"))
    expect(made.get_by_role("row").last).to_contain_text(re.compile(r"\.zip"))
    console.check_appearance("scopes-bundles")
    with page.expect_download() as download:
        made.get_by_role("link").click()
    download.value.save_as(tmp_path / "bundle.zip")
    with ZipFile(tmp_path / "bundle.zip") as bundle:
        names = {"manifest.json", "README.txt", "report.html", "receipts/1/000000000003.cbor", "verifier-key.cbor"}
        assert names <= set(bundle.namelist())


def test_a_bundle_with_a_wrong_range_is_not_started(console: Console, editor: httpx.Client) -> None:
    """An invalid date range of a bundle is reported at the field of the range, and the form keeps all other input."""
    console.expected += ["400"]
    append_events(editor, "ranged", 1)
    page = console.sign_in(EDITOR).open("scopes/bundles", "Audit scopes").page
    page.get_by_role("checkbox", name="Plant events of ranged").check()
    page.get_by_label("From (UTC)").fill("2026-02-01T00:00")
    page.get_by_label("Up to (UTC)").fill("2026-01-01T00:00")
    page.get_by_role("button", name="Start bundle").click()
    expect(page.get_by_label("From (UTC)")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("checkbox", name="Plant events of ranged")).to_be_checked()


def test_an_unfinished_bundle_is_cancelled(console: Console) -> None:
    """A running bundle shows its progress and has a button that cancels it."""
    bundle: dict[str, Any] = {
        "bundleId": "b1",
        "status": "running",
        "statusUrl": "/oi-api/provenance/bundles/b1",
        "scopes": [{"target": "DomainEvents", "scopeKey": "line-1"}],
        "filters": {"startDate": "2026-01-01T00:00:00.000000Z", "endDate": None, "entityId": "rig-1"},
        "createdAt": "2026-01-06T08:00:00.000000Z",
        "progress": {"scopesDone": 0, "scopesTotal": 1, "records": 1200},
        "brokenScopes": [],
        "files": [],
        "expiresAt": "2026-01-07T08:00:00.000000Z",
        "error": None,
    }

    def reply_with_bundle(route: Route) -> None:
        if route.request.method == "DELETE":
            bundle["status"] = "cancelled"
            route.fulfill(status=204)
        else:
            route.fulfill(json={"bundles": [bundle]})

    page = console.page
    page.route("**/oi-api/provenance/bundles**", reply_with_bundle)
    console.sign_in(EDITOR).open("scopes/bundles", "Audit scopes")
    running = page.get_by_role("article", name="Plant events of line-1, running")
    expect(running).to_contain_text("0 of 1 chain, 1,200 records")
    expect(running).to_contain_text("entity rig-1")
    console.check_appearance("scopes-bundle-running")
    running.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("article", name="Plant events of line-1, cancelled")).to_be_visible()
