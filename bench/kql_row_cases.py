"""Queries with window functions for the KQL benchmark, each in KQL and in hand-written SQL."""

from bench.kql_cases import KqlBenchmarkCase

ROW_CASES = (
    KqlBenchmarkCase(
        "prev_next",
        "Telemetry | sort by DeviceId asc, Timestamp asc | extend g = Timestamp - prev(Timestamp), n = next(Value)"
        " | summarize max(g), max(n)",
        """SELECT max(g), max(n) FROM (SELECT "Timestamp" - lag("Timestamp") OVER w g, lead("Value") OVER w n
        FROM "Telemetry" WINDOW w AS (ORDER BY "DeviceId", "Timestamp"))""",
    ),
    KqlBenchmarkCase(
        "row_cumsum",
        "Telemetry | sort by DeviceId asc, Timestamp asc | extend c = row_cumsum(Value, DeviceId != prev(DeviceId))"
        " | summarize max(c)",
        """SELECT max(c) FROM (SELECT sum("Value") OVER (PARTITION BY "DeviceId" ORDER BY "Timestamp"
        ROWS UNBOUNDED PRECEDING) c FROM "Telemetry")""",
    ),
    KqlBenchmarkCase(
        "row_rank",
        "Telemetry | sort by DeviceId asc, Number asc | extend c = row_rank_dense(Number, DeviceId != prev(DeviceId)),"
        " m = row_rank_min(Number, DeviceId != prev(DeviceId)) | summarize max(c), max(m)",
        """SELECT max(c), max(m) FROM (SELECT dense_rank() OVER w c, rank() OVER w m FROM "Telemetry"
        WINDOW w AS (PARTITION BY "DeviceId" ORDER BY "Number"))""",
    ),
    KqlBenchmarkCase(
        "row_window_session",
        "Telemetry | where Number % 7 < 5 | sort by DeviceId asc, Timestamp asc | extend s = row_window_session("
        "Timestamp, 1d, 2m, DeviceId != prev(DeviceId)) | summarize dcount(s)",
        """WITH r AS (SELECT "DeviceId" d, "Timestamp" t, lag("Timestamp") OVER w p FROM "Telemetry"
            WHERE "Number" % 7 < 5 WINDOW w AS (PARTITION BY "DeviceId" ORDER BY "Timestamp")),
        s AS (SELECT last_value(CASE WHEN p IS NULL OR t - p >= INTERVAL 2 MINUTE THEN t END IGNORE NULLS)
            OVER (PARTITION BY d ORDER BY t ROWS UNBOUNDED PRECEDING) s FROM r) SELECT count(DISTINCT s) FROM s""",
    ),
    KqlBenchmarkCase(
        "row_window_session_short",
        "Telemetry | where Number < 500 | sort by DeviceId asc, Timestamp asc | extend s = row_window_session("
        "Timestamp, 10m, 2m, DeviceId != prev(DeviceId)) | summarize dcount(s)",
        """WITH RECURSIVE r AS MATERIALIZED (SELECT "DeviceId" d, "Timestamp" t, row_number() OVER w n FROM "Telemetry"
            WHERE "Number" < 500 WINDOW w AS (PARTITION BY "DeviceId" ORDER BY "Timestamp")),
        m AS (SELECT d, t, n, t s FROM r WHERE n = 1 UNION ALL SELECT r.d, r.t, r.n, CASE WHEN r.t - m.s >=
            INTERVAL 10 MINUTE OR r.t - m.t >= INTERVAL 2 MINUTE THEN r.t ELSE m.s END FROM m JOIN r
            ON r.d = m.d AND r.n = m.n + 1) SELECT count(DISTINCT s) FROM m""",
    ),
    KqlBenchmarkCase(
        "scan",
        "Telemetry | where Number < 20 | sort by DeviceId asc, Timestamp asc | scan declare (c:real = 0.0) with"
        " (step s: true => c = iff(s.c + Value > 1000, 0.0, s.c + Value);) | summarize max(c)",
        """WITH RECURSIVE r AS MATERIALIZED (SELECT row_number() OVER (ORDER BY "DeviceId", "Timestamp") i, "Value" v
            FROM "Telemetry" WHERE "Number" < 20),
        m AS (SELECT 0::BIGINT i, 0::DOUBLE c UNION ALL SELECT r.i, CASE WHEN c + v > 1000 THEN 0 ELSE c + v END
            FROM m JOIN r ON r.i = m.i + 1) SELECT max(c) FROM m""",
    ),
)
