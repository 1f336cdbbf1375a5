"""Tests that the console warns of invisible characters, unsaved input and conflicting edits."""

import re

from playwright.sync_api import Dialog, expect

from tests.console.test_queries_drafts import KQL, save_draft
from tests.console.visits import Console
from tests.service.local_service import Service


def test_invisible_characters_of_a_query_are_shown_escaped(console: Console) -> None:
    """If a query has invisible characters, its editor and its approver see a warning and the escaped characters."""
    mine = console.sign_in().open("queries/-/new", "New query").page
    mine.get_by_label("KQL", exact=True).fill(f"{KQL}\n// \u202elevel\u2066")
    expect(mine.get_by_role("status")).to_contain_text("\\u202e, \\u2066")
    save_draft(mine, "turned", "Turned", f"{KQL}\n// \u202elevel\u2066 {'x' * 2000}")
    expect(mine.get_by_role("heading", level=1)).to_have_text("Turned")
    with console.open_second() as other:
        page = other.sign_in("approver@plant-a.example").open("queries/turned", "Turned").page
        page.get_by_role("button", name="Approve").click()
        dialog = page.get_by_role("dialog", name=re.compile("Approve"))
        expect(dialog.get_by_role("status").first).to_contain_text("contains invisible characters")
        expect(dialog.get_by_role("region", name="KQL of Turned")).to_contain_text("// \\u202elevel\\u2066")
        other.check_appearance("query-approve-unseen")
        other.check_no_errors()


def test_unsaved_input_needs_a_confirmation(console: Console) -> None:
    """Leaving a page with unsaved input requires a confirmation; if the user cancels, the input stays."""
    page = console.sign_in().open("queries", "Queries").page
    page.get_by_role("button", name="New query").click()
    page.get_by_label("Name", exact=True).fill("Not saved yet")
    asked: list[str] = []

    def dismiss_dialog(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss_dialog)
    page.get_by_role("navigation").get_by_role("link", name="Downloads").click()
    page.go_back()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Not saved yet")
    assert len(asked) == 2
    assert page.url.endswith("#/queries/-/new")


def test_overwriting_a_conflicting_query_edit_needs_a_confirmation(console: Console) -> None:
    """If two users edit a query, the second sees the version of the first and must confirm the overwrite."""
    first = console.sign_in().open("queries/-/new", "New query").page
    save_draft(first, "two-editors", "Two editors")
    expect(first.get_by_role("heading", level=1)).to_have_text("Two editors")
    with console.open_second() as other:
        other.expected.append("412")
        second = other.sign_in().open("queries/two-editors/edit", "Edit query").page
        second.get_by_label("Name", exact=True).fill("The second's")
        console.open("queries/two-editors/edit", "Edit query")
        first.get_by_label("Description", exact=True).fill("the first's")
        first.get_by_role("button", name="Save as a draft").click()
        expect(first.get_by_role("main")).to_contain_text("the first's")
        second.get_by_role("button", name="Save as a draft").click()
        dialog = second.get_by_role("dialog", name="Another person changed the query")
        expect(dialog).to_contain_text("the first's")
        other.check_appearance("query-overtaken")
        # After going back the form still has the old ETag, so the next attempt fails, too.
        dialog.get_by_role("button", name="Back to my text").click()
        expect(second.get_by_label("Name", exact=True)).to_have_value("The second's")
        second.get_by_role("button", name="Save as a draft").click()
        dialog.get_by_role("button", name="Overwrite").click()
        expect(second.get_by_role("heading", level=1)).to_have_text("The second's")
        other.check_no_errors()


def test_a_user_can_continue_with_the_newer_text_after_a_conflict(console: Console, service: Service) -> None:
    """After a conflicting edit the user can load the newer text and continue with it."""
    console.expected.append("412")
    body, path = {"name": "Shared", "surface": "cooling", "kql": KQL}, "/oi-api/warm-queries/shared"
    editor, admin = service.create_client("editor@plant-a.example"), service.create_client("admin@plant-a.example")
    assert editor.put(path, json=body).status_code == 201
    page = console.sign_in("editor@plant-a.example").open("queries/shared/edit", "Edit query").page
    page.get_by_label("Description", exact=True).fill("mine")
    assert editor.put(path, json={**body, "name": "Theirs"}).status_code == 200
    assert admin.post(f"{path}/approve").status_code == 200
    page.get_by_role("button", name="Save as a draft").click()
    dialog = page.get_by_role("dialog", name="Another person changed the query")
    expect(dialog).to_contain_text("admin@plant-a.example approved it")
    dialog.get_by_role("button", name="Use the newer text").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Theirs")
    expect(page.get_by_label("Description", exact=True)).to_have_value("")
    page.get_by_label("Description", exact=True).fill("mine, on theirs")
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Theirs")
    expect(page.get_by_role("main")).to_contain_text("mine, on theirs")
    assert editor.delete(path).status_code == 204
