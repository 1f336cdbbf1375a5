"""Event Hub triggers: what the host gives them, and what they declare."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import azure.functions as func
import pytest
from azure.functions import meta
from azure.functions.eventhub import EventHubTriggerConverter

from functions import ingest
from functions.hub_events import hub_events
from shared.telemetry.models import HubEvent

ROOT = Path(__file__).parents[3]
BODIES = [b'{"a":1}', b"\xff\x00", b""]
SYSTEM: list[dict[str, Any]] = [
    {"SequenceNumber": 41, "Offset": "4100", "PartitionKey": "rig", "EnqueuedTimeUtc": "2026-01-05T08:00:00.1234567Z"},
    {"SequenceNumber": 42, "Offset": "4200", "EnqueuedTimeUtc": "2026-01-05T08:00:01.5"},
    {
        "SequenceNumber": 43,
        "Offset": "4300",
        "PartitionKey": None,
        "EnqueuedTimeUtc": "2026-01-05T08:00:02Z",
        "iothub-connection-device-id": "rig-7",
    },
]
PROPERTIES: list[dict[str, Any]] = [{"messageId": "m"}, {"line": 3, "on": True, "none": None}, {}]


def _batch(**changes: object) -> list[func.EventHubEvent]:
    """Return a batch as the worker library decodes it from what the host sends."""
    told = {
        "PartitionContext": {"PartitionId": "5", "ConsumerGroup": "$Default"},
        "PropertiesArray": PROPERTIES,
        "SystemPropertiesArray": SYSTEM,
    } | changes
    metadata = {name: meta.Datum(json.dumps(value), "json") for name, value in told.items() if value is not None}
    data = meta.Datum(SimpleNamespace(bytes=BODIES), "collection_bytes")
    events = EventHubTriggerConverter.decode(data, trigger_metadata=metadata)
    assert isinstance(events, list)
    return events


def test_events_of_a_batch() -> None:
    """Body, place, time, properties and the IoT Hub's device id come from the batch and the metadata beside it."""
    assert hub_events(_batch()) == [
        HubEvent(BODIES[0], "5", 41, datetime(2026, 1, 5, 8, 0, 0, 123456, UTC), {"messageId": "m"}, "", "rig"),
        HubEvent(BODIES[1], "5", 42, datetime(2026, 1, 5, 8, 0, 1, 500000, UTC), {"line": "3", "on": "true"}),
        HubEvent(BODIES[2], "5", 43, datetime(2026, 1, 5, 8, 0, 2, tzinfo=UTC), {}, "rig-7"),
    ]


def test_metadata_as_text() -> None:
    """Metadata that comes as JSON text in JSON counts the same; without properties there are none."""
    assert hub_events(_batch(PropertiesArray=json.dumps(PROPERTIES))) == hub_events(_batch())
    assert [event.properties for event in hub_events(_batch(PropertiesArray=None))] == [{}, {}, {}]
    assert hub_events([]) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"PartitionContext": None},
        {"PartitionContext": {}},
        {"PropertiesArray": [{}]},
        {"SystemPropertiesArray": [{}, {}, {}]},
        {"SystemPropertiesArray": [{"SequenceNumber": 1}, *SYSTEM[1:]]},
    ],
)
def test_metadata_that_does_not_say_where_events_stand(changes: dict[str, Any]) -> None:
    """Without partition, sequence number and time no id would be the same on redelivery, so the batch fails."""
    with pytest.raises(ValueError):  # noqa: PT011  zip says it in its own words
        hub_events(_batch(**changes))


def _declared(sources: str) -> list[list[Any]]:
    """Return names, bindings and retry policies of the functions that a fresh process registers."""
    script = """
import json, azure.functions as func
from functions.ingest import blueprint
app = func.FunctionApp()
app.register_functions(blueprint)
print(json.dumps([
    [f.get_function_name(), f.get_trigger().get_dict_repr(), f.get_settings_dict("retry_policy")]
    for f in app.get_functions()
], default=str))
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env={"EVENT_HUB_SOURCES": sources}, capture_output=True, check=True
    )
    declared: list[list[Any]] = json.loads(answer.stdout)
    return declared


def test_declarations() -> None:
    """One trigger reads the hub ``telemetry`` and one each further source; all take bytes and retry without end."""
    declared = _declared("press/oi,broken,oven-2/$Default")
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


class Recorder:
    """Stands for the ingest."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, int]] = []

    async def run(self, source: str, events: Sequence[HubEvent]) -> None:
        """Note a run."""
        self.runs.append((source, len(events)))


async def test_handler_runs_the_ingest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger of the hub ``telemetry`` hands its batch to the ingest under that name."""
    recorder = Recorder()
    monkeypatch.setattr(ingest, "services", lambda: SimpleNamespace(ingest=recorder))
    builder = ingest.blueprint._function_builders[0]
    context = SimpleNamespace(trace_context=SimpleNamespace(trace_parent="", trace_state=""))
    await builder._function.get_user_function()(_batch(), context)
    assert recorder.runs == [("telemetry", 3)]
