"""Tests of converting archived rows to files: each file contains exactly its rows."""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.downloads import conversion
from shared.downloads.conversion import build_csv_columns, write_csv, write_jsonl, write_parquet
from shared.downloads.flattening import find_leaf_paths_one_by_one, try_extract_values_one_by_one
from shared.downloads.output_files import WrittenFile
from shared.errors import WorkspaceError
from shared.telemetry.json_text import parse_lossless_json, serialise_lossless_json
from shared.timestamps import format_rfc3339
from tests.random_examples import scale_examples

BEGIN = datetime(2026, 1, 1, 12, 30, 0, 250, tzinfo=UTC)
KEYS = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "a.b",
        "0",
        "",
        "*",
        "$",
        'q"',
        "\\",
        "=a",
        "'=a",
        "-5",
        "timestamp",
        "payload.timestamp",
        "é😀",
        "n\nl",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
    | st.sampled_from(["{", '{"x":1}', '"', ",", "\r\n", "=1+1", "-1", "-1\n", "@a", "\t", " x ", "null"])
)
VALUES = st.recursive(
    LEAVES, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=3), max_leaves=8
)
csv.field_size_limit(1_000_000)
PAYLOADS = st.dictionaries(KEYS, VALUES, max_size=4)


def build_batches(payloads: Sequence[dict[str, Any]], size: int = 3) -> Iterator[pa.RecordBatch]:
    """Yield small batches of rows with the given payloads."""
    for first in range(0, len(payloads), size):
        some = payloads[first : first + size]
        numbers = range(first, first + len(some))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([BEGIN + timedelta(seconds=number) for number in numbers], pa.timestamp("us", tz="UTC")),
                pa.array([f'd,"{number}' for number in numbers]),
                pa.array([f"m\\{number}\n" for number in numbers]),
                pa.array([serialise_lossless_json(payload).decode() for payload in some], pa.string()),
            ],
            names=["timestamp", "deviceId", "messageId", "payload"],
        )


def flatten_payload(payload: dict[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """Return the CSV cells of a payload, computed independently of the service."""
    found: dict[tuple[str, ...], str] = {}
    for key, value in payload.items():
        if isinstance(value, dict) and value:
            found.update(flatten_payload(value, (*path, key)))
        else:
            found[(*path, key)] = "" if value is None else value if isinstance(value, str) else convert_to_text(value)
    return found


def convert_to_text(value: Any) -> str:
    """Return a number, boolean, array or empty object as JSON text."""
    return serialise_lossless_json(value).decode()


def read_csv(files: Sequence[WrittenFile]) -> tuple[list[str], list[list[str]]]:
    """Return the common header and the rows of all files; fail if the headers differ."""
    header, rows = [], []
    for file in files:
        header, *body = csv.reader(io.StringIO(file.path.read_bytes().decode(), newline=""), strict=True)
        assert file.rows == len(body)
        rows += body
    return header, rows


@pytest.fixture(scope="module")
def output_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the files of all examples in this module."""
    return tmp_path_factory.mktemp("files")


@settings(max_examples=scale_examples(60), deadline=None)
@given(payloads=st.lists(PAYLOADS, max_size=7))
def test_csv_rows_have_every_payload_leaf_in_its_column(output_folder: Path, payloads: list[dict[str, Any]]) -> None:
    """For any keys and values, a CSV row has exactly the leaves of its payload, under their names."""
    files, leaves = write_csv("pump", lambda: build_batches(payloads), output_folder, frozenset())
    header, rows = read_csv(files)
    assert leaves == {path for payload in payloads for path in flatten_payload(payload)}
    assert header[:4] == ["timestamp", "connection", "deviceId", "messageId"]
    assert header[4:] == sorted(header[4:])
    assert len(set(header)) == len(header)
    paths = [path for _, path in build_csv_columns(leaves)]
    for number, (row, payload) in enumerate(zip(rows, payloads, strict=True)):
        instant = format_rfc3339(BEGIN + timedelta(seconds=number))
        assert row[:4] == [instant, "pump", f'd,"{number}', f"m\\{number}\n"]
        expected = flatten_payload(payload)
        for cell, path in zip(row[4:], paths, strict=True):
            assert is_same_value(cell, escape_cell(expected.get(path, ""))), (cell, path, payload)


def escape_cell(text: str) -> str:
    """Return the expected CSV cell: a text that begins like a formula gets an apostrophe."""
    if text[:1] not in {"=", "+", "-", "@", "\t", "\r"}:
        return text
    try:
        json.loads(text, parse_constant=int)  # infinity is not a JSON number; int() rejects it
    except ValueError:
        return f"'{text}"
    return f"'{text}" if text[-1].isspace() else text


def test_csv_escapes_ids_and_names_like_formulas(tmp_path: Path) -> None:
    """Ids and column names that begin like a formula get an apostrophe; negative numbers do not."""
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([BEGIN], pa.timestamp("us", tz="UTC")),
            pa.array(["=device"]),
            pa.array(["-message"]),
            pa.array(
                [serialise_lossless_json({"=a": -1.5, "'=a": "=1", "-5": "-5", "b": -1e300, "c": "-1 "}).decode()]
            ),
        ],
        names=["timestamp", "deviceId", "messageId", "payload"],
    )
    header, [row] = read_csv(write_csv("pump", lambda: iter([batch]), tmp_path, frozenset())[0])
    assert row[2:4] == ["'=device", "'-message"]
    assert header[4:] == ["'-5", "'=a", "b", "c", "payload.'=a"]
    assert row[4:7] == ["-5", "'=1", "-1e300"]
    assert row[7:] == ["'-1 ", "-1.5"]


def is_same_value(cell: str, expected: str) -> bool:
    """Return whether a cell has the expected value; numbers may have another notation."""
    if cell == expected:
        return True
    try:
        return bool(parse_lossless_json(cell.encode()) == parse_lossless_json(expected.encode()))
    except ValueError:
        return False


@settings(max_examples=scale_examples(100), deadline=None)
@given(payloads=st.lists(PAYLOADS, max_size=7))
def test_json_lines_and_parquet_contain_the_payload(output_folder: Path, payloads: list[dict[str, Any]]) -> None:
    """NDJSON and Parquet files contain the archived payload unchanged."""
    [lines] = write_jsonl("pump", lambda: build_batches(payloads), output_folder)
    rows = [parse_lossless_json(line) for line in lines.path.read_bytes().split(b"\n")[:-1]]
    expected = [
        {
            "timestamp": format_rfc3339(BEGIN + timedelta(seconds=number)),
            "connection": "pump",
            "deviceId": f'd,"{number}',
            "messageId": f"m\\{number}\n",
            "payload": payload,
        }
        for number, payload in enumerate(payloads)
    ]
    assert rows == expected
    assert [list(row) for row in rows] == [list(row) for row in expected]
    [file] = write_parquet("pump", lambda: build_batches(payloads), output_folder)
    table = pq.read_table(file.path)
    assert table.column("timestamp").type == pa.timestamp("us", tz="UTC")
    stored = table.to_pylist()
    assert [parse_lossless_json(row["payload"].encode()) for row in stored] == payloads
    assert [(row["deviceId"], row["messageId"]) for row in stored] == [
        (r["deviceId"], r["messageId"]) for r in expected
    ]
    assert [format_rfc3339(row["timestamp"]) for row in stored] == [row["timestamp"] for row in expected]


def test_empty_range_creates_one_file(tmp_path: Path) -> None:
    """A range without rows gives one file, with header or schema; the NDJSON file is empty."""
    [file], leaves = write_csv("pump", lambda: iter(()), tmp_path, frozenset())
    assert (file.path.read_bytes(), file.rows, leaves) == (
        b"timestamp,connection,deviceId,messageId\r\n",
        0,
        frozenset(),
    )
    [file] = write_jsonl("pump", lambda: iter(()), tmp_path)
    assert (file.size, file.rows) == (0, 0)
    [file] = write_parquet("pump", lambda: iter(()), tmp_path)
    assert pq.read_schema(file.path).names == ["timestamp", "connection", "deviceId", "messageId", "payload"]


@pytest.mark.parametrize(("last_payload", "expected_reads"), [({"a": 1}, 1), ({"b": 1}, 3)])
def test_rows_are_read_again_only_for_unknown_paths(
    tmp_path: Path, last_payload: dict[str, int], expected_reads: int
) -> None:
    """A CSV file needs one read of the rows; a path that the first rows lack needs a second and a third one."""
    reads: list[None] = []

    def yield_rows() -> Iterator[pa.RecordBatch]:
        reads.append(None)
        return build_batches([{"a": 1}] * 40_000 + [last_payload], 10_000)

    [file], _ = write_csv("pump", yield_rows, tmp_path, frozenset())
    assert (file.rows, len(reads)) == (40_001, expected_reads)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_new_file_begins_before_the_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """A new file begins before the size limit; each file has whole rows and states its size and digest."""
    monkeypatch.setattr("shared.downloads.output_files.ROW_GROUP_ROWS", 100)
    monkeypatch.setattr("shared.downloads.row_feed.SLICE_ROWS", 100)
    payloads = [{"n": number, "text": hashlib.sha256(str(number).encode()).hexdigest()} for number in range(2000)]
    limit = 40_000

    def yield_rows() -> Iterator[pa.RecordBatch]:
        return build_batches(payloads, 100)

    if form == "csv":
        files, _ = write_csv("pump", yield_rows, tmp_path, frozenset(), limit)
    else:
        files = {"jsonl": write_jsonl, "parquet": write_parquet}[form]("pump", yield_rows, tmp_path, limit)
    assert len(files) > 2
    assert sum(file.rows for file in files) == 2000
    for file in files:
        content = file.path.read_bytes()
        assert file.size == len(content) <= limit
        assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert read_numbers(form, files) == list(range(2000))


def read_numbers(form: str, files: Sequence[WrittenFile]) -> list[int]:
    """Return the property ``n`` of every payload in order."""
    if form == "csv":
        return [int(row[4]) for row in read_csv(files)[1]]
    if form == "jsonl":
        lines = [line for file in files for line in file.path.read_text().splitlines()]
        return [json.loads(line)["payload"]["n"] for line in lines]
    payloads = [text for file in files for text in pq.read_table(file.path).column("payload").to_pylist()]
    return [json.loads(text)["n"] for text in payloads]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_repeated_conversion_writes_the_same_bytes(tmp_path: Path, form: str) -> None:
    """Converting the same rows again writes the same bytes."""
    payloads = [{"b": {"x": number}, "a": [number]} if number % 3 else {"c": 1.5} for number in range(500)]

    def compute_digest() -> str:
        if form == "csv":
            [file], _ = write_csv("pump", lambda: build_batches(payloads), tmp_path, frozenset())
        else:
            [file] = {"jsonl": write_jsonl, "parquet": write_parquet}[form](
                "pump", lambda: build_batches(payloads), tmp_path
            )
        return file.sha256

    assert compute_digest() == compute_digest()


def test_a_part_has_the_columns_of_the_other_parts(tmp_path: Path) -> None:
    """A part of a download also has the columns of the other parts, without values, so that all headers are equal."""
    known = frozenset({("z",), ("m", "x")})
    [file], leaves = write_csv("pump", lambda: build_batches([{"a": 1}]), tmp_path, known)
    assert leaves == {("a",), *known}
    assert read_csv([file])[0][4:] == ["a", "m.x", "z"]


def test_colliding_column_names_get_a_prefix() -> None:
    """The name of a column gets a prefix if it equals a fixed column or the name of another path."""
    found = build_csv_columns({("timestamp",), ("a", "b"), ("a.b",), ("connection", "x")})
    assert found == [
        ("a.b", ("a", "b")),
        ("connection.x", ("connection", "x")),
        ("payload.a.b", ("a.b",)),
        ("payload.timestamp", ("timestamp",)),
    ]


def test_null_and_empty_text_differ_in_csv_files(tmp_path: Path) -> None:
    """In CSV files, null and missing values are empty cells, and empty text is quoted."""
    [file], _ = write_csv("pump", lambda: build_batches([{"a": None, "b": ""}, {"b": "=1"}]), tmp_path, frozenset())
    cells = [line.split(b",")[-2:] for line in file.path.read_bytes().split(b"\r\n")[1:-1]]
    assert cells == [[b"", b'""'], [b"", b"'=1"]]


def test_too_many_columns_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If each row has new keys, the conversion is rejected with a reason before memory is exhausted."""
    monkeypatch.setattr("shared.downloads.flattening.MAX_LEAVES", 50)
    payloads = [{f"k{number}": number} for number in range(60)]
    with pytest.raises(WorkspaceError, match="use jsonl or parquet") as refusal:
        write_csv("pump", lambda: build_batches(payloads), tmp_path, frozenset())
    assert refusal.value.code == "DOWNLOAD_TOO_WIDE"


@settings(max_examples=scale_examples(60), deadline=None)
@given(payloads=st.lists(PAYLOADS, max_size=7))
@example(payloads=[{"a": [-9223372036854775809, 5.960464477539063e-08]}])
def test_both_flattening_methods_find_the_same_leaves(payloads: list[dict[str, Any]]) -> None:
    """The engine and the row-by-row method find the same leaves with the same texts."""
    # The archive stores payloads after one round trip, which can change how a float beside a large integer is written.
    payloads = [parse_lossless_json(serialise_lossless_json(payload)) for payload in payloads]
    texts = pa.array([serialise_lossless_json(payload).decode() for payload in payloads], pa.string())
    found = find_leaf_paths_one_by_one(texts)
    assert found == {path for payload in payloads for path in flatten_payload(payload)}
    paths = sorted(found)
    rows = try_extract_values_one_by_one(texts, paths)
    assert rows is not None
    assert [[cell or "" for cell in row] for row in rows.to_pylist()] == [
        [flatten_payload(payload).get(path, "") for path in paths] for payload in payloads
    ]
    assert try_extract_values_one_by_one(texts, paths[1:]) is None or not paths


@pytest.mark.parametrize(
    "payload",
    [{"wave": [0] * 120_000}, {"wave": [{"a": 0}] * 30_000}, {"text": "x" * 250_000}, {"k": {"n": [[0, 1]] * 30_000}}],
)
def test_slice_of_largest_payloads_fits_into_memory(tmp_path: Path, payload: dict[str, Any]) -> None:
    """Payloads of maximum size with arrays of short numbers are converted to CSV in limited memory."""
    [file], _ = write_csv("pump", lambda: build_batches([payload] * 70, 70), tmp_path, frozenset())
    _, rows = read_csv([file])
    [expected] = flatten_payload(payload).values()
    assert [row[4:] for row in rows] == [[expected]] * 70


def test_key_with_values_and_objects_has_both_columns(tmp_path: Path) -> None:
    """A path that is a value in one row and an object in another has columns for both."""
    wide = {f"k{number:03}": number for number in range(900)}
    payloads: list[dict[str, Any]] = [{"a": 1, **wide}, {"a": {"b": 2}}, {"text": "x" * 200_000}]
    [file], leaves = write_csv("pump", lambda: build_batches(payloads), tmp_path, frozenset())
    header, rows = read_csv([file])
    assert len(leaves) == 903
    assert [row[header.index("a")] + row[header.index("a.b")] for row in rows] == ["1", "2", ""]


def test_wide_rows_are_converted_in_small_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide rows are converted in small slices, and no row is lost."""
    monkeypatch.setattr(conversion, "CSV_CELLS_PER_BATCH", 40)
    payloads = [{f"k{number}": number for number in range(20)} for _ in range(30)]
    [file], _ = write_csv("pump", lambda: build_batches(payloads, 30), tmp_path, frozenset())
    assert (file.rows, len(read_csv([file])[1])) == (30, 30)
