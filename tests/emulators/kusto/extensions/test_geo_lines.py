"""Tests of functions that compute the length of a line and the distance to a line."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

_LINE = 'dynamic({"type": "LineString", "coordinates": [[0, 0], [0, 1]]})'
_LINES = 'dynamic({"type": "MultiLineString", "coordinates": [[[0, 0], [0, 1]], [[5, 5], [5, 6]]]})'
EXAMPLES: list[tuple[str, Any]] = [
    (f"round(geo_line_length({_LINE}))", 111195.0),
    (f"round(geo_line_length({_LINES}))", 222390.0),
    ("geo_line_length(dynamic({'type': 'Point', 'coordinates': [0, 0]}))", None),
    (f"round(geo_distance_point_to_line(1, 0.5, {_LINE}))", 111191.0),
    (f"round(geo_distance_point_to_line(0, 3, {_LINE}))", 222390.0),
    (f"round(geo_distance_point_to_line(0, 0.3, {_LINE}))", 0.0),
    (f"geo_distance_point_to_line(181, 0, {_LINE})", None),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_a_function_has_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """Lengths and distances are in metres; an argument that is not a line gives null."""
    assert endpoint.rows(f"print {expression}") == [[value]]
