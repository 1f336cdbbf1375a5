"""Tests of the triggers."""

import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from functions import triggers
from shared.runtime import SYSTEM_RUNTIME
from shared.telemetry.event_hub_sources import parse_event_hub_sources
from shared.telemetry.models import HubEvent
from tests.unit.functions.host_batches import decode_batch

ROOT = Path(__file__).parents[3]


def _read_ingest_triggers(sources: str) -> list[list[Any]]:
    """Return names, bindings and retry policies of the ingest functions that a new process registers."""
    script = """
import json, azure.functions as func
from functions.triggers import blueprint
app = func.FunctionApp()
app.register_functions(blueprint)
print(json.dumps([
    [f.get_function_name(), f.get_trigger().get_dict_repr(), f.get_settings_dict("retry_policy")]
    for f in app.get_functions() if f.get_function_name().startswith("ingest")
], default=str))
"""
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env={"EVENT_HUB_SOURCES": sources}, capture_output=True, check=True
    )
    declared: list[list[Any]] = json.loads(process.stdout)
    return declared


def test_each_source_has_an_ingest_trigger() -> None:
    """The hub ``telemetry`` and each further source have one trigger; it passes bytes and repeats failed batches."""
    declared = _read_ingest_triggers("press/oi,broken,oven-2/$Default")
    assert [name for name, _, _ in declared] == ["ingest", "ingest_press_oi", "ingest_oven_2__Default"]
    hubs = [(trigger["eventHubName"], trigger["consumerGroup"]) for _, trigger, _ in declared]
    assert hubs == [("telemetry", "$Default"), ("press", "oi"), ("oven-2", "$Default")]
    for _, trigger, retry in declared:
        assert (trigger["type"], trigger["connection"]) == ("eventHubTrigger", "EventHubs")
        assert (trigger["cardinality"], trigger["dataType"]) == ("MANY", "BINARY")
        assert retry == {
            "setting_name": "retry_policy",
            "strategy": "exponential_backoff",
            "max_retry_count": "-1",
            "minimum_interval": "00:00:01",
            "maximum_interval": "00:01:00",
        }


class IngestRecorder:
    """Fake ingestion that records its runs."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, int]] = []

    async def run(self, source: str, events: Sequence[HubEvent]) -> None:
        """Record the source and the number of events of a batch."""
        self.runs.append((source, len(events)))


async def test_the_hub_trigger_runs_the_ingestion(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger of the hub ``telemetry`` passes its batch and the hub's name to the ingestion."""
    recorder = IngestRecorder()
    services = SimpleNamespace(telemetry=SimpleNamespace(ingestor=recorder), runtime=SYSTEM_RUNTIME)
    monkeypatch.setattr(triggers, "services", lambda: services)
    builder = triggers.blueprint._function_builders[0]
    context = SimpleNamespace(trace_context=SimpleNamespace(trace_parent="", trace_state=""))
    await builder._function.get_user_function()(decode_batch(), context)
    assert recorder.runs == [("telemetry", 3)]


class ArchiveRecorder:
    """Fake archive that counts the events that it gets."""

    def __init__(self) -> None:
        self.events = 0

    async def store_events(self, events: Sequence[HubEvent]) -> None:
        """Count the events of a batch."""
        self.events += len(events)


async def test_every_hub_whose_delay_loses_telemetry_records_its_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingestion and archive record the age of the oldest event of a batch, each with its hub and consumer group."""
    clock = SimpleNamespace(now=lambda: datetime.fromisoformat("2026-01-05T08:10:00.123456Z"))
    archive = ArchiveRecorder()
    services = SimpleNamespace(
        telemetry=SimpleNamespace(ingestor=IngestRecorder()),
        cold_data=SimpleNamespace(archive=archive),
        runtime=clock,
    )
    recorded: list[tuple[str, float, dict[str, str]]] = []
    monkeypatch.setattr(triggers, "services", lambda: services)
    monkeypatch.setattr(
        triggers, "record_histogram_value", lambda name, value, **attributes: recorded.append((name, value, attributes))
    )
    functions = [builder._function for builder in triggers.blueprint._function_builders]
    context = SimpleNamespace(trace_context=SimpleNamespace(trace_parent="", trace_state=""))
    for name in ("ingest", "archive"):
        [function] = [each for each in functions if each.get_function_name() == name]
        await function.get_user_function()(decode_batch(), context)
    assert recorded == [
        ("workspace.ingest.lag", 600.0, {"hub": "telemetry", "group": "$Default"}),
        ("workspace.ingest.lag", 600.0, {"hub": "impulses", "group": "archive"}),
    ]
    assert archive.events == 3


def test_entries_of_event_hub_sources_are_parsed() -> None:
    """Each entry of ``EVENT_HUB_SOURCES`` is a hub and a consumer group; duplicates are removed."""
    sources = parse_event_hub_sources(" press/$Default, oven-2/oi ,,press/$Default")
    assert [source.name for source in sources] == ["press/$Default", "oven-2/oi"]
    assert [source.function_name for source in sources] == ["ingest_press__Default", "ingest_oven_2_oi"]
    assert parse_event_hub_sources("") == ()


@pytest.mark.parametrize("entry", ["press", "press/", "/oi", "a/b/c", "pr ess/oi", "press/$Other", "oven.2/oi"])
def test_invalid_entries_of_event_hub_sources_are_skipped(entry: str, caplog: pytest.LogCaptureFixture) -> None:
    """A malformed entry, or one whose function name is in use, is skipped and logged."""
    with caplog.at_level(logging.ERROR, "workspace"):
        sources = parse_event_hub_sources(f"oven-2/oi,{entry}")
    assert [source.name for source in sources] == ["oven-2/oi"]
    assert len(caplog.records) == 1
