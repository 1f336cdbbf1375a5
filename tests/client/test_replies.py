"""Tests that each client call that sends data rejects a reply that is not JSON."""

from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest
from oi import ApiError, Workspace
from oi._sync.downloads import Download

URL = "http://service.example"
START, END = "2026-01-05T08:00:00Z", "2026-01-05T09:00:00Z"
CALLS: dict[str, Callable[[Workspace], Any]] = {
    "telemetry.send": lambda workspace: workspace.telemetry.send("rig", {"payload": {}}),
    "documents.create": lambda workspace: workspace.documents("s", "d", "t").create({"id": "1"}),
    "documents.replace": lambda workspace: workspace.documents("s", "d", "t").replace({"id": "1"}),
    "queries.put": lambda workspace: workspace.queries.put("q", {}),
    "queries.approve": lambda workspace: workspace.queries.approve("q"),
    "queries.run_kql": lambda workspace: workspace.queries.run_kql("T"),
    "downloads.connection": lambda workspace: workspace.downloads.connection("rig", start=START, end=END),
    "plan_document": lambda workspace: workspace.plan_document("{}"),
    "apply_document": lambda workspace: workspace.apply_document("{}", "tag"),
    "amendments.list": lambda workspace: workspace.amendments.list("line-1"),
    "amendments.approve": lambda workspace: workspace.amendments.approve("line-1", "1"),
    "audit.append": lambda workspace: workspace.audit.append("Start", "Batch", "1"),
    "audit.query": lambda workspace: workspace.audit.query(),
    "audit.verify": lambda workspace: workspace.audit.verify(),
    "team.get": lambda workspace: workspace.team.get("ada"),
    "team.put": lambda workspace: workspace.team.put("ada", {}),
    "alerts.acknowledge": lambda workspace: workspace.alerts.acknowledge("1"),
    "webhooks.create": lambda workspace: workspace.webhooks.create("https://hook.example", []),
    "webhooks.test": lambda workspace: workspace.webhooks.test("1"),
}


CALLS_WITHOUT_JSON: dict[str, tuple[Callable[[Workspace], Any], str]] = {
    "documents.delete": (lambda workspace: workspace.documents("s", "d", "t").delete("1"), "204 No Content"),
    "queries.delete": (lambda workspace: workspace.queries.delete("q"), "204 No Content"),
    "team.delete": (lambda workspace: workspace.team.delete("ada"), "204 No Content"),
    "webhooks.delete": (lambda workspace: workspace.webhooks.delete("1"), "204 No Content"),
    "request": (lambda workspace: workspace.request("DELETE", "/workspace/api/keys/1"), "204 No Content"),
    "download.cancel": (
        lambda workspace: Download(workspace._transport, cast("Any", {"downloadId": "1"})).cancel(),
        "204 No Content",
    ),
    "export_document": (lambda workspace: workspace.export_document(), "application/yaml"),
    "queries.run_raw": (lambda workspace: workspace.queries.run_raw("q", "text/csv"), "text/csv"),
    "audit.export": (lambda workspace: workspace.audit.export(), "audit records"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_reply_that_is_not_json_is_explained(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each call, a successful reply that is not JSON raises an exception of the client."""
    reply_with_page(monkeypatch)
    with Workspace(URL, token="t") as workspace, pytest.raises(ApiError, match="did not reply with JSON"):
        CALLS[name](workspace)


@pytest.mark.parametrize("name", CALLS_WITHOUT_JSON)
def test_a_page_of_a_proxy_is_no_deletion_and_no_export(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each deletion and each export, a successful reply of another server raises an exception of the client."""
    reply_with_page(monkeypatch)
    call, expected = CALLS_WITHOUT_JSON[name]
    with Workspace(URL, token="t") as workspace, pytest.raises(ApiError, match=f"did not reply with {expected}"):
        call(workspace)


@pytest.mark.parametrize("status", [200, 202])
def test_a_deletion_with_any_route_needs_a_reply_without_content(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion with `Workspace.request` fails for each successful reply but 204, also for an empty one."""
    reply_with_page(monkeypatch, "", status)
    with Workspace(URL, token="t") as workspace, pytest.raises(ApiError, match="did not reply with 204 No Content"):
        workspace.request("DELETE", "/a")


def reply_with_page(monkeypatch: pytest.MonkeyPatch, page: str = "<html>", status: int = 200) -> None:
    """Reply to each request of the client with a page, as a proxy does."""
    client = httpx.Client(base_url=URL, transport=httpx.MockTransport(lambda _: httpx.Response(status, html=page)))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
