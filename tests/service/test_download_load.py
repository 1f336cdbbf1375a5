"""Load tests of cold downloads."""

import csv
import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from bench import downloads
from bench.memory import read_resident_mb
from shared.cold_data.names import SequenceRange, build_batch_blob_name, build_hour_folder
from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_problem, wait_until

ROWS = 10_000_000
UNFINISHED = ("pending", "running")
SHARED_ROWS = 4_800_000
LONGEST = 256 * 1024 - 100
LONG_ROWS = 3_996
csv.field_size_limit(LONGEST)


@pytest.fixture
def service_with_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Return a stopped service whose archive contains ten million rows of one day."""
    monkeypatch.setattr(downloads, "ROWS", ROWS)
    monkeypatch.setattr(downloads, "CONNECTION", "lathe")
    downloads.fill_archive(tmp_path / "data" / "blobs" / "cold")
    service = Service(tmp_path / "data", WORKSPACE)
    yield service
    service.stop()


type Make = Callable[[dict[str, str]], Service]


@pytest.fixture
def create_service(tmp_path: Path) -> Iterator[Make]:
    """Return a function that creates a service with given settings.

    After the test, all services that it created stop.
    """
    created: list[Service] = []

    def create(environment: dict[str, str]) -> Service:
        created.append(Service(tmp_path / "data", WORKSPACE, environment))
        return created[-1]

    yield create
    for service in created:
        service.stop()


@pytest.mark.soak
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_ten_million_rows_survive_a_kill_in_bounded_memory(service_with_archive: Service, form: str) -> None:
    """A download of ten million rows is complete after a kill and uses at most 600 MB more memory than when idle."""
    end = downloads.START + timedelta(hours=downloads.HOURS)
    body = {"format": form, "dateRange": {"start": downloads.START.isoformat(), "end": end.isoformat()}}
    editor = service_with_archive.start().create_client("editor@t")
    job = editor.post("/oi-api/downloads/data-connections/lathe", json=body).json()
    scratch = service_with_archive.data_dir / "scratch"
    wait_until(lambda: sum(path.stat().st_size for path in scratch.rglob("0*")), lambda written: written > 1_000_000)
    service_with_archive.kill()
    editor = service_with_archive.start().create_client("editor@t")
    assert service_with_archive._process is not None
    pid, peaks = service_with_archive._process.pid, []
    idle = read_resident_mb(pid)

    def read_job() -> dict[str, object]:
        peaks.append(read_resident_mb(pid))
        shown: dict[str, object] = editor.get(job["statusUrl"]).json()
        return shown

    done = wait_until(read_job, lambda shown: shown["status"] not in ("pending", "running"), 300)
    total = ROWS // downloads.HOURS * downloads.HOURS
    assert (done["status"], done["progress"]) == (
        "completed",
        {"connectionsDone": 1, "connectionsTotal": 1, "rows": total},
    )
    files = service_with_archive.data_dir / "blobs" / "downloads" / job["downloadId"] / "lathe" / "*"
    reader = {"csv": "read_csv", "jsonl": "read_ndjson", "parquet": "read_parquet"}[form]
    query = f"SELECT count(*), count(DISTINCT \"messageId\") FROM {reader}('{files}')"
    [found] = duckdb.connect().execute(query).fetchall()
    assert found == (total, total)
    assert max(peaks) - idle <= 600


@pytest.mark.soak
def test_a_small_download_overtakes_large_ones(
    create_service: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A principal's small download completes before ten large downloads of another principal."""
    monkeypatch.setattr(downloads, "ROWS", SHARED_ROWS)
    monkeypatch.setattr(downloads, "CONNECTION", "lathe")
    downloads.fill_archive(tmp_path / "data" / "blobs" / "cold")
    service = create_service({}).start()
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    address = "/oi-api/downloads/data-connections/lathe"
    start, hour = downloads.START, timedelta(hours=1)
    whole = {"dateRange": {"start": start.isoformat(), "end": (start + downloads.HOURS * hour).isoformat()}}
    for _ in range(10):
        assert editor.post(address, json=whole).status_code == 202
    check_problem(editor.post(address, json=whole), 429, "TOO_MANY_JOBS")
    small = {"dateRange": {"start": start.isoformat(), "end": (start + hour / 60).isoformat()}}
    status_url = admin.post(address, json=small).json()["statusUrl"]
    job = wait_until(lambda: admin.get(status_url).json(), lambda shown: shown["status"] not in UNFINISHED, 300)
    assert job["status"] == "completed"
    others = editor.get("/oi-api/downloads").json()["downloads"]
    assert sum(each["status"] in UNFINISHED for each in others) >= 8


@pytest.mark.soak
@pytest.mark.parametrize("merged", [False, True])
def test_a_gigabyte_of_the_longest_messages_in_bounded_memory(create_service: Make, *, merged: bool) -> None:
    """A download of a gigabyte of 256 KiB messages uses, in each format, at most 550 MB more memory than when idle."""
    soon = {"COMPACTION_SCHEDULE": "*/5 * * * * *", "COMPACTION_QUIET_MINUTES": "0.1"}
    service = create_service(soon if merged else {}).start()
    editor = service.create_client("editor@t")
    text = "".join(random.Random(1).choices(string.ascii_letters, k=2 * LONGEST))
    idle = read_resident_mb(service.pid)
    for first in range(0, LONG_ROWS, 3):
        at = [downloads.START + timedelta(seconds=number * 7919 % 3600) for number in range(first, first + 3)]
        messages = [
            {"timestamp": when.isoformat(), "n": number, "x": text[number : number + LONGEST]}
            for number, when in enumerate(at, first)
        ]
        assert editor.post("/oi-api/telemetry/lathe", json=messages).status_code == 202
    blobs = service.data_dir / "blobs" / "cold" / build_hour_folder("lathe", downloads.START)
    query = f"SELECT count(DISTINCT message_id) FROM read_parquet('{blobs}/*.parquet')"
    wait_until(lambda: duckdb.connect().execute(query).fetchall(), lambda found: found == [(LONG_ROWS,)], 120)
    if merged:
        wait_until(lambda: len(list(blobs.iterdir())), lambda count: count == 1, 120)
    wait_until(lambda: read_resident_mb(service.pid), lambda granted: granted < idle + 250, 120)
    body = {"dateRange": {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}}
    peaks = []
    for form in ("csv", "jsonl", "parquet"):
        job = editor.post("/oi-api/downloads/data-connections/lathe", json=body | {"format": form}).json()

        def read_job(address: str = job["statusUrl"]) -> dict[str, object]:
            peaks.append(read_resident_mb(service.pid))
            shown: dict[str, object] = editor.get(address).json()
            return shown

        done = wait_until(read_job, lambda shown: shown["status"] not in ("pending", "running"), 300)
        assert (done["status"], done["error"]) == ("completed", None)
        assert all(file["bytes"] <= 256_000_000 for file in editor.get(job["statusUrl"]).json()["files"])
        files = sorted((service.data_dir / "blobs" / "downloads" / job["downloadId"] / "lathe").iterdir())
        assert read_numbers(files, form) == sorted(range(LONG_ROWS), key=lambda number: number * 7919 % 3600)
    assert max(peaks) - idle <= 550


def read_numbers(files: Sequence[Path], form: str) -> list[int]:
    """Return the message numbers in the order of the downloaded files."""
    found: list[int] = []
    for path in files:
        if form == "parquet":
            groups = pq.ParquetFile(path).iter_batches(64, columns=["payload"])
            found += [json.loads(payload.as_py())["n"] for batch in groups for payload in batch.column(0)]
        else:
            with path.open(newline="") as file:
                lines = (json.loads(line)["payload"] for line in file) if form == "jsonl" else csv.DictReader(file)
                found += [int(row["n"]) for row in lines]
    return found


@pytest.mark.soak
def test_a_permanent_failure_fails_the_download(own_service: Service) -> None:
    """If the conversion of a download fails on each attempt, the download fails, without files and internal details."""
    service = own_service.start()
    blob = (
        service.data_dir
        / "blobs"
        / "cold"
        / (build_hour_folder("lathe", downloads.START) + build_batch_blob_name(SequenceRange("0", 0, 1)))
    )
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"no Parquet" * 100)
    end = downloads.START + timedelta(hours=1)
    body = {"dateRange": {"start": downloads.START.isoformat(), "end": end.isoformat()}}
    editor = service.create_client("editor@t")
    address = editor.post("/oi-api/downloads/data-connections/lathe", json=body).json()["statusUrl"]
    done = wait_until(lambda: editor.get(address).json(), lambda shown: shown["status"] == "failed", 120)
    assert "log has the reason" in done["error"]
    assert done["files"] == []
    check_problem(editor.delete(address), 409, "DOWNLOAD_ENDED")
