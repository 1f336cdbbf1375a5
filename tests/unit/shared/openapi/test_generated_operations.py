"""Tests of the OpenAPI operations for approved queries, connections and event webhooks."""

from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from functions import GROUPS
from functions.telemetry import GROUP
from shared.catalog.models import ParameterType, QueryParameter, WarmQuery
from shared.openapi.generated_operations import (
    build_event_webhooks,
    build_query_operation,
    build_query_parameter_schema,
    build_telemetry_operation,
    build_telemetry_url_path,
    describe_signal,
    register_query_summary_schema,
)
from shared.openapi.paths import build_operation_object
from shared.openapi.schemas import SchemaRegistry
from shared.webhooks.events import WebhookEventType
from tests.unit.shared.telemetry.fakes import build_connection

[EXECUTE] = [one for group in GROUPS for one in group.operations if one.name == "execute_warm_query"]


def test_the_summary_schema_has_all_properties_but_the_rows() -> None:
    """The summary schema has all properties except the rows; generators merge equal properties differently."""
    schemas = SchemaRegistry()
    build_operation_object(EXECUTE, schemas)
    register_query_summary_schema(schemas)
    answer, summary = schemas.named["QueryAnswer"], schemas.named["QuerySummary"]
    assert set(answer["properties"]) - set(summary["properties"]) == {"results"}
    assert set(answer["required"]) - set(summary["required"]) == {"results"}


@pytest.mark.parametrize(
    ("kind", "default", "published"),
    [
        (ParameterType.BOOL, "True", True),
        (ParameterType.BOOL, False, False),
        (ParameterType.INT, "+5", 5),
        (ParameterType.LONG, 5.0, 5),
        (ParameterType.REAL, "1.5e1", 15.0),
        (ParameterType.DECIMAL, "1.50", 1.5),
        (ParameterType.DECIMAL, "0.12345678901234567890", None),
        (ParameterType.STRING, "", ""),
        (ParameterType.DATETIME, "2026-01-05T08:00:00Z", "2026-01-05T08:00:00Z"),
        (ParameterType.TIMESPAN, "PT5M", "PT5M"),
        (ParameterType.GUID, "{" + str(UUID(int=1)) + "}", str(UUID(int=1))),
        (ParameterType.DYNAMIC, {"a": ["\u00e9"]}, '{"a": ["\u00e9"]}'),
        (ParameterType.DYNAMIC, "[1]", "[1]"),
        (ParameterType.DYNAMIC, "[", None),
        (ParameterType.LONG, "5.5", None),
        (ParameterType.GUID, "rig-1", None),
    ],
)
def test_the_default_of_a_parameter_has_the_type_of_its_schema(
    kind: ParameterType, default: Any, published: Any
) -> None:
    """A default has its schema's type; an invalid one, and a decimal without an exact JSON number, are omitted."""
    schema = build_query_parameter_schema(QueryParameter(name="p", type=kind, default=default))
    assert schema.get("default") == published
    assert published is None or Draft202012Validator(schema).is_valid(published)
    assert type(schema.get("default")) is type(published)


@pytest.mark.parametrize(("default", "required"), [("5.5", [True]), (None, [False]), (5, [False])])
def test_a_parameter_with_an_invalid_default_is_required(default: Any, required: list[bool]) -> None:
    """A stored default that has not the parameter's type cannot be used, so callers must send the parameter."""
    parameter = QueryParameter(name="p", type=ParameterType.LONG, default=default)
    query = WarmQuery(lookup="q", name="Q", surface="hall", kql="print 1", parameters=(parameter,))
    operation = build_query_operation({"parameters": [], "responses": {}}, query, "run_q", None)
    assert [published["required"] for published in operation["parameters"]] == required


RIG = build_connection(
    "pump-rig",
    signals=[
        {"name": "pressure", "pointer": "/p", "type": "real", "unit": "bar", "min": 2, "max": 6},
        {"name": "running", "pointer": "/motor/on", "type": "bool", "description": "Motor is on."},
        {"name": "third", "pointer": "/list/2", "type": "long"},
    ],
)


def test_signals_are_properties_of_the_message() -> None:
    """The body of a connection's path has the properties that the connection's signals declare."""
    shared = build_operation_object(GROUP.operations[0], SchemaRegistry())
    created = build_telemetry_operation(shared, RIG, "telemetry_pump_rig")
    assert build_telemetry_url_path(RIG) == "/oi-api/telemetry/pump-rig"
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


def test_a_single_limit_of_a_signal_is_described() -> None:
    """If a signal has only a minimum or only a maximum, its description states only this limit."""
    low, high = (
        build_connection("c", signals=[{"name": "n", "pointer": "/n", "type": "long", **limit}]).signals[0]
        for limit in ({"min": 0}, {"max": 100})
    )
    assert (describe_signal(low), describe_signal(high)) == (
        "Signal n. Expected minimum: 0.",
        "Signal n. Expected maximum: 100.",
    )


@pytest.mark.parametrize(
    ("low", "high", "expected_range", "example"),
    [
        (0, 1234567, "0 to 1234567", 617284.0),
        (101325, 101325.5, "101325 to 101325.5", 101325.0),
        (0.0001, 0.0002, "0.0001 to 0.0002", 0.00015),
        (1234567.5, 1234568, "1234567.5 to 1234568", 1234568.0),
        (1.5e308, 1.7e308, "1.5e+308 to 1.7e+308", 1.7e308),
    ],
)
def test_the_expected_range_of_a_signal_has_all_digits(
    low: float, high: float, expected_range: str, example: float
) -> None:
    """The description of a signal states its limits with all digits, and its example lies between them."""
    signal = {"name": "n", "pointer": "/n", "type": "real", "min": low, "max": high}
    connection = build_connection("c", signals=[signal])
    assert describe_signal(connection.signals[0]) == f"Signal n. Expected range: {expected_range}."
    shared = build_operation_object(GROUP.operations[0], SchemaRegistry())
    created = build_telemetry_operation(shared, connection, "telemetry_c")
    assert created["requestBody"]["content"]["application/json"]["example"] == {"n": example}


def test_each_event_type_is_described() -> None:
    """The document describes the request of each event type that a receiver can subscribe to."""
    built = build_event_webhooks(SchemaRegistry())
    assert set(built) == {kind.value for kind in WebhookEventType}
    names = [item["post"]["operationId"] for item in built.values()]
    assert len(set(names)) == len(names)
    assert built["warm-query.pending-approval"]["post"]["operationId"] == "receiveWarmQueryPendingApproval"


def test_each_event_type_example_fits_its_schema() -> None:
    """The example of each event type matches its schema."""
    schemas = SchemaRegistry()
    for kind, item in build_event_webhooks(schemas).items():
        form = item["post"]["requestBody"]["content"]["application/json"]
        document = {**form["schema"], "components": {"schemas": schemas.named}}
        Draft202012Validator(document).validate(form["example"])
        assert form["example"]["type"] == kind
