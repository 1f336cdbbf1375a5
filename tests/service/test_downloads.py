"""Tests of cold downloads over HTTP."""

import csv
import hashlib
import io
import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from bench import downloads as made_up
from shared.timestamps import now, parse_rfc3339
from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until

DAY = {"start": "2026-03-01T00:00:00Z", "end": "2026-03-02T00:00:00Z"}
EMPTY = {"start": "2025-01-01T00:00:00Z", "end": "2025-12-31T00:00:00Z"}
ROWS = 300
ENDED = ("completed", "failed", "cancelled")


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service whose archive contains a day of two connections."""
    running = Service(tmp_path_factory.mktemp("downloads") / "data", WORKSPACE).start()
    send_messages(running, "pump-rig", "ts")
    send_messages(running, "press", "timestamp")
    yield running
    assert running.stop() == 0


def build_message(number: int) -> dict[str, Any]:
    """Return the payload and the metadata of the test message with this number."""
    payload: dict[str, Any] = {"pressure": number / 8, "motor": {"rpm": number * 10**18, "on": number % 2 == 0}}
    if number % 100 == 7:
        payload |= {"note": 'said "stop",\nand went', "connection": "mine", "codes": [1, None, {"a": 2}]}
    return payload


def send_messages(service: Service, connection: str, timestamp: str, rows: int = ROWS) -> None:
    """Send messages with times spread over a day, and wait until a download contains them."""
    editor = service.create_client("editor@t")
    messages = [
        {
            timestamp: f"2026-03-01T{number % 24:02d}:{number // 24 % 60:02d}:00Z",
            "messageId": f"m{number}",
            **build_message(number),
        }
        for number in range(rows)
    ]
    for first in range(0, rows, 500):
        reply = editor.post(f"/oi-api/telemetry/{connection}", json=messages[first : first + 500])
        assert reply.status_code == 202, reply.text
    wait_until(lambda: download_connection(editor, connection)["progress"]["rows"], lambda found: found == rows)


def start_download(client: httpx.Client, connection: str, prefer: str = "", **body: Any) -> httpx.Response:
    """Start a cold download of a connection and return the reply."""
    headers = {"Prefer": prefer} if prefer else {}
    body = {"dateRange": DAY, **body}
    return client.post(f"/oi-api/downloads/data-connections/{connection}", json=body, headers=headers)


def download_connection(client: httpx.Client, connection: str, **body: Any) -> dict[str, Any]:
    """Download a connection and return the completed job."""
    reply = start_download(client, connection, "wait=60", **body)
    assert (reply.status_code, reply.json()["status"]) == (200, "completed"), reply.text
    done: dict[str, Any] = reply.json()
    return done


def fetch_files(job: dict[str, Any]) -> list[bytes]:
    """Fetch a job's files without a credential, compare them with the stated sizes and digests, and return them."""
    contents = []
    for file in job["files"]:
        reply = httpx.get(file["url"], trust_env=False)
        assert reply.status_code == 200, reply.text
        assert (len(reply.content), hashlib.sha256(reply.content).hexdigest()) == (file["bytes"], file["sha256"])
        contents.append(reply.content)
    return contents


def group_payloads_by_id(rows: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the payload of each message id; fail if an id occurs twice."""
    assert len(rows) == len(dict(rows))
    return dict(rows)


def test_a_started_download_completes(plant: Service) -> None:
    """The reply to a started download links to its status; the completed one has files for 24 hours and is listed."""
    editor = plant.create_client("editor@t")
    reply = start_download(editor, "pump-rig")
    assert reply.status_code == 202
    job = reply.json()
    assert reply.headers["location"] == job["statusUrl"] == f"/oi-api/downloads/{job['downloadId']}"
    assert (job["format"], job["error"]) == ("csv", None)
    assert job["dateRange"] == {"start": "2026-03-01T00:00:00.000000Z", "end": "2026-03-02T00:00:00.000000Z"}
    done = wait_until(lambda: editor.get(job["statusUrl"]).json(), lambda shown: shown["status"] in ENDED)
    assert set(done) == {*job}
    assert (done["status"], done["createdAt"], done["expiresAt"]) == ("completed", job["createdAt"], job["expiresAt"])
    assert parse_rfc3339(done["expiresAt"]) - parse_rfc3339(done["createdAt"]) == timedelta(hours=24)
    assert done["progress"] == {"connectionsDone": 1, "connectionsTotal": 1, "rows": ROWS}
    [file] = done["files"]
    assert set(file) == {"connection", "url", "urlExpiresAt", "rows", "bytes", "sha256"}
    assert (file["connection"], file["rows"]) == ("pump-rig", ROWS)
    assert "/oi-api" not in file["url"]
    listed = editor.get("/oi-api/downloads").json()["downloads"]
    assert job["downloadId"] in [each["downloadId"] for each in listed]
    assert listed == sorted(listed, key=lambda each: str(each["createdAt"]), reverse=True)


def test_a_retry_returns_the_same_download(plant: Service) -> None:
    """A repeated request with the same Idempotency-Key gets the same download."""
    editor, headers = plant.create_client("editor@t"), {"Idempotency-Key": "download-1"}
    address = "/oi-api/downloads/data-connections/pump-rig"
    replies = [editor.post(address, json={"dateRange": DAY}, headers=headers) for _ in range(2)]
    assert len({reply.json()["downloadId"] for reply in replies}) == 1
    other = editor.post(address, json={"dateRange": DAY, "format": "jsonl"}, headers=headers)
    check_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")


def test_a_download_contains_all_messages_accepted_before_its_start(plant: Service) -> None:
    """A download contains all messages that were accepted before its start, and states until when it is complete."""
    editor = plant.create_client("editor@t")
    at = {"dateRange": {"start": "2026-04-01T00:00:00Z", "end": "2026-04-02T00:00:00Z"}}
    for count in range(1, 4):
        sent = [{"timestamp": "2026-04-01T00:00:00Z", "messageId": f"{count}-{number}"} for number in range(500)]
        assert editor.post("/oi-api/telemetry/press", json=sent).status_code == 202
        done = download_connection(editor, "press", **at)
        assert done["progress"]["rows"] == count * len(sent)
        assert done["completeUpTo"] == done["createdAt"]


def test_csv_downloads_have_a_column_for_every_payload_property(plant: Service) -> None:
    """The CSV file has the fixed columns, and a column for each payload property, also in nested objects."""
    [content] = fetch_files(download_connection(plant.create_client("editor@t"), "pump-rig", format="csv"))
    header, *rows = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
    assert header[:4] == ["timestamp", "connection", "deviceId", "messageId"]
    assert header[4:] == ["codes", "motor.on", "motor.rpm", "note", "payload.connection", "pressure"]
    found = group_payloads_by_id([(row[3], row) for row in rows])
    assert set(found) == {f"m{number}" for number in range(ROWS)}
    for number in range(ROWS):
        row, sent = found[f"m{number}"], build_message(number)
        assert row[0] == f"2026-03-01T{number % 24:02d}:{number // 24 % 60:02d}:00.000000Z"
        assert (row[1], row[5], row[6]) == ("pump-rig", str(sent["motor"]["on"]).lower(), str(sent["motor"]["rpm"]))
        assert float(row[9]) == sent["pressure"]
        assert (row[7], row[8]) == (sent.get("note", ""), sent.get("connection", ""))
        assert (json.loads(row[4]) if row[4] else None) == sent.get("codes")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_ndjson_and_parquet_downloads_contain_payloads_as_sent(plant: Service, form: str) -> None:
    """Each row of an NDJSON or Parquet file contains the payload as it was sent."""
    [content] = fetch_files(download_connection(plant.create_client("editor@t"), "press", format=form))
    if form == "jsonl":
        rows = [json.loads(line) for line in content.decode().splitlines()]
    else:
        rows = pq.read_table(io.BytesIO(content)).to_pylist()
        rows = [{**row, "payload": json.loads(row["payload"])} for row in rows]
    assert {tuple(row) for row in rows} == {("timestamp", "connection", "deviceId", "messageId", "payload")}
    assert group_payloads_by_id([(row["messageId"], row["payload"]) for row in rows]) == {
        f"m{number}": build_message(number) for number in range(ROWS)
    }
    times = [row["timestamp"] for row in rows]
    assert times == sorted(times)


def test_only_the_requested_time_range_is_downloaded(plant: Service) -> None:
    """A download includes the start of its range and excludes the end, in any time zone.

    The ends may also be named `from` and `to`.
    """
    hour = {"from": "2026-03-01T02:00:00+01:00", "to": "2026-03-01T02:05:00Z"}
    job = download_connection(plant.create_client("editor@t"), "pump-rig", format="jsonl", dateRange=hour)
    assert job["dateRange"] == {"start": "2026-03-01T01:00:00.000000Z", "end": "2026-03-01T02:05:00.000000Z"}
    [content] = fetch_files(job)
    found = {json.loads(line)["messageId"] for line in content.splitlines()}
    assert found == {f"m{n}" for n in range(ROWS) if n % 24 == 1 or (n % 24 == 2 and n // 24 < 5)}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_download_without_rows_has_an_empty_file(plant: Service, form: str) -> None:
    """A range without rows gives a file that contains only the columns."""
    job = download_connection(plant.create_client("editor@t"), "lathe", format=form, dateRange=EMPTY)
    assert [(file["connection"], file["rows"]) for file in job["files"]] == [("lathe", 0)]
    [content] = fetch_files(job)
    if form == "parquet":
        assert pq.read_table(io.BytesIO(content)).column_names[-1] == "payload"
    else:
        assert content == {"csv": b"timestamp,connection,deviceId,messageId\r\n", "jsonl": b""}[form]


def test_a_download_of_a_surface_has_a_file_for_each_connection(plant: Service) -> None:
    """A surface's download has one file for each connection; a connection outside the surface is rejected."""
    editor = plant.create_client("editor@t")
    reply = editor.post("/oi-api/downloads/surfaces/hall", json={"dateRange": DAY}, headers={"Prefer": "wait=60"})
    assert [(file["connection"], file["rows"]) for file in reply.json()["files"]] == [
        ("pump-rig", ROWS),
        ("press", ROWS),
    ]
    assert len({hashlib.sha256(content).hexdigest() for content in fetch_files(reply.json())}) == 2
    within = "/oi-api/downloads/surfaces/hall/connection/press"
    reply = editor.post(within, json={"dateRange": DAY}, headers={"Prefer": "wait=60"})
    assert [file["connection"] for file in reply.json()["files"]] == ["press"]
    for address, code in (
        ("surfaces/nowhere", "SURFACE_NOT_FOUND"),
        ("surfaces/nowhere/connection/press", "SURFACE_NOT_FOUND"),
        ("surfaces/hall/connection/lathe", "CONNECTION_NOT_FOUND"),
        ("surfaces/hall/connection/nowhere", "CONNECTION_NOT_FOUND"),
        ("data-connections/nowhere", "CONNECTION_NOT_FOUND"),
    ):
        check_problem(editor.post(f"/oi-api/downloads/{address}", json={"dateRange": DAY}), 404, code)


def test_a_disabled_connection_can_be_downloaded(plant: Service) -> None:
    """The archived data of a disabled connection can be downloaded."""
    assert download_connection(plant.create_client("editor@t"), "stopped")["files"][0]["rows"] == 0


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["dateRange"]),
        ({"dateRange": None}, ["dateRange"]),
        ({"dateRange": {}}, ["dateRange.start", "dateRange.end"]),
        ({"dateRange": {"start": "2026-01-01", "end": "2026-01-02T00:00:00"}}, ["dateRange.start", "dateRange.end"]),
        ({"dateRange": {"start": 1, "end": True}}, ["dateRange.start", "dateRange.end"]),
        ({"dateRange": {"start": DAY["end"], "end": DAY["start"]}}, ["dateRange"]),
        ({"dateRange": {"start": DAY["end"], "end": DAY["end"]}}, ["dateRange"]),
        ({"dateRange": {"start": "2025-01-01T00:00:00Z", "end": "2026-01-02T00:00:01Z"}}, ["dateRange"]),
        ({"dateRange": DAY, "format": "xlsx"}, ["format"]),
        ({"dateRange": DAY, "format": "CSV"}, ["format"]),
        ({"dateRange": DAY, "format": None}, ["format"]),
        ({"format": 1}, ["format", "dateRange"]),
    ],
)
def test_the_error_about_a_download_request_lists_every_invalid_field(
    plant: Service, body: dict[str, Any], fields: list[str]
) -> None:
    """The reply lists each invalid field, even if the connection does not exist."""
    reply = plant.create_client("editor@t").post("/oi-api/downloads/data-connections/nowhere", json=body)
    assert check_failing_fields(reply) == fields


def test_the_error_about_an_unknown_format_lists_the_known_formats(plant: Service) -> None:
    """The reply to an unknown format lists the known formats."""
    [error] = check_problem(
        start_download(plant.create_client("editor@t"), "press", format="xml"), 400, "INVALID_REQUEST"
    )["errors"]
    assert all(form in error["message"] for form in ("csv", "jsonl", "parquet"))


def test_a_download_range_of_366_days_is_accepted(plant: Service) -> None:
    """A range of 366 days is accepted."""
    span = {"start": "2024-01-01T00:00:00Z", "end": "2025-01-01T00:00:00Z"}
    assert download_connection(plant.create_client("editor@t"), "lathe", dateRange=span)["progress"]["rows"] == 0


def test_prefer_wait_delays_the_reply(plant: Service) -> None:
    """With `Prefer: wait` the service delays the reply up to a minute and confirms the preference.

    It ignores invalid values.
    """
    editor = plant.create_client("editor@t")
    reply = start_download(editor, "press", 'respond-async, Wait="600"; x=y')
    assert (reply.status_code, reply.headers["preference-applied"]) == (200, "wait=60")
    assert reply.headers["location"] == reply.json()["statusUrl"]
    for prefer in ("wait=0", "wait=-1", "wait=soon", "return=minimal"):
        reply = start_download(editor, "press", prefer)
        assert (reply.status_code, "preference-applied" in reply.headers) == (202, False)


def test_only_owner_and_administrators_can_read_a_download(plant: Service) -> None:
    """Only the owner and administrators can read a download; the list contains only the caller's own downloads."""
    editor, admin = plant.create_client("editor@t"), plant.create_client("admin@t")
    job = download_connection(editor, "press")
    address = job["statusUrl"]
    assert admin.get(address).json()["status"] == "completed"
    assert job["downloadId"] not in [each["downloadId"] for each in admin.get("/oi-api/downloads").json()["downloads"]]
    own = download_connection(admin, "press")
    check_problem(editor.get(own["statusUrl"]), 404, "DOWNLOAD_NOT_FOUND")
    check_problem(editor.delete(own["statusUrl"]), 404, "DOWNLOAD_NOT_FOUND")
    check_problem(editor.get(f"/oi-api/downloads/{uuid.uuid4().hex}"), 404, "DOWNLOAD_NOT_FOUND")
    viewer = plant.create_client("viewer@t")
    for refused in (
        viewer.get(address),
        viewer.get("/oi-api/downloads"),
        viewer.delete(address),
        start_download(viewer, "press"),
    ):
        check_problem(refused, 403, "ACCESS_RIGHT_MISSING")
    assert plant.create_anonymous_client().get(address).status_code == 401


def test_download_links_are_renewed_and_cannot_be_changed(plant: Service) -> None:
    """Each read of a download returns new links, valid for 15 minutes.

    A changed file name or time makes a link invalid.
    """
    editor = plant.create_client("editor@t")
    job = download_connection(editor, "press")
    url = job["files"][0]["url"]
    before = now()
    again = editor.get(job["statusUrl"]).json()["files"][0]
    assert before <= parse_rfc3339(again["urlExpiresAt"]) - timedelta(minutes=15) <= now()
    # The time in a link has whole seconds.
    wait_until(lambda: editor.get(job["statusUrl"]).json()["files"][0]["url"], lambda renewed: renewed != url)
    for tampered in (
        url.replace("press", "pump-rig"),
        url[:-2] + ("AA" if url[-2:] != "AA" else "BB"),
        url.split("?")[0],
    ):
        assert httpx.get(tampered, trust_env=False).status_code in {400, 403, 404}


def test_a_download_is_cancelled_once(plant: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelling a running download removes its files; it cannot be cancelled a second time."""
    monkeypatch.setattr(made_up, "ROWS", 1_000_000)
    monkeypatch.setattr(made_up, "CONNECTION", "lathe")
    made_up.fill_archive(plant.data_dir / "blobs" / "cold")
    editor = plant.create_client("editor@t")
    expected = {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}
    job = start_download(editor, "lathe", dateRange=expected).json()
    wait_until(lambda: editor.get(job["statusUrl"]).json()["status"], lambda status: status == "running")
    assert editor.delete(job["statusUrl"]).status_code == 204
    shown = editor.get(job["statusUrl"]).json()
    assert (shown["status"], shown["files"], shown["error"]) == ("cancelled", [], None)
    check_problem(editor.delete(job["statusUrl"]), 409, "DOWNLOAD_ENDED")
    wait_until(lambda: [*(plant.data_dir / "scratch").glob("*")], lambda left: not left)
    assert not [*plant.data_dir.glob(f"blobs/downloads/{job['downloadId']}/**/*.csv")]


def test_expired_downloads_are_removed(own_service: Service) -> None:
    """An expired download and its links are not found, and its files are deleted."""
    own_service._environment["DOWNLOAD_HOURS"] = "0.004"
    own_service._environment["DOWNLOAD_EXPIRY_SCHEDULE"] = "*/1 * * * * *"
    service = own_service.start()
    editor = service.create_client("editor@t")
    job = download_connection(editor, "pump-rig")
    wait_until(lambda: editor.get(job["statusUrl"]).status_code, lambda status: status == 404)
    assert editor.get("/oi-api/downloads").json() == {"downloads": []}
    folder = service.data_dir / "blobs" / "downloads" / job["downloadId"]
    wait_until(lambda: [*folder.rglob("*.csv")], lambda left: not left)
    assert httpx.get(job["files"][0]["url"], trust_env=False).status_code in {403, 404, 410}


def test_downloads_continue_after_a_restart(own_service: Service) -> None:
    """After a stop or a kill, the restarted service completes unfinished downloads, which contain each row once."""
    service = own_service.start()
    rows = 2_000
    send_messages(service, "pump-rig", "ts", rows)
    for end in (service.stop, service.kill):
        editor = service.create_client("editor@t")
        jobs = [start_download(editor, "pump-rig", format=form).json() for form in ("csv", "jsonl", "parquet")]
        end()
        editor = service.start().create_client("editor@t")
        for job in jobs:
            _check_that_download_completes(editor, job, rows)
        assert list(service.data_dir.joinpath("scratch").glob("*")) == []


def _check_that_download_completes(client: httpx.Client, job: dict[str, Any], rows: int) -> None:
    done = wait_until(lambda: client.get(job["statusUrl"]).json(), lambda shown: shown["status"] in ENDED, 60)
    assert (done["status"], done["progress"]["rows"]) == ("completed", rows)
    [content] = fetch_files(done)
    if job["format"] == "jsonl":
        found = group_payloads_by_id(
            [(row["messageId"], row["payload"]) for row in map(json.loads, content.splitlines())]
        )
        assert found == {f"m{number}": build_message(number) for number in range(rows)}
