"""Tests of the console's page of data stores: containers and documents."""

import uuid

from playwright.sync_api import expect

from tests.console.visits import Console, open_console
from tests.service.local_service import Service

TABLE = "/oi-api/data-stores/mes/databases/orders/tables/workorders"


def _open_with_token(console: Console, scopes: str, address: str) -> None:
    token = console.service.create_client("admin@plant-a.example", scopes).headers["Authorization"]
    console.page.goto(f"{console.service.url}/console/#/{address}")
    console.page.get_by_label("API key or token").fill(token.removeprefix("Bearer "))
    console.page.get_by_role("button", name="Sign in").click()


def test_the_page_can_create_but_not_delete_an_existing_container(console: Console) -> None:
    """The page can create a container; it shows why an existing container cannot be deleted."""
    console.expected.extend(("400", "409"))
    page = console.sign_in().open("data", "Data").page
    name = f"inspections-{uuid.uuid4().hex[:6]}"
    table = page.get_by_role("region", name="Containers of orders")
    expect(table).to_contain_text("workorders")
    expect(table.get_by_role("row").filter(has_text="planned")).to_contain_text("missing")
    page.get_by_role("button", name="New container").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Partition key path").fill("line")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert").first).to_be_visible()
    console.check_appearance("data-new-container")
    dialog.get_by_label("Partition key path").fill("/line")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog).to_have_count(0)
    expect(table.get_by_role("row").filter(has_text=name)).to_contain_text("exists")
    page.get_by_role("button", name=f"Remove {name}").click()
    page.get_by_role("button", name="Remove the record").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("CONTAINER_PROVISIONED")
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    console.check_appearance("data")


def test_document_is_created_edited_and_deleted(console: Console) -> None:
    """A document can be created, found by its partition key, updated and deleted."""
    line = f"l-{uuid.uuid4().hex[:6]}"
    page = console.sign_in().open("data/orders/mes/workorders", "Data").page
    page.get_by_role("button", name="New document").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("JSON").fill(f'{{"id": "wo-1", "line": "{line}", "state": "open"}}')
    dialog.get_by_role("button", name="Create").click()
    expect(dialog).to_have_count(0)
    page.get_by_label("Partition key /line").fill(line)
    page.get_by_role("button", name="Show", exact=True).click()
    grid = page.get_by_role("grid", name="Documents of workorders")
    expect(grid.get_by_role("row")).to_have_count(2)
    grid.get_by_text("wo-1").click()
    expect(dialog.get_by_label("JSON")).to_have_value(
        f'{{\n  "id": "wo-1",\n  "line": "{line}",\n  "state": "open"\n}}'
    )
    dialog.get_by_label("JSON").fill(f'{{"id": "wo-1", "line": "{line}", "state": "done"}}')
    console.check_appearance("data-document")
    dialog.get_by_role("button", name="Save").click()
    expect(grid).to_contain_text('"state":"done"')
    grid.get_by_text("wo-1").click()
    dialog.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete wo-1 permanently").click()
    expect(page.get_by_role("heading", name="No documents")).to_be_visible()


def test_a_conflicting_document_edit_offers_both_versions(console: Console) -> None:
    """If another user has changed the document, the user chooses between both versions."""
    console.expected.append("412")
    line = f"l-{uuid.uuid4().hex[:6]}"
    editor = console.service.create_client("editor@plant-a.example")
    document = {"id": "wo-2", "line": line, "state": "open"}
    assert editor.post(TABLE, json=document).status_code == 201
    page = console.sign_in().open("data/orders/mes/workorders", "Data").page
    page.get_by_label("Partition key /line").fill(line)
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("grid").get_by_text("wo-2").click()
    text = page.get_by_role("dialog").get_by_label("JSON")
    mine = f'{{"id": "wo-2", "line": "{line}", "state": "mine"}}'
    text.fill(mine)
    theirs = editor.put(f"{TABLE}/wo-2", params={"partitionKey": line}, json=document | {"state": "theirs"})
    assert theirs.status_code == 200
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_contain_text("changed the document")
    console.check_appearance("data-changed-meanwhile")
    expect(page.get_by_role("grid", include_hidden=True)).to_contain_text('"state":"theirs"')
    page.get_by_role("button", name="Keep my version").click()
    expect(page.get_by_text("changed the document")).to_have_count(0)
    expect(text).to_have_value(mine)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("grid")).to_contain_text('"state":"mine"')


def test_documents_are_listed_in_pages(console: Console) -> None:
    """The list of documents has pages, which the user can turn forwards and backwards."""
    line = f"l-{uuid.uuid4().hex[:6]}"
    editor = console.service.create_client("editor@plant-a.example")
    for number in range(60):
        assert editor.post(TABLE, json={"id": f"p-{number}", "line": line}).status_code == 201
    page = console.sign_in().open("data/orders/mes/workorders", "Data").page
    page.get_by_label("Partition key /line").fill(line)
    page.get_by_role("button", name="Show", exact=True).click()
    pager = page.get_by_role("navigation", name="Pages", exact=True)
    expect(pager).to_contain_text("Page 1, 50 documents")
    pager.get_by_role("button", name="Next").click()
    expect(pager).to_contain_text("Page 2, 10 documents")
    expect(pager.get_by_role("button", name="Next")).to_be_disabled()
    pager.get_by_role("button", name="Previous").click()
    expect(pager).to_contain_text("Page 1, 50 documents")


def test_a_database_is_opened_by_its_lookup(console: Console) -> None:
    """The user can open a database by its lookup (id in URLs); an unknown lookup shows an error."""
    console.expected.append("404")
    page = console.sign_in().open("data", "Data").page
    page.get_by_label("Another database").fill("nowhere")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_contain_text("DATABASE_NOT_FOUND")
    page.get_by_role("link", name="orders").click()
    expect(page.get_by_role("navigation", name="Databases").get_by_role("link")).to_have_count(2)


def test_with_the_right_to_read_documents_only_tables_are_shown(service: Service) -> None:
    """With only the right to read documents, the page shows the tables and no other content or actions."""
    with open_console(service) as console:
        _open_with_token(console, "Workspace.Document.Read", "data")
        page = console.page
        page.get_by_role("link", name="recipes").wait_for()
        expect(page.get_by_role("region", name="Containers of orders")).not_to_contain_text("planned")
        expect(page.get_by_role("button", name="New container")).to_have_count(0)
        page.get_by_role("link", name="workorders").click()
        expect(page.get_by_role("heading", name="Documents of workorders")).to_be_visible()
        expect(page.get_by_role("button", name="New document")).to_have_count(0)
        console.check_no_errors()


def test_with_the_right_to_list_containers_no_documents_are_shown(service: Service) -> None:
    """With only the right to list containers, the page shows no documents."""
    with open_console(service) as console:
        _open_with_token(console, "Workspace.DataStore.Read", "data/orders")
        page = console.page
        expect(page.get_by_role("region", name="Containers of orders")).to_contain_text("planned")
        expect(page.get_by_role("link", name="workorders")).to_have_count(0)
        expect(page.get_by_role("button", name="New container")).to_have_count(0)
        console.check_no_errors()
