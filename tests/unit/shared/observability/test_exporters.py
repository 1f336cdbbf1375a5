"""Tests of the ``OTEL_*`` variables, which select the exporters."""

from collections.abc import Mapping

import pytest

from shared.observability.exporters import (
    Signal,
    describe_unsupported_otel_variables,
    is_collector_selected,
    is_sdk_disabled,
)

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
BOTH, NEITHER = {Signal.TRACES, Signal.METRICS}, set[Signal]()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, NEITHER),
        (ENDPOINT, BOTH),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, NEITHER),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, {Signal.TRACES}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1/v1/metrics"}, {Signal.METRICS}),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, {Signal.METRICS}),
        ({**ENDPOINT, "OTEL_METRICS_EXPORTER": "None"}, {Signal.TRACES}),
        ({**ENDPOINT, "OTEL_LOGS_EXPORTER": "none"}, BOTH),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, {Signal.TRACES}),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "TRUE"}, NEITHER),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "false"}, BOTH),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, BOTH),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": ""}, BOTH),
    ],
)
def test_configured_traces_and_metrics_are_exported(environment: Mapping[str, str], expected: set[Signal]) -> None:
    """A signal (traces or metrics) is exported if its endpoint or exporter is set and it is not disabled."""
    assert {signal for signal in Signal if is_collector_selected(signal, environment)} == expected
    assert describe_unsupported_otel_variables(environment) == []


@pytest.mark.parametrize(
    ("environment", "named", "expected"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", NEITHER),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "TRACES_PROTOCOL=http/json", {Signal.METRICS}),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
            {Signal.TRACES},
        ),
        ({"OTEL_METRICS_EXPORTER": "prometheus"}, "OTEL_METRICS_EXPORTER=prometheus", {Signal.TRACES}),
    ],
)
def test_unsupported_exporter_values_are_reported(
    environment: Mapping[str, str], named: str, expected: set[Signal]
) -> None:
    """An unsupported protocol or exporter is reported once, and its signal is not exported."""
    environment = {**ENDPOINT, **environment}
    [fault] = describe_unsupported_otel_variables(environment)
    assert named in fault
    assert {signal for signal in Signal if is_collector_selected(signal, environment)} == expected


def test_invalid_values_of_disabled_signals_are_not_reported() -> None:
    """For a disabled signal, invalid values of its variables are not reported."""
    environment = {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    assert (
        describe_unsupported_otel_variables(
            {**environment, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
        )
        == []
    )
    assert describe_unsupported_otel_variables({**environment, "OTEL_SDK_DISABLED": "true"}) == []
    assert is_sdk_disabled({"OTEL_SDK_DISABLED": "true"})
    assert describe_unsupported_otel_variables({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == []
