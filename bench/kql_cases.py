"""Queries without window functions for the KQL benchmark, each in KQL and in hand-written SQL."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KqlBenchmarkCase:
    """Query of the KQL benchmark, in KQL and in SQL.

    Attributes:
        name: unique name of the query in snake_case.
        kql: the query in KQL.
        sql: hand-written SQL with the same result.
    """

    name: str
    kql: str
    sql: str


CASES = (
    KqlBenchmarkCase(
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
    KqlBenchmarkCase(
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
    KqlBenchmarkCase(
        "window_functions",
        "Telemetry | where Number < 500 | sort by DeviceId asc, Timestamp asc | extend gap = iff(DeviceId =="
        " prev(DeviceId), Timestamp - prev(Timestamp), timespan(null)), n = row_number() | summarize max(gap), max(n)",
        """SELECT max(CASE WHEN d = p THEN t - q END), max(n) FROM (SELECT "DeviceId" d, "Timestamp" t,
            lag("DeviceId") OVER w p, lag("Timestamp") OVER w q, row_number() OVER w n FROM "Telemetry"
            WHERE "Number" < 500 WINDOW w AS (ORDER BY "DeviceId", "Timestamp"))""",
    ),
    KqlBenchmarkCase(
        "arg_max",
        "Telemetry | summarize arg_max(Timestamp, Value, Number) by DeviceId",
        'SELECT "DeviceId", max("Timestamp"), arg_max("Value", "Timestamp"), arg_max("Number", "Timestamp")'
        ' FROM "Telemetry" GROUP BY 1',
    ),
    KqlBenchmarkCase(
        "percentiles",
        "Telemetry | summarize percentiles(Value, 5, 50, 95) by DeviceId",
        'SELECT "DeviceId", quantile_disc("Value", [0.05, 0.5, 0.95]) FROM "Telemetry" GROUP BY 1',
    ),
    KqlBenchmarkCase(
        "top",
        "Telemetry | top 100 by Value desc",
        'SELECT * FROM "Telemetry" ORDER BY "Value" DESC NULLS LAST LIMIT 100',
    ),
    KqlBenchmarkCase(
        "bin",
        "Telemetry | summarize avg(Value) by bin(Timestamp, 15m), DeviceId",
        'SELECT time_bucket(INTERVAL 15 MINUTE, "Timestamp") t, "DeviceId", avg("Value") FROM "Telemetry" GROUP BY ALL',
    ),
    KqlBenchmarkCase(
        "dynamic_path",
        "Telemetry | where toint(Payload.level) > 5 | summarize n = count(), m = avg(todouble(Payload.motor.rpm))",
        """SELECT count(*), avg(CAST(json_extract("Payload", '$.motor.rpm') AS DOUBLE)) FROM "Telemetry"
            WHERE CAST(json_extract("Payload", '$.level') AS INTEGER) > 5""",
    ),
    KqlBenchmarkCase(
        "mv_expand",
        "Telemetry | where Number < 300 | mv-expand tag = Payload.tags to typeof(string) | summarize count() by tag",
        """SELECT t, count(*) FROM (SELECT unnest(CAST(json_extract("Payload", '$.tags') AS VARCHAR[])) t
            FROM "Telemetry" WHERE "Number" < 300) GROUP BY t""",
    ),
    KqlBenchmarkCase(
        "top_nested",
        "Telemetry | top-nested 3 of DeviceId by s = sum(Value)",
        'SELECT "DeviceId", sum("Value") s FROM "Telemetry" GROUP BY 1 ORDER BY s DESC LIMIT 3',
    ),
    KqlBenchmarkCase(
        "partition",
        "Telemetry | where Number < 2000 | partition hint.strategy=native by DeviceId (top 2 by Value desc)",
        'SELECT * FROM "Telemetry" WHERE "Number" < 2000'
        ' QUALIFY row_number() OVER (PARTITION BY "DeviceId" ORDER BY "Value" DESC) <= 2',
    ),
    KqlBenchmarkCase(
        "top_nested_levels",
        "Telemetry | extend m = Number % 10 | top-nested 3 of DeviceId by s = sum(Value),"
        " top-nested 2 of m by a = max(Value)",
        """WITH r AS (SELECT "DeviceId" d, "Number" % 10 m, "Value" v FROM "Telemetry"),
        t AS (SELECT d, sum(v) s FROM r GROUP BY d ORDER BY s DESC LIMIT 3)
        SELECT d, s, m, max(v) a FROM r JOIN t USING (d) GROUP BY d, s, m
        QUALIFY row_number() OVER (PARTITION BY d ORDER BY a DESC) <= 2""",
    ),
    KqlBenchmarkCase(
        "mv_apply",
        "Telemetry | where Number < 300 | mv-apply tag = Payload.tags to typeof(string) on (summarize best = max(tag))"
        " | summarize count() by best",
        """WITH r AS (SELECT row_number() OVER () i, "Payload" p FROM "Telemetry" WHERE "Number" < 300),
        e AS (SELECT i, unnest(CAST(json_extract(p, '$.tags') AS VARCHAR[])) t FROM r)
        SELECT best, count(*) FROM (SELECT i, max(t) best FROM e GROUP BY i) GROUP BY best""",
    ),
    KqlBenchmarkCase(
        "mv_apply_filtered",
        "Telemetry | where Number < 300 | mv-apply tag = Payload.tags to typeof(string) on"
        " (where tag startswith 'l' | summarize n = count()) | summarize sum(n)",
        """SELECT sum(n) FROM (SELECT len(list_filter(CAST(json_extract("Payload", '$.tags') AS VARCHAR[]),
        lambda t: starts_with(t, 'l'))) n FROM "Telemetry" WHERE "Number" < 300)""",
    ),
    KqlBenchmarkCase(
        "pivot",
        "Telemetry | extend s = strcat('s', Number % 3) | evaluate pivot(s, sum(Value), DeviceId)",
        """WITH r AS (SELECT "DeviceId" d, 's' || "Number" % 3 s, "Value" v FROM "Telemetry")
        SELECT d, sum(v) FILTER (s = 's0'), sum(v) FILTER (s = 's1'), sum(v) FILTER (s = 's2') FROM r GROUP BY d""",
    ),
    KqlBenchmarkCase(
        "full_outer_join",
        "Telemetry | where Number < 3000 | join kind=fullouter (Telemetry | where Number > 2000 | project DeviceId,"
        " Number, w = Value) on DeviceId, Number | summarize count(), sum(w)",
        """SELECT count(*), sum(b."Value") FROM (SELECT * FROM "Telemetry" WHERE "Number" < 3000) a FULL JOIN
        (SELECT * FROM "Telemetry" WHERE "Number" > 2000) b
        USING ("DeviceId", "Number")""",
    ),
    KqlBenchmarkCase(
        "search",
        "search in (Telemetry) 'line2' | count",
        r"""SELECT count(*) FROM "Telemetry" WHERE regexp_matches("DeviceId", '(?i)\bline2\b')
        OR regexp_matches("Payload", '(?i)\bline2\b')""",
    ),
    KqlBenchmarkCase(
        "parse",
        "Telemetry | extend l = strcat(DeviceId, ' at ', Number, ' end') | parse l with 'dev-' n:long ' at ' m:int"
        " ' end' | summarize sum(n), sum(m)",
        """SELECT sum(TRY_CAST(x.n AS BIGINT)), sum(TRY_CAST(x.m AS INTEGER)) FROM (SELECT regexp_extract(
        "DeviceId" || ' at ' || "Number" || ' end', '^dev-(.*?) at (.*?) end', ['n', 'm']) x FROM "Telemetry")""",
    ),
)
