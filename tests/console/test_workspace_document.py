"""Tests of the page for the workspace document: display, errors, plan and application."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.visits import Console, open_console, paste_text
from tests.service.local_service import Service

ADMIN, VIEWER = "admin@plant-a.example", "viewer@plant-a.example"
DOCUMENT = "/oi-api/workspace/document"
SURFACE = "\nsurfaces:\n"
YAML = {"Accept": "application/yaml"}


@pytest.fixture(scope="module")
def admin(service: Service) -> httpx.Client:
    """Return the client that applies documents."""
    return service.create_client(ADMIN)


def read_current_document(admin: httpx.Client) -> str:
    """Return the current workspace document as YAML."""
    return admin.get(DOCUMENT, headers=YAML).text


def add_surface(document: str, lookup: str) -> str:
    """Return a workspace document with one more surface."""
    assert SURFACE in document
    return document.replace(
        SURFACE, f"{SURFACE}- {{lookup: {lookup}, name: Surface of {lookup}, connections: []}}\n", 1
    )


def open_editor(console: Console) -> Page:
    """Open the page with the document editor."""
    page = console.open("document/apply", "Workspace document").page
    page.get_by_label("YAML or JSON").wait_for()
    return page


def request_plan(page: Page, text: str) -> None:
    """Paste a workspace document into the editor and press the button that creates the plan."""
    paste_text(page.get_by_label("YAML or JSON"), text)
    page.get_by_role("button", name="Plan", exact=True).click()


def apply_plan(page: Page) -> None:
    """Apply the plan that the page shows."""
    page.get_by_role("button", name="Apply", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Apply")).click()


def apply_document(admin: httpx.Client, text: str) -> None:
    """Plan and apply a document over the API."""
    body, headers = text.encode(), {"Content-Type": "application/yaml"}
    tag = admin.post(f"{DOCUMENT}/plan", content=body, headers=headers).json()["planTag"]
    assert admin.put(DOCUMENT, content=body, headers={**headers, "If-Match": tag}).status_code == 200


def test_the_current_document_is_shown_and_saved(console: Console, tmp_path: Path, admin: httpx.Client) -> None:
    """A viewer can read and save the current workspace as YAML, but not apply a document."""
    page = console.sign_in(VIEWER).open("document", "Workspace document").page
    expect(page.get_by_role("region", name="Current workspace document")).to_contain_text("id: plant-a")
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()
    expect(page.get_by_role("tab", name="Apply a document")).to_have_count(0)
    console.check_appearance("document-current")
    console.check_fits("document-current-fits")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "plant-a.yaml"
    download.value.save_as(tmp_path / "saved.yaml")
    assert (tmp_path / "saved.yaml").read_text() == read_current_document(admin)


def test_errors_are_marked_at_their_line_and_column(console: Console) -> None:
    """Each error is marked at its line and column of the document, and a link moves the focus to this position."""
    console.expected += ["400"]
    page = open_editor(console.sign_in(ADMIN))
    request_plan(page, "workspace: {id: plant-a, name: Plant A}\nsurfaces:\n  - {lookup: a b, name: A}\nother: 1\n")
    expect(page.locator("[data-line='3']")).to_be_attached()
    expect(page.locator("[data-line='4'][data-column='1']")).to_be_attached()
    expect(page.get_by_role("alert").filter(has_text="Line 4, column 1")).to_contain_text("other")
    expect(page.get_by_role("alert").filter(has_text=re.compile(r"The document has \d errors"))).to_be_visible()
    console.check_appearance("document-errors")
    page.get_by_role("button", name="Go there").last.click()
    expect(page.get_by_label("YAML or JSON")).to_be_focused()
    request_plan(page, "workspace: [")
    expect(page.get_by_role("alert").filter(has_text=re.compile(r"^Line \d, column \d"))).to_be_visible()


def test_a_document_is_planned_and_applied(console: Console, admin: httpx.Client) -> None:
    """The plan shows each change with the states before and after; applying it makes exactly these changes."""
    before = read_current_document(admin)
    page = open_editor(console.sign_in(ADMIN))
    request_plan(page, before)
    expect(page.get_by_text("The workspace matches the document.")).to_be_visible()
    expect(page.get_by_role("button", name="Apply", exact=True)).to_have_count(0)
    request_plan(page, add_surface(before, "planned"))
    expect(page.get_by_role("heading", name="Plan: 1 added")).to_be_visible()
    added = page.get_by_role("article", name="added: surface planned")
    expect(added.get_by_role("row", name=re.compile("Surface of planned"))).to_contain_text("name")
    console.check_appearance("document-plan-added")
    apply_plan(page)
    expect(page.get_by_text("Applied: 1 added")).to_be_visible()
    assert "lookup: planned" in read_current_document(admin)
    request_plan(page, add_surface(before, "planned").replace("Surface of planned", "Renamed"))
    changed = page.get_by_role("article", name="changed: surface planned")
    expect(changed).to_contain_text("Surface of planned")
    expect(changed).to_contain_text("Renamed")
    expect(changed).to_contain_text(f"last changed by {ADMIN}")
    console.check_appearance("document-plan-changed")
    request_plan(page, before)
    expect(page.get_by_role("heading", name="Plan: 1 removed")).to_be_visible()
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("surface planned")
    console.check_appearance("document-apply")
    page.get_by_role("dialog").get_by_role("button", name="Apply 1 change").click()
    expect(page.get_by_text("Applied: 1 removed")).to_be_visible()
    assert read_current_document(admin) == before


def test_a_plan_states_why_an_item_from_the_api_stays(console: Console, admin: httpx.Client) -> None:
    """If an item was created over the API, the plan states that the item stays, and why."""
    before = read_current_document(admin)
    body = {"name": "Made by the API", "connections": []}
    assert admin.put("/oi-api/surfaces/api-made", json=body).status_code == 201
    page = open_editor(console.sign_in(ADMIN))
    request_plan(page, before)
    kept = page.get_by_role("table", name="Items that stay as they are")
    expect(kept.get_by_role("row", name=re.compile("surface api-made"))).to_contain_text(re.compile("API"))
    console.check_appearance("document-kept")
    assert admin.delete("/oi-api/surfaces/api-made").status_code == 204


def test_an_outdated_plan_is_not_applied(console: Console, admin: httpx.Client) -> None:
    """If the workspace has changed since the plan, the plan is not applied, and the text can be planned again."""
    console.expected += ["412"]
    before = read_current_document(admin)
    page = open_editor(console.sign_in(ADMIN))
    text = add_surface(before, "late")
    request_plan(page, text)
    expect(page.get_by_role("heading", name="Plan: 1 added")).to_be_visible()
    apply_document(admin, add_surface(before, "sooner"))
    apply_plan(page)
    expect(page.get_by_text("Nothing was applied.")).to_be_visible()
    expect(page.get_by_label("YAML or JSON")).to_have_value(text)
    console.check_appearance("document-outdated")
    page.get_by_role("button", name="Plan again").click()
    expect(page.get_by_role("heading", name="Plan: 1 added, 1 removed")).to_be_visible()
    apply_document(admin, before)


def test_rejected_documents_are_explained(console: Console, admin: httpx.Client) -> None:
    """The page gives the reason if a document belongs to another workspace or has no administrator."""
    console.expected += ["409", "403"]
    before = read_current_document(admin)
    page = open_editor(console.sign_in(ADMIN))
    request_plan(page, before.replace("id: plant-a", "id: plant-b", 1))
    expect(page.get_by_role("alert")).to_contain_text("The document belongs to another workspace.")
    request_plan(page, before.replace("role: Admin", "role: Viewer"))
    expect(page.get_by_role("alert")).to_contain_text(re.compile("LAST_ADMINISTRATOR|SELF_LOCKOUT"))
    console.check_appearance("document-refused")
    expect(page.get_by_label("YAML or JSON")).not_to_have_value("")


def test_a_selected_or_dropped_file_replaces_the_text(console: Console, admin: httpx.Client, tmp_path: Path) -> None:
    """A selected or dropped file replaces the text in the editor.

    If the user has typed text, a confirmation comes first.
    """
    page = open_editor(console.sign_in(ADMIN))
    editor = page.get_by_label("YAML or JSON")
    chosen = tmp_path / "chosen.yaml"
    chosen.write_text("workspace: {id: plant-a}\n")
    page.get_by_label("File of the document").set_input_files(chosen)
    expect(editor).to_have_value("workspace: {id: plant-a}\n")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    page.get_by_label("File of the document").set_input_files(binary)
    expect(page.get_by_text("binary.yaml is not a UTF-8 text.")).to_be_visible()
    page.once("dialog", lambda asked: asked.accept())
    drop_file(page, "dropped.yaml", "workspace: {id: dropped}\n")
    expect(editor).to_have_value("workspace: {id: dropped}\n")
    page.once("dialog", lambda asked: asked.dismiss())
    page.get_by_role("button", name="Start from the current document").click()
    expect(editor).to_have_value("workspace: {id: dropped}\n")
    page.once("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Start from the current document").click()
    expect(editor).to_have_value(read_current_document(admin))
    editor.fill("workspace: {id: typed}\n")
    page.get_by_role("tab", name="Current document").click()
    page.get_by_role("tab", name="Apply a document").click()
    expect(editor).to_have_value("workspace: {id: typed}\n")


def drop_file(page: Page, name: str, content: str) -> None:
    """Drop a file on the editor."""
    create = """([name, content]) => {
      const data = new DataTransfer();
      data.items.add(new File([content], name));
      return data;
    }"""
    transfer = page.evaluate_handle(create, [name, content])
    for event in ("dragenter", "dragover", "drop"):
        page.get_by_label("YAML or JSON").dispatch_event(event, {"dataTransfer": transfer})


@pytest.mark.parametrize("width", [1024, 390])
def test_the_page_of_the_workspace_document_fits_narrow_screens(
    service: Service, admin: httpx.Client, width: int
) -> None:
    """On a narrow screen the page does not scroll sideways, even with a plan."""
    with open_console(service, width=width) as narrow:
        page = open_editor(narrow.sign_in(ADMIN))
        request_plan(page, add_surface(read_current_document(admin), "narrow"))
        expect(page.get_by_role("heading", name="Plan: 1 added")).to_be_visible()
        narrow.save_screenshot(f"document-{width}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        narrow.check_no_errors()
