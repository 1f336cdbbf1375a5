"""Folders of Parquet files that can and cannot be served."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulators.kusto.loading import load
from emulators.kusto.sandbox import open_database
from emulators.kusto.tables import FINITE_OR_INFINITE, UnusableFolderError, column_types, columns_of, create_views
from tests.emulators.kusto.endpoints import end, start


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory, not yet closed in."""
    with open_database(None) as opened:
        yield opened


def write(path: Path, **columns: Any) -> None:
    """Write columns as a Parquet file."""
    pq.write_table(pa.table(columns), path)


def types_of(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the types of a table's columns."""
    return {row[0]: row[1] for row in connection.execute(f'DESCRIBE "{table}"').fetchall()}


def test_json_is_found_by_all_values_and_not_by_a_sample(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """A column is dynamic when all of its values are objects or arrays, also beyond the sample; nulls do not count."""
    rows = 1500
    write(
        tmp_path / "T.parquet",
        objects=["{}"] * (rows - 1) + [None],
        late=["[1]"] * (rows - 1) + ["[1"],
        scalars=["5"] * rows,
        nulls=pa.array([None] * rows, pa.string()),
    )
    create_views(connection, tmp_path)
    assert types_of(connection, "T") == {
        "objects": "JSON",
        "late": "VARCHAR",
        "scalars": "VARCHAR",
        "nulls": "VARCHAR",
    }


def test_instants_with_a_zone_become_utc(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """An instant with a zone is served as the same instant in UTC."""
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    write(tmp_path / "T.parquet", at=pa.array([moment], pa.timestamp("us", "Europe/Berlin")))
    create_views(connection, tmp_path)
    assert connection.execute('SELECT "at" FROM "T"').fetchall() == [(moment.replace(tzinfo=None),)]


def test_quotes_in_folder_and_column_names_are_data(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """A name that holds quotes neither breaks nor changes the view."""
    folder = tmp_path / "it's"
    folder.mkdir()
    pq.write_table(pa.table({'a"b': ["{}"]}), folder / "T.parquet")
    create_views(connection, folder)
    assert columns_of(connection, ["T"]) == {"T": ['a"b']}


@pytest.mark.parametrize("names", [[], ['x"y'], ["T", "t"]])
def test_unusable_folders(tmp_path: Path, connection: duckdb.DuckDBPyConnection, names: list[str]) -> None:
    """A folder without a table, and names that differ in case alone, are refused when the endpoint starts."""
    for name in names:
        write(tmp_path / f"{name}.parquet", a=[1])
    with pytest.raises(UnusableFolderError):
        create_views(connection, tmp_path)


def test_a_file_whose_name_is_no_table_name_is_left_out(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """Letters, digits, underscores, spaces, dots and dashes make a table's name; other files are skipped and logged."""
    for name in ("T", "my table-1.0", "2026", "x'y", 'x"y', "caf\u00e9"):
        write(tmp_path / f"{name}.parquet", a=[1])
    files = create_views(connection, tmp_path)
    assert {file.stem for file in files} == {"T", "my table-1.0", "2026"}
    assert caplog.text.count("is not served") == 3


def test_a_table_with_spaces_in_its_name_is_asked_in_brackets(tmp_path: Path) -> None:
    """The endpoint starts beside a file that it cannot serve and answers from one whose name needs brackets."""
    for name in ("my table-1.0", "x'y"):
        write(tmp_path / f"{name}.parquet", a=[1, 2])
    running = start(tmp_path / "stderr", "--data", str(tmp_path))
    try:
        assert running.rows("['my table-1.0'] | where a > 1 | count") == [[1]]
        assert running.stats()["rows"] == {"my table-1.0": 2}
    finally:
        end(running.process)


def test_the_process_says_why_it_cannot_serve(tmp_path: Path) -> None:
    """A folder without tables ends the process with a sentence instead of a traceback."""
    with pytest.raises(AssertionError):
        start(tmp_path / "stderr", "--data", str(tmp_path / "empty"))
    assert "holds no .parquet file" in (tmp_path / "stderr").read_text()


def test_reals_without_nan_are_known_in_memory_only(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """A column that holds no NaN in any table in memory is known for it; one of a file, which may change, is not."""
    write(tmp_path / "A.parquet", plain=[1.0, float("inf"), None], mixed=[1.0, 2.0, 3.0], both=[1.0, 2.0, 3.0])
    write(tmp_path / "B.parquet", mixed=[float("nan")], both=[float("-inf")])
    files = create_views(connection, tmp_path)
    assert column_types(connection, ["A", "B"]) == dict.fromkeys(("both", "mixed", "plain"), "DOUBLE")
    load(connection, files, 100_000_000)
    known = {"both": FINITE_OR_INFINITE, "mixed": "DOUBLE", "plain": FINITE_OR_INFINITE}
    assert column_types(connection, ["A", "B"]) == known


def test_columns_of_int_and_real_answer_as_their_types_do(tmp_path: Path) -> None:
    """Arithmetic of int is of long, and a NaN stands behind every number when it is sorted down, in file or memory."""
    whole = pa.array([2_147_483_647, 1, 2], pa.int32())
    write(tmp_path / "T.parquet", whole=whole, nan=[float("nan"), 1.0, float("-inf")], plain=[1.0, 3.0, 2.0])
    running = start(tmp_path / "stderr", "--data", str(tmp_path))
    try:
        assert running.rows("T | top 1 by whole | project whole + whole, -whole") == [[4_294_967_294, -2_147_483_647]]
        assert running.rows("T | top 3 by nan | project nan") == [[1.0], ["-Infinity"], ["NaN"]]
        assert running.rows("T | sort by plain asc | project plain") == [[1.0], [2.0], [3.0]]
        assert running.rows("T | extend plain = nan | top 1 by plain asc | project plain") == [["NaN"]]
    finally:
        end(running.process)
