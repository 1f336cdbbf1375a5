"""Geospatial KQL functions over points, lines and polygons; the earth is treated as a sphere, as by default in Kusto.

SQL computes distances between points, tests whether points are inside an area, and computes geohashes. Functions in
Python compute lengths of lines, distances from lines, and areas of polygons. The edges of a polygon are geodesics. The
gnomonic projection around the centre of the polygons maps geodesics to straight lines. Therefore the overlaps of
polygons are computed in the plane of this projection.
"""

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.extensions.registry import add_custom_function, add_function_that_reuses_arguments
from emulators.kusto.extensions.scalar_calls import JsonValue, ScalarCall, build_python_functions, install_scalar_calls
from emulators.kusto.extensions.sql import Sql, render_expression, render_with_arguments_evaluated_once

_RADIUS = 6_371_010.0
"""Radius of the sphere in metres, as in Kusto."""
_BASE_32 = "0123456789bcdefghjkmnpqrstuvwxyz"
_MAX_DIGITS = 18

macros: tuple[str, ...] = (
    "CREATE OR REPLACE MACRO kql_on_globe(lon, lat) AS lon BETWEEN -180 AND 180 AND lat BETWEEN -90 AND 90",
    (
        "CREATE OR REPLACE MACRO kql_distance(lon1, lat1, lon2, lat2) AS "
        f"CASE WHEN kql_on_globe(lon1, lat1) AND kql_on_globe(lon2, lat2) THEN 2 * {_RADIUS} * asin(least(1.0, sqrt("
        "pow(sin(radians(lat2 - lat1) / 2), 2) + cos(radians(lat1)) * cos(radians(lat2)) * "
        "pow(sin(radians(lon2 - lon1) / 2), 2)))) END"
    ),
    # A point is inside if a path to the north crosses the edges of the rings an odd number of times.
    (
        "CREATE OR REPLACE MACRO kql_crossings(lon, lat, ring) AS len(list_filter(range(1, len(ring)), lambda _i: "
        "((ring[_i][1] > lon) <> (ring[_i + 1][1] > lon)) AND lat < degrees(atan((tan(radians(ring[_i][2])) * "
        "sin(radians(ring[_i + 1][1] - lon)) + tan(radians(ring[_i + 1][2])) * sin(radians(lon - ring[_i][1]))) / "
        "sin(radians(ring[_i + 1][1] - ring[_i][1]))))))"
    ),
    (
        "CREATE OR REPLACE MACRO kql_rings(shape) AS CASE shape ->> '$.type' "
        "WHEN 'Polygon' THEN TRY_CAST(shape -> '$.coordinates' AS DOUBLE[][][]) "
        "WHEN 'MultiPolygon' THEN flatten(TRY_CAST(shape -> '$.coordinates' AS DOUBLE[][][][])) END"
    ),
    # A ring is closed and has at least three different vertices, each once.
    (
        "CREATE OR REPLACE MACRO kql_are_valid_rings(rings) AS len(rings) > 0 AND len(list_filter(rings, lambda _g: "
        "len(_g) > 3 AND _g[1] = _g[-1] AND len(list_distinct(_g)) = len(_g) - 1)) = len(rings)"
    ),
    (
        "CREATE OR REPLACE MACRO kql_in_polygon(lon, lat, shape) AS CASE WHEN kql_on_globe(lon, lat) THEN "
        "list_transform("
        "[kql_rings(shape)], lambda _r: CASE WHEN kql_are_valid_rings(_r) THEN list_sum(list_transform(_r, "
        "lambda _g: kql_crossings(lon, lat, _g))) % 2 = 1 END)[1] END"
    ),
)


def _render_arguments_as_doubles(call: ir.FunctionCall) -> list[Sql]:
    return [f"CAST({render_expression(arg)} AS DOUBLE)" for arg in call.args]


def _render_point_distance(call: ir.FunctionCall) -> Sql:
    if len(call.args) == 5:  # noqa: PLR2004
        if not isinstance(call.args[4], ir.Literal) or call.args[4].value:
            raise KqlUnsupportedError(
                "geo_distance_2points() on a spheroid", hint="the argument use_spheroid must be false"
            )
        call = ir.FunctionCall(call.name, call.args[:4])
    return render_with_arguments_evaluated_once(
        _render_arguments_as_doubles(call), lambda *args: f"kql_distance({', '.join(args)})"
    )


def _render_point_in_circle(call: ir.FunctionCall) -> Sql:
    return render_with_arguments_evaluated_once(
        _render_arguments_as_doubles(call),
        lambda *args: f"CASE WHEN {args[4]} > 0 THEN kql_distance({', '.join(args[:4])}) <= {args[4]} END",
    )


def _render_point_in_polygon(call: ir.FunctionCall) -> Sql:
    point = [f"CAST({render_expression(arg)} AS DOUBLE)" for arg in call.args[:2]]
    return render_with_arguments_evaluated_once(
        [*point, render_expression(call.args[2])], lambda *args: f"kql_in_polygon({', '.join(args)})"
    )


def _render_geohash_of_point(call: ir.FunctionCall) -> Sql:
    accuracy = render_expression(call.args[2]) if len(call.args) == 3 else "5"  # noqa: PLR2004
    return render_with_arguments_evaluated_once(
        [*_render_arguments_as_doubles(call)[:2], f"CAST({accuracy} AS BIGINT)"], _render_geohash
    )


def _render_geohash(longitude: Sql, latitude: Sql, digit_count: Sql) -> Sql:
    """Return SQL that computes the geohash of a point; the bits of both coordinates alternate, 5 bits per digit."""

    def render_geohash_bit(index: Sql) -> Sql:
        even = f"CAST(floor(({longitude} + 180) / 360 * pow(2, {index} // 2 + 1)) AS HUGEINT) % 2"
        odd = f"CAST(floor(({latitude} + 90) / 180 * pow(2, {index} // 2 + 1)) AS HUGEINT) % 2"
        return f"(CASE WHEN {index} % 2 = 0 THEN {even} ELSE {odd} END)"

    value = " + ".join(f"{render_geohash_bit(f'(5 * _d + {place})')} * {1 << (4 - place)}" for place in range(5))
    text = (
        f"array_to_string(list_transform(range(0, least({digit_count}, 18)), "
        f"lambda _d: substr('{_BASE_32}', CAST({value} AS BIGINT) + 1, 1)), '')"
    )
    valid = f"kql_on_globe({longitude}, {latitude}) AND {digit_count} BETWEEN 1 AND {_MAX_DIGITS}"
    return f"CASE WHEN {valid} THEN {text} ELSE '' END"


def _render_geohash_centre(geohash: Sql) -> Sql:
    digit = f"(strpos('{_BASE_32}', substr({geohash}, CAST(_b // 5 + 1 AS BIGINT), 1)) - 1)"
    bits = f"list_transform(range(0, 5 * length({geohash})), lambda _b: ({digit} >> CAST(4 - _b % 5 AS INTEGER)) & 1)"

    def render_coordinate_from_bits(parity: int, span_degrees: int) -> Sql:
        own = f"list_filter({bits}, lambda _v, _i: (_i - 1) % 2 = {parity})"
        parts = f"list_transform({own}, lambda _v, _i: _v * pow(0.5, _i))"
        return f"(coalesce(list_sum({parts}), 0) + pow(0.5, len({own}) + 1)) * {span_degrees} - {span_degrees // 2}"

    valid = f"regexp_full_match({geohash}, '[{_BASE_32}]{{1,18}}')"
    point = f"[{render_coordinate_from_bits(0, 360)}, {render_coordinate_from_bits(1, 180)}]"
    return f"CASE WHEN {valid} THEN json_object('type', 'Point', 'coordinates', {point}) END"


_MAX_LONGITUDE, _MAX_LATITUDE = 180, 90

type Vector = tuple[float, float, float]
type Ring = Sequence[Vector]
"""Distinct vertices of a ring, as unit vectors."""
type Polygon = Sequence[Ring]
"""Outer ring of a polygon, followed by the rings of its holes."""


def to_unit_vector(longitude_and_latitude: Sequence[float]) -> Vector:
    """Return the unit vector of a point (longitude and latitude in degrees); raise ValueError if it is out of range."""
    longitude, latitude = float(longitude_and_latitude[0]), float(longitude_and_latitude[1])
    if not (abs(longitude) <= _MAX_LONGITUDE and abs(latitude) <= _MAX_LATITUDE):
        raise ValueError(longitude_and_latitude)
    lon, lat = math.radians(longitude), math.radians(latitude)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def compute_dot_product(left: Vector, right: Vector) -> float:
    """Compute the scalar product of two vectors."""
    return sum(a * b for a, b in zip(left, right, strict=True))


def compute_cross_product(left: Vector, right: Vector) -> Vector:
    """Compute the vector product of two vectors."""
    (a, b, c), (d, e, f) = left, right
    return b * f - c * e, c * d - a * f, a * e - b * d


def _measure_angle_radians(left: Vector, right: Vector) -> float:
    across = compute_cross_product(left, right)
    return math.atan2(math.sqrt(compute_dot_product(across, across)), compute_dot_product(left, right))


def _iterate_line_segments(geojson: JsonValue) -> Iterator[tuple[Vector, Vector]]:
    """Yield the segments of a GeoJSON LineString or MultiLineString; raise ValueError for any other shape."""
    if geojson["type"] not in ("LineString", "MultiLineString"):
        raise ValueError(geojson["type"])
    lines = [geojson["coordinates"]] if geojson["type"] == "LineString" else geojson["coordinates"]
    for line in lines:
        points = [to_unit_vector(point) for point in line]
        if len(points) < 2:  # noqa: PLR2004  a line has two ends
            raise ValueError(line)
        yield from pairwise(points)


def _measure_line_metres(geojson: JsonValue) -> float:
    return math.fsum(_measure_angle_radians(start, end) for start, end in _iterate_line_segments(geojson)) * _RADIUS


def _measure_metres_to_line(longitude: float, latitude: float, geojson: JsonValue) -> float:
    point = to_unit_vector((longitude, latitude))
    return (
        min(_measure_radians_to_segment(point, start, end) for start, end in _iterate_line_segments(geojson)) * _RADIUS
    )


def _measure_radians_to_segment(point: Vector, start: Vector, end: Vector) -> float:
    """Return the distance of a point from a segment of a great circle, as an angle in radians."""
    nearest_end = min(_measure_angle_radians(point, start), _measure_angle_radians(point, end))
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


_LINE_CALLS = (
    ScalarCall("geo_line_length", _measure_line_metres, "dynamic", "real"),
    ScalarCall("geo_distance_point_to_line", _measure_metres_to_line, "real real dynamic", "real"),
)
_LEAST_POINTS = 4
_MAX_UNION_EDGES = 2_000
"""Maximum number of edges of overlapping polygons; the effort grows with the square of this number."""
_MAX_STRIP_EDGES = 8_000_000
"""Maximum product of the numbers of strips and edges. Each corner and each crossing of two edges begins a strip."""

type Point = tuple[float, float]
type Edge = tuple[Point, Point, int]
"""Two points in the plane from left to right, and the index of their polygon."""


def _parse_ring_vertices(ring: Sequence[Sequence[float]]) -> list[Vector]:
    """Return the distinct vertices of a ring of a GeoJSON polygon; raise ValueError if the ring is invalid."""
    vertices = [to_unit_vector(point) for point in ring[:-1]]
    if len(ring) < _LEAST_POINTS or list(ring[0]) != list(ring[-1]) or len(set(vertices)) < len(vertices):
        raise ValueError(ring)
    return vertices


def _measure_ring_steradians(ring: Ring) -> float:
    """Return the solid angle, in steradians, of the smaller of the two regions into which a ring divides a sphere."""
    origin = ring[0]
    total = math.fsum(_measure_signed_triangle_steradians(origin, a, b) for a, b in pairwise(ring[1:]))
    angle = math.fabs(total)
    return min(angle, 4 * math.pi - angle)


def _measure_signed_triangle_steradians(a: Vector, b: Vector, c: Vector) -> float:
    """Return the solid angle of a triangle in steradians; it is negative if the vertices are in clockwise order."""
    return 2 * math.atan2(
        compute_dot_product(a, compute_cross_product(b, c)),
        1 + compute_dot_product(a, b) + compute_dot_product(b, c) + compute_dot_product(c, a),
    )


def _measure_polygon_square_metres(geojson: JsonValue) -> float:
    if geojson["type"] not in ("Polygon", "MultiPolygon"):
        raise ValueError(geojson["type"])
    parts = [geojson["coordinates"]] if geojson["type"] == "Polygon" else geojson["coordinates"]
    polygons = [[_parse_ring_vertices(ring) for ring in rings] for rings in parts]
    if not polygons or not all(polygons):
        raise ValueError(geojson)
    areas = [
        _measure_ring_steradians(shell) - math.fsum(map(_measure_ring_steradians, holes)) for shell, *holes in polygons
    ]
    total = math.fsum(areas)
    if len(polygons) > 1:
        total -= _measure_overlap_steradians(polygons)
    return total * _RADIUS**2


def _measure_overlap_steradians(polygons: Sequence[Polygon]) -> float:
    """Compute the solid angle of the overlaps of polygons, in steradians.

    A region that n polygons cover counts n - 1 times.
    """
    vertices = [vertex for rings in polygons for ring in rings for vertex in ring]
    if len(vertices) > _MAX_UNION_EDGES:
        raise ValueError(f"the polygons have more than {_MAX_UNION_EDGES} edges")
    centre = [math.fsum(axis) for axis in zip(*vertices, strict=True)]
    length = math.hypot(*centre)
    if length == 0:
        raise ValueError("the polygons must lie in one hemisphere")
    projection = _GnomonicProjection((centre[0] / length, centre[1] / length, centre[2] / length))
    edges = [edge for index, rings in enumerate(polygons) for edge in _project_edges_to_plane(projection, rings, index)]
    bounds = sorted({point[0] for edge in edges for point in edge[:2]} | set(_iterate_x_of_edge_crossings(edges)))
    if len(bounds) * len(edges) > _MAX_STRIP_EDGES:
        raise ValueError("the edges of the polygons cross each other too often")
    edges.sort(key=lambda edge: edge[0][0])
    starts = [edge[0][0] for edge in edges]
    slabs = (
        _measure_slab_overlap_steradians(projection, edges[: bisect.bisect_right(starts, left)], left, right)
        for left, right in pairwise(bounds)
    )
    return math.fsum(slabs)


class _GnomonicProjection:
    """Projection of the hemisphere around a centre onto a plane, in which geodesics are straight lines."""

    def __init__(self, centre: Vector) -> None:
        self._centre = centre
        axis = (0.0, 0.0, 1.0) if abs(centre[2]) < 0.9 else (1.0, 0.0, 0.0)  # noqa: PLR2004  not parallel to the centre
        east = compute_cross_product(axis, centre)
        length = math.hypot(*east)
        self._east = (east[0] / length, east[1] / length, east[2] / length)
        self._north = compute_cross_product(centre, self._east)

    def project_to_plane(self, vector: Vector) -> Point:
        depth = compute_dot_product(vector, self._centre)
        if depth <= 0:
            raise ValueError("the polygons must lie in one hemisphere")
        return compute_dot_product(vector, self._east) / depth, compute_dot_product(vector, self._north) / depth

    def project_to_sphere(self, x: float, y: float) -> Vector:
        a, b, c = (self._centre[i] + x * self._east[i] + y * self._north[i] for i in range(3))
        length = math.hypot(a, b, c)
        return a / length, b / length, c / length


def _project_edges_to_plane(projection: _GnomonicProjection, rings: Polygon, polygon_index: int) -> Iterator[Edge]:
    for ring in rings:
        points = [projection.project_to_plane(vertex) for vertex in ring]
        for start, end in pairwise([*points, points[0]]):
            if start[0] != end[0]:
                yield min(start, end), max(start, end), polygon_index


def _iterate_x_of_edge_crossings(edges: Sequence[Edge]) -> Iterator[float]:
    for (a, b, _), (c, d, _) in itertools.combinations(edges, 2):
        if b[0] <= c[0] or d[0] <= a[0]:
            continue
        slope1, slope2 = (b[1] - a[1]) / (b[0] - a[0]), (d[1] - c[1]) / (d[0] - c[0])
        if slope1 == slope2:
            continue
        x = (c[1] - a[1] + slope1 * a[0] - slope2 * c[0]) / (slope1 - slope2)
        if max(a[0], c[0]) < x < min(b[0], d[0]):
            yield x


def _measure_slab_overlap_steradians(
    projection: _GnomonicProjection, edges: Sequence[Edge], left_x: float, right_x: float
) -> float:
    """Compute the solid angle, in steradians, of the overlaps of polygons in a vertical strip of the projection plane.

    A region that n polygons cover counts n - 1 times.

    Args:
        projection: projection between the sphere and the plane.
        edges: edges of the polygons in the plane; edges outside the strip are ignored.
        left_x: x coordinate of the left side of the strip. Inside the strip, no edge ends or crosses another edge.
        right_x: x coordinate of the right side.
    """
    middle = (left_x + right_x) / 2
    crossed = sorted(
        (
            _compute_y_on_edge(edge, middle),
            _compute_y_on_edge(edge, left_x),
            _compute_y_on_edge(edge, right_x),
            edge[2],
        )
        for edge in edges
        if edge[0][0] <= left_x and edge[1][0] >= right_x
    )
    inside: set[int] = set()
    total = 0.0
    for (_, left1, right1, index), (_, left2, right2, _) in pairwise(crossed):
        inside ^= {index}
        if len(inside) > 1:
            corners = [(left_x, left1), (right_x, right1), (right_x, right2), (left_x, left2)]
            a, b, c, d = (projection.project_to_sphere(*corner) for corner in corners)
            total += (len(inside) - 1) * abs(
                _measure_signed_triangle_steradians(a, b, c) + _measure_signed_triangle_steradians(a, c, d)
            )
    return total


def _compute_y_on_edge(edge: Edge, x: float) -> float:
    (x1, y1), (x2, y2), _ = edge
    return y1 + (y2 - y1) * (x - x1) / (x2 - x1)


_POLYGON_CALLS = (ScalarCall("geo_polygon_area", _measure_polygon_square_metres, "dynamic", "real"),)

SUPPORTED: tuple[str, ...] = (
    "geo_distance_2points",
    "geo_point_in_circle",
    "geo_point_in_polygon",
    "geo_point_to_geohash",
    "geo_geohash_to_central_point",
    *tuple(call.name for call in _LINE_CALLS),
    "geo_polygon_area (does not detect edges that cross)",
)

functions = (
    *build_python_functions(_LINE_CALLS),
    *build_python_functions(_POLYGON_CALLS),
)


def install_into_translator() -> None:
    """Add the geospatial functions to the KQL translator library."""
    add_custom_function("geo_distance_2points", (4, 5), _render_point_distance)
    add_custom_function("geo_point_in_circle", (5,), _render_point_in_circle)
    add_custom_function("geo_point_in_polygon", (3,), _render_point_in_polygon)
    add_custom_function("geo_point_to_geohash", (2, 3), _render_geohash_of_point)
    add_function_that_reuses_arguments("geo_geohash_to_central_point", (1,), _render_geohash_centre)
    install_scalar_calls(_LINE_CALLS)
    install_scalar_calls(_POLYGON_CALLS)
