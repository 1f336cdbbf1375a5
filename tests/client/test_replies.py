"""Tests that each client call that sends data rejects a reply that is not JSON."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from oi import ApiError, Workspace

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


@pytest.mark.parametrize("name", CALLS)
def test_a_reply_that_is_not_json_is_explained(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each call, a successful reply that is not JSON raises an exception of the client."""
    client = httpx.Client(base_url=URL, transport=httpx.MockTransport(lambda _: httpx.Response(200, text="<html>")))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    with Workspace(URL, token="t") as workspace, pytest.raises(ApiError, match="did not reply with JSON"):
        CALLS[name](workspace)
