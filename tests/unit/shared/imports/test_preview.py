"""Tests of previews of uploaded files."""

import asyncio
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.catalog.snapshot import Catalog
from shared.downloads.expiry import build_upload_blob_name
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest
from shared.downloads.models import DownloadFormat, Job
from shared.errors import WorkspaceError
from shared.fair_use.acting_member import use_acting_member
from shared.imports.preview import MAX_MESSAGES, MAX_PROBLEMS, MAX_ROWS, ImportPreview
from shared.runtime import Runtime
from shared.text_formats.serialisation import serialise_json
from tests.busy_executor import BusyExecutor
from tests.unit.shared.telemetry.fakes import build_catalog, build_catalog_getter, build_connection

AT = datetime(2026, 1, 5, tzinfo=UTC)
CATALOG = build_catalog(build_connection("pump"))
GOOD, BAD = "2026-01-05T08:00:00Z,1", "yesterday,2"


def open_blobs(folder: Path) -> FolderBlobStore:
    """Return the store of the uploaded files."""
    return FolderBlobStore(folder / "blobs", FileLinks("http://127.0.0.1", folder / "key"))


async def build_preview(
    folder: Path,
    *rows: str,
    header: str = "time,x",
    lookup: str = "pump",
    mapping: ImportMapping | None = None,
    form: ImportFormat = ImportFormat.CSV,
    content: bytes | None = None,
    previews: ImportPreview | None = None,
) -> dict[str, Any]:
    """Return the preview of a file with the given header and rows, or with the given content."""
    blobs = open_blobs(folder)
    uploaded = "\n".join((header, *rows)).encode() if content is None else content
    await blobs.create_if_missing(build_upload_blob_name("a1"), uploaded)
    request = ImportRequest(
        format=form, file_name="a.csv", mapping=ImportMapping(timestamp="time"), upload_expires_at=AT
    )
    job = Job(
        id="a1",
        owner="ann",
        format=DownloadFormat.CSV,
        start=AT,
        end=AT,
        connections=(lookup,),
        created_at=AT,
        expires_at=AT,
        import_request=request,
    )
    previews = previews or ImportPreview(build_catalog_getter(CATALOG), blobs)
    return (await previews.create_preview(job, mapping)).to_json()


async def test_a_preview_shows_messages_and_problems(tmp_path: Path) -> None:
    """A preview shows messages in the API's format, and problems with the row numbers of the file."""
    shown = await build_preview(tmp_path, GOOD, BAD)
    assert shown["columns"] == ["time", "x"]
    [message] = shown["messages"]
    assert (message["timestamp"], message["connection"], message["payload"]) == (
        "2026-01-05T08:00:00.000000Z",
        "pump",
        {"x": 1},
    )
    assert [problem["row"] for problem in shown["problems"]] == [2]


async def test_a_preview_shows_a_limited_number_of_rows(tmp_path: Path) -> None:
    """A preview reads more rows than it shows, so that it finds messages after invalid rows."""
    shown = await build_preview(tmp_path, *[BAD] * (MAX_PROBLEMS + 1), *[GOOD] * MAX_ROWS)
    assert (len(shown["messages"]), len(shown["problems"])) == (MAX_MESSAGES, MAX_PROBLEMS)


@pytest.mark.parametrize(
    ("row", "rows", "end"),
    [
        (BAD, MAX_ROWS + 1, "The preview ends after row 500, because it reads at most 500 rows."),
        (BAD + "x" * 10_000, 400, "The preview ends after row 209, because it reads at most 2,097,152 bytes."),
        (BAD, MAX_PROBLEMS + 1, "no valid time"),
    ],
)
async def test_the_first_of_many_problems_says_where_the_preview_ends(
    tmp_path: Path, row: str, rows: int, end: str
) -> None:
    """If a preview ends before 100 messages, its first problem says so, also if there are more problems than shown."""
    problems = (await build_preview(tmp_path, *[row] * rows))["problems"]
    assert len(problems) == MAX_PROBLEMS
    assert end in problems[0]["message"]
    assert [each["row"] for each in problems].count(None) == (rows > MAX_PROBLEMS + 1)


@pytest.mark.parametrize("form", list(ImportFormat))
@pytest.mark.parametrize("more_rows", [0, 1])
async def test_a_preview_of_all_rows_does_not_say_that_it_ends(
    tmp_path: Path, form: ImportFormat, more_rows: int
) -> None:
    """A preview says where it ends only if the file has more rows than it reads."""
    rows = MAX_ROWS + more_rows
    parquet = BytesIO()
    pq.write_table(pa.table({"time": ["yesterday"] * rows, "x": [2] * rows}), parquet)
    content = {
        ImportFormat.CSV: f"time,x\n{f'{BAD}\n' * rows}".encode(),
        ImportFormat.NDJSON: b'{"time":"yesterday"}\n' * rows,
        ImportFormat.PARQUET: parquet.getvalue(),
    }[form]
    problems = (await build_preview(tmp_path, form=form, content=content))["problems"]
    assert [each["row"] for each in problems].count(None) == more_rows


@pytest.mark.parametrize("form", [ImportFormat.CSV, ImportFormat.NDJSON])
@pytest.mark.parametrize("mebibytes", [1, 3])
async def test_a_preview_agrees_with_the_import_about_long_rows(
    tmp_path: Path, form: ImportFormat, mebibytes: int
) -> None:
    """A row that is too long is a problem like in the import; a preview whose part of the file ends here says so."""
    header, good = ("time,x", GOOD) if form is ImportFormat.CSV else ("", '{"time":"2026-01-05T08:00:00Z"}')
    shown = await build_preview(tmp_path, *[good] * 3, "x" * (mebibytes << 20), *[good] * 3, header=header, form=form)
    too_long = {"row": 4, "message": "The row has more than 524,288 bytes."}
    end = {"row": None, "message": "The preview ends after row 4, because it reads at most 2,097,152 bytes."}
    is_cut = mebibytes > 1
    assert shown["problems"] == [*([end] if is_cut else []), too_long]
    assert len(shown["messages"]) == (3 if is_cut else 6)


async def test_a_preview_of_rows_that_follow_many_empty_lines_does_not_say_that_there_are_none(
    tmp_path: Path,
) -> None:
    """A preview whose part of the file has only empty lines says where it ends."""
    shown = await build_preview(tmp_path, *[" " * 500_000] * 5, GOOD, header="", form=ImportFormat.NDJSON)
    assert [each["message"][:29] for each in shown["problems"]] == ["The preview ends after row 0,"]


@pytest.mark.parametrize(
    ("header", "rows", "problem"),
    [("time,x", (), "The file has no rows."), ("at,x", (GOOD,), "time")],
)
async def test_a_problem_of_the_whole_file_has_no_row(
    tmp_path: Path, header: str, rows: tuple[str, ...], problem: str
) -> None:
    """A problem of the whole file, for example of the header, has no row number."""
    shown = await build_preview(tmp_path, *rows, header=header)
    assert [each["row"] for each in shown["problems"]] == [None]
    assert problem in shown["problems"][0]["message"]


async def test_a_preview_does_not_change_the_stored_mapping(tmp_path: Path) -> None:
    """A preview can use a new mapping without changing the stored mapping of the import."""
    shown = await build_preview(tmp_path, GOOD, header="at,x", mapping=ImportMapping(timestamp="at"))
    assert (len(shown["messages"]), shown["problems"]) == (1, [])


async def test_a_removed_connection_is_not_found(tmp_path: Path) -> None:
    """The preview of an import whose connection was removed is rejected as not found."""
    with pytest.raises(WorkspaceError) as raised:
        await build_preview(tmp_path, GOOD, lookup="none")
    assert raised.value.code == "CONNECTION_NOT_FOUND"


@pytest.mark.parametrize("digits", ["18446744073709551616", "9" * 309, "-" + "9" * 500])
async def test_long_integers_in_a_preview_equal_the_stored_ones(tmp_path: Path, digits: str) -> None:
    """A long integer in an NDJSON row has the same digits in the preview and in the stored message."""
    text = f'{{"time":"2026-01-05T08:00:00Z","n":{digits}}}'
    shown = await build_preview(tmp_path, header=text, form=ImportFormat.NDJSON)
    assert f'"n":{digits}}}'.encode() in serialise_json(shown)


async def test_previews_of_one_principal_leave_a_thread_for_others(tmp_path: Path) -> None:
    """While a principal has several slow previews, only one of them runs, and the preview of another one starts."""
    threads, begun = BusyExecutor(), asyncio.Queue[None]()

    async def load_catalog() -> Catalog:
        begun.put_nowait(None)
        return CATALOG

    previews = ImportPreview(load_catalog, open_blobs(tmp_path), runtime=Runtime(open_pool=lambda *_: threads))

    async def start_preview(member: str) -> asyncio.Task[Any]:
        with use_acting_member(member):
            task = asyncio.create_task(build_preview(tmp_path, GOOD, previews=previews))
        await begun.get()
        return task

    tasks = [await start_preview("ann") for _ in range(3)]
    assert len(threads.jobs) == 1
    tasks.append(await start_preview("bob"))
    assert len(threads.jobs) == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
