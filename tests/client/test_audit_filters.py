"""Tests that the client and the command `oi` know all filters of audit records and amendments."""

from typing import Any

import httpx
import pytest
from oi import Workspace
from oi.cli.main import execute
from pydantic import BaseModel

from functions.amendments import AmendmentsQuery
from functions.provenance_queries import EventsQuery, ExportQuery

TIME = "2026-01-05T08:00:00Z"
EVENTS: dict[str, Any] = {
    "target": "DomainEvents",
    "scopeKey": "line-1",
    "entityType": "Valve",
    "actionType": "Valve.Opened",
    "userId": "ann@plant",
    "startDate": TIME,
    "endDate": TIME,
    "limit": "7",
}
PAGE: dict[str, Any] = {"fromSequence": "3", "toSequence": "9", "offset": "1"}
AMENDMENTS: dict[str, Any] = {
    "scopeKey": "line-1",
    "status": "approved",
    "entityType": "Valve",
    "entityId": "V-7",
    "reasonCategory": "Typo",
    "amendedBy": "ann@plant",
    "startDate": TIME,
    "endDate": TIME,
    "limit": "7",
}
DATES = {"startDate": "start", "endDate": "end", "scopeKey": "scope"}


def to_words(name: str, separator: str) -> str:
    """Return a name in camel case as words with a separator."""
    return "".join(f"{separator}{letter.lower()}" if letter.isupper() else letter for letter in name)


def to_arguments(query: dict[str, Any]) -> dict[str, Any]:
    """Convert query parameters to the arguments of the library."""
    return {
        DATES.get(name, to_words(name, "_")): int(value) if value.isdigit() else value for name, value in query.items()
    }


def to_options(query: dict[str, Any]) -> list[str]:
    """Convert query parameters to the options of a command."""
    names = {name: "scope" if name == "scopeKey" else to_words(name, "-") for name in query}
    return [word for name, value in query.items() for word in (f"--{names[name]}", value)]


def list_parameters(model: type[BaseModel]) -> set[str]:
    """Return the names of the query parameters that the service accepts."""
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Return the list of the query parameters that the clients of the test have sent."""
    sent: list[dict[str, str]] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        sent.append(dict(request.url.params))
        headers = {"x-provenance-has-more": "false", "x-provenance-target": "DomainEvents"}
        return httpx.Response(200, json=[], headers=headers)

    client = httpx.Client(base_url="https://plant.example", transport=httpx.MockTransport(reply_to_request))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    monkeypatch.setenv("OI_URL", "https://plant.example")
    monkeypatch.setenv("OI_TOKEN", "t")
    monkeypatch.delenv("OI_KEY", raising=False)
    return sent


def test_the_library_sends_all_filters_of_the_service(queries: list[dict[str, str]]) -> None:
    """The library has an argument for each filter of audit records and amendments."""
    exported = {**EVENTS, "format": "csv"}
    with Workspace("https://plant.example", token="t") as workspace:
        workspace.audit.query(**to_arguments({**EVENTS, **PAGE}))
        workspace.audit.export(**to_arguments(exported))
        workspace.amendments.list(**to_arguments({**AMENDMENTS, **PAGE}))
    assert queries == [{**EVENTS, **PAGE}, exported, {**AMENDMENTS, **PAGE}]
    accepted = [list_parameters(model) for model in (EventsQuery, ExportQuery, AmendmentsQuery)]
    assert [set(query) for query in queries] == accepted


@pytest.mark.parametrize(
    ("command", "query"),
    [
        (["audit", "query"], {**EVENTS, **PAGE}),
        (["audit", "export"], {**EVENTS, "format": "csv"}),
        (["amendments", "list"], {**AMENDMENTS, **PAGE}),
    ],
)
def test_the_command_has_an_option_for_each_filter(
    queries: list[dict[str, str]], command: list[str], query: dict[str, Any]
) -> None:
    """The option of a filter is the name of the query parameter in kebab case; `--scope` selects the scope."""
    assert execute([*command, *to_options(query)]) == 0
    assert queries == [query]


@pytest.mark.parametrize("name", sorted({*AMENDMENTS, *PAGE} - {"scopeKey"}))
def test_filters_of_amendments_need_a_scope(
    queries: list[dict[str, str]], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Without a scope, the command lists pending amendments only, and rejects all other filters."""
    assert execute(["amendments", "list", *to_options({name: {**AMENDMENTS, **PAGE}[name]})]) == 2
    assert "--scope is required" in capsys.readouterr().err
    assert queries == []
