"""KQL functions over lines on a sphere: length of a line, and distance between a point and a line."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from emulators.kusto.extensions.scalar_calls import ScalarCall, build_functions, install_calls

_RADIUS = 6_371_010.0
"""Radius of the sphere in metres, as in Kusto."""
_MAX_LONGITUDE, _MAX_LATITUDE = 180, 90

type Vector = tuple[float, float, float]


def to_vector(point: Sequence[float]) -> Vector:
    """Return the unit vector of a point; raise ValueError if the coordinates are out of range."""
    longitude, latitude = float(point[0]), float(point[1])
    if not (abs(longitude) <= _MAX_LONGITUDE and abs(latitude) <= _MAX_LATITUDE):
        raise ValueError(point)
    lon, lat = math.radians(longitude), math.radians(latitude)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def compute_dot_product(left: Vector, right: Vector) -> float:
    """Compute the scalar product of two vectors."""
    return sum(a * b for a, b in zip(left, right, strict=True))


def compute_cross_product(left: Vector, right: Vector) -> Vector:
    """Compute the vector product of two vectors."""
    (a, b, c), (d, e, f) = left, right
    return b * f - c * e, c * d - a * f, a * e - b * d


def _measure_angle(left: Vector, right: Vector) -> float:
    across = compute_cross_product(left, right)
    return math.atan2(math.sqrt(compute_dot_product(across, across)), compute_dot_product(left, right))


def _iterate_segments(shape: Any) -> Iterator[tuple[Vector, Vector]]:
    """Yield the segments of a GeoJSON LineString or MultiLineString; raise ValueError for any other shape."""
    if shape["type"] not in ("LineString", "MultiLineString"):
        raise ValueError(shape["type"])
    lines = [shape["coordinates"]] if shape["type"] == "LineString" else shape["coordinates"]
    for line in lines:
        points = [to_vector(point) for point in line]
        if len(points) < 2:  # noqa: PLR2004  a line has two ends
            raise ValueError(line)
        yield from pairwise(points)


def _measure_line(shape: Any) -> float:
    return math.fsum(_measure_angle(start, end) for start, end in _iterate_segments(shape)) * _RADIUS


def _measure_distance(longitude: float, latitude: float, shape: Any) -> float:
    point = to_vector((longitude, latitude))
    return min(_measure_segment_distance(point, start, end) for start, end in _iterate_segments(shape)) * _RADIUS


def _measure_segment_distance(point: Vector, start: Vector, end: Vector) -> float:
    """Compute the angle between a point on the globe and the nearest point on a segment of a great circle."""
    nearest_end = min(_measure_angle(point, start), _measure_angle(point, end))
    normal = compute_cross_product(start, end)
    length = math.sqrt(compute_dot_product(normal, normal))
    if length == 0:
        return nearest_end
    # The foot of the point is on the segment if it is on the inner side of the planes through both ends.
    is_beside = (
        compute_dot_product(compute_cross_product(normal, start), point)
        >= 0
        >= compute_dot_product(compute_cross_product(normal, end), point)
    )
    return (
        abs(math.asin(max(-1.0, min(1.0, compute_dot_product(normal, point) / length)))) if is_beside else nearest_end
    )


CALLS = (
    ScalarCall("geo_line_length", _measure_line, "dynamic", "real"),
    ScalarCall("geo_distance_point_to_line", _measure_distance, "real real dynamic", "real"),
)
SUPPORTED = tuple(call.name for call in CALLS)
functions = build_functions(CALLS)
macros: tuple[str, ...] = ()


def install() -> None:
    """Add the functions over lines to the KQL translator library."""
    install_calls(CALLS)
