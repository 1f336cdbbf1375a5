"""What an operator that the endpoint adds to its translator costs beside the SQL that a person would write for it."""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.figures import Figure
from local.kusto.expansion import bound_expansion
from local.kusto.extensions import EXTENSIONS
from local.kusto.loading import load
from local.kusto.sandbox import open_database
from local.kusto.tables import column_types, columns_of, create_views
from local.kusto.translate import translate

ROWS = 1_000_000
DEVICES = 200
RUNS = 5
MEMORY_BYTES = 1_000_000_000
BOUND = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A query in both languages; the answers have equally many rows."""

    name: str
    kql: str
    sql: str


CASES = (
    Case(
        "make_series",
        "Telemetry | make-series v = avg(Value) default=0.0 on Timestamp from datetime(2026-01-01) to"
        " datetime(2026-01-04) step 1h by DeviceId",
        """WITH b AS (SELECT "DeviceId" d, date_trunc('hour', "Timestamp") t, avg("Value") v FROM "Telemetry"
            WHERE "Timestamp" < TIMESTAMP '2026-01-04' GROUP BY ALL),
        g AS (SELECT d, unnest(generate_series(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-03 23:00',
            INTERVAL 1 HOUR)) t FROM (SELECT DISTINCT d FROM b))
        SELECT d, to_json(list(coalesce(v, 0) ORDER BY t)), to_json(list(t ORDER BY t)) FROM g LEFT JOIN b USING (d, t)
        GROUP BY d""",
    ),
    Case(
        "series_functions",
        "Telemetry | make-series v = avg(Value) on Timestamp from datetime(2026-01-01) to datetime(2026-01-04) step 10m"
        " by DeviceId | extend (r, slope) = series_fit_line(v) | project DeviceId, slope,"
        " smooth = series_fir(v, dynamic([1,1,1,1,1])), doubled = series_multiply(v, 2)",
        """WITH b AS (SELECT "DeviceId" d, time_bucket(INTERVAL 10 MINUTE, "Timestamp") t, avg("Value") v
            FROM "Telemetry" WHERE "Timestamp" < TIMESTAMP '2026-01-04' GROUP BY ALL),
        g AS (SELECT d, unnest(generate_series(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-03 23:50',
            INTERVAL 10 MINUTE)) t FROM (SELECT DISTINCT d FROM b)),
        w AS (SELECT d, t, coalesce(v, 0) v FROM g LEFT JOIN b USING (d, t)),
        m AS (SELECT d, t, v, sum(v) OVER (PARTITION BY d ORDER BY t ROWS 4 PRECEDING) / 5 a,
            row_number() OVER (PARTITION BY d ORDER BY t) n FROM w)
        SELECT d, regr_slope(v, n), to_json(list(a ORDER BY t)), to_json(list(v * 2 ORDER BY t)) FROM m GROUP BY d""",
    ),
    Case(
        "window_functions",
        "Telemetry | where Number < 500 | sort by DeviceId asc, Timestamp asc | extend gap = iff(DeviceId =="
        " prev(DeviceId), Timestamp - prev(Timestamp), timespan(null)), n = row_number() | summarize max(gap), max(n)",
        """SELECT max(CASE WHEN d = p THEN t - q END), max(n) FROM (SELECT "DeviceId" d, "Timestamp" t,
            lag("DeviceId") OVER w p, lag("Timestamp") OVER w q, row_number() OVER w n FROM "Telemetry"
            WHERE "Number" < 500 WINDOW w AS (ORDER BY "DeviceId", "Timestamp"))""",
    ),
    Case(
        "arg_max",
        "Telemetry | summarize arg_max(Timestamp, Value, Number) by DeviceId",
        'SELECT "DeviceId", max("Timestamp"), arg_max("Value", "Timestamp"), arg_max("Number", "Timestamp")'
        ' FROM "Telemetry" GROUP BY 1',
    ),
    Case(
        "percentiles",
        "Telemetry | summarize percentiles(Value, 5, 50, 95) by DeviceId",
        'SELECT "DeviceId", quantile_disc("Value", [0.05, 0.5, 0.95]) FROM "Telemetry" GROUP BY 1',
    ),
    Case(
        "bin",
        "Telemetry | summarize avg(Value) by bin(Timestamp, 15m), DeviceId",
        'SELECT time_bucket(INTERVAL 15 MINUTE, "Timestamp") t, "DeviceId", avg("Value") FROM "Telemetry" GROUP BY ALL',
    ),
    Case(
        "dynamic_path",
        "Telemetry | where toint(Payload.level) > 5 | summarize n = count(), m = avg(todouble(Payload.motor.rpm))",
        """SELECT count(*), avg(CAST(json_extract("Payload", '$.motor.rpm') AS DOUBLE)) FROM "Telemetry"
            WHERE CAST(json_extract("Payload", '$.level') AS INTEGER) > 5""",
    ),
    Case(
        "mv_expand",
        "Telemetry | where Number < 300 | mv-expand tag = Payload.tags to typeof(string) | summarize count() by tag",
        """SELECT t, count(*) FROM (SELECT unnest(CAST(json_extract("Payload", '$.tags') AS VARCHAR[])) t
            FROM "Telemetry" WHERE "Number" < 300) GROUP BY t""",
    ),
    Case(
        "top_nested",
        "Telemetry | top-nested 3 of DeviceId by s = sum(Value)",
        'SELECT "DeviceId", sum("Value") s FROM "Telemetry" GROUP BY 1 ORDER BY s DESC LIMIT 3',
    ),
    Case(
        "partition",
        "Telemetry | where Number < 2000 | partition hint.strategy=native by DeviceId (top 2 by Value desc)",
        'SELECT * FROM "Telemetry" WHERE "Number" < 2000'
        ' QUALIFY row_number() OVER (PARTITION BY "DeviceId" ORDER BY "Value" DESC) <= 2',
    ),
)


def kql() -> Iterator[Figure]:
    """Run each query in both languages, in turn, and compare the medians."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, open_database(None) as connection:
        _write(Path(folder) / "Telemetry.parquet")
        schema, types = _prepared(connection, Path(folder))
        for case in CASES:
            translated = translate(case.kql, schema, (), types).sql
            ours, theirs = _medians(connection, translated, case.sql)
            detail = {"kqlMs": round(ours, 2), "sqlMs": round(theirs, 2), "rows": ROWS}
            yield Figure(f"kql_{case.name}", ours / theirs, "ratio", at_most=BOUND, detail=detail)


def _prepared(connection: duckdb.DuckDBPyConnection, folder: Path) -> tuple[dict[str, list[str]], Mapping[str, str]]:
    """Do what the endpoint and its translator do when they start; return the schema and the columns' types."""
    load(connection, create_views(connection, folder), MEMORY_BYTES)
    bound_expansion()
    for extension in EXTENSIONS:
        extension.install()
        for macro in extension.macros:
            connection.execute(macro)
    schema = {table: list(columns) for table, columns in columns_of(connection, ["Telemetry"]).items()}
    return schema, column_types(connection, ["Telemetry"])


def _medians(connection: duckdb.DuckDBPyConnection, ours: str, theirs: str) -> tuple[float, float]:
    times: dict[str, list[float]] = {ours: [], theirs: []}
    answers: dict[str, int] = {}
    for _ in range(RUNS):
        for sql, measured in times.items():
            started = time.perf_counter()
            answers[sql] = len(connection.execute(sql).fetchall())
            measured.append((time.perf_counter() - started) * 1000)
    if answers[ours] != answers[theirs]:
        raise RuntimeError(f"{answers[ours]} rows, where the SQL gives {answers[theirs]}: {ours}")
    return statistics.median(times[ours]), statistics.median(times[theirs])


def _write(path: Path) -> None:
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
