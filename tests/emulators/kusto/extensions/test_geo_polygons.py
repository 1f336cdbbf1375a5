"""Tests of the function that computes the area of polygons."""

import math

import pytest

from tests.emulators.kusto.endpoints import Endpoint

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
def test_area_of_polygons(endpoint: Endpoint, kind: str, coordinates: str, expected: float) -> None:
    """The area has the documented value; overlaps count once, and holes do not count."""
    query = f'print geo_polygon_area(dynamic({{"type": "{kind}", "coordinates": {coordinates}}}))'
    tolerance = 1e-3 if expected > 1e9 else 1e-9
    assert endpoint.rows(query) == [[pytest.approx(expected, rel=tolerance)]]


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
def test_area_of_invalid_polygons(endpoint: Endpoint, shape: str) -> None:
    """The area of an invalid polygon is null."""
    assert endpoint.rows(f"print geo_polygon_area(dynamic({shape}))") == [[None]]
