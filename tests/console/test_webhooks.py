"""Tests of webhooks in the console: creation, secret, test event, deliveries, rotation, and a real alert."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.visits import Console, open_console
from tests.service.local_service import ROOT, Service, wait_until
from tests.webhook_receiver import WebhookReceiver, run_receiver

ADMIN, EDITOR = "admin@plant-a.example", "editor@plant-a.example"
WEBHOOKS = "/oi-api/webhooks"


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    """Return a running receiver."""
    with run_receiver() as running:
        yield running


@pytest.fixture
def admin(service: Service) -> Iterator[httpx.Client]:
    """Return a client of an administrator; after the test, remove all webhooks."""
    client = service.create_client(ADMIN)
    yield client
    for webhook in client.get(WEBHOOKS).json()["webhooks"]:
        assert client.delete(f"{WEBHOOKS}/{webhook['id']}").status_code == 204


def add_webhook(console: Console, url: str) -> str:
    """Add a webhook for alerts in the console, and return its secret, which the page still shows."""
    page = console.open("webhooks", "Webhooks").page
    page.get_by_role("button", name="Add webhook").click()
    return submit_webhook(page, url)


def submit_webhook(page: Page, url: str) -> str:
    """Submit the form for a webhook, and return the new secret, which the page still shows."""
    page.get_by_label("URL", exact=True).fill(url)
    page.get_by_label("Description", exact=True).fill("Shift leader")
    page.get_by_role("main").get_by_role("button", name="Add webhook").click()
    page.get_by_text("Copy it now").wait_for()
    return page.get_by_role("region", name="Secret of the webhook").inner_text().strip()


def confirm_that_secret_was_copied(page: Page) -> None:
    """Confirm that the secret was copied, so that the page removes it."""
    page.get_by_role("button", name="I have copied it").click()


def test_a_webhook_is_added_tested_and_rotated(
    service: Service, admin: httpx.Client, receiver: WebhookReceiver
) -> None:
    """A secret is shown once.

    After a rotation, messages have two signatures; a failed delivery can be sent again.
    """
    receiver.replies["/hook"] = (503, {}, b"maintenance until noon")
    with open_console(service) as console:
        page = console.sign_in(ADMIN).page
        console.open("webhooks", "Webhooks")
        expect(page.get_by_text("No webhooks")).to_be_visible()
        page.get_by_role("button", name="Add webhook").click()
        page.get_by_role("main").get_by_role("button", name="Add webhook").click()
        expect(page.get_by_role("alert")).to_contain_text("must begin with https://")
        page.get_by_label("URL", exact=True).fill("https://10.0.0.1/")
        page.get_by_role("main").get_by_role("button", name="Add webhook").click()
        expect(page.locator("p[role=alert]")).to_contain_text("not public")
        console.expected.append("400")
        console.check_appearance("webhooks-add")
        secret = submit_webhook(page, receiver.get_url("/hook"))
        confirm_that_secret_was_copied(page)
        expect(page.get_by_role("heading", level=1)).to_have_text("Shift leader")
        assert secret not in page.content()
        page.get_by_role("button", name="Send a test event").click()
        log = page.get_by_role("grid", name="Deliveries")
        expect(log.get_by_role("row").nth(1)).to_contain_text("The endpoint replied with status 503")
        log.get_by_role("row").nth(1).click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("region", name="Event of the delivery")).to_contain_text(ADMIN)
        expect(dialog.get_by_role("region", name="Start of the reply").first).to_contain_text("maintenance until noon")
        console.check_appearance("webhooks-delivery")
        receiver.replies["/hook"] = (200, {}, b"thank you")
        dialog.get_by_role("button", name="Send again").click()
        expect(dialog).to_contain_text("delivered")
        expect(dialog.get_by_role("region", name="Start of the reply").first).to_contain_text("thank you")
        dialog.get_by_role("button", name="Close").last.click()
        console.check_appearance("webhooks-item")
        page.get_by_role("button", name="Rotate the secret").click()
        page.get_by_role("dialog").get_by_role("button", name="Create a new secret").click()
        page.get_by_text("Copy it now").wait_for()
        rotated = page.get_by_role("region", name="Secret of the webhook").inner_text().strip()
        confirm_that_secret_was_copied(page)
        page.get_by_role("button", name="Send a test event").click()
        expect(log.get_by_role("row")).to_have_count(3)
        messages = wait_until(
            lambda: receiver.list_messages("/hook"), lambda found: len({one.id for one in found}) == 2
        )
        assert messages[-1].verify(secret) == messages[-1].verify(rotated)
        page.get_by_role("tab", name="TypeScript").click()
        expect(page.get_by_role("region", name="Receiver in TypeScript")).to_contain_text("standardwebhooks")
        console.open("webhooks", "Webhooks")
        expect(page.get_by_role("grid", name="Webhooks")).to_contain_text(receiver.get_url("/hook"))
        console.check_appearance("webhooks")
        console.check_no_errors()


def test_a_webhook_is_changed_and_removed(console: Console, admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """A change of a webhook is stored and audited; if the service has disabled a webhook, the page says why."""
    receiver.replies["/gone"] = (410, {}, b"")
    body = {"url": receiver.get_url("/gone"), "eventTypes": ["download.completed"], "filter": {"surfaces": ["cooling"]}}
    made = admin.post(WEBHOOKS, json=body).json()
    page = console.sign_in(ADMIN).open(f"webhooks/{made['id']}", made["url"]).page
    page.get_by_label("Description", exact=True).fill("Archive")
    page.get_by_role("group", name=re.compile("Severities")).get_by_label("critical").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Archive")
    stored = admin.get(f"{WEBHOOKS}/{made['id']}").json()
    assert (stored["description"], stored["filter"]) == (
        "Archive",
        {"surfaces": ["cooling"], "severities": ["critical"]},
    )
    page.get_by_role("button", name="Send a test event").click()
    wait_until(lambda: admin.get(f"{WEBHOOKS}/{made['id']}").json(), lambda found: not found["enabled"])
    page.reload()
    expect(page.get_by_text("The service has disabled this webhook")).to_be_visible()
    expect(page.get_by_role("button", name="Send a test event")).to_be_disabled()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the webhook").click()
    expect(page.get_by_text("No webhooks")).to_be_visible()


def test_texts_of_event_types_do_not_overlap_on_a_phone(service: Service) -> None:
    """On a narrow screen the texts of the event types do not overlap."""
    with open_console(service, width=390) as console:
        page = console.sign_in().open("webhooks?view=new", "Add webhook").page
        labels = page.get_by_role("group", name=re.compile("^Events")).locator("label")
        labels.first.wait_for()
        overlapping = (
            "labels => labels.filter(each => each.scrollHeight > each.clientHeight + 1).map(each => each.innerText)"
        )
        assert labels.evaluate_all(overlapping) == []
        console.check_fits("webhooks-events-phone")
        console.check_no_errors()


def test_the_navigation_has_no_webhooks_without_the_right_to_manage_webhooks(console: Console) -> None:
    """Without the right to manage webhooks, the navigation has no link to the webhooks."""
    page = console.sign_in(EDITOR).open("overview", "Overview").page
    expect(page.get_by_role("link", name="Webhooks")).to_have_count(0)


class PrintingReceiver:
    """Local webhook receiver in a separate process, whose output the test reads.

    Args:
        secret_file: file with the secret.
    """

    def __init__(self, secret_file: Path) -> None:
        command = [sys.executable, "-m", "local.webhook_receiver", "--port", "0", "--secret-file", str(secret_file)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]
        self.printed = ""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()
        self.reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.printed += line


@pytest.fixture
def printing_receiver(tmp_path: Path) -> Iterator[PrintingReceiver]:
    """Return a running receiver that reads the webhook's secret from ``secret.txt``."""
    started = PrintingReceiver(tmp_path / "secret.txt")
    yield started
    started.stop()


def test_an_alert_reaches_a_local_receiver(
    service: Service, admin: httpx.Client, printing_receiver: PrintingReceiver, tmp_path: Path
) -> None:
    """The alert of a rule that was added in the console reaches a local receiver, which verifies it."""
    rows = "/oi-api/warm-queries/chiller-temperature-5m?timeRange=PT15M"
    wait_until(lambda: admin.get(rows).json()["results"], bool, 60)
    with open_console(service) as console:
        page = console.sign_in(ADMIN).page
        (tmp_path / "secret.txt").write_text(add_webhook(console, printing_receiver.url))
        confirm_that_secret_was_copied(page)
        console.open("alerts", "Alerts")
        page.get_by_role("button", name="Add rule").click()
        page.get_by_label("ID", exact=True).fill("chiller-hot")
        page.get_by_label("Name", exact=True).fill("Chiller too hot")
        page.get_by_label("Severity").select_option("critical")
        page.get_by_label("Surface").select_option("cooling")
        page.get_by_label("Evaluate every").fill("PT15S")
        page.get_by_role("combobox", name="Query", exact=True).select_option("chiller-temperature-5m")
        page.get_by_label("Column").fill("maxTemperature")
        page.get_by_label("Value", exact=True).fill("3.5")
        page.get_by_label("Group by").fill("DeviceId")
        page.get_by_role("button", name="Preview on past data").click()
        expect(page.get_by_text(re.compile("Would have fired"))).to_be_visible()
        page.get_by_role("main").get_by_role("button", name="Add rule").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Chiller too hot")
        wait_until(lambda: printing_receiver.printed, lambda text: text.count("signature valid") >= 3, 60)
        assert '"rule": "chiller-hot"' in printing_receiver.printed
        assert "INVALID" not in printing_receiver.printed
        assert admin.delete("/oi-api/alert-rules/chiller-hot").status_code == 204
        wait_until(lambda: admin.get("/oi-api/alerts?state=firing").json()["alerts"], lambda found: not found)
        console.check_no_errors()
