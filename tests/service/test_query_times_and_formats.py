"""Tests of the time range and the format of queries over HTTP, GraphQL and MCP."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.service.local_service import Service, check_failing_fields, query_rows, wait_until

YESTERDAY = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
TIMES = [YESTERDAY + timedelta(seconds=number) for number in range(5)]
LINES = "".join(
    f'{{"messageId":"range-{number}","ts":"{at.isoformat()}","mark":"range"}}\n' for number, at in enumerate(TIMES)
)
KQL = "Telemetry | where Payload.mark == 'range' | sort by Timestamp asc | project Timestamp, MessageId"
START, END = (f"{TIMES[number]:%Y-%m-%dT%H:%M:%SZ}" for number in (1, 3))
START_MS, END_MS = (int(TIMES[number].timestamp()) * 1000 for number in (1, 3))


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Store five messages with times one second apart, and return a client with a token of an editor."""
    client = service.create_client("editor@t")
    headers = {"Content-Type": "application/x-ndjson"}
    assert client.post("/oi-api/telemetry/pump-rig", content=LINES, headers=headers).status_code == 202
    wait_until(lambda: query_rows(client, KQL), lambda rows: len(rows) == 5)
    return client


def list_message_ids(reply: httpx.Response) -> list[str]:
    """Return the message ids in a reply."""
    assert reply.status_code == 200, reply.text
    return [row["MessageId"] for row in reply.json()["results"]]


@pytest.mark.parametrize("time_fields", [{"from": START, "to": END}, {"from": START_MS, "to": str(END_MS)}])
def test_a_query_time_range_includes_its_start_and_excludes_its_end(
    editor: httpx.Client, time_fields: dict[str, Any]
) -> None:
    """A time range includes its start and excludes its end, in both notations.

    Without an end, it has no upper limit.
    """
    assert list_message_ids(editor.post("/oi-api/warm-queries", json={"query": KQL, **time_fields})) == [
        "range-1",
        "range-2",
    ]
    reply = editor.post("/oi-api/warm-queries", json={"query": KQL, "from": time_fields["from"]})
    assert list_message_ids(reply) == ["range-1", "range-2", "range-3", "range-4"]


@pytest.mark.parametrize(
    ("time_fields", "fields"),
    [
        ({"from": START, "timeRange": "PT1H"}, ["timeRange"]),
        ({"to": END}, ["to"]),
        ({"from": END, "to": START}, ["to"]),
        ({"from": "yesterday"}, ["from"]),
        ({"from": "2020-01-01T00:00:00Z"}, ["from"]),
    ],
)
def test_contradictory_time_fields_of_a_query_are_rejected(
    editor: httpx.Client, time_fields: dict[str, str], fields: list[str]
) -> None:
    """If time fields contradict each other, each route rejects them with their names."""
    reply = editor.post("/oi-api/warm-queries", json={"query": KQL, **time_fields})
    assert check_failing_fields(reply, 400, "INVALID_REQUEST") == fields
    reply = editor.get("/oi-api/warm-queries/per-minute", params=time_fields)
    assert check_failing_fields(reply, 400, "INVALID_REQUEST") == fields


def test_the_parameter_format_has_priority_over_accept(editor: httpx.Client) -> None:
    """The parameter ``format`` selects the media type, whatever Accept contains; an unknown format gets 400."""
    body = {"query": KQL, "from": START, "to": END}
    types = {"json": "application/json", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
    for name, media_type in types.items():
        reply = editor.post(f"/oi-api/warm-queries?format={name}", json=body, headers={"Accept": "image/png, text/csv"})
        assert reply.headers["content-type"].startswith(media_type)
    reply = editor.post("/oi-api/warm-queries?format=xml", json=body)
    assert check_failing_fields(reply, 400, "INVALID_REQUEST") == ["format"]


@pytest.mark.parametrize("uses_accept_header", [True, False])
def test_an_arrow_reply_is_a_stream_with_typed_columns(editor: httpx.Client, uses_accept_header: bool) -> None:  # noqa: FBT001  two cases
    """A reply in the format Arrow is an IPC stream whose columns have types."""
    accept = {"Accept": "application/vnd.apache.arrow.stream"} if uses_accept_header else {}
    url = "/oi-api/warm-queries" if uses_accept_header else "/oi-api/warm-queries?format=arrow"
    reply = editor.post(url, json={"query": KQL, "from": START, "to": END}, headers=accept)
    assert reply.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(io.BytesIO(reply.content)).read_all()
    assert table.column("MessageId").to_pylist() == ["range-1", "range-2"]
    assert table.schema.field("Timestamp").type == pa.timestamp("us", tz="UTC")


def test_graphql_accepts_times_and_a_limit(service: Service) -> None:
    """``executeQuery`` accepts timeRange, from, to and limit; the error about an invalid argument names it."""
    client = service.create_client("editor@t")

    def execute_query_field(arguments: str) -> Any:
        text = f'mutation {{ executeQuery(name: "per-minute", {arguments}) {{ meta {{ rowCount }} }} }}'
        return client.post("/v1/plant-t/graphql", json={"query": text}).json()

    assert (
        execute_query_field(f'from: "{START}", to: "{END}", limit: 1')["data"]["executeQuery"]["meta"]["rowCount"] <= 1
    )
    assert "errors" not in execute_query_field('timeRange: "PT1H"')
    for arguments, name in (
        (f'from: "{START}", timeRange: "PT1H"', "timeRange"),
        ('to: "x"', "to"),
        ("limit: 0", "limit"),
    ):
        assert name in execute_query_field(arguments)["errors"][0]["message"]
