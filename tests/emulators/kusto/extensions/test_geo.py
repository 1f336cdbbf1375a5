"""Tests of geospatial functions over points, lines and polygons, with the documented results."""

import json
import math
from typing import Any

import pytest

from emulators.kusto.extensions.geo import functions
from tests.emulators.kusto.endpoints import Endpoint

VALUES: list[tuple[str, Any]] = [
    ("geo_distance_2points(-122.407628, 47.578557, -118.275287, 34.019056)", 1546754.35197381),
    ("geo_distance_2points(300,1,1,1)", None),
    ("geo_point_in_circle(-122.317404, 47.609119, -122.3221, 47.6062, 1000)", True),
    ("geo_point_in_circle(1, 1, 1, 1, 0)", None),
    ("geo_point_in_polygon(1, 1, dynamic({'type':'Polygon','coordinates':[[[0,0],[2,2],[2,2],[0,0]]]}))", None),
    ("geo_point_in_polygon(1, 1, dynamic({'type':'Polygon','coordinates':[['a']]}))", None),
    ("geo_point_to_geohash(139.806115, 35.554128, 12)", "xn76m27ty9g4"),
    ("geo_point_to_geohash(-80.195829, 25.802215, 8)", "dhwfz15h"),
    ("geo_point_to_geohash(200,1,8)", ""),
    ("geo_geohash_to_central_point('sunny')", {"type": "Point", "coordinates": [42.47314453125, 23.70849609375]}),
]
ROWS: list[tuple[str, list[Any]]] = [
    (
        (
            "datatable(x:real, y:real)[-73.985654, 40.748487, -73.963249, 40.779525] | project "
            "geo_point_in_polygon(x, y, "
            "dynamic({'type':'Polygon','coordinates':[[[-73.92597198486328,40.87821814104651],"
            "[-73.94691467285156,40.85069618625578],[-74.01008605957031,40.7519385984599],"
            "[-74.01866912841797,40.704586878965245],[-73.97747039794922,40.71083299030839],"
            "[-73.97026062011719,40.7290474687069],[-73.92597198486328,40.87821814104651]],"
            "[[-73.95824432373047,40.80071852197889],[-73.98206233978271,40.76815921628347],"
            "[-73.97309303283691,40.76422632379533],[-73.94914627075195,40.796949998204596],"
            "[-73.95824432373047,40.80071852197889]]]}))"
        ),
        [True],
    ),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_geospatial_functions_return_the_documented_values(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A geospatial function returns the documented value."""
    (result,) = endpoint.query_rows(f"print x = {expression}")[0]
    assert type(result) is type(value)
    assert result == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_geospatial_functions_return_the_documented_rows(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A geospatial function returns the documented rows."""
    assert endpoint.query_rows(text)[0] == row


@pytest.mark.parametrize(
    "text",
    [
        "print geo_distance_2points(1, 1, 2, 2, true)",
        "print geo_point_to_s2cell(1.0, 2.0)",
    ],
)
def test_unsupported_geospatial_calls_are_rejected(endpoint: Endpoint, text: str) -> None:
    """An unsupported geospatial function or argument is rejected, and the error contains its name."""
    assert endpoint.query_error_code(text) == "BadRequest_NotSupported"


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
def test_lengths_and_distances_have_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """Lengths and distances are in metres; for an argument that is no line, the result is null."""
    assert endpoint.query_rows(f"print {expression}") == [[value]]


PARK = (
    "[[-73.9495,40.7969],[-73.95807266235352,40.80068603561921],[-73.98201942443848,40.76825672305777],"
    "[-73.97317886352539,40.76455136505513],[-73.9495,40.7969]]"
)
CROSSING = (
    "[[-73.94262313842773,40.775991804565585],[-73.98107528686523,40.791849155467695],"
    "[-73.99600982666016,40.77092185281977],[-73.96150588989258,40.75609977566361],"
    "[-73.94262313842773,40.775991804565585]]"
)
OCTANT = "[[0,0],[90,0],[0,90],[0,0]]"


@pytest.mark.parametrize(
    ("kind", "coordinates", "expected"),
    [
        ("Polygon", f"[{PARK}]", 3475207.28346606),
        ("MultiPolygon", f"[[{PARK}],[{CROSSING}]]", 10889971.5343487),
        ("MultiPolygon", f"[[{PARK}],[{PARK}],[{PARK}]]", 3475207.28346606),
        ("Polygon", f"[{OCTANT}]", 6371010.0**2 * math.pi / 2),
        ("Polygon", f"[{OCTANT},[[10,10],[10,20],[20,20],[10,10]]]", 6371010.0**2 * math.pi / 2 - 583_489_687_176),
        ("MultiPolygon", "[[[[0,0],[1,0],[0,1],[0,0]]],[[[1,0],[1,1],[0,1],[1,0]]]]", 12_364_000_000),
    ],
)
def test_the_area_of_polygons_counts_overlaps_once(
    endpoint: Endpoint, kind: str, coordinates: str, expected: float
) -> None:
    """The area of polygons has the documented value; overlaps count once and holes do not count."""
    query = f'print geo_polygon_area(dynamic({{"type": "{kind}", "coordinates": {coordinates}}}))'
    tolerance = 1e-3 if expected > 1e9 else 1e-9
    assert endpoint.query_rows(query) == [[pytest.approx(expected, rel=tolerance)]]


@pytest.mark.parametrize(
    "shape",
    [
        '{"type": "Polygon", "coordinates": [[[0,0],[10,10],[10,10],[0,0]]]}',
        '{"type": "Polygon", "coordinates": [[[0,0],[10,10],[20,0],[0,1]]]}',
        '{"type": "Polygon", "coordinates": [[[0,0],[10,100],[20,0],[0,0]]]}',
        '{"type": "Polygon", "coordinates": []}',
        '{"type": "Point", "coordinates": [0,0]}',
        "{}",
    ],
)
def test_the_area_of_an_invalid_polygon_is_null(endpoint: Endpoint, shape: str) -> None:
    """The area of an invalid polygon is null."""
    assert endpoint.query_rows(f"print geo_polygon_area(dynamic({shape}))") == [[None]]


def _measure_crossing_zigzags(corners: int) -> float | None:
    """Return the area of two zigzags of which each edge crosses almost every edge of the other one."""
    upright = [[index / corners, index % 2] for index in range(corners)]
    flat = [[y, x] for x, y in upright]
    shape = {"type": "MultiPolygon", "coordinates": [[[*ring, ring[0]]] for ring in (upright, flat)]}
    (measure,) = (function.run for function in functions if function.name == "kql_call_geo_polygon_area")
    area: float | None = measure(json.dumps(shape))
    return area


def test_the_area_of_polygons_with_too_many_crossings_is_null() -> None:
    """The area of polygons whose edges cross so often that the overlaps take seconds is null."""
    assert _measure_crossing_zigzags(10) is not None
    assert _measure_crossing_zigzags(200) is None
