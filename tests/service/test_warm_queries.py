"""Tests of warm queries over HTTP."""

import csv
import io
import json
import time
from typing import Any

import pyarrow as pa
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, count_rows, wait_until

BASE = "2026-03-01T00:00:"


@pytest.fixture(scope="module")
def service_with_readings(own_module_service: Service) -> Service:
    """Return a service whose table has ten readings of the lathe and no other messages."""
    readings = [
        {"timestamp": f"{BASE}{second:02d}Z", "messageId": f"q{second}", "deviceId": f"p-{second % 2}", "value": second}
        for second in range(10)
    ]
    editor = own_module_service.create_client("editor@t")
    assert editor.post("/oi-api/telemetry/lathe", json=readings).status_code == 202
    wait_until(lambda: count_rows(editor, "lathe"), lambda rows: rows >= 10)
    return own_module_service


def run_query(service: Service, lookup: str = "newest", **parameters: str | list[str]) -> Any:
    """Run a warm query and return the reply."""
    names = {"timeRange", "limit"}
    query = {name if name in names else f"p.{name}": value for name, value in parameters.items()}
    return service.create_client("viewer@t").get(f"/oi-api/warm-queries/{lookup}", params=query)


def test_a_result_has_rows_columns_and_governance(service_with_readings: Service) -> None:
    """A result contains query, time, rows, governance, columns, row count, truncation and execution time."""
    reply = run_query(service_with_readings, connection="lathe", limit="3").json()
    assert set(reply) == {
        *("query", "executedAt", "results", "governance", "columns", "rowCount", "truncated", "executionTimeMs"),
    }
    assert reply["query"] == "Newest readings"
    assert reply["governance"] == {
        "queryApprovedBy": "admin@t",
        "queryApprovedAt": "2026-01-05T08:00:00.000000Z",
    }
    assert reply["columns"] == [
        {"name": "Timestamp", "type": "datetime"},
        {"name": "DeviceId", "type": "string"},
        {"name": "MessageId", "type": "string"},
        {"name": "Payload", "type": "dynamic"},
    ]
    assert (reply["rowCount"], reply["truncated"]) == (3, True)
    assert reply["results"][0] == {
        "Timestamp": f"{BASE}09.000000Z",
        "DeviceId": "p-1",
        "MessageId": "q9",
        "Payload": {"value": 9},
    }
    assert 0 < reply["executionTimeMs"] < 60_000


def test_the_render_properties_are_part_of_the_reply(service_with_readings: Service) -> None:
    """If the KQL has a ``render`` operator, the reply contains its properties, which also change the ETag."""
    replies = [
        service_with_readings.create_client("editor@t").post(
            "/oi-api/warm-queries", json={"query": f"print t = 1{operator}"}
        )
        for operator in ("", " | render anomalychart with (title='a', anomalycolumns=t)")
    ]
    assert "visualization" not in replies[0].json()
    visualization = replies[1].json()["visualization"]
    assert (visualization["visualization"], visualization["title"]) == ("anomalychart", "a")
    assert (visualization["anomalyColumns"], visualization["yColumns"]) == (["t"], None)
    assert replies[0].headers["etag"] != replies[1].headers["etag"]


def test_the_routes_for_lookup_api_path_and_id_return_the_same_result(service_with_readings: Service) -> None:
    """A query returns the same result at the routes for its lookup, its API path and its id."""
    client = service_with_readings.create_client("viewer@t")
    replies = [
        client.get(path).json()
        for path in (
            "/oi-api/warm-queries/per-minute",
            "/oi-api/warm-queries/hall/pump-rig/minutes",
            "/api/workspaces/explorer/warm-queries/per-minute",
        )
    ]
    assert len({reply["query"] for reply in replies}) == 1
    assert len({tuple(reply) for reply in replies}) == 1


def test_query_parameters_are_values_and_not_kql(service_with_readings: Service) -> None:
    """A parameter is used as a value, even if it contains valid KQL."""
    assert [
        row["MessageId"] for row in run_query(service_with_readings, connection="lathe", above="6.5").json()["results"]
    ] == [
        "q9",
        "q8",
        "q7",
    ]
    for hostile in ('lathe" or true //', "lathe' | take 1", "lathe\n| take 1", "x" * 4000):
        assert run_query(service_with_readings, connection=hostile).json()["rowCount"] == 0


def test_the_query_limit_truncates_the_result(service_with_readings: Service) -> None:
    """A result is marked as truncated only if the limit has removed rows from it."""
    assert run_query(service_with_readings, connection="lathe", limit="10").json()["truncated"] is False
    assert run_query(service_with_readings, connection="lathe", limit="9").json()["truncated"] is True


def test_a_time_range_is_applied_before_aggregation(service_with_readings: Service) -> None:
    """A time range selects rows before the query aggregates them."""
    editor = service_with_readings.create_client("editor@t")
    assert editor.post("/oi-api/telemetry/lathe", json={"messageId": "now", "value": 1000}).status_code == 202
    wait_until(
        lambda: run_query(service_with_readings, connection="lathe", above="999").json()["rowCount"],
        lambda rows: rows == 1,
    )
    inside = run_query(service_with_readings, connection="lathe", timeRange="PT1H").json()["results"]
    assert [row["MessageId"] for row in inside] == ["now"]
    # Other tests send messages without a value to the shared service.
    kql = "Telemetry | where ConnectionLookup == 'lathe' and isnotnull(todouble(Payload.value)) | summarize n = count()"
    body = {"query": kql, "timeRange": "PT1H"}
    assert editor.post("/oi-api/warm-queries", json=body).json()["results"] == [{"n": 1}]


@pytest.mark.parametrize("time_range", ["P1Y", "P1M", "-PT5M", "PT0S", "five", "", "P367D", "PT"])
def test_invalid_time_ranges_are_rejected(service: Service, time_range: str) -> None:
    """A time range is rejected with 400 if it is zero, negative, too long or malformed, or has years or months."""
    client = service.create_client("editor@t")
    by_query = client.get("/oi-api/warm-queries/unknown", params={"timeRange": time_range})
    by_body = client.post("/oi-api/warm-queries", json={"query": "print 1", "timeRange": time_range})
    for reply in (by_query, by_body):
        assert check_failing_fields(reply) == ["timeRange"]


@pytest.mark.parametrize("limit", ["0", "10001", "x", "-1", "", "1.5", "1e3"])
def test_an_invalid_limit_of_an_unknown_query_is_listed(service: Service, limit: str) -> None:
    """An invalid limit is reported even if the query does not exist."""
    reply = service.create_client("viewer@t").get("/oi-api/warm-queries/unknown", params={"limit": limit})
    assert check_failing_fields(reply) == ["limit"]


@pytest.mark.parametrize("limit", [0, 10_001, "x", "5", True, None, 1.5])
def test_an_invalid_query_limit_in_a_body_is_listed(service: Service, limit: object) -> None:
    """In a body the limit must be a whole number, not text."""
    reply = service.create_client("editor@t").post("/oi-api/warm-queries", json={"query": "print 1", "limit": limit})
    check_problem(reply, 400, "INVALID_REQUEST")


def test_unknown_and_draft_queries_are_rejected_before_their_parameters(service: Service) -> None:
    """An unknown query gets 404 and a draft gets 403, before parameters are checked."""
    for value in ("1", ["1", "2"]):
        check_problem(run_query(service, "unknown", nothing=value), 404, "WARM_QUERY_NOT_FOUND")
        check_problem(run_query(service, "draft", nothing=value), 403, "QUERY_NOT_APPROVED")


def test_invalid_parameters_of_a_query_are_listed(service: Service) -> None:
    """Unknown, missing, repeated and ill-typed parameters are listed together."""
    fields = ["p.above", "p.connection", "p.other"]
    for connections in ([], ["lathe", "lathe"]):
        reply = run_query(service, above="much", other="1", connection=connections)
        assert sorted(check_failing_fields(reply)) == fields


@pytest.mark.parametrize(
    ("kql", "code"),
    [
        (".show tables", "QUERY_NOT_READ_ONLY"),
        ("// hidden\n.drop table Telemetry", "QUERY_NOT_READ_ONLY"),
        ("Telemetry | count; .drop table Telemetry", "QUERY_NOT_READ_ONLY"),
        ("Nothing | count", "QUERY_INVALID"),
        ("['/etc/passwd'] | take 1", "QUERY_INVALID"),
        ("['information_schema.tables'] | take 1", "QUERY_INVALID"),
        ("Telemetry | wherex 1", "QUERY_INVALID"),
        ("Telemetry | where NoColumn == 1", "QUERY_INVALID"),
        ("print " + "(" * 500 + "1" + ")" * 500, "QUERY_INVALID"),
        ("", "QUERY_INVALID"),
        ("externaldata(x:string)['file:///etc/passwd']", "QUERY_INVALID"),
    ],
)
def test_invalid_kql_is_rejected(service: Service, kql: str, code: str) -> None:
    """Commands, unknown names, external data and too large queries get 400 with the reason of the engine."""
    reply = service.create_client("editor@t").post("/oi-api/warm-queries", json={"query": kql})
    check_problem(reply, 400, code)
    assert "root:" not in reply.text


def test_kql_syntax_errors_have_a_position(service: Service) -> None:
    """A syntax error has the position in the caller's text, even if a timeRange adds a line before it."""
    for body in ({"query": "Telemetry\n| wherex 1"}, {"query": "Telemetry\n| wherex 1", "timeRange": "PT1H"}):
        details = check_problem(
            service.create_client("editor@t").post("/oi-api/warm-queries", json=body), 400, "QUERY_INVALID"
        )
        assert details["line"] == 2


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"query":"print 1","query":"print 2"}', b'{"query":5}'])
def test_bodies_without_a_query_get_400(service: Service, body: bytes) -> None:
    """A body that is not a JSON object with a query is rejected."""
    client = service.create_client("editor@t")
    reply = client.post("/oi-api/warm-queries", content=body)
    assert reply.status_code == 400
    assert reply.json()["errors"]


def test_the_older_name_of_the_body_field_query_is_accepted(service: Service) -> None:
    """A body may contain the older name `Query` instead of `query`."""
    reply = service.create_client("editor@t").post("/oi-api/warm-queries", json={"Query": "print x = 1"})
    assert reply.json()["results"] == [{"x": 1}]
    assert (reply.json()["query"], reply.json()["governance"]["queryApprovedBy"]) == ("ad-hoc", None)


def test_ad_hoc_queries_require_the_right(service: Service) -> None:
    """A viewer can execute approved queries, but not ad-hoc queries."""
    check_problem(service.create_client("viewer@t").post("/oi-api/warm-queries", json={}), 403, "ACCESS_RIGHT_MISSING")


def test_a_query_timeout_gets_504(own_service: Service) -> None:
    """A query that exceeds the timeout gets 504 and an error code, and the engine keeps working."""
    own_service._environment["QUERY_TIMEOUT_SECONDS"] = "2"
    client = own_service.start().create_client("editor@t")
    endless = "range a from 1 to 1000000 step 1 | extend k = 1 | join kind=inner (range b from 1 to 1000000 step 1 "
    endless += "| extend k = 1) on k | summarize sum(a * b)"
    started = time.monotonic()
    check_problem(client.post("/oi-api/warm-queries", json={"query": endless}), 504, "QUERY_TIMEOUT")
    assert time.monotonic() - started < 30
    assert client.post("/oi-api/warm-queries", json={"query": "print x = 1"}).status_code == 200


def test_csv_and_parquet_replies_contain_the_rows_of_json(service_with_readings: Service) -> None:
    """CSV and Parquet replies contain the same rows as JSON; their headers contain the governance properties."""
    client = service_with_readings.create_client("viewer@t")
    address = "/oi-api/warm-queries/newest?p.connection=lathe&limit=3&p.above=6.5"
    table = client.get(address, headers={"Accept": "text/csv"})
    assert table.headers["content-type"].startswith("text/csv")
    assert table.headers["x-query-approved-by"] == "admin@t"
    assert table.headers["x-query-approved-at"] == "2026-01-05T08:00:00.000000Z"
    lines = table.text.split("\r\n")
    assert lines[0] == "Timestamp,DeviceId,MessageId,Payload"
    assert lines[-2].endswith('"{""value"":7}"') or lines[-2].endswith('"{""value"":8}"')
    parquet = client.get(address, headers={"Accept": "application/vnd.apache.parquet"})
    assert parquet.content[:4] == b"PAR1"
    assert parquet.headers["x-query-truncated"] in ("true", "false")


def test_csv_escapes_formulas(service_with_readings: Service) -> None:
    """In CSV, an apostrophe precedes a text that begins like a formula; numbers are unchanged."""
    body = {"query": "print ['=name'] = '=1+1', wide = dynamic('@sum'), n = -5, r = -0.5, t = -1h"}
    reply = service_with_readings.create_client("editor@t").post(
        "/oi-api/warm-queries", json=body, headers={"Accept": "text/csv"}
    )
    assert reply.status_code == 200, reply.text
    header, cells, _ = reply.text.split("\r\n")
    assert header == "'=name,wide,n,r,t"
    assert cells == "'=1+1,'@sum,-5,-0.5,-01:00:00"


def test_unchanged_query_rows_get_304(service_with_readings: Service) -> None:
    """A request with the ETag of the last reply gets 304, unless the rows have changed; an invalid header gets 400."""
    client = service_with_readings.create_client("viewer@t")
    address = "/api/workspaces/explorer/warm-queries/newest?p.connection=lathe&p.above=5&limit=1&timeRange=P366D"
    first = client.get(address)
    again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert client.get(address, headers={"If-None-Match": '"other"'}).status_code == 200
    assert check_failing_fields(client.get(address, headers={"If-None-Match": "other"})) == ["If-None-Match"]
    both = client.get(address, params={"timeRange": "x"}, headers={"If-None-Match": "other"})
    assert sorted(check_failing_fields(both)) == ["If-None-Match", "timeRange"]
    assert client.get(address, headers={"Accept": "text/csv"}).headers["etag"] != first.headers["etag"]


def test_cached_query_results_are_marked(service_with_readings: Service) -> None:
    """With cacheSeconds the reply says whether it comes from the cache, and when the query was executed."""
    editor, admin = service_with_readings.create_client("editor@t"), service_with_readings.create_client("admin@t")
    body = {"name": "Kept", "surface": "hall", "kql": "Telemetry | count", "cacheSeconds": 300}
    assert editor.put("/oi-api/warm-queries/kept", json=body).status_code == 201
    assert admin.post("/oi-api/warm-queries/kept/approve").status_code == 200
    first = editor.get("/oi-api/warm-queries/kept").json()
    again = editor.get("/oi-api/warm-queries/kept").json()
    assert (first["fromCache"], again["fromCache"]) == (False, True)
    assert first["executedAt"] == again["executedAt"] == again["asOf"]


@pytest.mark.parametrize(
    "kql",
    [
        f"print parse_json('{'[' * 20_000}{']' * 20_000}')",
        f"print parse_json('{'[' * 5_000}{']' * 5_000}')",
        "print parse_json('" + '{"a":' * 10_000 + "1" + "}" * 10_000 + "')",
        f"print dynamic({'[' * 10_000}{']' * 10_000})",
        f"print {'(' * 20_000}1{')' * 20_000}",
        "print " + "not(" * 10_000 + "true" + ")" * 10_000,
    ],
    ids=["parse-json", "less-deep", "objects", "dynamic", "parentheses", "calls"],
)
def test_deeply_nested_kql_is_rejected(service: Service, kql: str) -> None:
    """A value or expression with too many nested levels is rejected with 400."""
    reply = service.create_client("editor@t").post("/oi-api/warm-queries", json={"query": kql})
    assert reply.status_code == 400, reply.text
    assert reply.json()["code"] in {"QUERY_INVALID", "QUERY_TOO_LARGE"}


TEXTS = ["4E12", "1.10", "true", "null", "NaN", "-Infinity", " 5 ", '"x"', "[NaN]", "5 [bar]"]


@pytest.mark.parametrize("number", ["1", "123456789012345678901"], ids=["short", "huge"])
def test_texts_in_dynamic_columns_stay_texts_in_every_format(service: Service, number: str) -> None:
    """A text in a dynamic column is the same text in JSON, CSV and Arrow, and JSON is strict."""
    literal = json.dumps(json.dumps({str(place): text for place, text in enumerate(TEXTS)}))
    columns = ", ".join(f"c{place} = d['{place}']" for place in range(len(TEXTS)))
    kql = f"print d = parse_json({literal}), n = parse_json('{number}') | project {columns}, n"
    client = service.create_client("editor@t")

    def fetch(media_type: str) -> bytes:
        headers = {"Accept": media_type}
        reply = client.post("/oi-api/warm-queries", json={"query": kql}, headers=headers)
        assert reply.status_code == 200, reply.text
        return reply.content

    [row] = json.loads(fetch("application/json"), parse_constant=reject_constant)["results"]
    assert list(row.values()) == [*TEXTS, int(number)]
    [cells] = list(csv.reader(io.StringIO(fetch("text/csv").decode())))[1:]
    assert cells == [f"'{text}" if text.startswith("-") else text for text in TEXTS] + [number]
    arrow = pa.ipc.open_stream(fetch("application/vnd.apache.arrow.stream")).read_all()
    assert [json.loads(column[0].as_py(), parse_constant=reject_constant) for column in arrow] == list(row.values())


def reject_constant(constant: str) -> None:
    """Raise an error for NaN and infinity, which strict JSON does not have."""
    raise AssertionError(f"{constant} is not JSON")


@pytest.mark.parametrize("form", ["application/json", "text/csv", "application/vnd.apache.parquet"])
def test_nested_values_are_returned_in_every_format(service: Service, form: str) -> None:
    """A dynamic value of the maximum depth is returned in each format."""
    kql = f"print a = parse_json('{'[' * 200}{']' * 200}')"
    reply = service.create_client("editor@t").post(
        "/oi-api/warm-queries", json={"query": kql}, headers={"Accept": form}
    )
    assert reply.status_code == 200, reply.text
