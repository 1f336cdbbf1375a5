"""Benchmark: KQL operators that the query emulator adds to its translator library, compared with hand-written SQL."""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.figures import Figure
from bench.kql_cases import CASES
from bench.kql_row_cases import ROW_CASES
from emulators.kusto.extensions import EXTENSIONS, create_functions_and_macros
from emulators.kusto.query_checks import install_sql_length_check
from emulators.kusto.sandbox import open_database
from emulators.kusto.tables import (
    create_parquet_views_and_list_files,
    load_tables_into_memory,
    read_columns_by_table,
    read_type_by_column,
)
from emulators.kusto.translate import translate

ROWS = 1_000_000
DEVICES = 200
RUNS = 5
MOST_TIMES = 1.8
"""Maximum time of a query relative to hand-written SQL."""
LOWER_BOUNDS = {"row_cumsum": 1.3, "row_rank": 1.3}
"""Maximum time relative to hand-written SQL of the queries whose SQL uses ``PARTITION BY``, by name of the query."""
MEMORY_BYTES = 1_000_000_000


def measure_kql() -> Iterator[Figure]:
    """Alternately run each query as translated KQL and as hand-written SQL; compare the median times."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, open_database(None) as connection:
        _write_telemetry_parquet(Path(folder) / "Telemetry.parquet")
        schema, types = _prepare_translator_and_read_schema(connection, Path(folder))
        for case in (*CASES, *ROW_CASES):
            translated = _translate_to_sql(connection, case.kql, schema, types)
            ours, theirs = _measure_median_milliseconds(connection, translated, case.sql)
            detail = {"kqlMs": round(ours, 2), "sqlMs": round(theirs, 2), "rows": ROWS}
            at_most = LOWER_BOUNDS.get(case.name, MOST_TIMES)
            yield Figure(f"kql_{case.name}", ours / theirs, "ratio", at_most=at_most, detail=detail)


class _Schema(NamedTuple):
    """Names of the columns of each table, and the DuckDB type of each column."""

    columns_by_table: dict[str, list[str]]
    type_by_column: Mapping[str, str]


def _prepare_translator_and_read_schema(connection: duckdb.DuckDBPyConnection, folder: Path) -> _Schema:
    """Load the tables and install the extensions of the KQL translator, as the query emulator does."""
    load_tables_into_memory(connection, create_parquet_views_and_list_files(connection, folder), MEMORY_BYTES)
    install_sql_length_check()
    for extension in EXTENSIONS:
        extension.install_into_translator()
    create_functions_and_macros(connection)
    schema = {table: list(columns) for table, columns in read_columns_by_table(connection, ["Telemetry"]).items()}
    return _Schema(schema, read_type_by_column(connection, ["Telemetry"]))


def _translate_to_sql(
    connection: duckdb.DuckDBPyConnection,
    kql: str,
    columns_by_table: Mapping[str, Sequence[str]],
    type_by_column: Mapping[str, str],
) -> str:
    found: list[list[tuple[Any, ...]]] = []
    while (translation := translate(kql, columns_by_table, found, type_by_column)).is_discovery_query:
        found.append(connection.execute(translation.sql).fetchall())
    return translation.sql


class _MedianMilliseconds(NamedTuple):
    """Median milliseconds of the translated KQL, and of the hand-written SQL."""

    kql: float
    reference: float


def _measure_median_milliseconds(
    connection: duckdb.DuckDBPyConnection, kql_sql: str, reference_sql: str
) -> _MedianMilliseconds:
    """Alternately run the SQL that was translated from KQL and the hand-written SQL; return their median times.

    Raises:
        RuntimeError: the two statements return different numbers of rows.
    """
    times: dict[str, list[float]] = {kql_sql: [], reference_sql: []}
    answers: dict[str, int] = {}
    for _ in range(RUNS):
        for sql, measured in times.items():
            started = time.perf_counter()
            answers[sql] = len(connection.execute(sql).fetchall())
            measured.append((time.perf_counter() - started) * 1000)
    if answers[kql_sql] != answers[reference_sql]:
        raise RuntimeError(
            f"the KQL returned {answers[kql_sql]} rows, the hand-written SQL {answers[reference_sql]}: {kql_sql}"
        )
    return _MedianMilliseconds(statistics.median(times[kql_sql]), statistics.median(times[reference_sql]))


def _write_telemetry_parquet(parquet_path: Path) -> None:
    """Write a Parquet file of a million telemetry rows, with one row for each device and minute."""
    row = pa.array(range(ROWS), pa.int64())
    device: Any = pc.subtract(row, pc.multiply(pc.divide(row, DEVICES), DEVICES))
    number: Any = pc.divide(row, DEVICES)
    minutes = pc.add(pc.multiply(number, 60_000_000), 1_767_225_600_000_000)
    devices, numbers = device.to_pylist(), number.to_pylist()
    table = {
        "Timestamp": minutes.cast(pa.timestamp("us")),
        "DeviceId": pa.array([f"dev-{each:04d}" for each in devices]),
        "Number": number,
        "Value": pa.array([(n * 13 + d * 29) % 997 / 8 for n, d in zip(numbers, devices, strict=True)]),
        "Payload": pa.array(
            [
                f'{{"level":{n % 11},"motor":{{"rpm":{1000 + (n + d) % 500}}},"tags":["t{d % 5}","line{d % 3}"]}}'
                for n, d in zip(numbers, devices, strict=True)
            ]
        ),
    }
    pq.write_table(pa.table(table), parquet_path, row_group_size=122_880)
