"""Tests of electronic signatures in the console: the dialog, the new sign-in, and the page of signatures."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.test_amendments import AMENDMENTS, create_amendment, open_pending_amendments
from tests.console.test_sign_in_entra import AUDIENCE, CLIENT, MEMBER, TENANT, StandInEntra, open_sign_in_page
from tests.console.test_typed_text import reply_with_expired_token
from tests.console.visits import Console, open_console
from tests.service.local_service import Service, check_problem
from tests.service.test_signatures import replace_signature_policy

EDITOR, ANN, BOB, CAROL = "editor@t", "ann@t", "bob@t", "carol@t"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
WORKSPACE: dict[str, Any] = {
    "workspace": {"id": "plant-s", "name": "Plant S"},
    "tier": "enterprise",
    "limits": {"requestsPerMinute": 100_000, "concurrent": 500},
    "policies": {
        "provenance": {"requireApproval": True, "reasonCategories": ["other"]},
        "signatures": {"amendments": "required", "queries": "required", "maxAgeSeconds": 0},
    },
    "team": [
        {"id": EDITOR, "name": "Engineer", "role": "Editor"},
        {"id": ANN, "name": "Ann Approver", "role": "Admin"},
        {"id": BOB, "name": "Bob Approver", "role": "Admin"},
        {"id": CAROL, "name": "Carol Approver", "role": "Admin", "oid": MEMBER},
    ],
    "connections": [{"lookup": "rig", "name": "Rig", "type": "CLOUD_EVENT_HUB"}],
    "surfaces": [{"lookup": "hall", "name": "Hall", "connections": ["rig"]}],
}


@pytest.fixture(scope="module")
def entra() -> Iterator[StandInEntra]:
    """Yield a fake of Entra ID."""
    running = StandInEntra()
    yield running
    running.close()


@pytest.fixture(scope="module")
def signing_service(entra: StandInEntra, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service whose policy requires a signature and a new sign-in for each decision."""
    folder = tmp_path_factory.mktemp("console-signing")
    (folder / "workspace.yaml").write_text(json.dumps(WORKSPACE))
    environment = {
        "ENTRA_TENANT_ID": TENANT,
        "ENTRA_AUDIENCE": AUDIENCE,
        "ENTRA_AUTHORITY": entra.url,
        "ENTRA_CONSOLE_CLIENT_ID": CLIENT,
    }
    running = Service(folder / "data", folder / "workspace.yaml", environment).start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def signing_console(signing_service: Service, entra: StandInEntra) -> Iterator[Console]:
    """Yield a console browser that may call the service and the fake Entra ID."""
    entra.changed = {}
    with open_console(signing_service) as console:
        yield console
        console.check_no_errors(entra.url)


def open_decision_dialog(console: Console, scope: str, button: str) -> Locator:
    """Open the dialog behind the given button, for a decision about the only amendment of a scope."""
    page = open_pending_amendments(console, scope)
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog", name=f"{button} amendment 000000000001")
    dialog.get_by_role("region", name="Signature").wait_for()
    return dialog


def open_decided_entity(page: Page) -> Locator:
    """Open the timeline of the entity whose amendment was decided, and return the entry with the decision."""
    page.get_by_role("tab", name="All amendments").click()
    page.get_by_role("gridcell", name=re.compile("of 000000000001")).click()
    return page.get_by_role("article", name="Decision 000000000002")


def test_an_amendment_is_signed_with_the_key_typed_again(signing_console: Console, tmp_path: Path) -> None:
    """After the user types the key again, the decision is signed.

    The page, the audit log and the report show the signature.
    """
    create_amendment(signing_console.service.create_client(EDITOR), "typed again", ReasonText="Misread.")
    dialog = open_decision_dialog(signing_console.sign_in(ANN), "typed again", "Approve")
    expect(dialog.get_by_role("row", name="ph")).to_contain_text("7.2")
    expect(dialog).to_contain_text("You sign as Ann Approver (ann@t)")
    expect(dialog).to_contain_text("Misread.")
    dialog.get_by_label("Meaning").select_option("review")
    dialog.get_by_label("Statement").fill("I checked the logbook.")
    sign = dialog.get_by_role("button", name="Sign and approve")
    sign.click()
    expect(dialog.get_by_text("Enter your API key")).to_be_visible()
    signing_console.check_appearance("signing-dialog")
    dialog.get_by_label(re.compile("your API key", re.IGNORECASE)).fill(signing_console.service.read_api_key(BOB))
    sign.click()
    expect(dialog.get_by_role("alert").filter(has_text="Nothing was signed")).to_contain_text("Bob Approver")
    field = dialog.get_by_label(re.compile("your API key", re.IGNORECASE))
    field.fill(signing_console.service.read_api_key(ANN))
    field.press("Enter")
    page = signing_console.page
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    decision = open_decided_entity(page)
    for part in ("Signed by Ann Approver (ann@t)", TIME, "meaning: review", "I checked the logbook."):
        expect(decision).to_contain_text(part)
    signing_console.check_appearance("signed-entity")
    with page.expect_download() as download:
        page.get_by_role("button", name="Printable report").click()
    download.value.save_as(tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<dt>Signed by</dt><dd>Ann Approver (ann@t)</dd>" in report
    assert re.search(r"<dt>Signed at</dt><dd>[0-9-]+ [0-9:.]+ UTC</dd>", report)
    assert "<dt>Meaning of the signature</dt><dd>review</dd>" in report
    signing_console.open("audit/DomainAmendments/typed again?record=2", "Audit log")
    expect(page.get_by_role("region", name="Record 000000000002")).to_contain_text("Signed by Ann Approver")
    # Neither the key nor the token of the signature is stored.
    assert signing_console.service.read_api_key(ANN) not in json.dumps(
        page.evaluate("({...sessionStorage, ...localStorage})")
    )


def test_an_expired_sign_in_for_a_signature_is_repeated(signing_console: Console) -> None:
    """If the token of a signature's sign-in has expired, the dialog requests the key again and keeps its text."""
    create_amendment(signing_console.service.create_client(EDITOR), "expired sign-in")
    signing_console.expected.append("401")
    dialog = open_decision_dialog(signing_console.sign_in(ANN), "expired sign-in", "Approve")
    page = signing_console.page
    page.route(re.compile("/approve"), reply_with_expired_token, times=1)
    dialog.get_by_label("Statement").fill("I read it myself.")
    field = dialog.get_by_label(re.compile("your API key", re.IGNORECASE))
    field.fill(signing_console.service.read_api_key(ANN))
    field.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("Token has expired")
    expect(field).to_have_value("")
    field.fill(signing_console.service.read_api_key(ANN))
    field.press("Enter")
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    expect(open_decided_entity(page)).to_contain_text("I read it myself.")


def test_the_fifth_rejected_attempt_locks_the_member_out(signing_console: Console) -> None:
    """After five rejected attempts, the dialog shows until when the member cannot sign."""
    editor, token = signing_console.service.create_client(EDITOR), signing_console.service.create_client(BOB)
    for scope in ("lock first", "lock second"):
        create_amendment(editor, scope)
    assert sign_approval(token, "lock first").status_code == 200
    for _ in range(5):
        check_problem(sign_approval(token, "lock second"), 409, "SIGNATURE_TOKEN_USED")
    signing_console.expected.append("429")
    dialog = open_decision_dialog(signing_console.sign_in(BOB), "lock second", "Approve")
    dialog.get_by_label(re.compile("your API key", re.IGNORECASE)).fill(signing_console.service.read_api_key(BOB))
    dialog.get_by_role("button", name="Sign and approve").click()
    expect(dialog.get_by_role("alert")).to_contain_text("SIGNATURE_LOCKED")
    expect(dialog.get_by_role("alert")).to_contain_text(re.compile(r"try again in \d+ s"))
    signing_console.check_appearance("signing-locked")


def sign_approval(client: httpx.Client, scope: str) -> httpx.Response:
    """Approve the first pending amendment of a scope with a signature."""
    path = f"{AMENDMENTS}/000000000001/approve"
    return client.post(path, params={"scopeKey": scope}, json={"signature": {"meaning": "approval"}})


def test_the_rejection_of_a_draft_is_signed(signing_console: Console) -> None:
    """A draft can be rejected with a signature, which the query's page shows."""
    body = {"name": "Newest", "surface": "hall", "kql": "Telemetry | take 10"}
    assert (
        signing_console.service.create_client(EDITOR).put("/oi-api/warm-queries/newest", json=body).status_code == 201
    )
    page = signing_console.sign_in(ANN).open("queries/newest", "Newest").page
    page.get_by_role("button", name="Reject", exact=True).click()
    dialog = page.get_by_role("dialog", name=re.compile("Reject"))
    expect(dialog).to_contain_text("Telemetry | take 10")
    dialog.get_by_label("Comment").fill("Limit the time range.")
    dialog.get_by_label(re.compile("your API key", re.IGNORECASE)).fill(signing_console.service.read_api_key(ANN))
    dialog.get_by_role("button", name="Sign and reject").click()
    expect(page.get_by_role("main")).to_contain_text("Signed by Ann Approver (ann@t)")
    expect(page.get_by_role("main")).to_contain_text("meaning: rejection")


def test_the_dialog_survives_the_sign_in_with_entra_id(signing_console: Console, entra: StandInEntra) -> None:
    """After a new sign-in with Entra ID, the dialog still has the typed text, and the decision is signed."""
    create_amendment(signing_console.service.create_client(EDITOR), "by account")
    entra.changed = {"claims": {"auth_time": int(time.time()) - 7200, "amr": ["pwd"]}}
    page = open_sign_in_page(signing_console)
    page.get_by_role("button", name="Sign in with Entra ID").click()
    page.get_by_role("button", name="Sign out").wait_for()
    dialog = open_decision_dialog(signing_console, "by account", "Reject")
    dialog.get_by_label("Reason").fill("The meter shows 7.")
    dialog.get_by_label("Statement").fill("I read it myself.")
    entra.changed = {"claims": {"auth_time": int(time.time()), "amr": ["pwd", "mfa"]}}
    dialog.get_by_role("button", name="Sign in again with Entra ID").click()
    expect(dialog).to_contain_text("You signed in again at")
    assert entra.asked[-1]["prompt"] == "login"
    expect(dialog.get_by_label("Reason")).to_have_value("The meter shows 7.")
    expect(dialog.get_by_label("Statement")).to_have_value("I read it myself.")
    signing_console.check_appearance("signing-returned")
    dialog.get_by_role("button", name="Sign and reject").click()
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    decision = open_decided_entity(page)
    for part in ("Signed by Carol Approver", "meaning: rejection", "I read it myself.", "Reason: The meter shows 7."):
        expect(decision).to_contain_text(part)


def test_a_change_of_the_signature_policy_keeps_the_typed_text(signing_console: Console) -> None:
    """If a signature becomes required while the dialog is open, the dialog requests a signature and keeps its text."""
    create_amendment(signing_console.service.create_client(EDITOR), "switched")
    signing_console.expected.append("400")
    replace_signature_policy(signing_console.service.create_client(BOB))
    try:
        page = open_pending_amendments(signing_console.sign_in(ANN), "switched")
        page.get_by_role("button", name="Reject", exact=True).click()
        dialog = page.get_by_role("dialog", name="Reject amendment 000000000001")
        expect(dialog.get_by_role("button", name="Reject", exact=True)).to_be_enabled()
        dialog.get_by_label("Reason").fill("The meter shows 7.")
    finally:
        replace_signature_policy(signing_console.service.create_client(BOB), **WORKSPACE["policies"]["signatures"])
    dialog.get_by_role("button", name="Reject", exact=True).click()
    expect(dialog.get_by_role("region", name="Signature")).to_be_visible()
    expect(dialog.get_by_label("Reason")).to_have_value("The meter shows 7.")
    dialog.get_by_label(re.compile("your API key", re.IGNORECASE)).fill(signing_console.service.read_api_key(ANN))
    dialog.get_by_role("button", name="Sign and reject").click()
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    decision = open_decided_entity(page)
    for part in ("Signed by Ann Approver (ann@t)", "meaning: rejection", "Reason: The meter shows 7."):
        expect(decision).to_contain_text(part)


def test_an_account_without_a_sign_in_time_cannot_sign(signing_console: Console, entra: StandInEntra) -> None:
    """If the Entra ID token has no sign-in time, the dialog names this as the reason and keeps the typed text."""
    create_amendment(signing_console.service.create_client(EDITOR), "without time")
    page = open_sign_in_page(signing_console)
    page.get_by_role("button", name="Sign in with Entra ID").click()
    page.get_by_role("button", name="Sign out").wait_for()
    dialog = open_decision_dialog(signing_console, "without time", "Approve")
    dialog.get_by_label("Statement").fill("I read it myself.")
    dialog.get_by_role("button", name="Sign in again with Entra ID").click()
    expect(page.get_by_text("did not report when you signed in")).to_be_visible()
    expect(dialog.get_by_label("Statement")).to_have_value("I read it myself.")


def test_signatures_are_listed_and_filtered(signing_console: Console) -> None:
    """The page lists all signatures, with filters for member and time; a click on a row opens the signed record."""
    create_amendment(signing_console.service.create_client(EDITOR), "listed", ReasonText="Misread.")
    approver = signing_console.service.create_client(ANN)
    body = {"signature": {"meaning": "review", "statement": "Read twice."}}
    decided = approver.post(f"{AMENDMENTS}/000000000001/approve", params={"scopeKey": "listed"}, json=body)
    assert decided.status_code == 200, decided.text
    page = signing_console.sign_in(BOB).open("signatures", "Signatures").page
    row = page.get_by_role("grid", name="Signatures, newest first").get_by_role("row").filter(has_text="listed")
    for part in ("Ann Approver", ANN, "review", "Read twice.", "amendment of listed", "000000000002"):
        expect(row).to_contain_text(part)
    signing_console.check_appearance("signatures")
    page.get_by_label("Who").fill(CAROL)
    page.get_by_label("From").fill("2200-01-01T00:00")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="No signature matches")).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages", exact=True)).to_have_count(0)
    assert "who=carol" in page.url
    page.reload()
    expect(page.get_by_label("Who")).to_have_value(CAROL)
    page.get_by_role("button", name="Clear").click()
    row.click()
    expect(page.get_by_role("region", name="Record 000000000002")).to_contain_text("Ann Approver")
