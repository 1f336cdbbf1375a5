"""Tests of imports of historical data over HTTP."""

import base64
import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.backends.embedded.blobs import build_block_folder
from tests.service.local_service import (
    Service,
    check_failing_fields,
    check_problem,
    count_rows,
    query_rows,
    wait_until,
)
from tests.service.stream_client import build_stream_url, connect_stream, receive_impulses, request_token

IMPORTS = "/oi-api/imports"
START = datetime(2026, 1, 5, 10, tzinfo=UTC)
MAPPING = {"timestamp": "timestamp", "device": "device"}


def build_csv(rows: int, first: datetime = START, device: str = "d1") -> str:
    """Return a CSV file with rows whose times are one second apart."""
    lines = (
        f"{(first + timedelta(seconds=n)).strftime('%Y-%m-%dT%H:%M:%SZ')},{device},{n / 10},run" for n in range(rows)
    )
    return "\n".join(["timestamp,device,t,state", *lines, ""])


def create_import(client: httpx.Client, lookup: str = "lathe", **changes: Any) -> dict[str, Any]:
    """Create an import and return it."""
    body = {"format": "csv", "fileName": "a.csv", "mapping": MAPPING, **changes}
    reply = client.post(f"{IMPORTS}/data-connections/{lookup}", json=body)
    assert reply.status_code == 201, reply.text
    assert reply.headers["location"] == reply.json()["statusUrl"]
    return dict(reply.json())


def upload_file(import_job: dict[str, Any], content: str | bytes) -> None:
    """Upload the whole file of an import in one request."""
    reply = httpx.put(import_job["uploadUrl"], content=content, headers=import_job["uploadHeaders"], trust_env=False)
    assert reply.status_code == 201, reply.text


def run_import(client: httpx.Client, content: str | bytes, **changes: Any) -> dict[str, Any]:
    """Import a file and return the ended import."""
    import_job = create_import(client, **changes)
    upload_file(import_job, content)
    started = client.post(f"{import_job['statusUrl']}/start")
    assert started.status_code == 202, started.text
    return wait_until_ended(client, import_job)


def wait_until_ended(client: httpx.Client, import_job: dict[str, Any]) -> dict[str, Any]:
    """Wait until an import has ended, and return it."""
    return wait_until(
        lambda: client.get(import_job["statusUrl"]).json(), lambda job: job["status"] not in ("pending", "running")
    )


def read_status_and_row_counts(job: dict[str, Any]) -> tuple[str, int, int, int]:
    """Return the status of an import, and its numbers of accepted, duplicate and rejected rows."""
    return job["status"], job["accepted"], job["duplicates"], job["rejected"]


def read_connection(client: httpx.Client, lookup: str) -> dict[str, Any]:
    """Return a connection with its status and statistics."""
    reply = client.get(f"/oi-api/connections/{lookup}")
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def send_message(client: httpx.Client, lookup: str, message_id: str) -> None:
    """Send a telemetry message of a connection."""
    reply = client.post(f"/oi-api/telemetry/{lookup}", json={"messageId": message_id})
    assert reply.status_code == 202, reply.text


@pytest.fixture(scope="module")
def plant(own_module_service: Service) -> Service:
    """Return a service that the tests of this module share."""
    return own_module_service


@pytest.fixture(scope="module")
def editor(plant: Service) -> httpx.Client:
    """Return a client with a token of an editor."""
    return plant.create_client("editor@t")


def test_rows_that_are_imported_again_are_not_stored_again(editor: httpx.Client) -> None:
    """Imported rows are in the query table and the archive; importing the same rows again adds nothing."""
    first = run_import(editor, build_csv(50), fileName="one/valve.csv")
    assert read_status_and_row_counts(first) == ("completed", 50, 0, 0)
    assert first["progress"]["rows"] == 50
    assert first["files"] == []
    again = run_import(editor, build_csv(60), fileName="two/valve.csv")
    assert read_status_and_row_counts(again) == ("completed", 10, 50, 0)
    assert count_rows(editor, "lathe") == 60
    [row] = query_rows(editor, "Telemetry | where ConnectionLookup == 'lathe' | top 1 by Timestamp asc")
    assert row["Payload"] == {"t": 0, "state": "run"}
    body = {"format": "jsonl", "dateRange": {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}}
    reply = editor.post("/oi-api/downloads/data-connections/lathe", json=body, headers={"Prefer": "wait=30"})
    assert reply.json()["files"][0]["rows"] == 60


async def test_an_import_changes_no_live_stream_and_no_connection(plant: Service, editor: httpx.Client) -> None:
    """An import changes neither status nor statistics of its connection; only a replay sends its rows to live streams.

    Absence rules read the statistics.
    """
    bearer, first = request_token(plant, "viewer@t"), START + timedelta(days=2)
    before = read_connection(editor, "lathe")
    async with connect_stream(build_stream_url(plant, connection="lathe"), bearer) as client:
        imported = run_import(editor, build_csv(3, first, device="d-live"))
        assert read_status_and_row_counts(imported) == ("completed", 3, 0, 0)
        assert read_connection(editor, "lathe") == before
        # Imported rows that reach the hub would precede this message in the stream and count with it.
        send_message(editor, "lathe", "later")
        [impulse] = await receive_impulses(client, 1)
    received = before["stats"]["messagesReceived"]
    stats = wait_until(
        lambda: read_connection(editor, "lathe")["stats"], lambda found: found["messagesReceived"] > received
    )
    assert (impulse["ID"], stats["messagesReceived"]) == ("later", received + 1)
    async with connect_stream(build_stream_url(plant, connection="lathe", since=first.isoformat()), bearer) as client:
        assert [each["Subject"] for each in await receive_impulses(client, 3)] == ["d-live"] * 3


def test_rejected_rows_are_listed_with_reasons(editor: httpx.Client) -> None:
    """The file of rejected rows contains the number, the reason and the text of each rejected row."""
    text = build_csv(3, device="d-rejected") + "bad,d1,1,x\n2026-01-05T10:00:00Z,d1\n=1+1,d1,2,y\n"
    job = run_import(editor, text)
    assert read_status_and_row_counts(job) == ("completed", 3, 0, 3)
    [file] = job["files"]
    content = httpx.get(file["url"], trust_env=False).content
    rows = list(csv.reader(io.StringIO(content.decode())))
    assert (len(content), file["rows"], rows[0]) == (file["bytes"], 3, ["row", "reason", "record"])
    assert [row[0] for row in rows[1:]] == ["4", "5", "6"]
    assert rows[2][1:] == ["The row has 2 cells; the header has 4.", "2026-01-05T10:00:00Z,d1"]
    assert rows[3][2] == "'=1+1,d1,2,y"


def test_a_preview_of_an_import_stores_nothing(editor: httpx.Client) -> None:
    """A preview of an import stores no rows, and can be repeated with another mapping."""
    import_job = create_import(editor, "press", mapping={"timestamp": "when"})
    check_problem(editor.post(f"{import_job['statusUrl']}/preview"), 409, "IMPORT_NOT_UPLOADED")
    check_problem(editor.post(f"{import_job['statusUrl']}/start"), 409, "IMPORT_NOT_UPLOADED")
    upload_file(import_job, build_csv(150))
    wrong = editor.post(f"{import_job['statusUrl']}/preview").json()
    assert wrong["messages"] == []
    assert wrong["problems"][0]["row"] is None
    assert "no column `when`" in wrong["problems"][0]["message"]
    body = {"mapping": {"timestamp": "timestamp", "columns": ["t"]}}
    shown = editor.post(f"{import_job['statusUrl']}/preview", json=body).json()
    assert (len(shown["messages"]), shown["problems"]) == (100, [])
    assert shown["columns"] == ["timestamp", "device", "t", "state"]
    assert shown["messages"][0]["payload"] == {"t": 0.0}
    assert shown["messages"][0]["deviceId"] == "press"
    assert count_rows(editor, "press") == 0
    ended = editor.post(f"{import_job['statusUrl']}/start", json=body, headers={"Prefer": "wait=30"})
    assert (ended.status_code, ended.headers["preference-applied"]) == (200, "wait=30")
    assert read_status_and_row_counts(ended.json()) == ("completed", 150, 0, 0)
    [row] = query_rows(editor, f"Telemetry | where MessageId == '{shown['messages'][0]['messageId']}'")
    assert row["Payload"] == {"t": 0}


def test_an_interrupted_upload_in_blocks_can_continue(editor: httpx.Client) -> None:
    """An upload in blocks can continue after an interruption; a file of another size than announced is incomplete."""
    text = build_csv(20, device="d-blocks")
    import_job = create_import(editor, bytes=len(text))
    upload_file(import_job, text[:50])
    problem = check_problem(editor.post(f"{import_job['statusUrl']}/start"), 409, "IMPORT_NOT_UPLOADED")
    assert problem["uploadedBytes"] == 50
    names = [base64.b64encode(b"%06d" % n).decode() for n in range(2)]
    url = httpx.URL(import_job["uploadUrl"])
    for name, part in zip(names, (text[:99], text[99:]), strict=True):
        target = url.copy_merge_params({"comp": "block", "blockid": name})
        assert httpx.put(target, content=part, headers=import_job["uploadHeaders"], trust_env=False).status_code == 201
    document = "".join(f"<Latest>{name}</Latest>" for name in names)
    target = url.copy_merge_params({"comp": "blocklist"})
    assert httpx.put(target, content=f"<BlockList>{document}</BlockList>", trust_env=False).status_code == 201
    editor.post(f"{import_job['statusUrl']}/start")
    assert read_status_and_row_counts(wait_until_ended(editor, import_job)) == ("completed", 20, 0, 0)


def test_message_ids_do_not_depend_on_the_file_format(editor: httpx.Client) -> None:
    """A row has the same message id whether it is imported from CSV, NDJSON or Parquet."""
    content = build_csv(5, device="d-formats")
    assert read_status_and_row_counts(run_import(editor, content)) == ("completed", 5, 0, 0)
    rows = list(csv.DictReader(io.StringIO(content)))
    lines = "".join(
        f'{{"timestamp":"{row["timestamp"]}","device":"{row["device"]}","t":{row["t"]},"state":"run"}}\n'
        for row in rows
    )
    assert read_status_and_row_counts(run_import(editor, lines, format="ndjson")) == ("completed", 0, 5, 0)
    target = io.BytesIO()
    table = pa.table(
        {
            "timestamp": pa.array([START + timedelta(seconds=n) for n in range(5)], pa.timestamp("us", "UTC")),
            "device": ["d-formats"] * 5,
            "t": [n / 10 for n in range(5)],
            "state": pa.array(["run"] * 5).dictionary_encode(),
        }
    )
    pq.write_table(table, target)
    assert read_status_and_row_counts(run_import(editor, target.getvalue(), format="parquet")) == ("completed", 0, 5, 0)
    failed = run_import(editor, target.getvalue()[:-9], format="parquet")
    assert (failed["status"], failed["files"], failed["errorCode"]) == ("failed", [], None)
    assert "not a valid Parquet file" in failed["error"]


def test_concurrent_imports_of_one_file_store_each_row_once(editor: httpx.Client) -> None:
    """Imports of one connection run one after another, so that two imports of the same file store each row once."""
    both = [create_import(editor) for _ in range(2)]
    for import_job in both:
        upload_file(import_job, build_csv(500, device="d-twice"))
    for import_job in both:
        assert editor.post(f"{import_job['statusUrl']}/start").status_code == 202
    ended = [wait_until_ended(editor, import_job) for import_job in both]
    assert sorted(read_status_and_row_counts(job)[1:3] for job in ended) == [(0, 500), (500, 0)]
    assert query_rows(editor, "Telemetry | where DeviceId == 'd-twice' | count") == [{"Count": 500}]


def test_the_error_about_an_import_request_names_the_field(plant: Service, editor: httpx.Client) -> None:
    """The error about an invalid import request names the field.

    Connections, access rights and job ids are validated, too.
    """
    route = f"{IMPORTS}/data-connections/lathe"
    body = {"format": "csv", "fileName": "a.csv", "mapping": MAPPING}
    wrong: dict[str, Any] = {"format": "xml", "bytes": 0, "mapping": {"device": "d"}, "extra": 1}
    fields = check_failing_fields(editor.post(route, json=wrong))
    assert {"format", "fileName", "bytes", "mapping.timestamp", "extra"} <= set(fields)
    mapping = {"timestamp": "t", "device": "t", "timeZone": "Mars/Base", "unknown": "x"}
    assert "mapping.unknown" in check_failing_fields(editor.post(route, json={**body, "mapping": mapping}))
    del mapping["unknown"]
    fields = check_failing_fields(editor.post(route, json={**body, "mapping": mapping}))
    assert fields == ["mapping.device", "mapping.timeZone"]
    check_problem(editor.post(f"{IMPORTS}/data-connections/none", json=body), 404, "CONNECTION_NOT_FOUND")
    check_problem(editor.post(f"{IMPORTS}/data-connections/stopped", json=body), 409, "CONNECTION_DISABLED")
    assert plant.create_client("viewer@t").post(route, json=body).status_code == 403
    check_problem(editor.get(f"{IMPORTS}/none"), 404, "IMPORT_NOT_FOUND")
    import_job = create_import(editor)
    other = plant.create_client("editor@t", scopes="Workspace.Telemetry.Import")
    assert import_job["importId"] in [job["importId"] for job in other.get(IMPORTS).json()["imports"]]
    check_problem(editor.get(f"/oi-api/downloads/{import_job['importId']}"), 404, "DOWNLOAD_NOT_FOUND")
    assert editor.delete(import_job["statusUrl"]).status_code == 204
    check_problem(editor.delete(import_job["statusUrl"]), 409, "IMPORT_ENDED")
    check_problem(editor.post(f"{import_job['statusUrl']}/start"), 409, "IMPORT_ENDED")


def test_a_cancelled_import_has_no_preview(editor: httpx.Client) -> None:
    """The preview of an import whose file was deleted, because the import has ended, is refused with that reason."""
    import_job = create_import(editor)
    upload_file(import_job, build_csv(1))
    assert editor.delete(import_job["statusUrl"]).status_code == 204
    check_problem(editor.post(f"{import_job['statusUrl']}/preview"), 409, "IMPORT_ENDED")


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_an_ended_import_accepts_no_file(plant: Service, editor: httpx.Client, status: str) -> None:
    """The upload URL of a completed or cancelled import is refused, for a file and for a block of a file."""
    import_job = create_import(editor)
    block = f"{import_job['uploadUrl']}&comp=block&blockid=MDAw"
    assert httpx.put(block, content=b"x", trust_env=False).status_code == 201
    if status == "completed":
        upload_file(import_job, build_csv(1))
        assert editor.post(f"{import_job['statusUrl']}/start").status_code == 202
        wait_until_ended(editor, import_job)
    else:
        assert editor.delete(import_job["statusUrl"]).status_code == 204
    for url in (import_job["uploadUrl"], block, f"{import_job['uploadUrl']}&comp=blocklist"):
        reply = httpx.put(url, content=b"x", headers=import_job["uploadHeaders"], trust_env=False)
        assert check_problem(reply, 409, "IMPORT_ENDED")["currentStatus"] == status
    folder = plant.data_dir / "blobs" / "downloads"
    assert not (folder / import_job["importId"] / "upload").exists()
    assert not build_block_folder(folder, f"{import_job['importId']}/upload").exists()


def test_a_repeated_request_creates_one_import(editor: httpx.Client) -> None:
    """A repeated request with the same Idempotency-Key gets the same import."""
    body = {"format": "csv", "fileName": "a.csv", "mapping": MAPPING}
    replies = [
        editor.post(f"{IMPORTS}/data-connections/lathe", json=body, headers={"Idempotency-Key": "import-1"})
        for _ in range(2)
    ]
    assert len({reply.json()["importId"] for reply in replies}) == 1
    assert editor.delete(replies[0].json()["statusUrl"]).status_code == 204


def test_a_restarted_host_completes_an_import(own_service: Service, tmp_path: Path) -> None:
    """If the host is killed during an import, the restarted host completes it and stores each row once."""
    editor = own_service.start().create_client("editor@t")
    import_job = create_import(editor)
    # Text with doubled quotes is read in small steps, so that the import is killed between two of them.
    upload_file(import_job, build_csv(100_000).replace("run", '"r""n"'))
    editor.post(f"{import_job['statusUrl']}/start")
    state = wait_until(lambda: editor.get(import_job["statusUrl"]).json(), lambda job: job["progress"]["rows"] > 0)
    assert state["status"] == "running"
    own_service.kill()
    editor = own_service.start().create_client("editor@t")
    ended = wait_until(
        lambda: editor.get(import_job["statusUrl"]).json(), lambda job: job["status"] not in ("pending", "running"), 120
    )
    assert read_status_and_row_counts(ended) == ("completed", 100_000, 0, 0)
    assert count_rows(editor, "lathe") == 100_000
