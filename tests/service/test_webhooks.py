"""Tests of webhooks over HTTP, with a local receiver."""

import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until
from tests.webhook_receiver import ReceivedMessage, WebhookReceiver, run_receiver

WEBHOOKS = "/oi-api/webhooks"
UNKNOWN = f"{WEBHOOKS}/{'0' * 32}"
TYPES = ["webhook.test"]


@pytest.fixture(scope="module")
def verifying_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that verifies its audit chains every second."""
    environment = {"VERIFY_SCHEDULE": "*/1 * * * * *"}
    running = Service(tmp_path_factory.mktemp("webhooks") / "data", WORKSPACE, environment).start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def admin(verifying_service: Service) -> httpx.Client:
    """Return a client with a token of an administrator."""
    return verifying_service.create_client("admin@t")


@pytest.fixture(scope="module")
def editor(verifying_service: Service) -> httpx.Client:
    """Return a client with a token of an editor."""
    return verifying_service.create_client("editor@t")


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    """Return a running receiver; each test uses its own path."""
    with run_receiver() as running:
        yield running


def create_webhook(admin: httpx.Client, receiver: WebhookReceiver, path: str, **properties: Any) -> dict[str, Any]:
    """Create a webhook that sends to a path of the receiver, and return it with its secret."""
    body = {"url": receiver.get_url(path), "eventTypes": TYPES, **properties}
    reply = admin.post(WEBHOOKS, json=body)
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


def send_test_event(admin: httpx.Client, webhook: dict[str, Any]) -> dict[str, Any]:
    """Request a test event for a webhook and return its delivery."""
    reply = admin.post(f"{WEBHOOKS}/{webhook['id']}/test")
    assert reply.status_code == 202, reply.text
    delivery: dict[str, Any] = reply.json()
    return delivery


def read_delivery(admin: httpx.Client, delivery: dict[str, Any]) -> dict[str, Any]:
    """Return the current state of a delivery."""
    listed = admin.get(f"{WEBHOOKS}/{delivery['webhookId']}/deliveries").json()["deliveries"]
    [found] = [each for each in listed if each["id"] == delivery["id"]]
    return dict(found)


def wait_for_attempts(admin: httpx.Client, delivery: dict[str, Any], count: int = 1) -> dict[str, Any]:
    """Wait until a delivery has this number of attempts, and return it."""
    return wait_until(lambda: read_delivery(admin, delivery), lambda found: len(found["attempts"]) >= count)


def wait_for_event(receiver: WebhookReceiver, path: str, kind: str, count: int = 1) -> ReceivedMessage:
    """Wait until this number of messages of an event type has arrived, and return the newest message."""
    return wait_until(lambda: receiver.list_messages(path, kind), lambda found: len(found) >= count)[-1]


def list_audit_events(admin: httpx.Client, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the audit events about a webhook, oldest first."""
    query: dict[str, str | int] = {"target": "PlatformConfig", "entityType": "Webhook", "limit": 1_000}
    newest_first: list[dict[str, Any]] = admin.get("/oi-api/provenance/events/query", params=query).json()
    return [event for event in newest_first[::-1] if event["EntityID"] == webhook["id"]]


def test_a_webhook_secret_is_returned_once(
    verifying_service: Service, admin: httpx.Client, receiver: WebhookReceiver
) -> None:
    """The secret is returned only when the webhook is created; no list, audit event, file or log contains it."""
    body = {"url": receiver.get_url("/hidden-path"), "eventTypes": TYPES, "description": "Shift leader"}
    headers = {"Idempotency-Key": "create-webhook-1"}
    reply = admin.post(WEBHOOKS, json=body, headers=headers)
    made = reply.json()
    assert (reply.status_code, reply.headers["etag"], reply.headers["cache-control"]) == (201, made["etag"], "no-store")
    assert made["secret"].startswith("whsec_")
    assert admin.post(WEBHOOKS, json=body, headers=headers).json() == made
    shown = admin.get(f"{WEBHOOKS}/{made['id']}")
    assert shown.json() == {name: value for name, value in made.items() if name != "secret"}
    assert shown.json() in admin.get(WEBHOOKS).json()["webhooks"]
    assert (made["format"], made["enabled"], made["createdBy"], made["disabledReason"]) == (
        "standard",
        True,
        "admin@t",
        None,
    )
    [event] = list_audit_events(admin, made)
    assert (event["ActionType"], event["UserID"]) == ("Webhook.Created", "admin@t")
    assert event["AfterState"]["urlOrigin"] == receiver.get_url("")
    assert "hidden-path" not in str(event)
    secret = made["secret"].removeprefix("whsec_").encode()
    files = [path for path in verifying_service.data_dir.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret in path.read_bytes()]
    assert secret.decode() not in verifying_service.read_log()


@pytest.mark.parametrize("member", ["viewer@t", "editor@t"])
def test_every_webhook_operation_requires_the_right_to_manage_webhooks(verifying_service: Service, member: str) -> None:
    """Only members with the right to manage webhooks can read or change webhooks."""
    caller = verifying_service.create_client(member)
    for method, path in (
        ("GET", WEBHOOKS),
        ("POST", WEBHOOKS),
        ("GET", f"{WEBHOOKS}/event-types"),
        ("GET", UNKNOWN),
        ("PUT", UNKNOWN),
        ("DELETE", UNKNOWN),
        ("POST", f"{UNKNOWN}/rotate-secret"),
        ("POST", f"{UNKNOWN}/test"),
        ("GET", f"{UNKNOWN}/deliveries"),
        ("POST", f"{UNKNOWN}/deliveries/msg_1/retry"),
    ):
        check_problem(caller.request(method, path), 403, "ACCESS_RIGHT_MISSING")


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"colour": "red"}, ["colour"]),
        ({"filter": {"plants": ["a"]}}, ["filter.plants"]),
        ({"filter": {"surfaces": ["hall", "nowhere"], "connections": ["none"]}}, None),
        ({"filter": {"severities": ["high"]}}, ["filter.severities[0]"]),
        ({"eventTypes": ["alert.firing", "alert.fired"]}, ["eventTypes[1]"]),
        ({"eventTypes": []}, ["eventTypes"]),
        ({"format": "xml", "enabled": "yes"}, ["enabled", "format"]),
        ({"url": None}, ["url"]),
        ({"description": "Shift\x1b[2J"}, ["description"]),
        ({"description": "Shift\r\nleader"}, ["description"]),
        ({"description": "Shift \u202eredael"}, ["description"]),
    ],
)
def test_the_error_about_a_webhook_names_the_invalid_field(
    admin: httpx.Client, receiver: WebhookReceiver, changes: dict[str, Any], fields: list[str] | None
) -> None:
    """Unknown fields, event types and lookups are rejected with the field's name."""
    body = {"url": receiver.get_url("/invalid"), "eventTypes": TYPES, **changes}
    expected = fields or ["filter.connections[0]", "filter.surfaces[1]"]
    assert sorted(check_failing_fields(admin.post(WEBHOOKS, json=body))) == expected


def test_the_error_about_a_webhook_url_states_the_rule(
    verifying_service: Service, admin: httpx.Client, receiver: WebhookReceiver
) -> None:
    """A URL is rejected for an internal address, another scheme or port, credentials, or the service's own address."""
    port = receiver.server.server_port
    refused = (
        "http://2130706433:9000/",
        "http://0177.0.0.1:9000/",
        "http://0x7f000001:9000/",
        "http://127.1:9000/",
        f"http://[::ffff:127.0.0.1]:{port}/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest",
        "https://168.63.129.16/",
        "https://[64:ff9b::7f00:1]/",
        "http://8.8.8.8:9000/",
        "https://8.8.8.8:22/",
        "https://user:secret@8.8.8.8/",
        "https://8.8.8.8/#part",
        "ftp://8.8.8.8/",
        "https://name.invalid/",
        verifying_service.url.replace("localhost", "127.0.0.1"),
    )
    for url in refused:
        reply = admin.post(WEBHOOKS, json={"url": url, "eventTypes": TYPES})
        assert check_failing_fields(reply, code="WEBHOOK_URL_REFUSED") == ["url"], url
        assert "secret@" not in reply.text
    stored = create_webhook(admin, receiver, "/kept")
    changed = admin.put(f"{WEBHOOKS}/{stored['id']}", json={"url": "https://10.0.0.1/", "eventTypes": TYPES})
    assert check_failing_fields(changed, code="WEBHOOK_URL_REFUSED") == ["url"]


def test_a_webhook_is_changed_and_removed(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """A change of a webhook requires its ETag and is audited.

    A PUT of the same definition changes nothing and is not audited.
    """
    made = create_webhook(admin, receiver, "/changed")
    path = f"{WEBHOOKS}/{made['id']}"
    equal = {"url": made["url"], "eventTypes": ["alert.firing"], "description": "Shift\nleader"}
    body = {**equal, "enabled": False}
    check_problem(admin.put(path, json=body, headers={"If-Match": '"other"'}), 412, "PRECONDITION_FAILED")
    changed = admin.put(path, json=body, headers={"If-Match": made["etag"]})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["enabled"], changed.json()["eventTypes"]) == (False, ["alert.firing"])
    assert changed.headers["etag"] == changed.json()["etag"] != made["etag"]
    for repeated in (equal, admin.get(path).json()):
        assert admin.put(path, json=repeated).json() == changed.json()
    check_problem(admin.post(f"{path}/test"), 409, "WEBHOOK_DISABLED")
    check_problem(admin.delete(path, headers={"If-Match": made["etag"]}), 412, "PRECONDITION_FAILED")
    assert admin.delete(path, headers={"If-Match": changed.headers["etag"]}).status_code == 204
    check_problem(admin.get(path), 404, "WEBHOOK_NOT_FOUND")
    assert [event["ActionType"] for event in list_audit_events(admin, made)] == [
        "Webhook.Created",
        "Webhook.Updated",
        "Webhook.Removed",
    ]


def test_a_webhook_can_be_disabled_after_a_surface_of_its_filter_was_removed(
    admin: httpx.Client, receiver: WebhookReceiver
) -> None:
    """A PUT may repeat a surface of the stored filter that was removed; any other unknown surface is rejected."""
    surface = "/oi-api/surfaces/short-lived"
    assert admin.put(surface, json={"name": "Short-lived", "connections": []}).status_code == 201
    made = create_webhook(admin, receiver, "/filtered", filter={"surfaces": ["short-lived"]})
    assert admin.delete(surface).status_code == 204
    path = f"{WEBHOOKS}/{made['id']}"
    stored = admin.get(path).json()
    disabled = admin.put(path, json={**stored, "enabled": False})
    assert (disabled.status_code, disabled.json()["enabled"]) == (200, False), disabled.text
    other = {**disabled.json(), "filter": {"surfaces": ["short-lived", "nowhere"]}}
    assert check_failing_fields(admin.put(path, json=other)) == ["filter.surfaces[1]"]
    assert admin.delete(path).status_code == 204


def test_unknown_webhooks_and_deliveries_are_not_found(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """Operations on an unknown webhook, or on a delivery of another webhook, return 404."""
    body = {"url": receiver.get_url("/unknown"), "eventTypes": TYPES}
    for method, path, content in (
        ("GET", "", None),
        ("PUT", "", body),
        ("DELETE", "", None),
        ("POST", "/rotate-secret", None),
        ("POST", "/test", None),
        ("GET", "/deliveries", None),
        ("POST", "/deliveries/msg_1/retry", None),
    ):
        check_problem(admin.request(method, f"{UNKNOWN}{path}", json=content), 404, "WEBHOOK_NOT_FOUND")
    first, second = create_webhook(admin, receiver, "/first"), create_webhook(admin, receiver, "/second")
    delivery = send_test_event(admin, first)
    other = f"{WEBHOOKS}/{second['id']}/deliveries/{delivery['id']}/retry"
    check_problem(admin.post(other), 404, "DELIVERY_NOT_FOUND")


def test_a_test_event_is_signed(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """The official library verifies a test event with the webhook's secret.

    The log contains the attempt and its reply.
    """
    receiver.replies["/signed"] = (200, {}, "accepted \u00e9\x00".encode())
    made = create_webhook(admin, receiver, "/signed", eventTypes=["alert.firing"])
    delivery = send_test_event(admin, made)
    assert (delivery["status"], delivery["eventType"], delivery["webhookId"]) == ("pending", "webhook.test", made["id"])
    [message] = wait_until(lambda: receiver.list_messages("/signed"), bool)
    event = message.verify(made["secret"])
    assert (event["type"], event["data"]) == ("webhook.test", {"webhookId": made["id"], "requestedBy": "admin@t"})
    assert (message.id, message.headers["content-type"]) == (delivery["id"], "application/json")
    assert message.headers["user-agent"] == "oi-webhooks/1"
    with pytest.raises(WebhookVerificationError):
        message.verify("whsec_" + "A" * 43 + "=")
    with pytest.raises(WebhookVerificationError):
        Webhook(made["secret"]).verify(message.body + b" ", message.headers)
    logged = wait_for_attempts(admin, delivery)
    [attempt] = logged["attempts"]
    assert (logged["status"], logged["nextAttemptAt"], logged["event"]) == ("delivered", None, event)
    assert (attempt["httpStatus"], attempt["error"], attempt["reply"]) == (200, None, "accepted \u00e9\ufffd")
    assert attempt["durationMs"] >= 0


def test_after_a_rotation_both_webhook_secrets_sign(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """After a rotation, the new and the previous secret verify messages; older secrets do not."""
    made = create_webhook(admin, receiver, "/rotated")
    path = f"{WEBHOOKS}/{made['id']}/rotate-secret"
    check_problem(admin.post(path, headers={"If-Match": '"other"'}), 412, "PRECONDITION_FAILED")
    second = admin.post(path, headers={"Idempotency-Key": "rotate-1"}).json()["secret"]
    assert admin.post(path, headers={"Idempotency-Key": "rotate-1"}).json()["secret"] == second
    third = admin.post(path).json()["secret"]
    assert len({made["secret"], second, third}) == 3
    send_test_event(admin, made)
    [message] = wait_until(lambda: receiver.list_messages("/rotated"), bool)
    assert len(message.headers["webhook-signature"].split()) == 2
    assert message.verify(second) == message.verify(third) == message.event
    with pytest.raises(WebhookVerificationError):
        message.verify(made["secret"])
    assert [event["ActionType"] for event in list_audit_events(admin, made)] == [
        "Webhook.Created",
        "Webhook.SecretRotated",
        "Webhook.SecretRotated",
    ]


def test_a_failed_delivery_is_retried_with_the_same_id(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """A failed delivery is repeated with the same id after five seconds, or at once if a client requests it."""
    location = {"Location": receiver.get_url("/elsewhere")}
    receiver.replies["/failing"] = (307, location, b"go elsewhere")
    made = create_webhook(admin, receiver, "/failing")
    failed = wait_for_attempts(admin, send_test_event(admin, made))
    [attempt] = failed["attempts"]
    assert (failed["status"], attempt["httpStatus"], attempt["reply"]) == ("pending", 307, "go elsewhere")
    assert attempt["error"] == "The endpoint replied with status 307."
    wait = datetime.fromisoformat(failed["nextAttemptAt"]) - datetime.fromisoformat(attempt["at"])
    assert timedelta(seconds=4.5) <= wait
    del receiver.replies["/failing"]
    reply = admin.post(f"{WEBHOOKS}/{made['id']}/deliveries/{failed['id']}/retry")
    assert (reply.status_code, reply.json()["id"], reply.json()["status"]) == (202, failed["id"], "pending")
    done = wait_for_attempts(admin, failed, 2)
    assert (done["status"], [each["httpStatus"] for each in done["attempts"]]) == ("delivered", [307, 204])
    assert {message.id for message in receiver.list_messages("/failing")} == {failed["id"]}
    assert receiver.list_messages("/elsewhere") == []


def test_webhook_deliveries_are_filtered_and_paged(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """Deliveries are listed in pages, newest first; the error about an invalid parameter names this parameter."""
    made = create_webhook(admin, receiver, "/paged")
    path = f"{WEBHOOKS}/{made['id']}/deliveries"
    sent = [send_test_event(admin, made) for _ in range(3)]
    for delivery in sent:
        wait_for_attempts(admin, delivery)
    first = admin.get(f"{path}?limit=2&status=delivered").json()
    second = admin.get(f"{path}?limit=2&status=delivered&cursor={first['cursor']}").json()
    assert [each["id"] for each in (*first["deliveries"], *second["deliveries"])] == [each["id"] for each in sent[::-1]]
    assert second["cursor"] is None
    assert admin.get(f"{path}?status=failed").json() == {"deliveries": [], "cursor": None}
    for query in ("status=sent", "limit=0", "limit=1001", "cursor=x", "stauts=failed"):
        assert check_failing_fields(admin.get(f"{path}?{query}")) == [query.partition("=")[0]]
    assert check_failing_fields(admin.get(f"{path}?cursor=x&status=sent")) == ["status", "cursor"]
    other = create_webhook(admin, receiver, "/other-pages")
    for address in (path, f"{path}?status=failed", f"{WEBHOOKS}/{other['id']}/deliveries?status=delivered"):
        assert check_failing_fields(admin.get(address, params={"cursor": first["cursor"]})) == ["cursor"]


@pytest.mark.parametrize("text", [b"[" * 3_000, b'["\\ud800", "x"]', b"[1, 2]", b"\xff"])
def test_a_forged_cursor_of_the_delivery_list_is_rejected(
    admin: httpx.Client, receiver: WebhookReceiver, text: bytes
) -> None:
    """A cursor that the service did not issue is rejected as an invalid request."""
    path = f"{WEBHOOKS}/{create_webhook(admin, receiver, '/forged')['id']}"
    cursor = urlsafe_b64encode(text).decode().rstrip("=")
    assert check_failing_fields(admin.get(f"{path}/deliveries", params={"cursor": cursor})) == ["cursor"]
    assert admin.delete(path).status_code == 204


def test_a_410_reply_disables_a_webhook(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """If the receiver replies 410, the delivery ends and the webhook is disabled and audited; a PUT enables it."""
    receiver.replies["/gone"] = (410, {}, b"")
    made = create_webhook(admin, receiver, "/gone")
    delivery = wait_for_attempts(admin, send_test_event(admin, made))
    assert (delivery["status"], delivery["nextAttemptAt"]) == ("failed", None)
    path = f"{WEBHOOKS}/{made['id']}"
    disabled = wait_until(lambda: admin.get(path).json(), lambda found: not found["enabled"])
    assert disabled["disabledReason"] == "The endpoint replied with status 410 (Gone)."
    events = wait_until(lambda: list_audit_events(admin, made), lambda found: len(found) == 2)
    assert events[1]["ActionType"] == "Webhook.Disabled"
    check_problem(admin.post(f"{path}/deliveries/{delivery['id']}/retry"), 409, "WEBHOOK_DISABLED")
    enabled = admin.put(path, json={"url": made["url"], "eventTypes": TYPES, "enabled": True}).json()
    assert (enabled["enabled"], enabled["disabledReason"]) == (True, None)


@pytest.mark.parametrize(("kind", "member"), [("teams", "attachments"), ("slack", "blocks")])
def test_messages_in_chat_formats_are_signed(
    admin: httpx.Client, receiver: WebhookReceiver, kind: str, member: str
) -> None:
    """A message for a chat service has that service's format, a title, and the usual signature."""
    made = create_webhook(admin, receiver, f"/{kind}", format=kind)
    send_test_event(admin, made)
    [message] = wait_until(lambda: receiver.list_messages(f"/{kind}"), bool)
    body = message.verify(made["secret"])
    assert body[member]
    assert "Test message" in str(body)


def test_webhook_event_types_are_described(admin: httpx.Client) -> None:
    """Each event type has a description, an example, and a schema in the OpenAPI document."""
    listed = admin.get(f"{WEBHOOKS}/event-types").json()["eventTypes"]
    assert all(each["description"] and each["example"] for each in listed)
    document = admin.get("/oi-api/openapi").json()
    assert {each["type"] for each in listed} == set(document["webhooks"])


def test_events_about_queries_and_connections_are_sent(
    admin: httpx.Client, editor: httpx.Client, receiver: WebhookReceiver
) -> None:
    """Events about drafts, their decisions and connection status are sent if they match the webhook's filter."""
    kinds = ["warm-query.pending-approval", "warm-query.rejected", "warm-query.approved", "connection.status-changed"]
    made = create_webhook(admin, receiver, "/catalog", eventTypes=kinds)
    filtered = create_webhook(admin, receiver, "/filtered", eventTypes=kinds, filter={"connections": ["pump-rig"]})
    path, query = "/oi-api/warm-queries/reported", {"name": "Reported", "surface": "hall", "kql": "Telemetry | count"}
    assert editor.put(path, json=query).status_code == 201
    assert admin.post(f"{path}/reject", json={"comment": "Not needed"}).status_code == 200
    assert editor.put(path, json={**query, "kql": "Telemetry | take 1"}).status_code == 200
    assert admin.post(f"{path}/approve").status_code == 200
    rejected = wait_for_event(receiver, "/catalog", "warm-query.rejected").verify(made["secret"])
    expected = {"lookup": "reported", "name": "Reported", "surface": "hall", "editedBy": "editor@t"}
    assert rejected["data"] == {**expected, "approvedBy": None}
    approved = wait_for_event(receiver, "/catalog", "warm-query.approved").verify(made["secret"])
    assert approved["data"] == {**expected, "approvedBy": "admin@t"}
    wait_for_event(receiver, "/catalog", "warm-query.pending-approval", 2)
    assert editor.post("/oi-api/telemetry/lathe", json=[{"messageId": "webhooks-lathe-1"}]).status_code == 202
    data = wait_for_event(receiver, "/catalog", "connection.status-changed").verify(made["secret"])["data"]
    assert (data["connection"], data["after"]) == ("lathe", "CONNECTED")
    assert editor.post("/oi-api/telemetry/pump-rig", json=[{"messageId": "webhooks-pump-rig-1"}]).status_code == 202
    data = wait_for_event(receiver, "/filtered", "connection.status-changed").verify(filtered["secret"])["data"]
    assert (data["connection"], data["after"]) == ("pump-rig", "CONNECTED")
    assert len(receiver.list_messages("/filtered")) == 1


def test_events_about_amendments_and_downloads_are_sent(
    admin: httpx.Client, editor: httpx.Client, receiver: WebhookReceiver
) -> None:
    """Events about a pending amendment, its decision and the end of a download are sent."""
    kinds = ["amendment.pending", "amendment.decided", "download.completed"]
    made = create_webhook(admin, receiver, "/work", eventTypes=kinds)
    body = {
        "ScopeKey": "webhooks",
        "EntityType": "Batch",
        "EntityID": "B-1",
        "OriginalRecord": {"weight": 10},
        "AmendedRecord": {"weight": 11},
        "ChangedFields": ["weight"],
        "ReasonCategory": "data-entry-error",
        "ReasonText": "typed wrongly",
    }
    amendment = editor.post("/oi-api/provenance/amendments", json=body)
    assert amendment.status_code == 201, amendment.text
    record = amendment.json()["RecordID"]
    pending = wait_for_event(receiver, "/work", "amendment.pending").verify(made["secret"])["data"]
    assert (pending["recordId"], pending["status"], pending["amendedBy"]) == (record, "pending", "editor@t")
    decision = admin.post(f"/oi-api/provenance/amendments/{record}/approve?scopeKey=webhooks")
    assert decision.status_code == 200, decision.text
    decided = wait_for_event(receiver, "/work", "amendment.decided").verify(made["secret"])["data"]
    assert (decided["status"], decided["decidedBy"], decided["entityId"]) == ("approved", "admin@t", "B-1")
    day = {"start": "2025-01-01T00:00:00Z", "end": "2025-01-02T00:00:00Z"}
    job = editor.post("/oi-api/downloads/data-connections/press", json={"dateRange": day}).json()
    done = wait_for_event(receiver, "/work", "download.completed").verify(made["secret"])["data"]
    ended = editor.get(job["statusUrl"]).json()
    rows, size = ended["progress"]["rows"], sum(file["bytes"] for file in ended["files"])
    assert done == {"downloadId": job["downloadId"], "status": "completed", "rows": rows, "bytes": size}


def test_a_firing_alert_causes_signed_messages(
    admin: httpx.Client, editor: httpx.Client, receiver: WebhookReceiver
) -> None:
    """One signed message is sent when an alert starts to fire and one when it ends, with the alert's values."""
    kinds = ["alert.firing", "alert.resolved"]
    made = create_webhook(admin, receiver, "/alerts", eventTypes=kinds, filter={"severities": ["critical"]})
    create_webhook(admin, receiver, "/other-alerts", eventTypes=kinds, filter={"severities": ["info"]})
    rule = {
        "name": "Press is silent",
        "severity": "critical",
        "surface": "hall",
        "kind": "absence",
        "every": "PT15S",
        "connections": ["press"],
        "after": "PT0.001S",
        "runbookUrl": "https://wiki.example/press",
    }
    path = "/oi-api/alert-rules/press-silent"
    assert editor.put(path, json=rule).status_code == 201
    firing = wait_for_event(receiver, "/alerts", "alert.firing").verify(made["secret"])["data"]
    [alert] = [one for one in editor.get("/oi-api/alerts").json()["alerts"] if one["rule"] == "press-silent"]
    assert firing["value"] > 0
    assert firing == {
        "alertId": alert["id"],
        "rule": "press-silent",
        "name": "Press is silent",
        "severity": "critical",
        "state": "firing",
        "labels": {"connection": "press"},
        "value": firing["value"],
        "startedAt": alert["startedAt"],
        "surface": "hall",
        "runbookUrl": "https://wiki.example/press",
    }
    assert editor.put(path, json={**rule, "enabled": False}).status_code == 200
    resolved = wait_for_event(receiver, "/alerts", "alert.resolved").verify(made["secret"])["data"]
    assert (resolved["alertId"], resolved["state"]) == (alert["id"], "resolved")
    assert len(receiver.list_messages("/alerts")) == 2
    assert receiver.list_messages("/other-alerts") == []


def test_a_failing_alert_rule_is_reported_once(
    admin: httpx.Client, editor: httpx.Client, receiver: WebhookReceiver
) -> None:
    """One message is sent when an alert rule starts to fail and one when it works again."""
    made = create_webhook(admin, receiver, "/errors", eventTypes=["alert.firing", "alert.resolved"])
    rule = {
        "name": "Over a draft",
        "severity": "critical",
        "surface": "hall",
        "kind": "threshold",
        "every": "PT15S",
        "query": "draft",
        "condition": {"rows": "any"},
    }
    path = "/oi-api/alert-rules/failing"
    assert editor.put(path, json=rule).status_code == 201
    firing = wait_for_event(receiver, "/errors", "alert.firing").verify(made["secret"])["data"]
    assert (firing["rule"], firing["severity"], firing["value"]) == ("failing", "warning", None)
    assert "is a draft" in firing["labels"]["error"]
    before = editor.get(path).json()["lastEvaluatedAt"]
    assert editor.put(path, json={**rule, "description": "Evaluated again"}).status_code == 200
    wait_until(lambda: editor.get(path).json()["lastEvaluatedAt"], lambda found: found > before)
    assert editor.delete(path).status_code == 204
    resolved = wait_for_event(receiver, "/errors", "alert.resolved").verify(made["secret"])["data"]
    assert (resolved["alertId"], resolved["labels"]) == (firing["alertId"], firing["labels"])
    assert len(receiver.list_messages("/errors")) == 2


def test_events_for_a_disabled_webhook_are_never_sent(
    admin: httpx.Client, editor: httpx.Client, receiver: WebhookReceiver
) -> None:
    """Events that occur while a webhook is disabled are never sent to it."""
    kinds = ["warm-query.pending-approval"]
    made, other = (create_webhook(admin, receiver, path, eventTypes=kinds) for path in ("/paused", "/never-paused"))
    path, body = f"{WEBHOOKS}/{made['id']}", {"url": made["url"], "eventTypes": kinds}
    for number, enabled in enumerate((False, True), 1):
        assert admin.put(path, json={**body, "enabled": enabled}).status_code == 200
        query = {"name": f"Number {number}", "surface": "hall", "kql": "Telemetry | count"}
        assert editor.put("/oi-api/warm-queries/paused", json=query).status_code in {200, 201}
        wait_for_event(receiver, "/never-paused", kinds[0], number).verify(other["secret"])
    data = wait_for_event(receiver, "/paused", kinds[0]).verify(made["secret"])["data"]
    assert data["name"] == "Number 2"
    assert len(receiver.list_messages("/paused")) == 1


def test_a_broken_audit_chain_is_sent_as_an_event(
    verifying_service: Service, admin: httpx.Client, editor: httpx.Client, receiver: WebhookReceiver
) -> None:
    """When the background verification finds a broken chain, it sends one event with the position and the reason."""
    made = create_webhook(admin, receiver, "/audit", eventTypes=["audit-chain.broken"])
    for number in range(3):
        body = {"ActionType": "A", "EntityType": "B", "EntityID": f"{number}", "ScopeKey": "webhooks-broken"}
        assert editor.post("/oi-api/provenance/events", json=body).status_code == 201
    with closing(sqlite3.connect(verifying_service.data_dir / "provenance.sqlite")) as file, file:
        sql = "UPDATE records SET canonical = replace(canonical, '\"1\"', '\"7\"') WHERE sequence = 2 AND chain = "
        sql += "(SELECT chain FROM chains WHERE scope = 'webhooks-broken')"
        assert file.execute(sql).rowcount == 1
    # A verified chain is verified again after it has grown.
    again = {"ActionType": "A", "EntityType": "B", "EntityID": "3", "ScopeKey": "webhooks-broken"}
    assert editor.post("/oi-api/provenance/events", json=again).status_code == 201
    event = wait_for_event(receiver, "/audit", "audit-chain.broken").verify(made["secret"])
    place = {name: event["data"][name] for name in ("target", "scopeKey", "brokenAt")}
    assert place == {"target": "DomainEvents", "scopeKey": "webhooks-broken", "brokenAt": "000000000002"}
    assert event["data"]["reason"]


def test_the_51st_webhook_is_rejected(admin: httpx.Client, receiver: WebhookReceiver) -> None:
    """A workspace can have 50 webhooks; the 51st is rejected."""
    listed = admin.get(WEBHOOKS).json()["webhooks"]
    made = [create_webhook(admin, receiver, "/many") for _ in range(50 - len(listed))]
    body = {"url": receiver.get_url("/many"), "eventTypes": TYPES}
    check_problem(admin.post(WEBHOOKS, json=body), 409, "TOO_MANY_WEBHOOKS")
    assert urlsplit(made[0]["url"]).path == "/many"
