"""Tests of drafts in the console: creation, approval and removal."""

import re

from playwright.sync_api import Page, expect

from tests.console.visits import Console
from tests.service.local_service import Service

KQL = "Telemetry\n| summarize readings = count() by ConnectionLookup"


def save_draft(page: Page, lookup: str, name: str, kql: str = KQL) -> None:
    """Fill the form of a new query and save it."""
    page.get_by_label("ID", exact=True).fill(lookup)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Surface", exact=True).select_option("cooling")
    page.get_by_label("KQL", exact=True).fill(kql)
    page.get_by_role("button", name="Save as a draft").click()


def test_another_user_approves_a_draft(console: Console) -> None:
    """The author of a draft cannot approve it; after another user's approval the query runs."""
    mine = console.sign_in().open("queries", "Queries").page
    mine.get_by_role("button", name="New query").click()
    expect(mine.get_by_role("heading", level=1)).to_be_focused()
    mine.get_by_role("button", name="Add a parameter").click()
    mine.get_by_label("Parameter 1, name").fill("least")
    mine.get_by_label("Parameter 1, type").select_option("long")
    mine.get_by_label("Parameter 1, default").fill("0")
    save_draft(mine, "two-people", "Two people", f"{KQL}\n| where readings > least")
    expect(mine.get_by_role("heading", level=1)).to_have_text("Two people")
    expect(mine.get_by_role("button", name="Approve")).to_be_disabled()
    expect(mine.get_by_role("main")).to_contain_text("You edited it last")
    console.check_appearance("query-own-draft")
    mine.get_by_role("tab", name="Run").click()
    expect(mine.get_by_role("tabpanel")).to_contain_text("A draft cannot run")
    with console.open_second() as other:
        page = other.sign_in("approver@plant-a.example").open("queries/two-people", "Two people").page
        assert page.get_by_role("button", name="Edit").count() == 0
        page.get_by_role("button", name="Approve").click()
        dialog = page.get_by_role("dialog", name=re.compile("Approve"))
        expect(dialog).to_contain_text("where readings > least")
        expect(dialog).to_contain_text("never approved before")
        other.check_appearance("query-approve")
        dialog.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("main")).to_contain_text("approver@plant-a.example")
        page.get_by_role("tab", name="Run").click()
        page.get_by_label("least").fill("1")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("region", name="About the result")).to_contain_text("by approver@plant-a.example")
        page.get_by_role("tab", name="History").click()
        expect(page.get_by_role("main").get_by_role("listitem").first).to_contain_text("Approved")
        other.check_appearance("query-history-approved")
        other.check_no_errors()


def test_saving_an_empty_query_form_marks_every_required_field(console: Console) -> None:
    """Saving an empty form marks each missing field, focuses the first one, and sends nothing."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/new", "New query").page
    page.get_by_label("KQL", exact=True).fill("")
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_label("ID", exact=True)).to_be_focused()
    for label in ("ID", "Name", "Surface", "KQL"):
        expect(page.get_by_label(label, exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("main")).not_to_contain_text("NOT_SENT")
    console.check_appearance("query-form-empty")


def test_draft_errors_are_reported_at_their_fields(console: Console) -> None:
    """The form shows each error at the field that it concerns; errors of the engine are marked in the KQL text."""
    console.expected += ["400", "412"]
    page = console.sign_in("editor@plant-a.example").open("queries/-/new", "New query").page
    page.get_by_role("button", name="Add a parameter").click()
    page.get_by_label("Parameter 1, name").fill("1x")
    page.get_by_label("API path").fill("/x")
    save_draft(page, "bad-draft", "Bad draft")
    expect(page.get_by_label("Parameter 1, name")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("API path")).to_have_attribute("aria-invalid", "true")
    console.check_appearance("query-form-errors")
    page.get_by_role("button", name="Remove parameter 1").click()
    page.get_by_label("API path").fill("")
    save_draft(page, "bad-draft", "Bad draft", "Telemetry\n| wherex 1")
    expect(page.locator("[data-line='2'][data-column='1']")).to_be_attached()
    save_draft(page, "pressure-5m", "Pressure again")
    expect(page.get_by_label("ID", exact=True)).to_have_accessible_description(re.compile("another query"))


def test_a_query_is_edited_and_removed(console: Console) -> None:
    """The form for an edit contains the stored values; removing the query requires a confirmation."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/new", "New query").page
    save_draft(page, "short-lived", "Short-lived")
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Short-lived")
    expect(page.get_by_label("KQL", exact=True)).to_have_value(KQL)
    expect(page.get_by_label("Surface", exact=True)).to_have_value("cooling")
    page.get_by_label("Description").fill("for a test")
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_role("main")).to_contain_text("for a test")
    page.get_by_role("button", name="Delete").click()
    console.check_appearance("query-delete")
    page.get_by_role("button", name="Delete the query").click()
    expect(page.get_by_role("grid", name="Queries")).not_to_contain_text("short-lived")


def test_the_approval_dialog_shows_the_changes_of_the_query(console: Console, service: Service) -> None:
    """The approval dialog shows the changes since the last approved text."""
    editor, admin = service.create_client("editor@plant-a.example"), service.create_client("admin@plant-a.example")
    path = "/oi-api/warm-queries/edited"
    kql = f"{KQL}\n| where readings > least\n| order by readings asc"
    least = {"name": "least", "type": "long", "default": 5}
    body = {"name": "Edited", "surface": "cooling", "kql": kql, "parameters": [least]}
    assert editor.put(path, json=body).status_code == 201
    assert admin.post(f"{path}/approve").status_code == 200
    edited = {"kql": kql.replace("asc", "desc"), "parameters": [{**least, "default": 7}]}
    assert editor.put(path, json={**body, **edited}).status_code == 200
    page = console.sign_in("approver@plant-a.example").open("queries/edited", "Edited").page
    page.get_by_role("button", name="Approve").click()
    changes = page.get_by_role("region", name="Changes since the last approval")
    expect(changes).to_contain_text("Changed since admin@plant-a.example approved it")
    text = changes.get_by_role("region", name="Changes of the query text")
    assert text.locator("mark").all_inner_texts() == ["asc", "desc"]
    parameter = changes.get_by_role("table", name="Parameters").get_by_role("row", name=re.compile("least"))
    expect(parameter).to_contain_text(re.compile("changed.*default 5.*default 7"))
    console.check_appearance("query-approve-changes")
    assert admin.delete(path).status_code == 204


def test_an_approver_runs_the_draft_before_the_decision(console: Console, service: Service) -> None:
    """With the right to ad-hoc queries, an approver can run the text of a draft before deciding."""
    editor, path = service.create_client("editor@plant-a.example"), "/oi-api/warm-queries/tried"
    least = {"name": "least", "type": "long", "default": 5}
    body = {"name": "Tried", "surface": "cooling", "kql": "print readings = least", "parameters": [least]}
    assert editor.put(path, json=body).status_code == 201
    page = console.sign_in().open("queries/tried", "Tried").page
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name=re.compile("Approve"))
    dialog.get_by_text("Run the draft before you decide").click()
    expect(dialog).to_contain_text("This text is not approved.")
    dialog.get_by_label("least").fill("41")
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(dialog.get_by_role("region", name="About the result")).to_contain_text("Ad-hoc")
    expect(dialog.get_by_role("cell", name="41").or_(dialog.get_by_role("gridcell", name="41"))).to_be_visible()
    console.check_appearance("query-approve-tried")
    assert editor.delete(path).status_code == 204


def test_the_page_shows_that_an_approval_comes_from_the_workspace_document(console: Console, service: Service) -> None:
    """The page shows whether the approval of a query comes from the workspace document.

    If the approval was given over the API, the page links to the audit record.
    """
    page = console.sign_in("viewer@plant-a.example").open("queries/pressure-5m", "Pressure per five minutes").page
    expect(page.get_by_role("main")).to_contain_text("imported with the workspace document")
    editor, path = service.create_client("editor@plant-a.example"), "/oi-api/warm-queries/decided"
    assert editor.put(path, json={"name": "Decided", "surface": "cooling", "kql": KQL}).status_code == 201
    assert service.create_client("admin@plant-a.example").post(f"{path}/approve").status_code == 200
    console.open("queries/decided", "Decided")
    expect(page.get_by_role("main")).to_contain_text(re.compile(r"admin@plant-a\.example, .* \(record \d+\)"))
    expect(page.get_by_role("main")).not_to_contain_text("imported")
    assert editor.delete(path).status_code == 204


def test_an_outdated_text_of_a_draft_is_not_approved(console: Console, service: Service) -> None:
    """If a draft was edited after the page loaded it, the approval fails, and the page links to the newer text."""
    console.expected += ["403", "412"]
    body = {"name": "Moving", "surface": "cooling", "kql": KQL}
    path = "/oi-api/warm-queries/moving"
    editor, admin = service.create_client("editor@plant-a.example"), service.create_client("admin@plant-a.example")
    assert editor.put(path, json=body).status_code == 201
    page = console.sign_in().open("queries/moving", "Moving").page
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name=re.compile("Approve"))
    # Another user edits the query while the dialog is open.
    assert editor.put(path, json={**body, "kql": f"{KQL} | where readings > 9"}).status_code == 200
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog.get_by_role("alert")).to_contain_text("It was not approved")
    expect(dialog.get_by_role("alert")).to_contain_text("PRECONDITION_FAILED")
    expect(dialog.get_by_role("button", name="Approve")).to_be_disabled()
    console.check_appearance("query-approve-outdated")
    dialog.get_by_role("button", name="Show the current version").click()
    expect(page.get_by_role("main")).to_contain_text("readings > 9")
    expect(page.get_by_role("main")).to_contain_text("Draft, until another person approves it")
    page.get_by_role("button", name="Approve").click()
    assert admin.put(path, json=body).status_code == 200
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog).to_contain_text("MAKER_CHECKER_VIOLATION")
    expect(dialog).to_contain_text("Two people are needed")
    console.check_appearance("query-approve-refused")
    assert [address.rsplit("/", 1)[1] for address in console.forbidden] == ["approve"]
    console.forbidden.clear()
    [now] = [each for each in admin.get("/oi-api/warm-queries").json()["warmQueries"] if each["lookup"] == "moving"]
    assert now["approval"] is None
    assert admin.delete(path).status_code == 204


def test_an_approver_can_approve_the_newer_text_after_a_conflict(console: Console, service: Service) -> None:
    """If a draft was edited after the page loaded it, the approver can approve the newer text."""
    console.expected.append("412")
    body, path = {"name": "Looked at", "surface": "cooling", "kql": KQL}, "/oi-api/warm-queries/looked-at"
    editor = service.create_client("editor@plant-a.example")
    assert editor.put(path, json=body).status_code == 201
    page = console.sign_in("approver@plant-a.example").open("queries/looked-at", "Looked at").page
    assert editor.put(path, json={**body, "kql": f"{KQL} | where readings > 5"}).status_code == 200
    approve_query(page)
    page.get_by_role("button", name="Show the current version").click()
    expect(page.get_by_role("main")).to_contain_text("readings > 5")
    approve_query(page)
    expect(page.get_by_role("main")).to_contain_text("approver@plant-a.example")
    approved = service.create_client("viewer@plant-a.example").get("/oi-api/warm-queries").json()["warmQueries"]
    assert [each["kql"] for each in approved if each["lookup"] == "looked-at"] == [f"{KQL} | where readings > 5"]
    assert editor.delete(path).status_code == 204


def test_outdated_query_is_not_deleted(console: Console, service: Service) -> None:
    """If a query was edited after the page loaded it, the deletion fails, and the page shows the newer text."""
    console.expected.append("412")
    body, path = {"name": "Kept", "surface": "cooling", "kql": KQL}, "/oi-api/warm-queries/kept"
    admin = service.create_client("admin@plant-a.example")
    assert admin.put(path, json=body).status_code == 201
    page = console.sign_in("editor@plant-a.example").open("queries/kept", "Kept").page
    assert admin.put(path, json={**body, "description": "still of use"}).status_code == 200
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the query").click()
    expect(page.get_by_role("alert")).to_contain_text("It was not deleted")
    page.get_by_role("button", name="Show the current version").click()
    expect(page.get_by_role("main")).to_contain_text("still of use")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the query").click()
    expect(page.get_by_role("grid", name="Queries")).not_to_contain_text("still of use")
    assert admin.delete(path).status_code == 404


def approve_query(page: Page) -> None:
    """Approve the query and confirm the dialog."""
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()


def test_the_form_of_a_query_can_run_its_text(console: Console) -> None:
    """The form for a query can run its text as an ad-hoc query, which saves nothing."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/new", "New query").page
    expect(page.get_by_role("heading", name="Choose a surface first")).to_be_visible()
    page.get_by_label("Surface", exact=True).select_option("cooling")
    page.get_by_role("button", name="Add a parameter").click()
    page.get_by_label("Parameter 1, name").fill("wanted")
    page.get_by_label("Parameter 1, type").select_option("long")
    page.get_by_label("Parameter 1, default").fill("3")
    page.get_by_label("KQL", exact=True).fill("print doubled = 2 * wanted")
    trial = page.get_by_role("region", name="Try the text")
    expect(trial).to_contain_text("This text is not approved.")
    trial.get_by_label("wanted").fill("21")
    trial.get_by_role("button", name="Run", exact=True).click()
    expect(trial.get_by_role("region", name="Rows of the result")).to_contain_text("42")
    expect(trial).to_contain_text("Ad-hoc: this query has no approval")
    console.check_appearance("query-form-run")
    page.get_by_label("KQL", exact=True).fill("print tripled = 3 * wanted")
    page.get_by_label("KQL", exact=True).press("Control+Enter")
    expect(trial.get_by_role("region", name="Rows of the result")).to_contain_text("63")
    console.page.on("dialog", lambda dialog: dialog.accept())
    console.open("queries", "Queries")
