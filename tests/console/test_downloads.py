"""Tests of the console's downloads page: start, progress, files and cancellation."""

import hashlib
import re

from playwright.sync_api import expect

from tests.console.visits import Console, open_console
from tests.service.local_service import Service, build_range_around_now, wait_until

CONNECTION = "line-gateway"
ROWS = 40


def _wait_until_archived(service: Service) -> None:
    """Send messages, and wait until a download contains them, because they are then archived."""
    editor = service.create_client("editor@plant-a.example")
    messages = [{"messageId": f"dl-{number}", "torque": number / 4} for number in range(ROWS)]
    assert editor.post(f"/oi-api/telemetry/{CONNECTION}", json=messages).status_code == 202
    body = {"dateRange": build_range_around_now()}

    def count_rows() -> int:
        reply = editor.post(
            f"/oi-api/downloads/data-connections/{CONNECTION}", json=body, headers={"Prefer": "wait=60"}
        )
        return int(reply.json()["progress"]["rows"])

    wait_until(count_rows, lambda found: found >= ROWS, 90)


def test_download_is_started_and_saved(console: Console) -> None:
    """A started download completes, and the saved file has the SHA-256 that the page shows."""
    _wait_until_archived(console.service)
    page = console.sign_in().open("downloads", "Downloads").page
    expect(page.get_by_role("heading", name="No downloads")).to_be_visible()
    page.get_by_label("Connection").select_option(CONNECTION)
    page.get_by_role("button", name="7 days").click()
    page.get_by_role("button", name="Start download").click()
    job = page.get_by_role("article", name=re.compile(f"{CONNECTION}, completed"))
    expect(job).to_contain_text(f"{ROWS} rows", timeout=60_000)
    console.check_appearance("downloads")
    with page.expect_download() as saving:
        job.get_by_role("link").click()
    digest = hashlib.sha256(saving.value.path().read_bytes()).hexdigest()
    expect(job.locator("code")).to_have_text(digest)
    job.get_by_role("button", name="Copy SHA-256").click()


def test_a_rejected_time_range_of_a_download_is_reported_at_its_field(console: Console) -> None:
    """The page shows the error code for a rejected time range, and the form keeps its values."""
    console.expected.append("400")
    page = console.sign_in().open("downloads?connection=pump-rig", "Downloads").page
    page.get_by_label("From").fill("2026-05-02T00:00")
    page.get_by_label("Up to").fill("2026-05-01T00:00")
    page.get_by_role("button", name="Start download").click()
    expect(page.get_by_role("alert").first).to_contain_text("INVALID_REQUEST")
    expect(page.get_by_label("From")).to_have_value("2026-05-02T00:00")


def test_date_fields_of_a_download_cover_no_other_field(console: Console) -> None:
    """The date fields end where their labels end, also in a narrow window."""
    page = console.sign_in().open("downloads?connection=pump-rig", "Downloads").page
    for width in (700, 390):
        page.set_viewport_size({"width": width, "height": 900})
        overlaps = page.locator("input[type=datetime-local]").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().right - one.parentElement.getBoundingClientRect().right)"
        )
        assert [round(each) for each in overlaps] == [0, 0]


def test_the_download_form_lists_only_connections_of_the_surface(console: Console) -> None:
    """After a surface is selected, the form lists only connections of this surface."""
    page = console.sign_in().open("downloads?surface=packaging", "Downloads").page
    expect(page.get_by_label("Surface")).to_have_value("packaging")
    page.get_by_label("Data").select_option("within")
    offered = page.get_by_label("Connection").locator("option")
    expect(offered).to_have_count(3)
    expect(page.get_by_label("Connection")).to_have_value("filler-sim")


def test_without_the_catalog_right_the_user_types_the_connection_id(service: Service) -> None:
    """Without the right to read the catalog, the user types the connection's id, and no request gets 403."""
    token = service.create_client("editor@plant-a.example", "Workspace.ColdData.Export").headers["Authorization"]
    with open_console(service) as console:
        page = console.page
        page.goto(f"{service.url}/console/#/downloads")
        page.get_by_label("API key or token").fill(token.removeprefix("Bearer "))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Connection").fill("pump-rig")
        page.get_by_role("button", name="Last hour").click()
        page.get_by_role("button", name="Start download").click()
        expect(page.get_by_role("article", name=re.compile("pump-rig, completed"))).to_be_visible(timeout=60_000)
        console.check_no_errors()
