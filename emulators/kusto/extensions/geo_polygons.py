"""KQL function ``geo_polygon_area``: the area of polygons on a sphere.

The edges of a polygon are geodesics. In the gnomonic projection, whose centre is the centre of the polygons, geodesics
are straight lines. The overlap of polygons is therefore found in this plane.
"""

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from emulators.kusto.extensions.geo_lines import Vector, compute_cross_product, compute_dot_product, to_vector
from emulators.kusto.extensions.scalar_calls import ScalarCall, build_functions, install_calls

_RADIUS = 6_371_010.0
"""Radius of the sphere in metres, as in Kusto."""
_LEAST_POINTS = 4
_MAX_UNION_EDGES = 2_000
"""Maximum number of edges of overlapping polygons; the number of their crossings grows with its square."""

type Point = tuple[float, float]
type Edge = tuple[Point, Point, int]
"""Two points in the plane from left to right, and the index of their polygon."""


def _read_ring(ring: Sequence[Sequence[float]]) -> list[Vector]:
    """Parse the distinct vertices of a GeoJSON polygon's ring; raise ValueError if the ring is invalid."""
    vertices = [to_vector(point) for point in ring[:-1]]
    if len(ring) < _LEAST_POINTS or list(ring[0]) != list(ring[-1]) or len(set(vertices)) < len(vertices):
        raise ValueError(ring)
    return vertices


def _measure_ring(ring: Sequence[Vector]) -> float:
    """Return the solid angle of the smaller region that a ring encloses."""
    origin = ring[0]
    total = math.fsum(_measure_triangle(origin, a, b) for a, b in pairwise(ring[1:]))
    angle = math.fabs(total)
    return min(angle, 4 * math.pi - angle)


def _measure_triangle(a: Vector, b: Vector, c: Vector) -> float:
    """Return the solid angle of a triangle, negative if it is clockwise."""
    return 2 * math.atan2(
        compute_dot_product(a, compute_cross_product(b, c)),
        1 + compute_dot_product(a, b) + compute_dot_product(b, c) + compute_dot_product(c, a),
    )


def _measure_area(shape: Any) -> float:
    if shape["type"] not in ("Polygon", "MultiPolygon"):
        raise ValueError(shape["type"])
    parts = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
    polygons = [[_read_ring(ring) for ring in rings] for rings in parts]
    if not polygons or not all(polygons):
        raise ValueError(shape)
    areas = [_measure_ring(shell) - math.fsum(map(_measure_ring, holes)) for shell, *holes in polygons]
    total = math.fsum(areas)
    if len(polygons) > 1:
        total -= _measure_overlap(polygons)
    return total * _RADIUS**2


def _measure_overlap(polygons: Sequence[Sequence[Sequence[Vector]]]) -> float:
    """Compute the solid angle that polygons cover more than once; a region in n polygons counts n - 1 times."""
    vertices = [vertex for rings in polygons for ring in rings for vertex in ring]
    if len(vertices) > _MAX_UNION_EDGES:
        raise ValueError("too many edges")
    centre = [math.fsum(axis) for axis in zip(*vertices, strict=True)]
    length = math.hypot(*centre)
    if length == 0:
        raise ValueError("the polygons surround the sphere")
    projection = _GnomonicProjection((centre[0] / length, centre[1] / length, centre[2] / length))
    edges = [edge for index, rings in enumerate(polygons) for edge in _project_edges(projection, rings, index)]
    bounds = sorted({point[0] for edge in edges for point in edge[:2]} | set(_find_crossings(edges)))
    edges.sort(key=lambda edge: edge[0][0])
    starts = [edge[0][0] for edge in edges]
    slabs = (
        _measure_slab(projection, edges[: bisect.bisect_right(starts, left)], left, right)
        for left, right in pairwise(bounds)
    )
    return math.fsum(slabs)


class _GnomonicProjection:
    """Projection of the hemisphere around a centre to the plane in which geodesics are straight."""

    def __init__(self, centre: Vector) -> None:
        self._centre = centre
        axis = (0.0, 0.0, 1.0) if abs(centre[2]) < 0.9 else (1.0, 0.0, 0.0)  # noqa: PLR2004  not parallel to the centre
        east = compute_cross_product(axis, centre)
        length = math.hypot(*east)
        self._east = (east[0] / length, east[1] / length, east[2] / length)
        self._north = compute_cross_product(centre, self._east)

    def project(self, vector: Vector) -> Point:
        depth = compute_dot_product(vector, self._centre)
        if depth <= 0:
            raise ValueError("the polygons are larger than a hemisphere")
        return compute_dot_product(vector, self._east) / depth, compute_dot_product(vector, self._north) / depth

    def unproject(self, x: float, y: float) -> Vector:
        a, b, c = (self._centre[i] + x * self._east[i] + y * self._north[i] for i in range(3))
        length = math.hypot(a, b, c)
        return a / length, b / length, c / length


def _project_edges(projection: _GnomonicProjection, rings: Sequence[Sequence[Vector]], index: int) -> Iterator[Edge]:
    for ring in rings:
        points = [projection.project(vertex) for vertex in ring]
        for start, end in pairwise([*points, points[0]]):
            if start[0] != end[0]:
                yield min(start, end), max(start, end), index


def _find_crossings(edges: Sequence[Edge]) -> Iterator[float]:
    for (a, b, _), (c, d, _) in itertools.combinations(edges, 2):
        if b[0] <= c[0] or d[0] <= a[0]:
            continue
        slope1, slope2 = (b[1] - a[1]) / (b[0] - a[0]), (d[1] - c[1]) / (d[0] - c[0])
        if slope1 == slope2:
            continue
        x = (c[1] - a[1] + slope1 * a[0] - slope2 * c[0]) / (slope1 - slope2)
        if max(a[0], c[0]) < x < min(b[0], d[0]):
            yield x


def _measure_slab(projection: _GnomonicProjection, edges: Sequence[Edge], left: float, right: float) -> float:
    """Compute the solid angle of the overlaps between two vertical lines of the projection."""
    middle = (left + right) / 2
    crossed = sorted(
        (_compute_height(edge, middle), _compute_height(edge, left), _compute_height(edge, right), edge[2])
        for edge in edges
        if edge[0][0] <= left and edge[1][0] >= right
    )
    inside: set[int] = set()
    total = 0.0
    for (_, left1, right1, index), (_, left2, right2, _) in pairwise(crossed):
        inside ^= {index}
        if len(inside) > 1:
            corners = [(left, left1), (right, right1), (right, right2), (left, left2)]
            a, b, c, d = (projection.unproject(*corner) for corner in corners)
            total += (len(inside) - 1) * abs(_measure_triangle(a, b, c) + _measure_triangle(a, c, d))
    return total


def _compute_height(edge: Edge, x: float) -> float:
    (x1, y1), (x2, y2), _ = edge
    return y1 + (y2 - y1) * (x - x1) / (x2 - x1)


CALLS = (ScalarCall("geo_polygon_area", _measure_area, "dynamic", "real"),)
SUPPORTED: tuple[str, ...] = ("geo_polygon_area (does not detect edges that cross)",)
functions = build_functions(CALLS)
macros: tuple[str, ...] = ()


def install() -> None:
    """Add the function to the KQL translator library."""
    install_calls(CALLS)
