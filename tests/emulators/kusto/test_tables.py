"""Tests of tables that are read from folders of Parquet files."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulators.kusto.extensions.known_types import FINITE_OR_INFINITE
from emulators.kusto.sandbox import open_database
from emulators.kusto.tables import (
    UnusableFolderError,
    create_parquet_views_and_list_files,
    load_tables_into_memory,
    read_columns_by_table,
    read_type_by_column,
)
from tests.emulators.kusto.endpoints import end_process, start_emulator


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return an in-memory database that is not locked."""
    with open_database(None) as opened:
        yield opened


def write_parquet(path: Path, **columns: Any) -> None:
    """Write a Parquet file with the given columns."""
    pq.write_table(pa.table(columns), path)


def read_table_column_types(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the types of a table's columns."""
    return {row[0]: row[1] for row in connection.execute(f'DESCRIBE "{table}"').fetchall()}


def test_a_column_is_dynamic_only_if_all_values_are_json(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """A column is dynamic only if each of its values is a JSON object, a JSON array or null."""
    rows = 1500
    write_parquet(
        tmp_path / "T.parquet",
        objects=["{}"] * (rows - 1) + [None],
        late=["[1]"] * (rows - 1) + ["[1"],
        scalars=["5"] * rows,
        nulls=pa.array([None] * rows, pa.string()),
    )
    create_parquet_views_and_list_files(connection, tmp_path)
    assert read_table_column_types(connection, "T") == {
        "objects": "JSON",
        "late": "VARCHAR",
        "scalars": "VARCHAR",
        "nulls": "VARCHAR",
    }


def test_times_with_a_time_zone_become_utc(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """A time with a time zone in a Parquet file is converted to UTC."""
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    write_parquet(tmp_path / "T.parquet", at=pa.array([moment], pa.timestamp("us", "Europe/Berlin")))
    create_parquet_views_and_list_files(connection, tmp_path)
    assert connection.execute('SELECT "at" FROM "T"').fetchall() == [(moment.replace(tzinfo=None),)]


def test_quotes_in_folder_and_column_names_belong_to_the_names(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    """Quotes in the names of folders and columns are part of the table and column names."""
    folder = tmp_path / "it's"
    folder.mkdir()
    pq.write_table(pa.table({'a"b': ["{}"]}), folder / "T.parquet")
    create_parquet_views_and_list_files(connection, folder)
    assert read_columns_by_table(connection, ["T"]) == {"T": ['a"b']}


@pytest.mark.parametrize("names", [[], ['x"y'], ["T", "t"]])
def test_folders_without_valid_tables_are_rejected(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, names: list[str]
) -> None:
    """A folder is rejected if it has no tables, or tables whose names differ only in case."""
    for name in names:
        write_parquet(tmp_path / f"{name}.parquet", a=[1])
    with pytest.raises(UnusableFolderError):
        create_parquet_views_and_list_files(connection, tmp_path)


def test_a_file_without_a_valid_table_name_is_skipped(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """A file whose name is not a valid table name is left out, and a log line says so."""
    for name in ("T", "my table-1.0", "2026", "x'y", 'x"y', "caf\u00e9"):
        write_parquet(tmp_path / f"{name}.parquet", a=[1])
    files = create_parquet_views_and_list_files(connection, tmp_path)
    assert {file.stem for file in files} == {"T", "my table-1.0", "2026"}
    assert caplog.text.count("is not served") == 3


def test_a_table_name_with_spaces_is_written_in_brackets(tmp_path: Path) -> None:
    """In a query, a table name with spaces, dots or dashes is written in brackets."""
    for name in ("my table-1.0", "x'y"):
        write_parquet(tmp_path / f"{name}.parquet", a=[1, 2])
    running = start_emulator(tmp_path / "stderr", "--data", str(tmp_path))
    try:
        assert running.query_rows("['my table-1.0'] | where a > 1 | count") == [[1]]
        assert running.read_statistics()["rows"] == {"my table-1.0": 2}
    finally:
        end_process(running.process)


def test_an_emulator_without_tables_logs_why_it_cannot_start(tmp_path: Path) -> None:
    """If the folder has no tables, the process ends with a message and no traceback."""
    with pytest.raises(AssertionError):
        start_emulator(tmp_path / "stderr", "--data", str(tmp_path / "empty"))
    assert "contains no .parquet file" in (tmp_path / "stderr").read_text()


def test_real_columns_without_nan_are_detected_only_in_memory(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    """Real columns without NaN are detected only for tables in memory, because files can change."""
    write_parquet(tmp_path / "A.parquet", plain=[1.0, float("inf"), None], mixed=[1.0, 2.0, 3.0], both=[1.0, 2.0, 3.0])
    write_parquet(tmp_path / "B.parquet", mixed=[float("nan")], both=[float("-inf")])
    files = create_parquet_views_and_list_files(connection, tmp_path)
    assert read_type_by_column(connection, ["A", "B"]) == dict.fromkeys(("both", "mixed", "plain"), "DOUBLE")
    load_tables_into_memory(connection, files, 100_000_000)
    known = {"both": FINITE_OR_INFINITE, "mixed": "DOUBLE", "plain": FINITE_OR_INFINITE}
    assert read_type_by_column(connection, ["A", "B"]) == known


def test_int_arithmetic_gives_long_and_nan_sorts_last(tmp_path: Path) -> None:
    """Arithmetic with int columns returns long; a descending sort puts NaN after all numbers."""
    whole = pa.array([2_147_483_647, 1, 2], pa.int32())
    write_parquet(tmp_path / "T.parquet", whole=whole, nan=[float("nan"), 1.0, float("-inf")], plain=[1.0, 3.0, 2.0])
    running = start_emulator(tmp_path / "stderr", "--data", str(tmp_path))
    try:
        assert running.query_rows("T | top 1 by whole | project whole + whole, -whole") == [
            [4_294_967_294, -2_147_483_647]
        ]
        assert running.query_rows("T | top 3 by nan | project nan") == [[1.0], ["-Infinity"], ["NaN"]]
        assert running.query_rows("T | sort by plain asc | project plain") == [[1.0], [2.0], [3.0]]
        assert running.query_rows("T | extend plain = nan | top 1 by plain asc | project plain") == [["NaN"]]
    finally:
        end_process(running.process)


@pytest.mark.parametrize(("memory_bytes", "is_loaded"), [(1_000_000_000, True), (0, False)])
def test_tables_are_loaded_within_the_memory_limit(tmp_path: Path, memory_bytes: int, *, is_loaded: bool) -> None:
    """A table that fits into the memory limit is loaded and no longer needs its file; others are read from the file."""
    file = tmp_path / "Things.parquet"
    with open_database(None) as connection:
        connection.execute(f"COPY (SELECT range AS id, '{{\"a\": 1}}' AS d FROM range(5)) TO '{file}'")
        files = create_parquet_views_and_list_files(connection, tmp_path)
        columns = read_columns_by_table(connection, ["Things"])
        load_tables_into_memory(connection, files, memory_bytes)
        assert read_columns_by_table(connection, ["Things"]) == columns
        file.unlink()
        if is_loaded:
            assert connection.execute('SELECT count(*), any_value(typeof(d)) FROM "Things"').fetchall() == [(5, "JSON")]
        else:
            with pytest.raises(duckdb.IOException):
                connection.execute('SELECT count(*) FROM "Things"')
