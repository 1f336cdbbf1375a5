"""Tests of the models of background jobs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.downloads.import_request import (
    ImportFormat,
    ImportMapping,
    ImportRequest,
    ImportStep,
    UploadedFile,
)
from shared.downloads.models import (
    BundledChain,
    BundleRequest,
    DownloadFormat,
    Job,
    JobKind,
    JobStatus,
    Part,
    StoredFile,
    build_job_not_found_error,
)
from shared.errors import WorkspaceError

AT = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
FILE = StoredFile(blob="b", rows=3, size=100, sha256="0" * 64)
IMPORT = ImportRequest(
    format=ImportFormat.CSV, file_name="a.csv", mapping=ImportMapping(timestamp="time"), upload_expires_at=AT
)
BUNDLE = BundleRequest(chains=(BundledChain(target="PlatformConfig"),))
STEP = ImportStep(next_position=10, rows=5, accepted=3, duplicates=1, rejected=1)
ENDED = [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED]


def build_job(**changes: Any) -> Job:
    """Return a pending download of two connections."""
    values = {"id": "j", "owner": "ann", "format": DownloadFormat.CSV, "start": AT, "end": AT + HOUR}
    return Job(**{**values, "connections": ("a", "b"), "created_at": AT, "expires_at": AT, **changes})


def build_planned_job() -> Job:
    """Return a running download with one planned part for each connection."""
    return build_job().add_parts(tuple(Part(connection=name, start=AT, end=AT + HOUR) for name in ("a", "b")))


@pytest.mark.parametrize(
    ("changes", "kind", "ended", "missing"),
    [
        ({}, JobKind.DOWNLOAD, "DOWNLOAD_ENDED", "DOWNLOAD_NOT_FOUND"),
        ({"bundle": BUNDLE}, JobKind.BUNDLE, "BUNDLE_ENDED", "BUNDLE_NOT_FOUND"),
        ({"import_request": IMPORT}, JobKind.IMPORT, "IMPORT_ENDED", "IMPORT_NOT_FOUND"),
    ],
)
def test_each_kind_of_job_has_its_own_errors(changes: dict[str, Any], kind: JobKind, ended: str, missing: str) -> None:
    """Each kind of job has its own error codes, so that a route does not reveal jobs of another kind."""
    job = build_job(**changes)
    assert job.kind is kind
    assert job.cancel().status is JobStatus.CANCELLED
    with pytest.raises(WorkspaceError) as raised:
        job.cancel().cancel()
    assert (raised.value.code, build_job_not_found_error(kind).code) == (ended, missing)


def test_planning_a_job_again_keeps_its_converted_parts() -> None:
    """If a job is planned again, its parts that are already converted stay converted."""
    planned = build_planned_job()
    assert (planned.status, planned.list_pending_part_numbers()) == (JobStatus.RUNNING, [0, 1])
    assert planned.add_parts(()) is planned
    assert build_job().add_parts((), is_archive_complete=True).complete_up_to == AT


def test_a_connection_is_done_after_all_its_parts() -> None:
    """A connection is done when all its parts are converted."""
    half = build_planned_job().complete_part(0, (FILE, FILE), frozenset({("x",)}))
    assert (half.row_count, half.stored_bytes, half.converted_connection_count) == (6, 200, 1)
    assert half.list_files() == [("a", FILE), ("a", FILE)]
    assert half.list_pending_part_numbers() == [1]


def test_parts_without_a_new_column_are_converted_again() -> None:
    """If a part adds a column, earlier CSV parts are converted again; other formats need no header."""
    job = build_job(connections=("a",))
    parts = tuple(Part(connection="a", start=AT + n * HOUR, end=AT + (n + 1) * HOUR) for n in range(2))
    for file_format, pending in ((DownloadFormat.CSV, [0]), (DownloadFormat.JSONL, [])):
        made = job.model_copy(update={"format": file_format}).add_parts(parts)
        made = made.complete_part(0, (FILE,), frozenset({("x",)}))
        made = made.complete_part(1, (FILE,), frozenset({("x",), ("y",)}))
        assert made.list_pending_part_numbers() == pending


def test_a_part_that_needs_no_conversion_keeps_its_files() -> None:
    """If two processes convert a part at the same time, the job keeps the files of the faster process."""
    faster = build_planned_job().complete_part(0, (FILE,), frozenset())
    assert faster.complete_part(0, (FILE, FILE), frozenset()) is faster


def test_progress_does_not_change_a_bundle_that_has_its_file() -> None:
    """The progress of a bundle with a file is that of the file, also if another process still builds the bundle."""
    job = build_planned_job().model_copy(update={"bundle": BUNDLE, "parts": None}).add_bundle_file(FILE, (0,))
    assert job.add_bundle_progress(1, 1, ()) is job
    assert job.bundle is not None
    assert (job.bundle.records, job.bundle.broken_chains) == (FILE.rows, (0,))


@pytest.mark.parametrize("status", ENDED)
def test_an_ended_job_does_not_change(status: JobStatus) -> None:
    """An ended job does not change, even if a process still works on it."""
    job = build_planned_job().finish(status)
    uploaded = UploadedFile(size=1, written_at=AT)
    bundle, imported = (job.model_copy(update=update) for update in ({"bundle": BUNDLE}, {"import_request": IMPORT}))
    assert job.finish(JobStatus.COMPLETED) is job
    assert job.complete_part(0, (FILE,), frozenset()) is job
    assert bundle.add_bundle_file(FILE, ()) is bundle
    assert bundle.add_bundle_progress(1, 1, ()) is bundle
    assert imported.start_import(AT, AT, uploaded, None) is imported
    assert imported.add_import_step_result(0, STEP) is imported
    assert imported.mark_step_partly_stored(0, STEP) is imported
    assert imported.add_rejected_rows_file(FILE) is imported


def test_an_import_starts_once() -> None:
    """Starting an import a second time changes neither its mapping nor its expiry."""
    uploaded, mapping = UploadedFile(size=1, written_at=AT), ImportMapping(timestamp="at")
    started = build_job(import_request=IMPORT).start_import(AT, AT + HOUR, uploaded, mapping)
    assert started.import_request is not None
    assert (started.import_request.mapping, started.expires_at) == (mapping, AT + HOUR)
    assert started.start_import(AT + HOUR, AT, uploaded, None) is started


def test_a_repeated_import_step_counts_once() -> None:
    """If a crash causes a step to run again, it is counted once."""
    once = build_job(import_request=IMPORT).add_import_step_result(0, STEP)
    assert once.import_request is not None
    assert (once.import_request.position, once.import_request.accepted, once.import_request.steps) == (10, 3, 1)
    assert once.add_import_step_result(0, STEP).import_request == once.import_request


def test_the_open_step_of_an_ended_import_is_closed_without_counting_its_rows() -> None:
    """If an import ends during a step, the step remains open until its rows are stored, and its rows do not count."""
    ended = build_job(import_request=IMPORT).mark_step_partly_stored(0, STEP).finish(JobStatus.CANCELLED)
    assert ended.partly_stored_step_number == 0
    assert ended.mark_step_completely_stored(1) is ended
    assert ended.add_import_step_result(0, STEP.model_copy(update={"attempt": "other"})) is ended
    for closed in (ended.mark_step_completely_stored(0), ended.add_import_step_result(0, STEP)):
        assert closed.partly_stored_step_number is None
        assert closed.import_request == IMPORT
    assert build_job().partly_stored_step_number is None
