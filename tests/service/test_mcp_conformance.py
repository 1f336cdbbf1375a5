"""Tests of the MCP server with the protocol's conformance suite and inspector."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.node_suites import running
from tests.service.local_service import Service

pytestmark = pytest.mark.skipif(bool(running.find_missing_requirement()), reason=running.find_missing_requirement())

ADDRESS: Final = "/oi-api/mcp"
REVISIONS: Final = ("2026-07-28", "2025-11-25")
FIXTURES: Final = re.compile(
    r"tools-call-.*|resources-(read|templates)-.*|prompts-get-.*|elicitation-.*|input-required-.*|json-schema-2020-12"
    r"|http-custom-header-server-validation"
)
"""Scenarios that need test fixtures in the server (tools, prompts and resources such as ``test_simple_text``)."""

NOT_OFFERED: Final = {
    "completion-complete": "no completion of arguments",
    "logging-set-level": "stateless: there is no session whose log level could be set",
    "resources-subscribe": "each reply is one JSON document, so nothing can be told later",
    "resources-unsubscribe": "the same",
}
"""Scenarios of optional features that this server does not offer."""

NOT_TESTABLE: Final = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability": "wants a tool test_missing_capability",
        "sep-2575-missing-capability-http-400": "the same",
        "sep-2575-http-server-no-independent-requests-on-stream": "wants a tool test_streaming_elicitation",
        "sep-2575-server-no-log-without-loglevel": "wants a tool test_logging_tool",
        "sep-2575-server-sends-subscription-ack": "there are no subscriptions, see NOT_OFFERED",
        "sep-2575-server-tags-subscription-id": "the same",
    }
}
"""Checks that are expected to fail in scenarios whose other checks pass."""


def read_failures(folder: Path) -> dict[str, set[str]]:
    """Return the failed checks of each scenario by the name of the scenario."""
    found = {}
    for path in folder.glob("server-*/checks.json"):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", path.parent.name)
        checks: list[dict[str, Any]] = json.loads(path.read_text())
        found[name] = {str(check["id"]) for check in checks if check["status"] == "FAILURE"}
    return found


@pytest.mark.parametrize("revision", REVISIONS)
def test_all_applicable_scenarios_of_a_protocol_revision_pass(service: Service, tmp_path: Path, revision: str) -> None:
    """All scenarios of a protocol revision pass, except those that need fixtures or features that the server lacks."""
    token = service.create_client("admin@t").headers["Authorization"].removeprefix("Bearer ")
    options = ("--suite", "all", "--spec-version", revision, "-o", str(tmp_path))
    done = running.run_script("mcp_conformance.mjs", f"{service.url}{ADDRESS}", token, *options)
    found = read_failures(tmp_path)
    assert len(found) > 25, done.stdout + done.stderr
    assert {"tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"} <= found.keys()
    known = {name: set(checks) for name, checks in NOT_TESTABLE.items()}
    failed = {name: checks - known.get(name, set()) for name, checks in found.items()}
    unexpected = {name for name, checks in failed.items() if checks and not FIXTURES.fullmatch(name)} - set(NOT_OFFERED)
    assert unexpected == set(), done.stdout


def test_inspector_lists_and_calls_tools(service: Service) -> None:
    """The MCP inspector's command line can list the tools and call a tool."""
    authorization = f"Authorization: {service.create_client('viewer@t').headers['Authorization']}"
    launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    server = ("--cli", f"{service.url}{ADDRESS}", "--transport", "http", "--header", authorization)
    listed = running.run_script(launcher, *server, "--method", "tools/list")
    assert "list_surfaces" in {tool["name"] for tool in json.loads(listed.stdout)["tools"]}, listed.stderr
    called = running.run_script(launcher, *server, "--method", "tools/call", "--tool-name", "list_surfaces")
    surfaces = json.loads(called.stdout)["structuredContent"]["surfaces"]
    assert "hall" in {surface["lookup"] for surface in surfaces}, called.stderr
