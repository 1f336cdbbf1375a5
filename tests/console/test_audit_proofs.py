"""Tests of the proof of an audit record in the browser, before and after the record is edited."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.console.chains import append_events, edit_record, wait_for_checkpoint
from tests.console.visits import Console
from tests.receipts import verify_inclusion
from tests.service.local_service import Service


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return the client that writes the events."""
    return service.create_client("editor@plant-a.example")


def wait_for_proof_results(page: Page, *results: str) -> None:
    """Wait until the steps of the displayed proof have these results."""
    headings = page.get_by_role("dialog").get_by_role("heading", level=3)
    expect(headings).to_have_text([re.compile(rf"{end}$") for end in results])


def start_proof(console: Console, scope: str, sequence: int) -> Locator:
    """Open a record and start its proof."""
    page = console.open(f"audit/DomainEvents/{scope}?record={sequence}", "Audit log").page
    page.get_by_role("button", name="Prove this record").click()
    return page.get_by_role("dialog", name=f"Proof of record {sequence:012d}")


def test_the_proof_of_an_edited_record_fails(console: Console, editor: httpx.Client) -> None:
    """The proof of an unchanged record succeeds; the proof of an edited record fails, even with a new Hash."""
    append_events(editor, "proven", 5)
    wait_for_checkpoint(editor, "proven", 5)
    proof, page = start_proof(console.sign_in(), "proven", 3), console.page
    expect(proof.get_by_text("Proven", exact=True)).to_be_visible()
    wait_for_proof_results(page, *["passed"] * 6)
    console.check_appearance("audit-proven")
    proof.get_by_role("button", name="Prove again").click()
    expect(proof.get_by_text("Proven", exact=True)).to_be_visible()
    wait_for_proof_results(page, *["passed"] * 7)
    edit_record(console.service, "proven", 3, "rig-2", "rig-8")
    proof.get_by_role("button", name="Prove again").click()
    expect(proof.get_by_text("Not proven")).to_be_visible()
    wait_for_proof_results(page, "failed", "failed", "passed", "passed", "passed", "passed", "failed")
    console.check_appearance("audit-not-proven")
    edit_record(console.service, "proven", 3, "rig-8", "rig-7", rehash=True)
    proof.get_by_role("button", name="Prove again").click()
    expect(proof.get_by_text("Not proven")).to_be_visible()
    wait_for_proof_results(page, "failed", "passed", "passed", "passed", "passed", "passed", "failed")


def test_a_proof_with_a_key_other_than_the_published_one_fails(console: Console, editor: httpx.Client) -> None:
    """If the user enters a key other than the published key, the proof fails."""
    append_events(editor, "own key", 1)
    wait_for_checkpoint(editor, "own key", 1)
    proof = start_proof(console.sign_in(), "own key", 1)
    expect(proof.get_by_text("Proven", exact=True)).to_be_visible()
    proof.get_by_text("Check against your own copies").click()
    published = console.service.create_anonymous_client().get("/.well-known/oi-checkpoint-key").text
    proof.get_by_label("Verifier key").fill(published)
    proof.get_by_role("button", name="Prove again").click()
    expect(proof.get_by_text("publishes your verifier key")).to_be_visible()
    reply = editor.get("/oi-api/provenance/checkpoint", params={"target": "DomainEvents", "scopeKey": "own key"})
    proof.get_by_label("Earlier checkpoint").fill(reply.json()["signedNote"])
    proof.get_by_role("button", name="Prove again").click()
    expect(proof.get_by_text("Proven", exact=True)).to_be_visible()
    expect(proof.get_by_text("begins with all records of the earlier checkpoint")).to_be_visible()
    proof.get_by_label("Verifier key").fill(published[:-8])
    proof.get_by_role("button", name="Prove again").click()
    expect(proof.get_by_text("Not proven")).to_be_visible()


def test_the_receipt_of_a_record_is_saved(console: Console, editor: httpx.Client, tmp_path: Path) -> None:
    """If a checkpoint covers a record, its receipt can be saved, and scitt-cose verifies the file."""
    append_events(editor, "with receipts", 2)
    wait_for_checkpoint(editor, "with receipts", 2)
    page = console.sign_in().open("audit/DomainEvents/with receipts?record=2", "Audit log").page
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the receipt").click()
    assert download.value.suggested_filename == "DomainEvents-000000000002.receipt.cbor"
    download.value.save_as(tmp_path / "receipt.cbor")
    records = editor.get("/oi-api/provenance/events/export", params={"scopeKey": "with receipts"}).json()
    key_set = (
        console.service.create_anonymous_client()
        .get("/.well-known/oi-checkpoint-key", params={"format": "cose"})
        .content
    )
    assert verify_inclusion((tmp_path / "receipt.cbor").read_bytes(), records[1]["Hash"], key_set).ok


def test_a_record_without_checkpoint_has_no_receipt(console: Console, editor: httpx.Client) -> None:
    """While no checkpoint covers a record, its panel has no button for a receipt."""
    append_events(editor, "no receipt", 1)
    console.sign_in()
    console.page.route("**/oi-api/provenance/checkpoint?**", reply_without_checkpoint)
    page = console.open("audit/DomainEvents/no receipt?record=1", "Audit log").page
    expect(page.get_by_role("button", name="Prove this record")).to_be_visible()
    expect(page.get_by_role("button", name="Save the receipt")).to_have_count(0)


def reply_without_checkpoint(route: Route) -> None:
    """Send the service's reply for a chain whose newest record no checkpoint covers."""
    checkpoint = {"origin": "o", "size": 0, "rootHash": "", "lastHash": "", "timestamp": "", "signedNote": ""}
    route.fulfill(json=checkpoint)
