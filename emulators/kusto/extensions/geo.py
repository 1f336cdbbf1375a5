"""Geospatial KQL functions; the earth is a sphere, as in Kusto by default."""

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.extensions.registry import add_bound_function, add_custom_function
from emulators.kusto.extensions.sql import bind_once, render_expression

SUPPORTED: tuple[str, ...] = (
    "geo_distance_2points",
    "geo_point_in_circle",
    "geo_point_in_polygon",
    "geo_point_to_geohash",
    "geo_geohash_to_central_point",
)

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


def install() -> None:
    """Add the geospatial functions to the KQL translator library."""
    add_custom_function("geo_distance_2points", (4, 5), _render_distance)
    add_custom_function("geo_point_in_circle", (5,), _render_in_circle)
    add_custom_function("geo_point_in_polygon", (3,), _render_in_polygon)
    add_custom_function("geo_point_to_geohash", (2, 3), _render_to_geohash)
    add_bound_function("geo_geohash_to_central_point", (1,), _render_from_geohash)


def _render_reals(call: ir.FunctionCall) -> list[str]:
    return [f"CAST({render_expression(arg)} AS DOUBLE)" for arg in call.args]


def _render_distance(call: ir.FunctionCall) -> str:
    if len(call.args) == 5:  # noqa: PLR2004
        if not isinstance(call.args[4], ir.Literal) or call.args[4].value:
            raise KqlUnsupportedError("geo_distance_2points() on a spheroid")
        call = ir.FunctionCall(call.name, call.args[:4])
    return bind_once(_render_reals(call), lambda *args: f"kql_distance({', '.join(args)})")


def _render_in_circle(call: ir.FunctionCall) -> str:
    return bind_once(
        _render_reals(call),
        lambda *args: f"CASE WHEN {args[4]} > 0 THEN kql_distance({', '.join(args[:4])}) <= {args[4]} END",
    )


def _render_in_polygon(call: ir.FunctionCall) -> str:
    point = [f"CAST({render_expression(arg)} AS DOUBLE)" for arg in call.args[:2]]
    return bind_once([*point, render_expression(call.args[2])], lambda *args: f"kql_in_polygon({', '.join(args)})")


def _render_to_geohash(call: ir.FunctionCall) -> str:
    accuracy = render_expression(call.args[2]) if len(call.args) == 3 else "5"  # noqa: PLR2004
    return bind_once([*_render_reals(call)[:2], f"CAST({accuracy} AS BIGINT)"], _render_geohash)


def _render_geohash(lon: str, lat: str, digits: str) -> str:
    """Return SQL that computes the geohash of a point: the bits of both coordinates alternate, five bits a digit."""

    def render_bit(index: str) -> str:
        even = f"CAST(floor(({lon} + 180) / 360 * pow(2, {index} // 2 + 1)) AS HUGEINT) % 2"
        odd = f"CAST(floor(({lat} + 90) / 180 * pow(2, {index} // 2 + 1)) AS HUGEINT) % 2"
        return f"(CASE WHEN {index} % 2 = 0 THEN {even} ELSE {odd} END)"

    value = " + ".join(f"{render_bit(f'(5 * _d + {place})')} * {1 << (4 - place)}" for place in range(5))
    text = (
        f"array_to_string(list_transform(range(0, least({digits}, 18)), "
        f"lambda _d: substr('{_BASE_32}', CAST({value} AS BIGINT) + 1, 1)), '')"
    )
    return f"CASE WHEN kql_on_globe({lon}, {lat}) AND {digits} BETWEEN 1 AND {_MAX_DIGITS} THEN {text} ELSE '' END"


def _render_from_geohash(text: str) -> str:
    digit = f"(strpos('{_BASE_32}', substr({text}, CAST(_b // 5 + 1 AS BIGINT), 1)) - 1)"
    bits = f"list_transform(range(0, 5 * length({text})), lambda _b: ({digit} >> CAST(4 - _b % 5 AS INTEGER)) & 1)"

    def render_axis(parity: int, span: int) -> str:
        own = f"list_filter({bits}, lambda _v, _i: (_i - 1) % 2 = {parity})"
        parts = f"list_transform({own}, lambda _v, _i: _v * pow(0.5, _i))"
        return f"(coalesce(list_sum({parts}), 0) + pow(0.5, len({own}) + 1)) * {span} - {span // 2}"

    valid = f"regexp_full_match({text}, '[{_BASE_32}]{{1,18}}')"
    point = f"[{render_axis(0, 360)}, {render_axis(1, 180)}]"
    return f"CASE WHEN {valid} THEN json_object('type', 'Point', 'coordinates', {point}) END"
