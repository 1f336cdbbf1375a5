"""Tests of comparing payloads with the declared types of signals."""

from typing import Any

import pytest

from shared.catalog.models import SignalDefinition
from shared.telemetry.signals import build_signal_checks, has_type_mismatch


@pytest.mark.parametrize(
    ("kind", "matching", "contradicting"),
    [
        ("real", [1, 1.5, -(2**70), 0], [True, "1.5", [], {}]),
        ("long", [1, 1.0, 2**63 - 1, -(2**63)], [1.5, 2**63, -(2**63) - 1, 1e300, True, "1"]),
        ("bool", [True, False], [0, 1, "true"]),
        ("string", ["", "text", "2026-01-05T08:00:00Z"], [1, True, {"a": 1}]),
        (
            "datetime",
            ["2026-01-05T08:00:00Z", "2026-01-05t08:00:00.123+02:00"],
            ["2026-01-05", "2026-01-05T08:00:00", 0],
        ),
    ],
)
def test_types(kind: str, matching: list[Any], contradicting: list[Any]) -> None:
    """A value has its declared type, or contradicts it; a missing or null value contradicts nothing."""
    signal = SignalDefinition.model_validate({"name": "s", "pointer": "/a/0~1b", "type": kind})
    checks = build_signal_checks([signal])
    for value in (*matching, None):
        assert not has_type_mismatch(checks, {"a": {"0/b": value}}), value
    for value in contradicting:
        assert has_type_mismatch(checks, {"a": {"0/b": value}}), value
    assert not has_type_mismatch(checks, {"a": 4})


def test_one_wrong_value_is_sufficient() -> None:
    """A message contradicts the declared types of signals if any of its values does."""
    signals = [
        SignalDefinition.model_validate({"name": name, "pointer": f"/{name}", "type": "real"})
        for name in ("first", "second")
    ]
    checks = build_signal_checks(signals)
    assert has_type_mismatch(checks, {"first": 1, "second": "two"})
    assert not has_type_mismatch(checks, {"first": 1, "other": "two"})
