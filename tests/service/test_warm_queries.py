"""Warm queries over HTTP."""

import time
from typing import Any

import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, count_rows, wait_until

BASE = "2026-03-01T00:00:"


@pytest.fixture(scope="module")
def filled(service: Service) -> Service:
    """Return the service with ten readings of the lathe in its table."""
    readings = [
        {"timestamp": f"{BASE}{second:02d}Z", "messageId": f"q{second}", "deviceId": f"p-{second % 2}", "value": second}
        for second in range(10)
    ]
    editor = service.caller("editor@t")
    assert editor.post("/oi-api/telemetry/lathe", json=readings).status_code == 202
    wait_until(lambda: count_rows(editor, "lathe"), lambda rows: rows >= 10)
    return service


def run(service: Service, lookup: str = "newest", **parameters: str) -> Any:
    """Return the reply of a warm query."""
    names = {"timeRange", "limit"}
    query = {name if name in names else f"p.{name}": value for name, value in parameters.items()}
    return service.caller("viewer@t").get(f"/oi-api/warm-queries/{lookup}", params=query)


def test_the_answer_has_its_shape(filled: Service) -> None:
    """Query, time, rows, governance, columns, count, truncation and the engine's time."""
    reply = run(filled, connection="lathe", limit="3").json()
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


def test_the_three_routes_answer_alike(filled: Service) -> None:
    """Lookup, API path and the address made with the query give one shape."""
    client = filled.caller("viewer@t")
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


def test_declared_parameters_filter(filled: Service) -> None:
    """A typed parameter restricts the rows; a hostile value is a value."""
    assert [row["MessageId"] for row in run(filled, connection="lathe", above="6.5").json()["results"]] == [
        "q9",
        "q8",
        "q7",
    ]
    for hostile in ('lathe" or true //', "lathe' | take 1", "lathe\n| take 1", "x" * 4000):
        assert run(filled, connection=hostile).json()["rowCount"] == 0


def test_the_limit_cuts_and_says_so(filled: Service) -> None:
    """Exactly as many rows as there are is not truncated."""
    assert run(filled, connection="lathe", limit="10").json()["truncated"] is False
    assert run(filled, connection="lathe", limit="9").json()["truncated"] is True


def test_a_time_range_keeps_the_newest_rows_before_aggregation(filled: Service) -> None:
    """Old rows are outside the last hour, today's row is inside, and counts count only what is inside."""
    editor = filled.caller("editor@t")
    assert editor.post("/oi-api/telemetry/lathe", json={"messageId": "now", "value": 1000}).status_code == 202
    wait_until(lambda: run(filled, connection="lathe", above="999").json()["rowCount"], lambda rows: rows == 1)
    inside = run(filled, connection="lathe", timeRange="PT1H").json()["results"]
    assert [row["MessageId"] for row in inside] == ["now"]
    # Other tests send messages of their own to the shared service; those have no value.
    kql = "Telemetry | where ConnectionLookup == 'lathe' and isnotnull(todouble(Payload.value)) | summarize n = count()"
    body = {"query": kql, "timeRange": "PT1H"}
    assert editor.post("/oi-api/warm-queries", json=body).json()["results"] == [{"n": 1}]


@pytest.mark.parametrize("time_range", ["P1Y", "P1M", "-PT5M", "PT0S", "five", "", "P367D", "PT"])
def test_bad_time_ranges_are_named(service: Service, time_range: str) -> None:
    """Years, months, nothing, too much and nonsense are each a 400 on the route and in the body."""
    client = service.caller("editor@t")
    by_query = client.get("/oi-api/warm-queries/unknown", params={"timeRange": time_range})
    by_body = client.post("/oi-api/warm-queries", json={"query": "print 1", "timeRange": time_range})
    for reply in (by_query, by_body):
        assert check_failing_fields(reply) == ["timeRange"]


@pytest.mark.parametrize("limit", ["0", "10001", "x", "-1", "", "1.5", "1e3"])
def test_bad_limits_are_named(service: Service, limit: str) -> None:
    """The limit is judged before the lookup."""
    reply = service.caller("viewer@t").get("/oi-api/warm-queries/unknown", params={"limit": limit})
    assert check_failing_fields(reply) == ["limit"]


@pytest.mark.parametrize("limit", [0, 10_001, "x", "5", True, None, 1.5])
def test_bad_limits_in_a_body_are_named(service: Service, limit: object) -> None:
    """In a body the limit is a whole number, no text."""
    reply = service.caller("editor@t").post("/oi-api/warm-queries", json={"query": "print 1", "limit": limit})
    check_problem(reply, 400, "INVALID_REQUEST")


def test_unknown_and_draft_queries(service: Service) -> None:
    """An unknown lookup is 404, a draft 403, each before parameters are judged."""
    check_problem(run(service, "unknown", nothing="1"), 404, "WARM_QUERY_NOT_FOUND")
    check_problem(run(service, "draft", nothing="1"), 403, "QUERY_NOT_APPROVED")


def test_bad_parameters_are_named(service: Service) -> None:
    """Unknown, missing and ill-typed parameters are listed together."""
    assert sorted(check_failing_fields(run(service, above="much", other="1"))) == ["p.above", "p.connection", "p.other"]


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
def test_bad_kql_is_refused_with_its_code(service: Service, kql: str, code: str) -> None:
    """Commands, unknown names, files and monsters are a 400 with the engine's reason."""
    reply = service.caller("editor@t").post("/oi-api/warm-queries", json={"query": kql})
    check_problem(reply, 400, code)
    assert "root:" not in reply.text


def test_a_syntax_error_has_its_position(service: Service) -> None:
    """The position is that of the caller's own text, also when a timeRange put a line before it."""
    for body in ({"query": "Telemetry\n| wherex 1"}, {"query": "Telemetry\n| wherex 1", "timeRange": "PT1H"}):
        told = check_problem(service.caller("editor@t").post("/oi-api/warm-queries", json=body), 400, "QUERY_INVALID")
        assert told["line"] == 2


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"query":"print 1","query":"print 2"}', b'{"query":5}'])
def test_bad_bodies_are_400(service: Service, body: bytes) -> None:
    """What is no JSON object with a query is refused."""
    client = service.caller("editor@t")
    reply = client.post("/oi-api/warm-queries", content=body)
    assert reply.status_code == 400
    assert reply.json()["errors"]


def test_the_older_spelling_of_the_body_field_is_taken(service: Service) -> None:
    """Query stands for query."""
    reply = service.caller("editor@t").post("/oi-api/warm-queries", json={"Query": "print x = 1"})
    assert reply.json()["results"] == [{"x": 1}]
    assert (reply.json()["query"], reply.json()["governance"]["queryApprovedBy"]) == ("ad-hoc", None)


def test_ad_hoc_queries_need_their_right(service: Service) -> None:
    """A viewer runs approved queries only."""
    check_problem(service.caller("viewer@t").post("/oi-api/warm-queries", json={}), 403, "ACCESS_RIGHT_MISSING")


def test_a_query_that_runs_too_long_is_given_up(own_service: Service) -> None:
    """A time-out is a 504 with its code, and the engine goes on serving."""
    own_service._environment["QUERY_TIMEOUT_SECONDS"] = "2"
    client = own_service.start().caller("editor@t")
    endless = "range a from 1 to 1000000 step 1 | extend k = 1 | join kind=inner (range b from 1 to 1000000 step 1 "
    endless += "| extend k = 1) on k | summarize sum(a * b)"
    started = time.monotonic()
    check_problem(client.post("/oi-api/warm-queries", json={"query": endless}), 504, "QUERY_TIMEOUT")
    assert time.monotonic() - started < 30
    assert client.post("/oi-api/warm-queries", json={"query": "print x = 1"}).status_code == 200


def test_csv_and_parquet_by_accept(filled: Service) -> None:
    """The same rows in the form that the caller prefers, governance in headers."""
    client = filled.caller("viewer@t")
    address = "/oi-api/warm-queries/newest?p.connection=lathe&limit=3&p.above=6.5"
    csv = client.get(address, headers={"Accept": "text/csv"})
    assert csv.headers["content-type"].startswith("text/csv")
    assert csv.headers["x-query-approved-by"] == "admin@t"
    assert csv.headers["x-query-approved-at"] == "2026-01-05T08:00:00.000000Z"
    lines = csv.text.split("\r\n")
    assert lines[0] == "Timestamp,DeviceId,MessageId,Payload"
    assert lines[-2].endswith('"{""value"":7}"') or lines[-2].endswith('"{""value"":8}"')
    parquet = client.get(address, headers={"Accept": "application/vnd.apache.parquet"})
    assert parquet.content[:4] == b"PAR1"
    assert parquet.headers["x-query-truncated"] in ("true", "false")


def test_csv_escapes_formulas_and_leaves_numbers(filled: Service) -> None:
    """In CSV, text cells and column names that begin like a formula get an apostrophe; numbers do not."""
    body = {"query": "print ['=name'] = '=1+1', wide = dynamic('@sum'), n = -5, r = -0.5, t = -1h"}
    reply = filled.caller("editor@t").post("/oi-api/warm-queries", json=body, headers={"Accept": "text/csv"})
    assert reply.status_code == 200, reply.text
    header, cells, _ = reply.text.split("\r\n")
    assert header == "'=name,wide,n,r,t"
    assert cells == "'=1+1,'@sum,-5,-0.5,-01:00:00"


def test_unchanged_rows_are_304(filled: Service) -> None:
    """A validator given back saves the body, until the rows change."""
    client = filled.caller("viewer@t")
    address = "/api/workspaces/explorer/warm-queries/newest?p.connection=lathe&p.above=5&limit=1&timeRange=P366D"
    first = client.get(address)
    again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert client.get(address, headers={"If-None-Match": '"other"'}).status_code == 200
    assert client.get(address, headers={"Accept": "text/csv"}).headers["etag"] != first.headers["etag"]


def test_a_kept_answer_says_so(filled: Service) -> None:
    """With cacheSeconds the reply tells whether it was kept, and keeps its first time."""
    editor, admin = filled.caller("editor@t"), filled.caller("admin@t")
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
def test_deep_nesting_is_an_error_of_the_query(service: Service, kql: str) -> None:
    """A value or an expression of very many levels is refused as the query's fault."""
    reply = service.caller("editor@t").post("/oi-api/warm-queries", json={"query": kql})
    assert reply.status_code == 400, reply.text
    assert reply.json()["code"] in {"QUERY_INVALID", "QUERY_TOO_LARGE"}


@pytest.mark.parametrize("form", ["application/json", "text/csv", "application/vnd.apache.parquet"])
def test_a_value_of_many_levels_comes_in_every_form(service: Service, form: str) -> None:
    """A dynamic value of the greatest depth is returned in each media type."""
    kql = f"print a = parse_json('{'[' * 200}{']' * 200}')"
    reply = service.caller("editor@t").post("/oi-api/warm-queries", json={"query": kql}, headers={"Accept": form})
    assert reply.status_code == 200, reply.text
