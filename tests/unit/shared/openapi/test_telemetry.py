"""Tests of the schema of a connection's telemetry."""

from typing import Any

from functions.telemetry import GROUP
from shared.openapi.operations import build_operation
from shared.openapi.schemas import SchemaRegistry
from shared.openapi.telemetry import build_telemetry_operation, build_telemetry_path, describe_signal
from tests.unit.shared.telemetry.fakes import build_connection

RIG = build_connection(
    "pump-rig",
    signals=[
        {"name": "pressure", "pointer": "/p", "type": "real", "unit": "bar", "min": 2, "max": 6},
        {"name": "running", "pointer": "/motor/on", "type": "bool", "description": "Motor is on."},
        {"name": "third", "pointer": "/list/2", "type": "long"},
    ],
)


def test_signals_are_members_of_the_message() -> None:
    """The body of the connection's path has the members that the signals declare."""
    shared = build_operation(GROUP.operations[0], SchemaRegistry())
    created = build_telemetry_operation(shared, RIG)
    assert build_telemetry_path(RIG) == "/oi-api/telemetry/pump-rig"
    assert created["operationId"] == "telemetry_pump_rig"
    assert [each for each in created["parameters"] if each["in"] == "path"] == []
    form: dict[str, Any] = created["requestBody"]["content"]["application/json"]
    message, messages = form["schema"]["oneOf"]
    assert message["properties"]["p"] == {
        "type": "number",
        "format": "double",
        "description": "Signal pressure. Unit: bar. Expected range: 2 to 6.",
        "x-unit": "bar",
    }
    assert message["properties"]["motor"]["properties"]["on"]["description"] == "Motor is on."
    assert "list" not in message["properties"]
    assert messages["items"]["properties"]["p"] == message["properties"]["p"]
    assert form["example"] == {"p": 4.0, "motor": {"on": True}}
    original = shared["requestBody"]["content"]["application/json"]["schema"]["oneOf"][0]["properties"]
    assert original.keys() == {"timestamp", "messageId", "deviceId"}


def test_one_limit_is_described() -> None:
    """If a signal has only one limit, the description states only this limit."""
    low, high = (
        build_connection("c", signals=[{"name": "n", "pointer": "/n", "type": "long", **limit}]).signals[0]
        for limit in ({"min": 0}, {"max": 100})
    )
    assert (describe_signal(low), describe_signal(high)) == (
        "Signal n. Expected minimum: 0.",
        "Signal n. Expected maximum: 100.",
    )
