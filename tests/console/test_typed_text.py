"""Tests that text typed in the console survives Escape, outside clicks, the end of the session, and navigation."""

import json
import re

import httpx
import pytest
from playwright.sync_api import Dialog, Page, Route, expect

from tests.console.chains import append_events
from tests.console.visits import Console
from tests.service.local_service import Service

EDITOR, ADMIN = "editor@plant-a.example", "admin@plant-a.example"


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return the client that writes the events."""
    return service.create_client(EDITOR)


def accept_dialogs(page: Page, *answers: bool) -> list[str]:
    """Accept the next confirmation dialogs of the page; return a list that collects their texts."""
    asked: list[str] = []
    left = list(answers)

    def accept_dialog(dialog: Dialog) -> None:
        asked.append(dialog.message)
        if left.pop(0):
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", accept_dialog)
    return asked


def reply_with_expired_token(route: Route) -> None:
    """Replace a reply with the reply that the service sends for an expired token."""
    body = {"status": 401, "code": "TOKEN_EXPIRED", "detail": "Token has expired; request a new one."}
    route.fulfill(status=401, content_type="application/problem+json", body=json.dumps(body))


def test_escape_does_not_discard_typed_text(console: Console, editor: httpx.Client) -> None:
    """In a dialog with typed text, Escape or an outside click asks for a confirmation; the button Cancel does not."""
    append_events(editor, "escape", 1)
    page = console.sign_in(EDITOR).open("audit/DomainEvents/escape", "Audit log").page
    asked = accept_dialogs(page, False, False, False, True)
    page.get_by_role("button", name="Write an event").click()
    dialog = page.get_by_role("dialog", name="Write to Plant events of escape")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Write an event").click()
    dialog.get_by_label("Action").fill("LevelRead")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.mouse.click(5, 500)
    expect(dialog.get_by_label("Action")).to_have_value("LevelRead")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert asked == ["Discard unsaved changes?"] * 4
    page.get_by_role("button", name="Write an event").click()
    dialog.get_by_label("Action").fill("LevelRead")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)


def test_the_back_button_needs_a_confirmation_while_a_dialog_has_typed_text(
    console: Console, editor: httpx.Client
) -> None:
    """If a dialog has typed text, the back button asks for a confirmation."""
    append_events(editor, "back", 1)
    console.sign_in(EDITOR).open("keys", "Keys and tokens")
    page = console.open("audit/DomainEvents/back", "Audit log").page
    asked = accept_dialogs(page, False)
    page.get_by_role("button", name="Write an event").click()
    page.get_by_role("dialog").get_by_label("Action").fill("LevelRead")
    page.go_back()
    expect(page.get_by_role("dialog").get_by_label("Action")).to_have_value("LevelRead")
    assert asked == ["Discard unsaved changes?"]


def test_a_form_survives_the_end_of_the_session(console: Console) -> None:
    """If the session ends, a form keeps its text and focus until the same user signs in again."""
    console.expected.append("401")
    page = console.sign_in(EDITOR).open("queries/-/new", "New query").page
    page.get_by_label("Name", exact=True).fill("Outlives its session")
    page.get_by_label("ID", exact=True).fill("outlives")
    page.get_by_label("Surface", exact=True).select_option("cooling")
    page.route(re.compile("/oi-api/warm-queries/outlives"), reply_with_expired_token)
    page.get_by_role("button", name="Save as a draft").click()
    again = page.get_by_role("dialog", name="Sign in again")
    expect(again).to_contain_text("What you typed is still on the page.")
    expect(again.get_by_role("alert")).to_contain_text("Token has expired")
    expect(page.get_by_label("Name", exact=True)).to_be_hidden()
    console.check_appearance("sign-in-again")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(again).to_be_visible()
    page.unroute(re.compile("/oi-api/warm-queries/outlives"))
    again.get_by_label("API key or token").fill(console.service.read_api_key(EDITOR))
    again.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Outlives its session")
    expect(page.get_by_role("button", name="Save as a draft")).to_be_focused()
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Outlives its session")
    assert console.service.create_client(ADMIN).delete("/oi-api/warm-queries/outlives").status_code == 204


def test_a_dialog_survives_the_end_of_the_session(console: Console, editor: httpx.Client) -> None:
    """If the session ends, an open dialog opens again with its text and focus after the sign-in."""
    console.expected.append("401")
    append_events(editor, "ended", 1)
    page = console.sign_in(EDITOR).open("audit/DomainEvents/ended", "Audit log").page
    page.get_by_role("button", name="Write an event").click()
    dialog = page.get_by_role("dialog", name="Write to Plant events of ended")
    for label, text in (("Action", "LevelRead"), ("Entity type", "Tank"), ("Entity", "T-1")):
        dialog.get_by_label(label, exact=True).fill(text)
    page.route(re.compile(r"/provenance/events(\?|$)"), reply_with_expired_token)
    dialog.get_by_role("button", name="Write event").click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_label("API key or token").fill(console.service.read_api_key(EDITOR))
    page.unroute(re.compile(r"/provenance/events(\?|$)"))
    again.get_by_role("button", name="Sign in", exact=True).click()
    expect(dialog.get_by_label("Action")).to_have_value("LevelRead")
    expect(dialog.get_by_role("button", name="Write event")).to_be_focused()
    dialog.get_by_role("button", name="Write event").click()
    expect(page.get_by_role("region", name="Record 000000000002")).to_contain_text("LevelRead")


def test_another_user_gets_an_empty_form(console: Console) -> None:
    """If another user signs in after the end of a session, the form is empty."""
    console.expected.append("401")
    page = console.sign_in(EDITOR).open("queries/-/new", "New query").page
    page.get_by_label("Name", exact=True).fill("The editor's")
    page.get_by_label("ID", exact=True).fill("others")
    page.get_by_label("Surface", exact=True).select_option("cooling")
    page.route(re.compile("/oi-api/warm-queries/others"), reply_with_expired_token)
    page.get_by_role("button", name="Save as a draft").click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_label("API key or token").fill(console.service.read_api_key(ADMIN))
    again.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("banner")).to_contain_text("Administrator")
    expect(page.get_by_label("Name", exact=True)).to_have_value("")
