"""Cost of the operators that the endpoint adds to its translator, against hand-written SQL."""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.figures import Figure
from bench.kql_cases import CASES
from bench.kql_row_cases import ROW_CASES
from emulators.kusto.extensions import EXTENSIONS
from emulators.kusto.query_checks import limit_expansion
from emulators.kusto.sandbox import open_database
from emulators.kusto.tables import create_views, load_tables, read_column_types, read_table_columns
from emulators.kusto.translate import translate

ROWS = 1_000_000
DEVICES = 200
RUNS = 5
MOST_TIMES = 3
"""Maximum time of a query relative to hand-written SQL."""
MEMORY_BYTES = 1_000_000_000


def kql() -> Iterator[Figure]:
    """Run each query in both languages, in turn, and compare the medians."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, open_database(None) as connection:
        _write_rows(Path(folder) / "Telemetry.parquet")
        schema, types = _prepare(connection, Path(folder))
        for case in (*CASES, *ROW_CASES):
            translated = _translate(connection, case.kql, schema, types)
            ours, theirs = _measure_medians(connection, translated, case.sql)
            detail = {"kqlMs": round(ours, 2), "sqlMs": round(theirs, 2), "rows": ROWS}
            yield Figure(f"kql_{case.name}", ours / theirs, "ratio", at_most=MOST_TIMES, detail=detail)


def _prepare(connection: duckdb.DuckDBPyConnection, folder: Path) -> tuple[dict[str, list[str]], Mapping[str, str]]:
    """Start the translator like the endpoint; return the schema and the columns' types."""
    load_tables(connection, create_views(connection, folder), MEMORY_BYTES)
    limit_expansion()
    for extension in EXTENSIONS:
        extension.install()
        for macro in extension.macros:
            connection.execute(macro)
    schema = {table: list(columns) for table, columns in read_table_columns(connection, ["Telemetry"]).items()}
    return schema, read_column_types(connection, ["Telemetry"])


def _translate(
    connection: duckdb.DuckDBPyConnection, text: str, schema: Mapping[str, Sequence[str]], types: Mapping[str, str]
) -> str:
    found: list[list[tuple[Any, ...]]] = []
    while (translation := translate(text, schema, found, types)).probe:
        found.append(connection.execute(translation.sql).fetchall())
    return translation.sql


def _measure_medians(connection: duckdb.DuckDBPyConnection, ours: str, theirs: str) -> tuple[float, float]:
    times: dict[str, list[float]] = {ours: [], theirs: []}
    answers: dict[str, int] = {}
    for _ in range(RUNS):
        for sql, measured in times.items():
            started = time.perf_counter()
            answers[sql] = len(connection.execute(sql).fetchall())
            measured.append((time.perf_counter() - started) * 1000)
    if answers[ours] != answers[theirs]:
        raise RuntimeError(f"{answers[ours]} rows instead of the {answers[theirs]} rows of the SQL: {ours}")
    return statistics.median(times[ours]), statistics.median(times[theirs])


def _write_rows(path: Path) -> None:
    """Write a million rows: one from each device each minute."""
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
    pq.write_table(pa.table(table), path, row_group_size=122_880)
