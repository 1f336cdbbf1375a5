"""Tests of unit conversions and of the format of byte counts."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

EXAMPLES: list[tuple[str, Any]] = [
    ("convert_angle(1.2, 'Degree', 'Arcminute')", 72.0),
    ("convert_energy(1.2, 'Joule', 'BritishThermalUnit')", 0.0011373805443759806),
    ("convert_length(1.2, 'Meter', 'Foot')", 3.9370078740157477),
    ("convert_mass(1.2, 'Kilogram', 'Pound')", 2.6455471462185307),
    ("round(convert_speed(1.2, 'MeterPerSecond', 'CentimeterPerHour'), 6)", 432000.0),
    ("convert_temperature(1.2, 'Kelvin', 'DegreeCelsius')", -271.95),
    ("convert_angle(0.5, 'Tilt', 'Degree')", 30.000000000000004),
    ("convert_volume(1.0, 'CubicMeter', 'Other')", None),
    ("convert_force(real(null), 'Newton', 'Dyn')", None),
    ("format_bytes(564)", "564 Bytes"),
    ("format_bytes(10332, 1)", "10.1 KB"),
    ("format_bytes(20010332, 2)", "19.08 MB"),
    ('format_bytes(20010332, 0, "KB")', "19541 KB"),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_a_function_has_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A conversion returns the documented result; an unknown unit gives null."""
    assert endpoint.rows(f"print {expression}") == [[value]]
