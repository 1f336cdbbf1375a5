"""Tests of the console's overview: connections and the live chart."""

import re
import uuid
from typing import Any

from playwright.sync_api import Page, WebSocketRoute, expect

from tests.console.visits import Console, open_console
from tests.service.local_service import Service

RIG = "pump-rig"
SECONDS = 5
A_SECOND = 1000
STREAM_MS = 90_000
CONNECTIONS = 7
FIGURES = ("Connected", "Not connected", "Connections with errors")
ALL_CHANGES = "{childList: true, subtree: true, characterData: true}"


def _send_message(service: Service, *payloads: dict[str, Any], device: str = "rig-live") -> None:
    editor = service.create_client("editor@plant-a.example")
    messages = [{"messageId": uuid.uuid4().hex, "deviceId": device, **payload} for payload in payloads]
    reply = editor.post(f"/oi-api/telemetry/{RIG}", json=messages)
    assert reply.status_code == 202, reply.text


def _take_chart_screenshot(page: Page, lane: str) -> str:
    canvas = page.get_by_role("region", name=lane, exact=True).locator("canvas")
    drawn: str = canvas.evaluate("canvas => canvas.toDataURL()")
    return drawn


def test_the_overview_shows_charts_and_connections(console: Console) -> None:
    """The overview shows live charts, and each connection with its message rate."""
    page = console.sign_in().open("overview", "Overview").page
    table = page.get_by_role("grid", name="Connections")
    expect(table.get_by_role("row")).to_have_count(8)
    chiller = table.get_by_role("row").filter(has_text="chiller-sim")
    expect(chiller).to_contain_text(re.compile(r"connected.*\d\.\d", re.DOTALL), timeout=STREAM_MS)
    expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
    page.get_by_role("heading", name="Live").scroll_into_view_if_needed()
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible(timeout=STREAM_MS)
    console.check_appearance("overview")
    console.check_fits("overview-fits")


def test_a_live_chart_shows_new_fields_and_can_be_paused(console: Console) -> None:
    """A field of a new message appears in the list of fields and in the chart.

    A paused chart does not move and loses no data.
    """
    service = console.service
    page = console.sign_in().open(f"overview?connection={RIG}&window=60", "Overview").page
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible(timeout=STREAM_MS)
    _send_message(service, {"Pressure": 4.25, "motor": {"rpm": 1480}, "note": "none"}, device="rig-moves")
    fields = page.get_by_role("region", name="Fields")
    expect(fields.get_by_label(re.compile("rig-moves"))).to_have_count(2, timeout=STREAM_MS)
    lane = page.get_by_role("region", name="Pressure", exact=True)
    expect(lane).to_contain_text("4.25", timeout=STREAM_MS)
    fields.get_by_label("rig-moves motor.rpm").uncheck()
    expect(page.get_by_role("region", name="motor.rpm")).to_have_count(0)
    assert "fields=" in page.url
    _send_message(service, {"Pressure": 5.5, "flow": 7}, device="rig-moves")
    expect(lane).to_contain_text("5.5", timeout=STREAM_MS)
    expect(fields.get_by_label(re.compile("rig-moves"))).to_have_count(3, timeout=STREAM_MS)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status").filter(has_text="paused at")).to_be_visible()
    still = _take_chart_screenshot(page, "Pressure")
    _send_message(service, {"Pressure": 2}, device="rig-moves")
    expect(fields.get_by_text("2", exact=True)).to_be_visible(timeout=STREAM_MS)
    assert _take_chart_screenshot(page, "Pressure") == still
    page.get_by_role("button", name="Resume").click()
    page.wait_for_function("still => document.querySelector('canvas').toDataURL() !== still", arg=still)


def test_live_chart_starts_with_past_messages(console: Console) -> None:
    """The chart shows messages from before the page was opened."""
    _send_message(console.service, {"Before": 17.5}, device="rig-past")
    page = console.sign_in().open(f"overview?connection={RIG}&window=900", "Overview").page
    expect(page.get_by_label("rig-past Before")).to_be_visible(timeout=STREAM_MS)


def test_the_overview_processes_a_thousand_events_a_second(console: Console) -> None:
    """The page processes a thousand events per second without loss."""
    service = console.service
    address = f"overview?connection={RIG}&window=60&fields={RIG}%2Frig-load%2Fload"
    page = console.sign_in().open(address, "Overview").page
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible(timeout=STREAM_MS)
    for second in range(SECONDS):
        numbers = range(A_SECOND // 2)
        for half in range(2):
            _send_message(
                service, *({"load": (second * 7 + number * half) % 97} for number in numbers), device="rig-load"
            )
    _send_message(service, {"load": 12345}, device="rig-load")
    lane = page.get_by_role("region", name="load", exact=True)
    expect(lane).to_contain_text("12,345", timeout=2 * STREAM_MS)
    text = page.get_by_text(re.compile(r"^[\d,]+ messages$")).inner_text()
    assert int(text.split()[0].replace(",", "")) >= SECONDS * A_SECOND + 1
    console.save_screenshot("overview-load")


def test_a_closed_stream_reconnects(console: Console) -> None:
    """After the service has closed the live stream, the page shows the reason, opens a new stream, and continues."""
    sockets: list[WebSocketRoute] = []
    page = console.page

    def record_and_connect(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket(re.compile("^ws://"), record_and_connect)
    # One connection, because messages of other tests decide the number of charts of all connections.
    console.sign_in().open("overview?connection=chiller-sim&window=60", "Overview")
    expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
    sockets[0].close(code=1013, reason="too slow")
    expect(page.get_by_text("fell behind")).to_be_visible()
    expect(page.get_by_text("The stream is open again")).to_be_visible(timeout=STREAM_MS)
    assert len(sockets) == 2
    assert "since=" in sockets[1].url
    console.check_appearance("overview-dropped")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("fell behind")).to_have_count(0)


def test_an_unknown_source_of_a_live_chart_shows_an_error(console: Console) -> None:
    """If the source of a live chart is unknown, the page shows an error and does not request the source again."""
    console.expected.append("404")
    page = console.sign_in().open("overview?surface=nowhere", "Overview").page
    expect(page.get_by_role("alert")).to_contain_text("SURFACE_NOT_FOUND")
    page.get_by_label("Source").select_option("")
    expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)


def test_charts_are_above_the_table(console: Console) -> None:
    """The live charts are above the table of connections and can show a single connection.

    The counts by status add up to the total.
    """
    page = console.sign_in().open("overview?window=60", "Overview").page
    expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
    headings = page.get_by_role("heading", level=2).all_inner_texts()
    assert headings.index("Live data from the plant") < headings.index("Connections")
    figures = [
        int(
            page.locator("dl > div")
            .filter(has=page.get_by_text(title, exact=True))
            .locator("dd")
            .inner_text()
            .split()[0]
        )
        for title in FIGURES
    ]
    assert sum(figures) == CONNECTIONS
    assert figures[1] > 0, "a connection without messages must not look connected"
    page.get_by_label("Source").select_option("connection chiller-sim")
    expect(page).to_have_url(re.compile("connection=chiller-sim"))
    expect(page.get_by_role("region", name="Fields")).not_to_contain_text("filler-sim", timeout=STREAM_MS)


def test_chart_is_read_and_zoomed_by_keyboard(console: Console) -> None:
    """Arrow keys select values of a live chart; zooming pauses the chart; a table lists the displayed values."""
    _send_message(console.service, {"Zoomed": 17.5}, device="rig-keys")
    page = console.sign_in().open(f"overview?connection={RIG}&window=900", "Overview").page
    page.get_by_label("rig-keys Zoomed").check(timeout=STREAM_MS)
    reader = page.get_by_role("slider", name="Zoomed over time")
    # Keys have no effect before the chart has values.
    expect(reader).not_to_have_attribute("aria-valuemax", "0")
    reader.focus()
    reader.press("End")
    expect(reader).to_have_attribute("aria-valuetext", re.compile(r"^\d{4}-\d\d-\d\d .*rig-keys 17\.5"))
    reader.press("+")
    expect(page.get_by_role("status").filter(has_text="paused at")).to_be_visible()
    console.check_appearance("overview-zoomed")
    page.get_by_role("button", name="Reset zoom").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("status").filter(has_text="paused at")).to_have_count(0)
    page.get_by_role("button", name="Show a table").click()
    values = page.get_by_role("region", name="Values of the charts")
    expect(values.get_by_role("row").filter(has_text="rig-keys")).to_contain_text("17.5")


def test_no_data_is_not_shown_while_past_messages_load(console: Console) -> None:
    """While past messages of a live chart load, the page does not show "No data yet"."""
    page = console.page
    seen = "window.texts = new Set(); new MutationObserver(() => window.texts.add(document.body.innerText)).observe("
    page.add_init_script(f"addEventListener('DOMContentLoaded', () => {{ {seen}document, {ALL_CHANGES}) }})")
    console.sign_in().open("overview?window=60", "Overview")
    expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
    assert page.evaluate("[...window.texts].filter(text => text.includes('No data yet')).length") == 0


def test_values_are_marked_as_outdated_if_the_service_is_unreachable(console: Console) -> None:
    """If the service is unreachable, the page marks its values as outdated."""
    console.expected.extend(["ERR_", "Failed to load"])
    page = console.sign_in().open("overview", "Overview").page
    expect(page.get_by_role("grid", name="Connections")).to_contain_text("chiller-sim")
    expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
    page.context.set_offline(True)
    expect(page.get_by_text("The service does not respond.").first).to_be_visible()
    expect(page.get_by_text("Outdated: the values are from")).to_be_visible()
    color = "element => getComputedStyle(element).color"
    faint = page.locator("dl dd").first.evaluate(color)
    assert faint != page.get_by_role("heading", level=1).evaluate(color)
    console.check_appearance("overview-outdated")
    page.get_by_role("navigation", name="Pages of the console").get_by_role("link", name="Imports").click()
    expect(page.get_by_role("alert")).to_contain_text("The service does not respond")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("alert")).to_contain_text("still does not respond")
    expect(page.get_by_role("button", name="Reload")).to_have_count(0)
    page.context.set_offline(False)
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Imports")


def test_a_token_without_the_live_stream_right_shows_connections_only(service: Service) -> None:
    """With only the right to read the catalog, the page shows connections, and the right that live charts require."""
    token = service.create_client("viewer@plant-a.example", "Workspace.Catalog.Read").headers["Authorization"]
    with open_console(service) as console:
        page = console.page
        page.goto(f"{service.url}/console/")
        page.get_by_label("API key or token").fill(token.removeprefix("Bearer "))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        console.open("overview", "Overview")
        expect(page.get_by_role("region", name="Connections")).to_contain_text("chiller-sim")
        expect(page.get_by_role("main")).to_contain_text("Workspace.LiveStream.Read")
        console.check_appearance("overview-catalog-only")
        console.check_no_errors()


def test_a_token_with_only_the_live_stream_right_shows_charts(service: Service) -> None:
    """With only the right for the live stream, the page shows the live charts."""
    token = service.create_client("viewer@plant-a.example", "Workspace.LiveStream.Read").headers["Authorization"]
    with open_console(service) as console:
        page = console.page
        page.goto(f"{service.url}/console/")
        page.get_by_label("API key or token").fill(token.removeprefix("Bearer "))
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("canvas").first).to_be_visible(timeout=STREAM_MS)
        expect(page.get_by_role("grid")).to_have_count(0)
        console.check_no_errors()
