"""Downloads of many rows."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from bench import downloads
from bench.memory import resident_mb
from shared.cold_data.names import Run, batch_name, hour_folder
from tests.service.conftest import WORKSPACE
from tests.service.running import Service, eventually, problem

ROWS = 10_000_000


@pytest.fixture
def archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Return a service, not started, whose archive holds ten million rows of a day."""
    monkeypatch.setattr(downloads, "ROWS", ROWS)
    monkeypatch.setattr(downloads, "CONNECTION", "lathe")
    downloads.fill(tmp_path / "data" / "blobs" / "cold")
    service = Service(tmp_path / "data", WORKSPACE)
    yield service
    service.stop()


@pytest.mark.soak
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_ten_million_rows_survive_a_kill_in_bounded_memory(archived: Service, form: str) -> None:
    """Killed in the middle, the download completes after the restart, each row once, in at most 600 MB over idle."""
    end = downloads.START + timedelta(hours=downloads.HOURS)
    body = {"format": form, "dateRange": {"start": downloads.START.isoformat(), "end": end.isoformat()}}
    editor = archived.start().caller("editor@t")
    job = editor.post("/oi-api/downloads/data-connections/lathe", json=body).json()
    scratch = archived.data_dir / "scratch"
    eventually(lambda: sum(path.stat().st_size for path in scratch.rglob("0*")), lambda written: written > 1_000_000)
    archived.kill()
    editor = archived.start().caller("editor@t")
    assert archived._process is not None
    pid, peaks = archived._process.pid, []
    idle = resident_mb(pid)

    def look() -> dict[str, object]:
        peaks.append(resident_mb(pid))
        shown: dict[str, object] = editor.get(job["statusUrl"]).json()
        return shown

    done = eventually(look, lambda shown: shown["status"] not in ("pending", "running"), 300)
    total = ROWS // downloads.HOURS * downloads.HOURS
    assert (done["status"], done["progress"]) == (
        "completed",
        {"connectionsDone": 1, "connectionsTotal": 1, "rows": total},
    )
    files = archived.data_dir / "blobs" / "downloads" / job["downloadId"] / "lathe" / "*"
    reader = {"csv": "read_csv", "jsonl": "read_ndjson", "parquet": "read_parquet"}[form]
    query = f"SELECT count(*), count(DISTINCT \"messageId\") FROM {reader}('{files}')"
    [found] = duckdb.connect().execute(query).fetchall()
    assert found == (total, total)
    assert max(peaks) - idle <= 600


@pytest.mark.soak
def test_a_broken_archive_fails_the_download_after_some_attempts(own_service: Service) -> None:
    """What fails in every attempt ends the job with a reason that gives nothing away, and leaves no files."""
    service = own_service.start()
    blob = service.data_dir / "blobs" / "cold" / (hour_folder("lathe", downloads.START) + batch_name(Run("0", 0, 1)))
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"no Parquet" * 100)
    end = downloads.START + timedelta(hours=1)
    body = {"dateRange": {"start": downloads.START.isoformat(), "end": end.isoformat()}}
    editor = service.caller("editor@t")
    address = editor.post("/oi-api/downloads/data-connections/lathe", json=body).json()["statusUrl"]
    done = eventually(lambda: editor.get(address).json(), lambda shown: shown["status"] == "failed", 120)
    assert "log has the reason" in done["error"]
    assert done["files"] == []
    problem(editor.delete(address), 409, "DOWNLOAD_ENDED")
