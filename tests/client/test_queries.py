"""Tests of the execution of queries with the client library and the command `oi`, with a fake service."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oi import NotFoundError, Workspace
from oi.cli.main import execute
from oi.instants import format_iso_duration

from shared.catalog.durations import parse_duration

REPLY = {
    "query": "Q",
    "executedAt": "2026-01-05T08:00:00.000000Z",
    "columns": [],
    "results": [],
    "governance": {"queryApprovedBy": None, "queryApprovedAt": None},
    "truncated": False,
}


@pytest.fixture
def requested_paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of URL paths that the clients of the test have requested."""
    requested: list[str] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        requested.append(request.url.raw_path.decode())
        return httpx.Response(200, json=REPLY)

    client = httpx.Client(base_url="https://plant.example", transport=httpx.MockTransport(reply_to_request))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    return requested


@pytest.fixture
def workspace(requested_paths: list[str]) -> Iterator[Workspace]:
    """Yield a client whose requests are recorded instead of sent."""
    assert requested_paths == []
    with Workspace("https://plant.example", token="t") as opened:
        yield opened


@pytest.mark.parametrize("lookup", ["", ".", "..", "../workspace", "hall/../../team", "/team", "hall//rows", "hall/"])
def test_a_lookup_that_would_change_the_url_path_is_not_found(
    workspace: Workspace, requested_paths: list[str], lookup: str
) -> None:
    """A lookup (id in URLs) that would lead to another URL path is an unknown query, and no request is sent."""
    runs: tuple[Callable[[str], object], ...] = (
        workspace.queries.run,
        partial(workspace.queries.run_raw, media_type="text/csv"),
    )
    for run in runs:
        with pytest.raises(NotFoundError, match=f"lookup '{re.escape(lookup)}' may be empty") as raised:
            run(lookup)
        assert raised.value.code == "WARM_QUERY_NOT_FOUND"
    assert requested_paths == []


def test_slashes_of_an_api_path_are_not_encoded(workspace: Workspace, requested_paths: list[str]) -> None:
    """The slashes of an API path are not encoded; other special characters are percent-encoded."""
    workspace.queries.run("hall/rows", parameters={"a": "x&y"})
    workspace.queries.run("what?#%")
    assert requested_paths == ["/oi-api/warm-queries/hall/rows?p.a=x%26y", "/oi-api/warm-queries/what%3F%23%25"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (4.5, "4.5"),
        ("a,b", "a,b"),
        (["rig-1", None], '["rig-1",null]'),
        ({"min": 1}, '{"min":1}'),
        (datetime(2026, 1, 5, 8, tzinfo=UTC), "2026-01-05T08:00:00+00:00"),
        (timedelta(days=1, minutes=1), "P1DT60.000000S"),
    ],
)
def test_parameters_are_sent_in_the_form_that_the_service_parses(
    workspace: Workspace, requested_paths: list[str], value: object, text: str
) -> None:
    """The client sends a list or dictionary as JSON and a duration as ISO 8601, and leaves out a parameter of None."""
    workspace.queries.run("newest", parameters={"value": value, "missing": None})
    [path] = requested_paths
    assert dict(httpx.URL(path).params) == {"p.value": text}


@given(st.timedeltas())
def test_the_service_parses_each_duration_of_the_client(value: timedelta) -> None:
    """The service parses the text of a duration to the same duration."""
    assert parse_duration(format_iso_duration(value)) == value


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "run", "newest"],
        ["query", "run", "newest", "--json"],
        ["query", "run", "newest", "--format", "csv"],
        ["query", "run", "newest", "-o", "newest.parquet"],
        ["kql", "Telemetry"],
        ["kql", "Telemetry", "--json"],
    ],
)
@pytest.mark.parametrize("is_truncated", [True, False])
def test_commands_report_missing_rows_in_each_format(
    arguments: list[str],
    is_truncated: bool,  # noqa: FBT001  a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If the limit cuts the rows of a query, the command reports this on standard error in each output format."""
    headers = {"x-query-truncated": "true" if is_truncated else "false"}

    def reply_with_requested_type(request: httpx.Request) -> httpx.Response:
        requested = {"Content-Type": request.headers["Accept"], **headers}
        return httpx.Response(200, json={**REPLY, "truncated": is_truncated}, headers=requested)

    transport = httpx.MockTransport(reply_with_requested_type)
    client = httpx.Client(base_url="https://plant.example", transport=transport)
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    monkeypatch.setenv("OI_URL", "https://plant.example")
    monkeypatch.setenv("OI_TOKEN", "t")
    monkeypatch.chdir(tmp_path)
    assert execute(arguments) == 0
    note = "the query has more rows; raise --limit to see them\n"
    assert capsys.readouterr().err == (note if is_truncated else "")
