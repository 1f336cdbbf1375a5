"""Tests that the templates deploy exactly what the code needs."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.infra.agreement import find_disagreements
from tests.infra.needs import NOT_DEPLOYED, ROLES, Needs, find_adapters_with_managed_identity, find_needs_of_code
from tests.infra.templates import BICEP, Templates


@pytest.fixture(scope="module")
def needs_of_code() -> Needs:
    """Return the settings, roles and other parts that the code needs from a deployment."""
    return find_needs_of_code()


def test_templates_and_code_agree(needs_of_code: Needs) -> None:
    """The settings, hubs, containers, roles, table and alerts in the templates equal those that the code needs."""
    assert find_disagreements(Templates(), needs_of_code) == []


def test_the_emulator_for_core_tools_sends_the_events_that_the_code_handles(needs_of_code: Needs) -> None:
    """``make services`` starts the emulator of Web PubSub with the same system events as the templates configure."""
    makefile = (BICEP.parents[1] / "Makefile").read_text(encoding="utf-8")
    [events] = re.findall(r"-m emulators\.web_pubsub .*--events ((?:\w+ )+)", makefile)
    assert set(events.split()) == needs_of_code.live_system_events


def test_every_adapter_with_managed_identity_has_a_list_of_roles() -> None:
    """Each adapter that uses the managed identity of the app has a list of the roles that it requires."""
    assert find_adapters_with_managed_identity() == set(ROLES)


def test_each_setting_that_the_deployment_omits_exists_in_the_code() -> None:
    """Each setting that the deployment intentionally omits exists in the code."""
    assert find_needs_of_code().settings.isdisjoint(NOT_DEPLOYED)
    assert all(NOT_DEPLOYED.values())


CHANGES = [
    ("modules/app.bicep", "  COSMOS_DATABASE: cosmosDatabase\n", ""),
    ("modules/app.bicep", "  LOG_LEVEL: logLevel\n", "  LOG_LEVEL: logLevel\n  EXTRA: 'x'\n"),
    ("modules/app.bicep", "  LIVE_SCHEDULE:", "  LIVE_SCHEDULES:"),
    ("modules/app.bicep", "  EventHubs__credential: 'managedidentity'\n", ""),
    ("modules/app.bicep", "var liveHub = 'live'", "var liveHub = 'lives'"),
    ("modules/event-hubs.bicep", "  'impulses'\n", "  'pulses'\n"),
    ("modules/event-hubs.bicep", "  'archive'\n", ""),
    ("modules/event-hubs.bicep", "  'adx'\n", "  'adx'\n  'further'\n"),
    ("modules/data-explorer.bicep", "consumerGroup: 'adx'", "consumerGroup: 'live2'"),
    ("modules/data-storage.bicep", "name: 'downloads'", "name: 'files'"),
    ("modules/cosmos.bicep", "{ defaultConsistencyLevel: 'Strong' }", "{ defaultConsistencyLevel: 'Session' }"),
    ("modules/cosmos.bicep", "enableMultipleWriteLocations: false", "enableMultipleWriteLocations: true"),
    ("cosmos-containers.json", '"/chain"', '"/chains"'),
    ("cosmos-containers.json", '"/append/?"', '"/appended/?"'),
    ("modules/access.bicep", "part: 'impulses', role: 'Azure Event Hubs Data Sender'", "part: '', role: 'Owner'"),
    ("roles.json", "Storage Blob Delegator", "Storage Blob Data Reader"),
    ("telemetry.kql", "DeviceId: string, ", ""),
    ("telemetry.kql", "take_any(Timestamp, ", "take_any("),
    ("telemetry.kql", '{"column": "Payload"', '{"column": "Body"'),
    ("live-stream.bicep", "/oi-api/live-stream/events", "/oi-api/events"),
    ("live-stream.bicep", "          'connected'\n", ""),
    ("live-stream.bicep", "          'disconnected'\n", ""),
    ("modules/app-gateway.bicep", "'X-Workspace-Authorization'", "'X-Authorization'"),
    ("modules/app-gateway.bicep", "'/oi-api/live-stream'", "'/oi-api/live'"),
    ("modules/alerts.bicep", "workspace.ingest.lag", "workspace.ingest.age"),
    ("modules/alerts.bicep", "workspace.background.runs", "workspace.background.run"),
    ("modules/alerts.bicep", "workspace.checkpoint.failures", "workspace.checkpoints.failed"),
]


@pytest.mark.parametrize(("file", "before", "after"), CHANGES)
def test_a_superfluous_or_missing_template_part_is_reported(
    needs_of_code: Needs, tmp_path: Path, file: str, before: str, after: str
) -> None:
    """The comparison reports a superfluous or missing part of a template."""
    folder = tmp_path / "bicep"
    shutil.copytree(BICEP, folder)
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    assert find_disagreements(Templates(folder), needs_of_code)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": frozenset({"NEW_SETTING"})},
        {"placeholders": frozenset({"NEW_SCHEDULE"})},
        {"connections": frozenset({"OtherHubs"})},
        {"readers": frozenset({("impulses", "reports")})},
        {"hubs": frozenset({"commands"})},
        {"blobs": frozenset({"reports"})},
        {"cosmos": ({"id": "new"},)},
        {"roles": frozenset({("vault", "", "Key Vault Administrator")})},
        {"columns": ("Quality",)},
        {"table": "Readings"},
        {"live_hub": "stream"},
        {"live_events": "oi-api/events"},
        {"live_system_events": frozenset({"message"})},
        {"live_stream": "oi-api/stream"},
        {"moved_header": "x-moved"},
        {"messages": frozenset({"something else"})},
        {"metrics": frozenset()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_new_or_obsolete_need_of_the_code_is_reported(needs_of_code: Needs, change: dict[str, Any]) -> None:
    """The comparison reports a new or obsolete need of the code."""
    [(name, value)] = change.items()
    known = getattr(needs_of_code, name)
    further = known | value if isinstance(value, frozenset) and name not in {"messages", "metrics"} else value
    assert find_disagreements(Templates(), replace(needs_of_code, **{name: further}))
