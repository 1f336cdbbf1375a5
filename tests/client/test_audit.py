"""Tests of requests for audit records and proofs, and of reports of ignored, refused and damaged data."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from oi import InvalidRequestError, Workspace
from oi.cli.main import execute

from shared.provenance.models import EventBody

PAGE = {"x-provenance-has-more": "true", "x-provenance-target": "DomainEvents"}
LISTS = [["audit", "query"], ["amendments", "list", "--scope", "line-1"]]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """Return the list of the requests that the clients of the test have sent.

    The fake service replies with one record, as if each request contained an invalid date and had a damaged record.
    """
    sent: list[httpx.Request] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        is_invalid = "endDate" in request.url.params
        ignored = {"x-provenance-ignored": "endDate, limit"} if is_invalid else {}
        headers = {**PAGE, **ignored, "x-provenance-damaged": "000000000003, 000000000007"}
        return httpx.Response(200, json=[{"RecordID": "000000000003"}], headers=headers)

    client = httpx.Client(base_url="https://plant.example", transport=httpx.MockTransport(reply_to_request))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    monkeypatch.setenv("OI_URL", "https://plant.example")
    monkeypatch.setenv("OI_TOKEN", "t")
    return sent


@pytest.mark.usefixtures("requests")
@pytest.mark.parametrize(
    "read",
    [
        lambda workspace: workspace.audit.query(end="2026-02-30"),
        lambda workspace: workspace.audit.export(end="2026-02-30"),
        lambda workspace: workspace.amendments.list("line-1", end="2026-02-30"),
    ],
)
def test_parameters_that_the_audit_log_ignored_are_an_error(read: Callable[[Workspace], object]) -> None:
    """If the service ignored a filter, the client raises an error that names the parameter, and returns no records."""
    with (
        Workspace("https://plant.example", token="t") as workspace,
        pytest.raises(InvalidRequestError, match="ignored parameters") as refused,
    ):
        read(workspace)
    assert [each["field"] for each in refused.value.errors] == ["endDate", "limit"]


def test_the_command_writes_no_export_if_the_audit_log_ignored_a_filter(
    requests: list[httpx.Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the service ignored a filter, the command names the parameter, exits with 1 and writes no file."""
    output = tmp_path / "export.json"
    assert execute(["audit", "export", "--end-date", "2026-02-30", "-o", str(output)]) == 1
    assert "  endDate: the value is invalid" in capsys.readouterr().err
    assert (len(requests), output.exists()) == (1, False)


@pytest.mark.usefixtures("requests")
@pytest.mark.parametrize("arguments", [*LISTS, *([*each, "--json"] for each in LISTS)])
def test_commands_report_damaged_and_further_records(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that list records name damaged records and report further ones on standard error, also with --json."""
    assert execute(arguments) == 0
    damage, further = capsys.readouterr().err.splitlines()
    assert damage == "damaged in the store: 000000000003, 000000000007; run `oi audit verify`"
    assert "narrow the filters or raise --limit" in further


@pytest.mark.usefixtures("requests")
def test_the_command_reports_damaged_records_of_an_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command that exports records to a file names damaged records and reports further ones on standard error."""
    assert execute(["audit", "export", "-o", str(tmp_path / "export.json")]) == 0
    _, damage, further = capsys.readouterr().err.splitlines()
    assert damage == "damaged in the store: 000000000003, 000000000007; run `oi audit verify`"
    assert "narrow the filters or raise --limit" in further


def test_a_property_that_an_event_does_not_have_is_not_sent(requests: list[httpx.Request]) -> None:
    """The client sends each optional property of an audit event; it refuses others, which would not be stored."""
    fields = EventBody.model_fields.values()
    members = {str(each.alias): "x" for each in fields if not each.is_required() and each.alias != "ScopeKey"}
    with Workspace("https://plant.example", token="t") as workspace:
        workspace.audit.append("Valve.Opened", "Valve", "V-7", **members)
        with pytest.raises(ValueError, match="'Afterstate' is not an optional property"):
            workspace.audit.append("Valve.Opened", "Valve", "V-7", Afterstate={"open": True})
    required = {"ActionType": "Valve.Opened", "EntityType": "Valve", "EntityID": "V-7"}
    assert [json.loads(each.content) for each in requests] == [{**required, **members}]


def test_a_proof_without_a_size_is_for_the_newest_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a size, the client requests a proof for the newest checkpoint of the same chain."""
    requested: list[str] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        requested.append(request.url.raw_path.decode())
        return httpx.Response(200, json={"size": 42})

    client = httpx.Client(base_url="https://plant.example", transport=httpx.MockTransport(reply_to_request))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    with Workspace("https://plant.example", token="t") as workspace:
        workspace.audit.prove(7, scope="line-1")
        workspace.audit.prove(7, size=9)
    assert requested == [
        "/oi-api/provenance/checkpoint?scopeKey=line-1",
        "/oi-api/provenance/proof?scopeKey=line-1&sequence=7&size=42",
        "/oi-api/provenance/proof?sequence=7&size=9",
    ]
