"""Tests of administration: team, connections, surfaces, tables and policies."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import WORKSPACE
from tests.console.visits import Console, open_console
from tests.service.local_service import Service

ADMIN, EDITOR, VIEWER = "admin@plant-a.example", "editor@plant-a.example", "viewer@plant-a.example"
EVENTS = "/oi-api/provenance/events/query"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with the sample workspace that the tests of this module may change."""
    running = Service(tmp_path_factory.mktemp("administration") / "data", WORKSPACE).start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def admin(service: Service) -> httpx.Client:
    """Return a client with a token of the administrator."""
    return service.create_client(ADMIN)


def put_member(admin: httpx.Client, member: str, **definition: Any) -> None:
    """Add or replace a member."""
    body = {"name": member, "role": "Viewer", **definition}
    reply = admin.put(f"/oi-api/team/{quote(member, safe='')}", json=body)
    assert reply.status_code in {200, 201}, reply.text


def put_connection(admin: httpx.Client, lookup: str, **definition: Any) -> None:
    """Add or replace a connection with these properties."""
    reply = admin.put(f"/oi-api/connections/{lookup}", json={"name": lookup, "type": "CLOUD_IOT_HUB", **definition})
    assert reply.status_code in {200, 201}, reply.text


def find_field(page: Page, label: str) -> Locator:
    """Return the input field that has exactly this label."""
    return page.get_by_label(label, exact=True)


def press_button(page: Page, name: str) -> None:
    """Press the button with exactly this name."""
    page.get_by_role("button", name=name, exact=True).click()


def confirm_dialog(page: Page, name: str) -> None:
    """Press a button of the open confirmation dialog."""
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def wait_for_heading(page: Page, name: str) -> None:
    """Wait until the page has this heading and the focus is on it."""
    expect(page.get_by_role("heading", level=1, name=name, exact=True)).to_be_focused()


def list_audited_actions(client: httpx.Client, target: str, user: str) -> list[tuple[str, str]]:
    """Return the action and entity of each audit event that a user caused, oldest first."""
    events = client.get(EVENTS, params={"target": target, "userId": user, "limit": 1000}).json()
    return [(event["ActionType"].removeprefix("Catalog."), event["EntityID"]) for event in reversed(events)]


def add_administrator(console: Console, member: str) -> str:
    """Add an administrator and an API key for this member in the console, and return the key."""
    page = console.sign_in().open("team", "Team").page
    press_button(page, "Add member")
    find_field(page, "ID").fill(member)
    find_field(page, "Name").fill("New administrator")
    find_field(page, "Role").select_option("Admin")
    press_button(page, "Add member")
    wait_for_heading(page, "New administrator")
    page.get_by_role("link", name="Create an API key on the page Keys and tokens").click()
    press_button(page, "Create an API key")
    find_field(page, "Name").fill("first key")
    find_field(page, "Belongs to").fill(member)
    press_button(page, "Create the key")
    key = page.get_by_role("region", name=re.compile("Your new API key")).inner_text().strip()
    press_button(page, "I have copied it")
    return key


def sign_in_with_key(console: Console, key: str) -> Page:
    """Sign in with an API key."""
    page = console.page
    page.goto(f"{console.service.url}/console/")
    page.get_by_label("API key or token").fill(key)
    press_button(page, "Sign in")
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def add_member_with_least_rights(console: Console) -> None:
    """Add a viewer with one additional right in the console."""
    page = console.open("team", "Team").page
    press_button(page, "Add member")
    press_button(page, "Add member")
    expect(find_field(page, "ID")).to_be_focused()
    expect(page.get_by_role("alert").first).to_have_text("Enter an ID, such as an e-mail address.")
    find_field(page, "ID").fill("export@plant-a.example")
    find_field(page, "Name").fill("Export clerk")
    expect(find_field(page, "Role")).to_have_value("Viewer")
    page.get_by_role("treeitem", name=re.compile("download the archive")).click()
    expect(page.get_by_text("Export clerk has 12 of 29 rights")).to_be_visible()
    console.check_appearance("administration-member-new")
    press_button(page, "Add member")
    wait_for_heading(page, "Export clerk")


def add_connection(console: Console) -> None:
    """Add a connection for the devices of an oven in the console."""
    page = console.open("connections", "Connections").page
    press_button(page, "Add connection")
    find_field(page, "ID").fill("oven")
    find_field(page, "Name").fill("Oven")
    find_field(page, "Devices").fill("oven-*\n")
    find_field(page, "Time").fill("ts")
    press_button(page, "Add connection")
    expect(find_field(page, "Time")).to_be_focused()
    find_field(page, "Time").fill("/ts")
    press_button(page, "Add connection")
    wait_for_heading(page, "Oven")
    expect(page.get_by_text("connecting")).to_be_visible()


def add_surface(console: Console) -> None:
    """Add a surface in the console, and select the new connection in the surface's list."""
    page = console.open("surfaces", "Surfaces").page
    press_button(page, "Add surface")
    find_field(page, "ID").fill("bakery")
    find_field(page, "Name").fill("Bakery")
    page.get_by_role("checkbox", name="Oven").check()
    console.check_appearance("administration-surface-new")
    press_button(page, "Add surface")
    wait_for_heading(page, "Bakery")


def allow_document_creation(console: Console) -> None:
    """Allow the creation of documents in the table "recipes" in the console."""
    page = console.open("tables", "Tables").page
    page.get_by_role("row").filter(has_text="recipes").click()
    wait_for_heading(page, "recipes")
    page.get_by_role("checkbox", name="create").check()
    press_button(page, "Save")
    expect(page.get_by_text("“recipes” is saved")).to_be_visible()


def tighten_policy(console: Console) -> None:
    """Change the policy in the console so that amendments require a reason in words."""
    page = console.open("policies", "Policies").page
    page.get_by_role("checkbox", name=re.compile("reason in words")).check()
    find_field(page, "Unfinished downloads").fill("none")
    press_button(page, "Save")
    expect(find_field(page, "Unfinished downloads")).to_be_focused()
    find_field(page, "Unfinished downloads").fill("2")
    press_button(page, "Save")
    expect(page.get_by_text("The policies are saved")).to_be_visible()


def disable_member(console: Console) -> None:
    """Disable a member in the console and confirm the dialog."""
    page = console.open("team", "Team").page
    page.get_by_role("row").filter(has_text="Export clerk").click()
    wait_for_heading(page, "Export clerk")
    press_button(page, "Disable")
    console.check_appearance("administration-member-disable")
    confirm_dialog(page, "Disable the member")
    expect(page.get_by_text("This member is disabled.")).to_be_visible()
    expect(page.get_by_role("button", name="Enable")).to_be_visible()


def test_a_new_administrator_needs_only_the_console(console: Console, admin: httpx.Client) -> None:
    """A new administrator can do all administration in the console, and the audit log contains each change."""
    user = "maria@plant-a.example"
    # The chain may have no checkpoint yet, but the page requests it.
    console.expected.append("404")
    key = add_administrator(console, user)
    press_button(console.page, "Sign out")
    sign_in_with_key(console, key)
    for step in (
        *(add_member_with_least_rights, add_connection, add_surface),
        *(allow_document_creation, tighten_policy, disable_member),
    ):
        step(console)
    clerk = "export@plant-a.example"
    changes = [("Member.Created", clerk), ("Member.Updated", clerk)]
    assert [each for each in list_audited_actions(admin, "AccessControl", user) if each[1] == clerk] == changes
    assert list_audited_actions(admin, "PlatformConfig", user) == [
        ("Connection.Created", "oven"),
        ("Surface.Created", "bakery"),
        ("Container.Updated", "orders/recipes"),
        ("Settings.Updated", "plant-a"),
    ]
    assert admin.get("/oi-api/workspace").json()["policies"]["quotas"]["jobsPerPrincipal"] == 2
    for target in ("AccessControl", "PlatformConfig"):
        console.open(f"audit/{target}", "Audit log")
        press_button(console.page, "Verify chain")
        expect(console.page.get_by_text("The chain is intact")).to_be_visible()
        console.page.keyboard.press("Escape")


def test_a_conflicting_change_of_an_item_loses_no_input(console: Console, admin: httpx.Client) -> None:
    """If another user has changed the item, Save stores nothing; Reload combines the changes of both users."""
    console.expected.append("412")
    put_connection(admin, "shared", source={"devices": ["a-*"]})
    page = console.sign_in().open("connections/shared", "shared").page
    find_field(page, "Name").fill("My name")
    find_field(page, "Devices").fill("mine-*")
    put_connection(admin, "shared", enabled=False, source={"devices": ["theirs-*"]})
    press_button(page, "Save")
    expect(page.get_by_text("Another person changed this connection after you opened it")).to_be_visible()
    console.check_appearance("administration-conflict")
    assert admin.get("/oi-api/connections/shared").json()["name"] == "shared"
    press_button(page, "Reload")
    expect(page.get_by_text("Both of you changed: Devices.")).to_be_visible()
    expect(find_field(page, "Name")).to_have_value("My name")
    expect(find_field(page, "Devices")).to_have_value("mine-*")
    expect(page.get_by_role("checkbox", name=re.compile("^Enabled"))).not_to_be_checked()
    page.get_by_text("Your changes to the current version").click()
    console.check_appearance("administration-merged")
    press_button(page, "Save")
    expect(page.get_by_text("“My name” is saved")).to_be_visible()
    stored = admin.get("/oi-api/connections/shared").json()
    assert (stored["name"], stored["enabled"], stored["source"]["devices"]) == ("My name", False, ["mine-*"])


def test_signals_are_proposed_from_messages_and_edited(console: Console, admin: httpx.Client) -> None:
    """The page proposes signals from past messages.

    A user edits units and limits, and saves the signals with the connection.
    """
    put_connection(admin, "press")
    page = console.sign_in().open("connections/press", "press").page
    press_button(page, "Propose from messages")
    dialog = page.get_by_role("dialog", name="Propose signals")
    expect(dialog).to_contain_text("No messages yet")
    payload = {"force": 12.5, "motor": {"running": True}, "serial": "P-7"}
    message = {"deviceId": "press-1", "messageId": "console-signals-1", **payload}
    assert admin.post("/oi-api/telemetry/press", json=message).status_code == 202
    dialog.get_by_label("Unit of force").fill("kN", timeout=30_000)
    dialog.get_by_role("checkbox", name="serial", exact=True).uncheck()
    console.check_appearance("administration-signals-proposed")
    press_button(page, "Add 2 signals")
    find_field(page, "Signal 1, highest").fill("ten")
    press_button(page, "Save")
    expect(find_field(page, "Signal 1, highest")).to_be_focused()
    find_field(page, "Signal 1, highest").fill("10")
    press_button(page, "Add a signal")
    press_button(page, "Remove signal 3")
    console.check_appearance("administration-signals")
    press_button(page, "Save")
    expect(page.get_by_text("“press” is saved")).to_be_visible()
    force = {"name": "force", "pointer": "/force", "type": "real", "unit": "kN", "max": 10.0}
    running = {"name": "running", "pointer": "/motor/running", "type": "bool", "unit": None, "max": None}
    stored = admin.get("/oi-api/connections/press").json()["signals"]
    assert stored == [{**one, "description": None, "min": None} for one in (force, running)]


def test_own_changes_can_be_discarded_after_a_conflict(console: Console, admin: httpx.Client) -> None:
    """After Reload, users can discard their own changes; a connection that was removed meanwhile can be saved again."""
    console.expected += ["412", "404"]
    put_connection(admin, "taken")
    page = console.sign_in().open("connections/taken", "taken").page
    find_field(page, "Name").fill("Mine")
    put_connection(admin, "taken", name="Theirs")
    press_button(page, "Save")
    press_button(page, "Reload")
    press_button(page, "Discard my changes")
    expect(find_field(page, "Name")).to_have_value("Theirs")
    find_field(page, "Name").fill("Mine again")
    assert admin.delete("/oi-api/connections/taken").status_code == 204
    press_button(page, "Save")
    press_button(page, "Reload")
    expect(page.get_by_text("Another person removed this connection")).to_be_visible()
    press_button(page, "Save")
    expect(page.get_by_text("“Mine again” is saved")).to_be_visible()
    assert admin.get("/oi-api/connections/taken").json()["name"] == "Mine again"


def test_a_rejected_removal_links_to_the_using_items(console: Console) -> None:
    """If a connection or surface cannot be removed because it is in use, the error links to the items that use it."""
    console.expected.append("409")
    page = console.sign_in().open("connections/pump-rig", "Pump rig").page
    press_button(page, "Remove")
    confirm_dialog(page, "Remove the connection")
    refusal = page.get_by_role("dialog").get_by_role("alert")
    expect(refusal).to_contain_text("because it is in use")
    console.check_appearance("administration-in-use")
    refusal.get_by_role("link", name="cooling").click()
    wait_for_heading(page, "Cooling water")
    press_button(page, "Remove")
    confirm_dialog(page, "Remove the surface")
    expect(refusal).to_contain_text("because it is in use")
    refusal.get_by_role("link", name="cooling-load").click()
    wait_for_heading(page, "Cooling load")


def test_an_item_is_removed_after_a_confirmation(console: Console, admin: httpx.Client) -> None:
    """A connection is removed after a confirmation; the id of a removed member cannot be used again."""
    console.expected.append("409")
    put_connection(admin, "gone")
    put_member(admin, "gone@plant-a.example", name="Gone")
    page = console.sign_in().open("connections/gone", "gone").page
    press_button(page, "Remove")
    confirm_dialog(page, "Cancel")
    press_button(page, "Remove")
    confirm_dialog(page, "Remove the connection")
    wait_for_heading(page, "Connections")
    expect(page.get_by_role("row").filter(has_text="gone")).to_have_count(0)
    console.open("team/gone%40plant-a.example", "Gone")
    press_button(page, "Remove")
    confirm_dialog(page, "Remove the member")
    wait_for_heading(page, "Team")
    retired = page.get_by_role("region", name="Retired IDs").get_by_role("row").filter(has_text="gone@plant-a.example")
    expect(retired).to_contain_text(ADMIN)
    console.check_appearance("administration-team")
    press_button(page, "Add member")
    find_field(page, "ID").fill("gone@plant-a.example")
    find_field(page, "Name").fill("Another person")
    press_button(page, "Add member")
    expect(page.get_by_role("alert")).to_contain_text("belonged to a removed member and cannot be used again")


def test_an_administrator_cannot_lock_themselves_out(console: Console, admin: httpx.Client) -> None:
    """Administrators cannot disable, remove or demote themselves, and nobody can disable the last administrator."""
    console.expected.append("409")
    page = console.sign_in().open(f"team/{quote(ADMIN)}", "Administrator").page
    expect(page.get_by_text("only another administrator can disable or remove you")).to_be_visible()
    for name in ("Disable", "Remove"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    find_field(page, "Role").select_option("Editor")
    press_button(page, "Save")
    expect(page.get_by_role("alert")).to_contain_text("You cannot remove your own access to the team.")
    press_button(page, "Discard changes")
    deputy = "deputy@plant-a.example"
    for other in admin.get("/oi-api/team").json()["members"]:
        if other["role"] == "Admin" and other["id"] != ADMIN:
            put_member(admin, other["id"])
    put_member(admin, deputy, role="Editor", rights=admin.get("/workspace/api/keys/whoami").json()["accessRights"])
    with console.open_second() as second:
        second.expected.append("409")
        page = second.sign_in(deputy).open(f"team/{quote(ADMIN)}", "Administrator").page
        press_button(page, "Disable")
        confirm_dialog(page, "Disable the member")
        expect(page.get_by_role("alert")).to_contain_text("at least one enabled administrator")
        second.check_no_errors()


def test_rights_and_roles_beyond_those_of_the_user_cannot_be_selected(console: Console, admin: httpx.Client) -> None:
    """A manager of the team can select only rights and roles that this manager may grant."""
    manager, other = "manager@plant-a.example", "other@plant-a.example"
    put_member(admin, manager, rights=["Workspace.Team.Manage"])
    put_member(admin, other, name="Other")
    page = console.sign_in(manager).open(f"team/{quote(EDITOR)}", "Process engineer").page
    expect(page.get_by_text("because it has rights that you do not have")).to_be_visible()
    expect(find_field(page, "Name")).to_be_disabled()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    console.check_appearance("administration-member-closed")
    console.open(f"team/{quote(other)}", "Other")
    expect(find_field(page, "Role").get_by_role("option")).to_have_count(1)
    expect(page.get_by_role("treeitem", name=re.compile("add, change and remove members"))).to_be_visible()
    expect(page.get_by_role("treeitem", name=re.compile("^Keys"))).to_have_count(0)
    find_field(page, "Name").fill("Other name")
    put_member(admin, other, name="Other", role="Editor")
    console.expected.append("403")
    press_button(page, "Save")
    refusal = page.get_by_role("alert")
    expect(refusal).to_contain_text("rights that you do not have")
    expect(refusal).to_contain_text("Workspace.WarmQuery.Manage")
    console.forbidden.clear()


def test_a_user_without_rights_to_manage_sees_values_without_forms(console: Console) -> None:
    """Without the rights to manage, the pages show values instead of forms and send no request that is rejected."""
    page = console.sign_in(VIEWER).page
    for path, title in (
        (f"team/{quote(EDITOR)}", "Process engineer"),
        *(("connections/pump-rig", "Pump rig"), ("surfaces/cooling", "Cooling water")),
        *(("tables/orders/recipes", "recipes"), ("policies", "Policies")),
    ):
        console.open(path, title)
        expect(page.get_by_text("You can see this, but not change it.")).to_be_visible()
        expect(
            page.get_by_role("main").get_by_role("button", name=re.compile("^(Save|Remove|Disable)$"))
        ).to_have_count(0)
    for path, title in (("team", "Team"), ("connections", "Connections"), ("surfaces", "Surfaces")):
        console.open(path, title)
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^Add"))).to_have_count(0)


def test_errors_of_the_service_are_shown_at_their_fields(console: Console) -> None:
    """An error message of the service is shown at the field that the message concerns."""
    console.expected += ["400", "412"]
    page = console.sign_in().open("connections?view=new", "Add connection").page
    find_field(page, "ID").fill("pump-rig")
    find_field(page, "Name").fill("Another rig")
    press_button(page, "Add connection")
    expect(page.get_by_role("alert")).to_have_text(re.compile("belongs to another connection"))
    find_field(page, "ID").fill("another-rig")
    find_field(page, "Type").select_option("SIMULATOR")
    simulator = page.get_by_label("Simulator", exact=True)
    simulator.fill('{"variables": [{"name": "x", "kind": "sine", "min": 9, "max": 4, "periodSec": 10}]}')
    press_button(page, "Add connection")
    expect(simulator).to_have_attribute("aria-invalid", "true")
    expect(simulator).to_be_focused()
    console.check_appearance("administration-connection-invalid")
    page.once("dialog", lambda asked: asked.accept())
    press_button(page, "Cancel")
    wait_for_heading(page, "Connections")


def test_an_event_hub_without_a_trigger_is_explained(console: Console, admin: httpx.Client) -> None:
    """The list and the page of connections show why a connection has the status ERROR."""
    source = {"eventHub": "unread-hub", "consumerGroup": "oi"}
    put_connection(admin, "unread", type="CLOUD_EVENT_HUB", source=source)
    page = console.sign_in().open("connections", "Connections").page
    expect(page.get_by_role("status").filter(has_text="EVENT_HUB_SOURCES")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="chiller-sim")).to_contain_text(re.compile(r"\d"))
    console.check_appearance("administration-connections")
    page.get_by_role("link", name="unread", exact=True).click()
    wait_for_heading(page, "unread")
    expect(page.get_by_role("status").filter(has_text="EVENT_HUB_SOURCES")).to_be_visible()
    assert admin.delete("/oi-api/connections/unread").status_code == 204


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_administration_pages_are_not_wider_than_the_screen(service: Service, width: int) -> None:
    """No administration page is wider than the screen, and each is accessible in both themes."""
    shown_rows = {"surfaces": [("Surfaces", "Cooling water")], "tables": [("Tables of orders", "workorders")]}
    with open_console(service, width=width) as console:
        page = console.sign_in().page
        for path, title in (
            *(("team", "Team"), (f"team/{quote(EDITOR)}", "Process engineer")),
            *(("connections", "Connections"), ("connections/chiller-sim", "Chiller simulator")),
            *(("surfaces", "Surfaces"), ("surfaces/cooling", "Cooling water")),
            *(("tables", "Tables"), ("tables/orders/recipes", "recipes"), ("policies", "Policies")),
        ):
            console.open(path, title)
            expect(page.get_by_role("status", name=re.compile("^Loading"))).to_have_count(0)
            for grid, row in shown_rows.get(path, ()):
                expect(page.get_by_role("grid", name=grid)).to_contain_text(row)
            console.check_appearance(f"administration-{path}-{width}")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
        console.check_no_errors()


def test_signals_have_visible_labels_on_a_phone(service: Service) -> None:
    """On a narrow screen each input field of a signal has a visible label."""
    with open_console(service, width=390) as console:
        page = console.sign_in().open("connections/chiller-sim", "Chiller simulator").page
        first = page.get_by_role("region", name="Signals").get_by_role("listitem").first
        for title in ("name", "pointer", "type", "unit", "lowest", "highest", "description"):
            box = first.get_by_text(f"Signal 1, {title}", exact=True).bounding_box()
            assert box is not None
            assert box["width"] > 20, title
        console.check_fits("administration-signals-phone")
        console.check_no_errors()


def test_a_member_is_edited_by_keyboard_alone(console: Console, admin: httpx.Client) -> None:
    """With the keyboard alone, a user can open, change and disable a member."""
    put_member(admin, "aa-keyboard@plant-a.example", name="Keyboard")
    page = console.sign_in().open("team", "Team").page
    page.get_by_role("grid", name="Team").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for_heading(page, "Keyboard")
    find_field(page, "Name").focus()
    page.keyboard.press("End")
    page.keyboard.type(" user")
    page.keyboard.press("Enter")
    expect(page.get_by_text("“Keyboard user” is saved")).to_be_visible()
    page.get_by_role("button", name="Disable").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Disable the member").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("This member is disabled.")).to_be_visible()
    expect(page.get_by_role("button", name="Enable")).to_be_focused()
