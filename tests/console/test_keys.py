"""Tests of the pages for API keys and tokens (creation, list, revocation) and of the caller's usage."""

import os
import re
import subprocess
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.visits import Console, open_console
from tests.service.local_service import Service, wait_until

ADMIN, EDITOR, VIEWER = "admin@plant-a.example", "editor@plant-a.example", "viewer@plant-a.example"
EVERYTHING = (
    "JSON.stringify([{...sessionStorage}, {...localStorage}, location.href, document.documentElement.outerHTML])"
)


def sign_in_with_key(console: Console, member: str) -> Page:
    """Sign in with a member's API key."""
    page = console.page
    page.goto(f"{console.service.url}/console/")
    page.get_by_label("API key or token").fill(console.service.read_api_key(member))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def request_whoami(service: Service, credential: str) -> httpx.Response:
    """Request whoami with a credential and return the reply."""
    return service.create_anonymous_client(bearer=credential).get("/workspace/api/keys/whoami")


def read_secret(page: Page, label: str | re.Pattern[str]) -> str:
    """Return the credential that the page shows only once."""
    return page.get_by_role("region", name=label).inner_text().strip()


def confirm_that_credential_was_copied(page: Page) -> None:
    """Confirm that the credential was copied, so that the page removes it."""
    page.get_by_role("button", name="I have copied it").click()


def test_a_new_token_is_shown_once(console: Console) -> None:
    """A new token has the selected rights and lifetime, is shown once, and is not stored."""
    page = sign_in_with_key(console, VIEWER)
    console.open("keys", "Keys and tokens")
    expect(page.get_by_role("radio", name=re.compile("30 days"))).to_be_enabled()
    page.get_by_role("radio", name=re.compile("7 days")).check()
    page.get_by_role("button", name="None", exact=True).click()
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("alert")).to_have_text("Choose at least one right.")
    page.get_by_role("treeitem", name="Audit log").click()
    expect(page.get_by_role("treeitem", name=re.compile("^Verify"))).to_have_attribute("aria-checked", "true")
    page.get_by_role("treeitem", name=re.compile("^Verify")).click()
    expect(page.get_by_role("treeitem", name="Audit log")).to_have_attribute("aria-checked", "mixed")
    console.check_appearance("keys-token")
    page.get_by_role("button", name="Create token").click()
    page.get_by_text("Copy it now").wait_for()
    console.check_appearance("keys-token-made")
    token = read_secret(page, "Your new token")
    confirm_that_credential_was_copied(page)
    assert token not in page.evaluate(EVERYTHING)
    who = request_whoami(console.service, token).json()
    assert (who["principal"], who["accessRights"]) == (VIEWER, ["Workspace.Provenance.Read"])
    page.reload()
    page.get_by_role("button", name="Create token").wait_for()
    assert token not in page.evaluate(EVERYTHING)


def test_access_rights_can_be_selected_by_keyboard(console: Console) -> None:
    """The tree of access rights can be used with the keyboard, and contains only rights of the caller."""
    console.sign_in(VIEWER).open("keys", "Keys and tokens")
    page = console.page
    expect(page.get_by_role("treeitem", name="Keys", exact=True)).to_have_count(0)
    page.get_by_role("button", name="None", exact=True).focus()
    page.keyboard.press("Tab")
    area = page.get_by_role("treeitem", name="Catalog")
    expect(area).to_be_focused()
    page.keyboard.press("Space")
    expect(area).to_have_attribute("aria-checked", "false")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("treeitem", name=re.compile("^Read see connections"))).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(area).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("treeitem", name="Warm queries")).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("treeitem", name=re.compile("^Read see the members"))).to_be_focused()


def test_token_cannot_outlive_its_issuer(console: Console) -> None:
    """After a sign-in by link, lifetimes longer than the session cannot be selected, and the page shows the reason."""
    console.sign_in(VIEWER).open("keys", "Keys and tokens")
    page = console.page
    expect(page.get_by_role("status")).to_contain_text("Sign in with an API key")
    expect(page.get_by_role("radio", name=re.compile("24 hours"))).to_be_disabled()
    page.get_by_role("radio", name=re.compile("Other")).check()
    minutes = page.get_by_role("textbox", name="Minutes")
    for wrong, rule in (("0", "whole minutes"), ("600", "valid longer")):
        minutes.fill(wrong)
        page.get_by_role("button", name="Create token").click()
        expect(page.get_by_role("alert")).to_contain_text(rule)
    console.check_appearance("keys-token-capped")
    minutes.fill("7")
    page.get_by_role("button", name="Create token").click()
    token = read_secret(page, "Your new token")
    assert request_whoami(console.service, token).json()["accessRights"] == sorted(
        request_whoami(console.service, console.service.read_api_key(VIEWER)).json()["accessRights"]
    )


def test_a_token_is_revoked_after_a_confirmation(console: Console) -> None:
    """A pasted token is revoked after a confirmation; an unknown token id shows an error."""
    console.expected.append("404")
    token = (
        console.service.create_client(EDITOR, "Workspace.Catalog.Read").headers["authorization"].removeprefix("Bearer ")
    )
    console.sign_in(EDITOR).open("keys/revoke", "Keys and tokens")
    page = console.page
    page.get_by_label("Token or its ID").fill("0" * 32)
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke permanently").click()
    expect(page.get_by_role("alert")).to_contain_text("TOKEN_NOT_FOUND")
    page.get_by_label("Token or its ID").fill(token)
    page.get_by_role("button", name="Revoke", exact=True).click()
    console.check_appearance("keys-revoke")
    page.get_by_role("button", name="Revoke permanently").click()
    expect(page.get_by_text("The token is revoked")).to_be_visible()
    wait_until(lambda: request_whoami(console.service, token).status_code, lambda status: status == 401)


@pytest.mark.parametrize(("member", "owner"), [(VIEWER, ""), (ADMIN, EDITOR)])
def test_an_api_key_is_created_listed_and_revoked(console: Console, member: str, owner: str) -> None:
    """A new API key, for the user or another member, is shown once, then listed, and can be revoked."""
    console.sign_in(member).open("keys/keys", "Keys and tokens")
    page, name = console.page, f"dashboard of {owner or member}"
    page.get_by_role("button", name="Create an API key").click()
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_role("alert")).to_have_text("Enter a name, such as the key's purpose.")
    page.get_by_label("Name").fill(name)
    if owner:
        page.get_by_label("Belongs to").fill(owner)
    else:
        expect(page.get_by_label("Belongs to")).to_have_count(0)
    console.check_appearance(f"keys-new-{member}")
    page.get_by_role("button", name="Create the key").click()
    key = read_secret(page, re.compile("Your new API key"))
    assert request_whoami(console.service, key).json()["principal"] == (owner or member)
    confirm_that_credential_was_copied(page)
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("in use")
    console.check_appearance(f"keys-list-{member}")
    row.click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("dialog")).to_contain_text("within 15 seconds")
    console.check_appearance(f"keys-key-{member}")
    page.get_by_role("button", name="Revoke permanently").click()
    expect(row).to_contain_text("revoked")
    wait_until(lambda: request_whoami(console.service, key).status_code, lambda status: status == 401)


def test_a_bound_key_can_send_telemetry_with_the_displayed_command(console: Console) -> None:
    """The API key of a device, which the page creates, can send telemetry with the displayed curl command."""
    console.sign_in(EDITOR).open("keys/keys", "Keys and tokens")
    page = console.page
    page.get_by_role("button", name="Create an API key").click()
    page.get_by_label("Name").fill("gateway in hall 3")
    page.get_by_label("Purpose").select_option("device")
    expect(page.get_by_role("tree")).to_have_count(0)
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_role("alert")).to_have_text("Choose at least one connection.")
    page.get_by_role("checkbox", name=re.compile("pump-rig")).check()
    page.get_by_label("Device IDs").fill("rig-* gauge-0[1-4]")
    page.get_by_label("Expires").select_option("30")
    console.check_appearance("keys-bound")
    page.get_by_role("button", name="Create the key").click()
    key = read_secret(page, re.compile("Your new API key"))
    for program, part in (("Telegraf", "/oauth2/token"), ("Node-RED", '"http request"'), ("Python", "from oi import")):
        page.get_by_role("tab", name=program).click()
        expect(page.get_by_role("region", name=re.compile("^Telemetry with"))).to_contain_text(part)
        assert key not in page.get_by_role("tabpanel").last.inner_text()
    console.check_appearance("keys-bound-made")
    page.get_by_role("tab", name="curl").click()
    command = page.get_by_role("region", name="Telemetry with curl").inner_text()
    environment = {"OI_KEY": key, "PATH": os.environ["PATH"]}
    sent = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (sent.stdout, sent.stderr) == ('{"accepted":1}', "")
    confirm_that_credential_was_copied(page)
    row = page.get_by_role("row").filter(has_text="gateway in hall 3")
    expect(row).to_contain_text("pump-rig")
    row.click()
    expect(page.get_by_role("dialog")).to_contain_text("rig-* gauge-0[1-4]")
    expect(page.get_by_role("dialog").get_by_role("tab", name="curl")).to_be_visible()
    console.check_appearance("keys-bound-key")


def test_without_the_right_to_write_telemetry_no_device_key_can_be_created(console: Console) -> None:
    """Without the right to write telemetry, the page does not offer to create a key for a device."""
    console.sign_in(VIEWER).open("keys/keys", "Keys and tokens")
    console.page.get_by_role("button", name="Create an API key").click()
    expect(console.page.get_by_label("Name")).to_be_visible()
    expect(console.page.get_by_label("Purpose")).to_have_count(0)


def test_rejected_device_pattern_is_reported_at_its_field(console: Console) -> None:
    """The form shows the service's error about a device pattern at the field of the pattern."""
    console.expected.append("400")
    console.sign_in(EDITOR).open("keys/keys", "Keys and tokens")
    page = console.page
    page.get_by_role("button", name="Create an API key").click()
    page.get_by_label("Name").fill("long")
    page.get_by_label("Purpose").select_option("device")
    page.get_by_role("checkbox", name=re.compile("pump-rig")).check()
    page.get_by_label("Device IDs").fill("x" * 300)
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_label("Device IDs")).to_have_attribute("aria-invalid", "true")


def test_an_unknown_owner_of_a_key_is_reported_at_its_field(console: Console) -> None:
    """The form shows the service's error about an unknown owner at the field of the owner."""
    console.expected.append("400")
    console.sign_in().open("keys/keys", "Keys and tokens")
    page = console.page
    page.get_by_role("button", name="Create an API key").click()
    page.get_by_label("Name").fill("for nobody")
    page.get_by_label("Belongs to").fill("nobody@plant-a.example")
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_label("Belongs to")).to_have_attribute("aria-invalid", "true")


def test_the_usage_meter_counts_each_request(console: Console) -> None:
    """After each reply, the meter shows the number of requests that the caller has sent, and the limit."""
    console.sign_in("approver@plant-a.example").open("keys", "Keys and tokens")
    meter = console.page.get_by_role("meter", name="Your usage")
    expect(meter).to_have_attribute("aria-valuemax", re.compile("^[0-9]+$"))
    before = _read_used_requests(meter)
    console.page.get_by_role("tab", name="API keys").click()
    console.page.get_by_role("row").filter(has_text="first start").wait_for()
    assert _read_used_requests(meter) > before


def _read_used_requests(meter: Any) -> int:
    return int(meter.get_attribute("aria-valuenow"))


def test_the_keys_page_does_not_scroll_sideways_on_a_narrow_screen(service: Service) -> None:
    """On a narrow screen the page does not scroll sideways."""
    with open_console(service, width=390) as console:
        console.sign_in()
        for view in ("token", "keys", "revoke"):
            console.open(f"keys/{view}", "Keys and tokens")
            console.page.get_by_role("tab", selected=True).wait_for()
            console.check_appearance(f"keys-narrow-{view}")
            assert console.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
        console.check_no_errors()


def test_a_key_of_a_disabled_member_is_not_usable(console: Console) -> None:
    """The list shows that the API key of a disabled member is rejected; the key can still be revoked."""
    page = console.sign_in().open("keys/keys", "Keys and tokens").page
    row = page.get_by_role("row", name=re.compile("former@plant-a.example"))
    expect(row).to_contain_text("owner disabled")
    row.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The service rejects this key, because its owner is disabled.")
    expect(dialog.get_by_role("button", name="Revoke")).to_be_enabled()
    console.check_appearance("keys-owner-disabled")
