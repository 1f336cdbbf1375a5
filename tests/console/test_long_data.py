"""Tests of pages with long names, names from right to left, and invisible characters, on a narrow screen."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.test_amendments import create_amendment, open_pending_amendments
from tests.console.visits import Console, open_console
from tests.service.local_service import Service
from tests.service.oauth_client import OAuthClient

PHONE = 320
LONG = "W" * 128
REVERSED = "\u202eevil\u202c"
ESCAPED = r"\u202eevil\u202c"
RTL = "מנהל המשמרת של קו הייצור הראשון والمشرف"
EDITOR, ANN = (
    "editor-of-the-first-and-second-production-line-in-hall-number-four@plant-with-a-long-name.example",
    "ann@t",
)
MEANING = "M" * 64
WORKSPACE: dict[str, Any] = {
    "workspace": {"id": "plant-l", "name": LONG},
    "tier": "enterprise",
    "limits": {"requestsPerMinute": 100_000, "concurrent": 500},
    "policies": {
        "provenance": {"requireApproval": True, "reasonCategories": ["other", "R" * 64]},
        "signatures": {
            "amendments": "required",
            "queries": "required",
            "maxAgeSeconds": 0,
            "meanings": ["approval", "rejection", MEANING],
        },
    },
    "team": [
        {"id": EDITOR, "name": LONG, "role": "Editor"},
        {"id": ANN, "name": RTL, "role": "Admin"},
    ],
    "connections": [
        {"lookup": "long", "name": LONG, "type": "CLOUD_EVENT_HUB"},
        {"lookup": "c" * 64, "name": RTL, "type": "CLOUD_EVENT_HUB"},
    ],
    "oauthClients": [{"id": "long", "name": LONG, "redirectUris": [f"https://{'h' * 60}.{'i' * 60}.example/callback"]}],
    "surfaces": [{"lookup": "s" * 64, "name": LONG, "connections": ["long"]}],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service whose names are as long as possible."""
    folder = tmp_path_factory.mktemp("long-data")
    (folder / "workspace.yaml").write_text(json.dumps(WORKSPACE))
    running = Service(folder / "data", folder / "workspace.yaml").start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def admin(service: Service) -> httpx.Client:
    """Return a client with a token of the administrator."""
    return service.create_client(ANN)


@pytest.fixture
def phone(service: Service) -> Iterator[Console]:
    """Yield a console on a narrow screen, in which the administrator is signed in."""
    with open_console(service, width=PHONE) as made:
        yield made.sign_in(ANN)
        made.check_no_errors()


def wait_until_loaded(page: Page) -> None:
    """Wait until no part of the page loads."""
    expect(page.get_by_role("status", name=re.compile("^Loading"))).to_have_count(0)


def test_the_import_page_with_long_names_fits_a_phone(phone: Console) -> None:
    """The import page does not scroll sideways with a long name of a connection, a file and its columns."""
    page = phone.open("imports?connection=long", "Imports").page
    expect(page.get_by_role("combobox", name="Connection", exact=True)).to_have_value("long")
    phone.check_fits_in_both_themes("long-imports")
    rows = f"time;{'d' * 120};{'p' * 120}\n2026-01-05T08:00:00Z;{'g' * 100};4,25\nnone;{'g' * 100};4,75\n"
    page.locator("input[type=file]").set_input_files(
        {"name": f"{'f' * 180}.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    )
    page.get_by_role("combobox", name="Column with the device ID").select_option("d" * 120)
    phone.check_fits("long-imports-mapping")
    page.get_by_role("button", name="Upload and preview").click()
    expect(page.get_by_role("table", name="First messages")).to_contain_text("ggg")
    phone.check_fits("long-imports-preview")
    page.get_by_role("button", name="Start import").click()
    expect(page.get_by_role("article")).to_contain_text("rejected", timeout=90_000)
    phone.check_fits_in_both_themes("long-imports-job")


def test_the_history_of_policies_with_long_values_fits_a_phone(phone: Console, admin: httpx.Client) -> None:
    """The policies do not scroll sideways while their history shows a long value."""
    shown = admin.get("/oi-api/workspace").json()
    policies = shown["policies"]
    policies["provenance"]["reasonCategories"] = ["other", *(f"{number:03}{'r' * 60}" for number in range(45))]
    reply = admin.put("/oi-api/workspace", json={"name": LONG, "description": "D" * 3000, "policies": policies})
    assert reply.status_code == 200, reply.text
    page = phone.open("policies", "Policies").page
    wait_until_loaded(page)
    expect(page.get_by_role("button", name=re.compile("Show all"))).to_be_visible()
    phone.check_fits_in_both_themes("long-policies")


def read_right_edge(element: Locator) -> float:
    """Return the distance of an element's right edge from the left edge of the screen, in pixels."""
    box = element.bounding_box()
    assert box is not None
    return box["x"] + box["width"]


def test_a_signing_dialog_shows_the_real_text_of_an_amendment(phone: Console, service: Service) -> None:
    """What is signed shows invisible characters of the reason as escapes, and long values do not scroll sideways."""
    scope = "s" * 100
    create_amendment(
        service.create_client(EDITOR),
        scope,
        "E" * 200,
        OriginalRecord={"k" * 100: "v" * 300},
        AmendedRecord={"k" * 100: "w" * 300},
        ChangedFields=["k" * 100],
        ReasonText=f"Value was {REVERSED}. {'T' * 500}",
    )
    page = open_pending_amendments(phone, scope)
    status = page.get_by_role("article").get_by_text("pending", exact=True).bounding_box()
    assert status is not None
    assert status["height"] < 24, "the status is broken into several lines"
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(dialog.get_by_role("region", name="Signature")).to_contain_text(f"You sign as {RTL} ({ANN})")
    expect(dialog).to_contain_text(f"Value was {ESCAPED}.")
    dialog.get_by_role("button", name="Sign and approve").click()
    expect(dialog.get_by_text("Enter your API key")).to_be_visible()
    phone.check_fits_in_both_themes("long-sign-approve")
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(dialog).to_contain_text(f"Value was {ESCAPED}.")
    phone.check_fits_in_both_themes("long-sign-reject")
    dialog.get_by_label("Reason").fill(f"No, {REVERSED}.")
    dialog.get_by_label("Your API key").fill(service.read_api_key(ANN))
    dialog.get_by_label("Your API key").press("Enter")
    expect(page.get_by_role("heading", name="No pending amendments")).to_be_visible()
    page.get_by_role("tab", name="All amendments").click()
    page.get_by_role("gridcell", name=re.compile("of 000000000001")).click()
    expect(page.get_by_role("article", name="Decision 000000000002")).to_contain_text(f"Reason: No, {ESCAPED}.")
    phone.check_fits_in_both_themes("long-timeline")


def test_the_webhook_page_with_long_values_fits_a_phone(phone: Console, admin: httpx.Client) -> None:
    """A webhook with long values does not scroll sideways, and its buttons do not leave their panel."""
    url = f"http://127.0.0.1:9999/{'u' * 1500}"
    made = admin.post(
        "/oi-api/webhooks", json={"url": url, "description": RTL + "D" * 150, "eventTypes": ["amendment.pending"]}
    )
    assert made.status_code == 201, made.text
    page = phone.open(f"webhooks/{made.json()['id']}", RTL + "D" * 150).page
    test = page.get_by_role("button", name="Send a test event")
    test.click()
    row = page.get_by_role("grid", name="Deliveries").get_by_role("row", name=re.compile("webhook.test"))
    expect(row).to_be_visible()
    phone.check_fits_in_both_themes("long-webhook")
    assert read_right_edge(test) <= read_right_edge(page.get_by_role("grid", name="Deliveries"))
    row.click()
    expect(page.get_by_role("dialog", name="webhook.test")).to_contain_text("The connection failed", timeout=60_000)
    phone.check_fits_in_both_themes("long-delivery")


def test_the_consent_page_with_long_names_fits_a_phone(phone: Console, service: Service) -> None:
    """The consent page does not scroll sideways with a long name and a long host of the application."""
    redirect = f"https://{'h' * 60}.{'i' * 60}.example/callback"
    client = OAuthClient(service, ANN, "long", redirect)
    phone.page.goto(client.request_authorization().headers["location"])
    expect(phone.page.get_by_role("heading", name=f"{LONG} asks for access")).to_be_visible()
    phone.check_fits_in_both_themes("long-consent")
