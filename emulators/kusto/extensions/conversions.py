"""KQL functions that convert between types and units, and functions over numbers.

Each table of units contains the units of one quantity with their factors to the base unit. Names and factors are those
of UnitsNet, the library that Data Explorer uses.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping

from duckdb_kql import ir, lower, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS, FunctionSpec

from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.registry import (
    add_custom_function,
    add_function_that_reuses_arguments,
    add_template_function,
    read_literal_value,
)
from emulators.kusto.extensions.scalar_calls import ScalarCall, build_python_functions, install_scalar_calls
from emulators.kusto.extensions.sql import DuckDbType, Sql, render_expression
from emulators.kusto.extensions.tree import ParseNode

_VALUE_MACROS: tuple[str, ...] = (
    (
        "CREATE OR REPLACE MACRO kql_span(i) AS list_transform([epoch_us(i)], lambda _u: "
        "CASE WHEN _u < 0 THEN '-' ELSE '' END "
        "|| CASE WHEN abs(_u) >= 86400000000 THEN CAST(abs(_u) // 86400000000 AS VARCHAR) || '.' ELSE '' END "
        "|| lpad(CAST(abs(_u) // 3600000000 % 24 AS VARCHAR), 2, '0') "
        "|| ':' || lpad(CAST(abs(_u) // 60000000 % 60 AS VARCHAR), 2, '0') "
        "|| ':' || lpad(CAST(abs(_u) // 1000000 % 60 AS VARCHAR), 2, '0') "
        "|| CASE WHEN _u % 1000000 <> 0 THEN '.' || lpad(CAST(abs(_u) % 1000000 AS VARCHAR), 6, '0') || "
        "'0' ELSE '' END)[1]"
    ),
    # The macro copies its argument several times, so that the argument must be a name or a constant.
    (
        "CREATE OR REPLACE MACRO kql_json(v) AS CASE typeof(v) "
        "WHEN 'TIMESTAMP' THEN to_json(strftime(CAST(CAST(v AS VARCHAR) AS TIMESTAMP), "
        "'%Y-%m-%dT%H:%M:%S.%f') || '0Z') "
        "WHEN 'INTERVAL' THEN to_json(kql_span(CAST(CAST(v AS VARCHAR) AS INTERVAL))) ELSE to_json(v) END"
    ),
)


def _render_test_for_integer_notation(json_value: Sql) -> Sql:
    """Render SQL that tests whether a JSON number is written as an integer, without a fraction or an exponent.

    DuckDB reads an integer of more than 64 bits as a double. Such a value must be converted to null, not to the nearest
    integer; therefore the SQL needs this test.
    """
    return "(" + " AND ".join(f"NOT contains({json_value}::VARCHAR, '{mark}')" for mark in (".", "e", "E")) + ")"


def _build_json_integer_macro(duckdb_type: DuckDbType, bits: int) -> Sql:
    """Build the SQL statement that creates a DuckDB macro to convert a JSON value to an integer."""
    plain, real = _render_test_for_integer_notation("j"), writer.integer_from_real("CAST(j AS DOUBLE)", bits)
    name = f"kql_json_{duckdb_type.lower()}"
    long = "TRY_CAST(j AS BIGINT)" if bits == 64 else writer.wrap_int32("TRY_CAST(j AS BIGINT)")  # noqa: PLR2004
    return (
        f"CREATE OR REPLACE MACRO {name}(j) AS coalesce(CASE WHEN {plain} THEN TRY_CAST(j::VARCHAR AS "
        f"{duckdb_type}) END, CASE json_type(j) WHEN 'DOUBLE' THEN CASE WHEN NOT {plain} THEN {real} END "
        f"WHEN 'VARCHAR' THEN {writer.integer_from_text("(j ->> '$')", duckdb_type)} "
        f"WHEN 'BOOLEAN' THEN CAST(CAST(j AS BOOLEAN) AS {duckdb_type}) WHEN 'BIGINT' THEN {long} "
        f"WHEN 'UBIGINT' THEN {long} END)"
    )


_NO_JSON = r"(?i)nan|inf|,\s*[\]}]"
_LENIENT_JSON_TEST = (
    f"regexp_matches(_t, '{_NO_JSON}') AND "
    f"""regexp_matches(regexp_replace(_t, '"(\\\\.|[^"\\\\])*"', '', 'g'), '{_NO_JSON}')"""
)
"""SQL that tests whether a text has a token outside of its strings that only DuckDB reads as JSON."""

_CONVERSION_MACROS: tuple[str, ...] = (
    _build_json_integer_macro("INTEGER", 32),
    _build_json_integer_macro("BIGINT", 64),
    # A shift by 64 bits or more is one by the remainder; the result of a shift to the left has 64 bits.
    (
        "CREATE OR REPLACE MACRO kql_shift_left(a, n) AS CASE WHEN n >= 0 THEN list_transform([(CAST(a AS HUGEINT) * "
        "(CAST(1 AS HUGEINT) << CAST(n % 64 AS HUGEINT))) & CAST(18446744073709551615 AS HUGEINT)], lambda _x: "
        "CAST(CASE WHEN _x > 9223372036854775807 THEN _x - CAST(18446744073709551616 AS HUGEINT) ELSE _x END "
        "AS BIGINT))[1] END"
    ),
    "CREATE OR REPLACE MACRO kql_shift_right(a, n) AS CASE WHEN n >= 0 THEN a >> (n % 64) END",
    # DuckDB reads 1_000 and +-5 as numbers, but not inside JSON.
    ("CREATE OR REPLACE MACRO kql_text_double(t) AS TRY_CAST(replace(replace(t, '_', 'x'), '+-', 'x') AS DOUBLE)"),
    "CREATE OR REPLACE MACRO kql_json_double(j) AS coalesce(TRY_CAST(j AS DOUBLE), kql_text_double(j ->> '$'))",
    # A text that is not JSON is a string. DuckDB also reads NaN, infinity and a comma before a closing bracket as JSON.
    (
        "CREATE OR REPLACE MACRO kql_text_json(t) AS list_transform([t], lambda _t: CASE WHEN _t IS NOT NULL THEN "
        f"coalesce(CASE WHEN NOT ({_LENIENT_JSON_TEST}) THEN TRY_CAST(_t AS JSON) END, to_json(_t)) END)[1]"
    ),
    # Decimals have nine digits after the point: a text with more is an error, a real is rounded.
    (
        "CREATE OR REPLACE MACRO kql_decimal(v) AS list_transform([struct_pack(t := trim(CAST(v AS VARCHAR), ' \"'), "
        "r := typeof(v) IN ('DOUBLE', 'FLOAT'))], lambda _d: CASE WHEN NOT _d.r AND "
        "regexp_matches(_d.t, '\\.[0-9]{9}[0-9]*[1-9]') THEN error('a decimal with more than nine digits after the "
        "point is not supported by the embedded query engine') "
        "ELSE TRY_CAST(replace(_d.t, '_', 'x') AS DECIMAL(38, 9)) END)[1]"
    ),
)

_TYPE = "typeof"
_MAX_DIGITS = 16
CONVERSIONS = {
    "string": None, "bool": "tobool", "boolean": "tobool", "int": "toint", "long": "tolong", "real": "toreal",
    "double": "toreal", "datetime": "todatetime", "date": "todatetime", "timespan": "totimespan", "time": "totimespan",
    "guid": "toguid", "dynamic": "parse_json", "decimal": "todecimal",
}  # fmt: skip


def _render_abs(render_library_call: Callable[[list[Sql]], Sql], call: ir.FunctionCall) -> Sql:
    value = render_expression(call.args[0])
    return f"kql_abs({value})" if infer_type(call.args[0]) in (None, "timespan") else render_library_call([value])


_NUMBERS = {"toint": "INTEGER", "tolong": "BIGINT", "todouble": "DOUBLE", "toreal": "DOUBLE"}

_PARSED = {"DOUBLE": "kql_text_double", "TIMESTAMP": "kql_text_datetime", "JSON": "kql_text_json"}
"""Macro that converts a text to a type, by SQL type."""

_JSON_REAL = "CAST(TRY_CAST(_v AS JSON) AS DOUBLE)"
"""SQL of a real in a dynamic value, as the library writes it in a conversion to an integer."""

type _ConversionRenderer = Callable[[ir.FunctionCall], Sql | None]
"""Function that returns the SQL of a conversion call; None if the library's template for the function applies."""


def _patch_conversion_to_number(library_function: _ConversionRenderer, duckdb_type: DuckDbType) -> _ConversionRenderer:
    """Patch the conversion to a number: make it faster for a path such as ``d.x``, and reject DuckDB's number syntax.

    For a path, a macro for JSON values replaces the SQL of the library, which tries all types. The SQL of the library
    for reals is replaced because it accepts texts such as ``1_000``.
    """
    macro = f"kql_json_{duckdb_type.lower()}"

    def render_conversion_to_number(call: ir.FunctionCall) -> Sql | None:
        if len(call.args) != 1 or not isinstance(call.args[0], ir.PathAccess):
            is_real = duckdb_type == "DOUBLE" and len(call.args) == 1
            return _render_conversion_to_real(call.args[0]) if is_real else library_function(call)
        path = call.args[0]
        # The macro for reals is so short that binding the value would cost more than it saves.
        if (
            duckdb_type == "DOUBLE"
            and isinstance(path.base, ir.ColumnRef)
            and writer.static_path(path.steps) is not None
        ):
            return f"{macro}({render_expression(path)})"
        return f"list_transform([{render_expression(path)}], lambda _p: {macro}(_p))[1]"

    return render_conversion_to_number


def _render_conversion_to_real(expr: ir.Expr) -> Sql:
    """Return SQL that converts a value of any type to a real; a datetime or timespan becomes its ticks (100 ns)."""
    sql = render_expression(expr)
    if infer_type(expr) == "string":
        return f"kql_text_double({sql})"
    return (
        f"list_transform([{sql}], lambda _v: CASE typeof(_v) "
        "WHEN 'INTERVAL' THEN CAST(epoch_us(CAST(_v AS INTERVAL)) * 10 AS DOUBLE) "
        f"WHEN 'TIMESTAMP' THEN CAST(epoch_us(CAST(_v AS TIMESTAMP)) * 10 + {writer.EPOCH_TICKS} AS DOUBLE) "
        "WHEN 'JSON' THEN kql_json_double(TRY_CAST(_v AS JSON)) "
        "WHEN 'VARCHAR' THEN kql_text_double(CAST(_v AS VARCHAR)) ELSE TRY_CAST(_v AS DOUBLE) END)[1]"
    )


def _render_conversion_to_dynamic(call: ir.FunctionCall) -> Sql:
    sql = render_expression(call.args[0])
    if infer_type(call.args[0]) == "string":
        return f"kql_text_json({sql})"
    return (
        f"list_transform([{sql}], lambda _v: CASE WHEN typeof(_v) = 'VARCHAR' THEN kql_text_json(CAST(_v AS VARCHAR)) "
        "ELSE TRY_CAST(_v AS JSON) END)[1]"
    )


def _patch_conversions_of_parse_operator(
    library_function: Callable[[ir.ParseSegment], Sql],
) -> Callable[[ir.ParseSegment], Sql]:
    """Patch ``parse`` so that it converts a text as ``toreal``, ``todatetime`` and ``todynamic`` do."""

    def render_converted_segment(segment: ir.ParseSegment) -> Sql:
        macro = _PARSED.get(translate.TYPE_MAP.get(segment.type or "", ""))
        if macro is None:
            return library_function(segment)
        return f"{macro}({writer.parse_convert(dataclasses.replace(segment, type=None))})"

    return render_converted_segment


def _patch_conversion_of_real_to_integer(library_function: Callable[[Sql, int], Sql]) -> Callable[[Sql, int], Sql]:
    """Patch the conversion of a real to an integer: the result is null for an integer in JSON of more than 64 bits.

    DuckDB reads such an integer as a real, so that it reaches this conversion; Data Explorer converts it to null.
    """

    def render_integer_from_real(real: Sql, bits: int) -> Sql:
        rendered = library_function(real, bits)
        return (
            f"CASE WHEN NOT {_render_test_for_integer_notation('_v')} THEN {rendered} END"
            if real == _JSON_REAL
            else rendered
        )

    return render_integer_from_real


def _patch_tostring_of_json_paths(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    """Patch ``tostring(d.x)`` so that its SQL reads the text directly; the library's SQL parses the JSON text twice."""

    def render_tostring(expr: ir.Expr) -> Sql:
        if not isinstance(expr, ir.PathAccess) or (path := writer.static_path(expr.steps)) is None:
            return library_function(expr)
        return f"coalesce(json_extract_string({render_expression(expr.base)}, {translate.quote_string(path)}), '')"

    return render_tostring


def _patch_expressions_for_typeof(library_function: Callable[[ParseNode], ir.Expr]) -> Callable[[ParseNode], ir.Expr]:
    """Patch the conversion of expressions so that it accepts ``typeof(long)``, which is then an argument of a call."""

    def convert_expression(node: ParseNode) -> ir.Expr:
        try:
            return library_function(node)
        except KqlUnsupportedError as error:
            if error.construct != "expression:TypeLiteralExpression":
                raise
            text = reader.collapse(node).getText()
            return ir.FunctionCall(_TYPE, (ir.Literal(text[len(_TYPE) + 1 : -1].strip().lower(), "string"),))

    return convert_expression


def render_type_conversion(sql: Sql, type_argument: ir.Expr, function_name: str) -> Sql:
    """Return SQL that converts a text or dynamic value to the type that an argument ``typeof(...)`` names.

    Args:
        sql: SQL of the value.
        type_argument: the argument ``typeof(...)``.
        function_name: name of the function that has this argument, for the error.

    Raises:
        KqlUnsupportedError: the argument has another form, or names a type that has no conversion.
    """
    if not isinstance(type_argument, ir.FunctionCall) or type_argument.name != _TYPE:
        raise KqlUnsupportedError(
            f"function:{function_name}", hint=f"the type argument of {function_name}() must have the form typeof(...)"
        )
    name = str(read_literal_value(type_argument.args[0], function_name))
    if name not in CONVERSIONS:
        raise KqlUnsupportedError(f"typeof({name})")
    conversion = CONVERSIONS[name]
    return sql if conversion is None else render_expression(ir.FunctionCall(conversion, (ir.RenderedAggregate(sql),)))


def _render_extract(library_function: FunctionSpec, call: ir.FunctionCall) -> Sql:
    args = [str(writer.render_arg("extract", index, arg)) for index, arg in enumerate(call.args[:3])]
    sql = library_function.render(args)
    return render_type_conversion(sql, call.args[3], "extract") if len(call.args) == 4 else str(sql)  # noqa: PLR2004


def _render_extract_json(call: ir.FunctionCall) -> Sql:
    path = read_literal_value(call.args[0], "extract_json")
    if not isinstance(path, str) or not path.startswith("$") or "*" in path:
        raise KqlUnsupportedError(
            "extract_json", hint="the path of extract_json() must be a literal that starts with $ and selects one value"
        )
    document = f"TRY_CAST({render_expression(call.args[1])} AS JSON)"
    sql = f"({document} ->> {translate.quote_string(path)})"
    return render_type_conversion(sql, call.args[2], "extract_json") if len(call.args) == 3 else sql  # noqa: PLR2004


def _render_tohex(call: ir.FunctionCall) -> Sql:
    number = f"CAST({render_expression(call.args[0])} AS BIGINT)"
    if infer_type(call.args[0]) == "int":
        number = f"({number} & 4294967295)"
    digits = f"lower(to_hex({number}))"
    if len(call.args) == 1:
        return digits
    width = read_literal_value(call.args[1], "tohex")
    if not isinstance(width, int) or not 0 <= width <= _MAX_DIGITS:
        raise KqlUnsupportedError(
            "tohex", hint=f"the minimum length of tohex() must be a literal from 0 to {_MAX_DIGITS}"
        )
    return f"lpad({digits}, greatest(CAST({width} AS INTEGER), length({digits})::INTEGER), '0')"


def _render_rand(call: ir.FunctionCall) -> Sql:
    if not call.args:
        return "random()"
    return f"CAST(floor(random() * {render_expression(call.args[0])}) AS BIGINT)"


macros: tuple[str, ...] = (
    (
        "CREATE OR REPLACE MACRO kql_ceiling(a DOUBLE) AS ceil(a), (a BIGINT) AS a, (a INTEGER) AS a, "
        "(a HUGEINT) AS a, (a DECIMAL(38, 9)) AS ceil(a)"
    ),
    (
        "CREATE OR REPLACE MACRO kql_abs(a DOUBLE) AS abs(a), (a BIGINT) AS abs(a), (a HUGEINT) AS abs(a), "
        "(a INTEGER) AS abs(CAST(a AS BIGINT)), (a BOOLEAN) AS CAST(a AS BIGINT), (a DECIMAL(38, 9)) AS abs(a), "
        "(a INTERVAL) AS to_microseconds(abs(epoch_us(a)))"
    ),
    *_VALUE_MACROS,
    *_CONVERSION_MACROS,
)

_PI = math.pi
_BTU = 1055.05585262
_FOOT, _INCH, _SURVEY_FOOT, _MILE, _YARD = 0.3048, 0.0254, 1200 / 3937, 1609.344, 0.9144
_POUND = 0.45359237
_GRAVITY = 9.80665
_GALLON, _IMPERIAL_GALLON = 0.003785411784, 0.00454609
_PARSEC, _LIGHT_YEAR = 3.08567758128e16, 9.46073047258e15

_ANGLE = {
    "Arcminute": 1 / 60, "Arcsecond": 1 / 3600, "Centiradian": 1.8 / _PI, "Deciradian": 18 / _PI, "Degree": 1.0,
    "Gradian": 0.9, "Microdegree": 1e-6, "Microradian": 180e-6 / _PI, "Millidegree": 1e-3, "Milliradian": 0.18 / _PI,
    "Nanodegree": 1e-9, "Nanoradian": 180e-9 / _PI, "NatoMil": 9 / 160, "Radian": 180 / _PI, "Revolution": 360.0,
}  # fmt: skip
_ENERGY = {
    "BritishThermalUnit": _BTU, "Calorie": 4.184, "DecathermEc": 100000 * _BTU * 10, "DecathermImperial": _BTU * 1e6,
    "DecathermUs": 1.054804e9, "ElectronVolt": 1.602176565e-19, "Erg": 1e-7, "FootPound": 1.355817948,
    "GigabritishThermalUnit": _BTU * 1e9, "GigaelectronVolt": 1.602176565e-10, "Gigajoule": 1e9,
    "GigawattDay": 8.64e13, "GigawattHour": 3.6e12, "HorsepowerHour": 2.6845195377e6, "Joule": 1.0,
    "KilobritishThermalUnit": _BTU * 1e3, "Kilocalorie": 4184.0, "KiloelectronVolt": 1.602176565e-16,
    "Kilojoule": 1e3, "KilowattDay": 8.64e7, "KilowattHour": 3.6e6, "MegabritishThermalUnit": _BTU * 1e6,
    "Megacalorie": 4.184e6, "MegaelectronVolt": 1.602176565e-13, "Megajoule": 1e6, "MegawattDay": 8.64e10,
    "MegawattHour": 3.6e9, "Millijoule": 1e-3, "TeraelectronVolt": 1.602176565e-7, "TerawattDay": 8.64e16,
    "TerawattHour": 3.6e15, "ThermEc": _BTU * 1e5, "ThermImperial": _BTU * 1e5, "ThermUs": 1.054804e8,
    "WattDay": 86400.0, "WattHour": 3600.0,
}  # fmt: skip
_FORCE = {
    "Decanewton": 10.0, "Dyn": 1e-5, "KilogramForce": _GRAVITY, "Kilonewton": 1e3, "KiloPond": _GRAVITY,
    "KilopoundForce": 4448.2216152605095, "Meganewton": 1e6, "Micronewton": 1e-6, "Millinewton": 1e-3, "Newton": 1.0,
    "OunceForce": 4.4482216152605095 / 16, "Poundal": 0.138254954376, "PoundForce": 4.4482216152605095,
    "ShortTonForce": 8896.443230521, "TonneForce": _GRAVITY * 1000,
}  # fmt: skip
_LENGTH = {
    "Angstrom": 1e-10, "AstronomicalUnit": 1.49597870700e11, "Centimeter": 0.01, "Chain": 20.1168, "DataMile": 1828.8,
    "Decameter": 10.0, "Decimeter": 0.1, "DtpPica": _INCH / 6, "DtpPoint": _INCH / 72, "Fathom": 1.8288, "Foot": _FOOT,
    "Hand": 0.1016, "Hectometer": 100.0, "Inch": _INCH, "KilolightYear": _LIGHT_YEAR * 1e3, "Kilometer": 1e3,
    "Kiloparsec": _PARSEC * 1e3, "LightYear": _LIGHT_YEAR, "MegalightYear": _LIGHT_YEAR * 1e6,
    "Megaparsec": _PARSEC * 1e6, "Meter": 1.0, "Microinch": _INCH * 1e-6, "Micrometer": 1e-6, "Mil": _INCH / 1000,
    "Mile": _MILE, "Millimeter": 1e-3, "Nanometer": 1e-9, "NauticalMile": 1852.0, "Parsec": _PARSEC,
    "PrinterPica": _INCH / 6.022499999, "PrinterPoint": _INCH / 72.27, "Shackle": 27.432, "SolarRadius": 6.95510000e8,
    "Twip": _INCH / 1440, "UsSurveyFoot": _SURVEY_FOOT, "Yard": _YARD,
}  # fmt: skip
_MASS = {
    "Centigram": 1e-5, "Decagram": 1e-2, "Decigram": 1e-4, "EarthMass": 5.9722e24, "Grain": 6.479891e-5, "Gram": 1e-3,
    "Hectogram": 0.1, "Kilogram": 1.0, "Kilopound": _POUND * 1e3, "Kilotonne": 1e6, "LongHundredweight": 50.80234544,
    "LongTon": 1016.0469088, "Megapound": _POUND * 1e6, "Megatonne": 1e9, "Microgram": 1e-9, "Milligram": 1e-6,
    "Nanogram": 1e-12, "Ounce": 0.028349523125, "Pound": _POUND, "ShortHundredweight": 45.359237,
    "ShortTon": 907.18474, "Slug": 14.593903, "SolarMass": 1.98947e30, "Stone": 6.35029318, "Tonne": 1e3,
}  # fmt: skip
_TIMES = {"Hour": 3600.0, "Minute": 60.0, "Second": 1.0}
_DISTANCES = {
    "Centimeter": 0.01, "Decimeter": 0.1, "Foot": _FOOT, "Inch": _INCH, "Kilometer": 1e3, "Meter": 1.0,
    "Micrometer": 1e-6, "Mile": _MILE, "Millimeter": 1e-3, "Nanometer": 1e-9, "UsSurveyFoot": _SURVEY_FOOT,
    "Yard": _YARD,
}  # fmt: skip
_SPEED = {f"{name}Per{time}": size / span for name, size in _DISTANCES.items() for time, span in _TIMES.items()}
_SPEED["Knot"] = 1852 / 3600
_VOLUME = {
    "AcreFoot": 1233.48183754752, "AuTablespoon": 2e-5, "BoardFoot": 0.00235973722, "Centiliter": 1e-5,
    "CubicCentimeter": 1e-6, "CubicDecimeter": 1e-3, "CubicFoot": _FOOT**3, "CubicHectometer": 1e6,
    "CubicInch": _INCH**3, "CubicKilometer": 1e9, "CubicMeter": 1.0, "CubicMicrometer": 1e-18,
    "CubicMile": 4.16818182544058e9, "CubicMillimeter": 1e-9, "CubicYard": _YARD**3, "Decaliter": 0.01,
    "DecausGallon": _GALLON * 10, "Deciliter": 1e-4, "DeciusGallon": _GALLON / 10, "HectocubicFoot": _FOOT**3 * 100,
    "HectocubicMeter": 100.0, "Hectoliter": 0.1, "HectousGallon": _GALLON * 100, "ImperialBeerBarrel": 0.16365924,
    "ImperialGallon": _IMPERIAL_GALLON, "ImperialOunce": 2.8413062499962901e-5, "ImperialPint": _IMPERIAL_GALLON / 8,
    "KilocubicFoot": _FOOT**3 * 1e3, "KilocubicMeter": 1e3, "KiloimperialGallon": _IMPERIAL_GALLON * 1e3,
    "Kiloliter": 1.0, "KilousGallon": _GALLON * 1e3, "Liter": 1e-3, "MegacubicFoot": _FOOT**3 * 1e6,
    "MegaimperialGallon": _IMPERIAL_GALLON * 1e6, "Megaliter": 1e3, "MegausGallon": _GALLON * 1e6, "MetricCup": 2.5e-4,
    "MetricTeaspoon": 5e-6, "Microliter": 1e-9, "Milliliter": 1e-6, "OilBarrel": 0.158987294928, "UkTablespoon": 1.5e-5,
    "UsBeerBarrel": 0.11734776530399999, "UsCustomaryCup": 2.365882365e-4, "UsGallon": _GALLON, "UsLegalCup": 2.4e-4,
    "UsOunce": 2.957352956253760505068307980135e-5, "UsPint": 4.73176473e-4, "UsQuart": 9.46352946e-4,
    "UsTablespoon": 1.478676478125e-5, "UsTeaspoon": 4.92892159375e-6,
}  # fmt: skip
_KELVIN = 273.15
_TEMPERATURE: Mapping[str, tuple[float, float]] = {
    "DegreeCelsius": (1.0, _KELVIN), "DegreeDelisle": (-2 / 3, 373.15), "DegreeFahrenheit": (5 / 9, 459.67 * 5 / 9),
    "DegreeNewton": (100 / 33, _KELVIN), "DegreeRankine": (5 / 9, 0.0), "DegreeReaumur": (1.25, _KELVIN),
    "DegreeRoemer": (40 / 21, _KELVIN - 7.5 * 40 / 21), "Kelvin": (1.0, 0.0), "MillidegreeCelsius": (1e-3, _KELVIN),
    "SolarTemperature": (5778.0, 0.0),
}  # fmt: skip
"""Factor and offset to kelvin."""
_BYTE_UNITS = ("Bytes", "KB", "MB", "GB", "TB", "PB", "EB")


def _build_unit_converter(factors_to_base_unit: Mapping[str, float]) -> Callable[[float, str, str], float]:
    def convert_unit(value: float, source_unit: str, target_unit: str) -> float:
        return value * factors_to_base_unit[source_unit] / factors_to_base_unit[target_unit]

    return convert_unit


def _convert_angle(value: float, source_unit: str, target_unit: str) -> float:
    degrees = math.degrees(math.asin(value)) if source_unit == "Tilt" else value * _ANGLE[source_unit]
    return math.sin(math.radians(degrees)) if target_unit == "Tilt" else degrees / _ANGLE[target_unit]


def _convert_temperature(value: float, source_unit: str, target_unit: str) -> float:
    (factor, offset), (other, other_offset) = _TEMPERATURE[source_unit], _TEMPERATURE[target_unit]
    return (value * factor + offset - other_offset) / other


def _format_bytes(size_bytes: float, decimal_places: int | None, unit: str | None) -> str:
    exponent = _BYTE_UNITS.index(unit) if unit else 0
    if not unit:
        while abs(size_bytes) / 1024**exponent >= 1024 and exponent < len(_BYTE_UNITS) - 1:  # noqa: PLR2004
            exponent += 1
    digits = f"{size_bytes / 1024**exponent:.{min(max(decimal_places or 0, 0), 15)}f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} {_BYTE_UNITS[exponent]}"


_KINDS = "real string string"
CALLS = (
    ScalarCall("convert_angle", _convert_angle, _KINDS, "real"),
    ScalarCall("convert_energy", _build_unit_converter(_ENERGY), _KINDS, "real"),
    ScalarCall("convert_force", _build_unit_converter(_FORCE), _KINDS, "real"),
    ScalarCall("convert_length", _build_unit_converter(_LENGTH), _KINDS, "real"),
    ScalarCall("convert_mass", _build_unit_converter(_MASS), _KINDS, "real"),
    ScalarCall("convert_speed", _build_unit_converter(_SPEED), _KINDS, "real"),
    ScalarCall("convert_temperature", _convert_temperature, _KINDS, "real"),
    ScalarCall("convert_volume", _build_unit_converter(_VOLUME), _KINDS, "real"),
    ScalarCall("format_bytes", _format_bytes, "real long? string?", "string", ""),
)

SUPPORTED: tuple[str, ...] = (
    "bitset_count_ones",
    "extract (typeof)",
    "extract_json",
    "extractjson",
    "factorial",
    "loggamma",
    "new_guid",
    "parse_json",
    "rand",
    "todecimal",
    "tohex",
    *tuple(call.name for call in CALLS),
)
functions = build_python_functions(CALLS)


def install_into_translator() -> None:
    """Add conversions and functions over numbers to the KQL translator library."""
    replace_attribute(lower, "_lower_expr", _patch_expressions_for_typeof)
    extract = SCALAR_FUNCTIONS["extract"]
    add_custom_function("extract", (3, 4), lambda call: _render_extract(extract, call))
    for name in ("extract_json", "extractjson"):
        add_custom_function(name, (2, 3), _render_extract_json)
    for name in ("parse_json", "todynamic"):
        add_custom_function(name, (1,), _render_conversion_to_dynamic)
    add_template_function("todecimal", "kql_decimal({0})", 1)
    add_custom_function("tohex", (1, 2), _render_tohex)
    for side in ("left", "right"):
        sql = f"kql_shift_{side}(CAST({{0}} AS BIGINT), CAST({{1}} AS BIGINT))"
        add_template_function(f"binary_shift_{side}", sql, 2)
    add_template_function("bitset_count_ones", "CAST(bit_count(CAST({0} AS BIGINT)) AS BIGINT)", 1)
    add_function_that_reuses_arguments(
        "factorial",
        (1,),
        lambda n: f"CASE WHEN {n} BETWEEN 0 AND 20 THEN CAST(factorial(CAST({n} AS INTEGER)) AS BIGINT) END",
    )
    add_template_function("ceiling", "kql_ceiling({0})", 1)
    render_absolute = SCALAR_FUNCTIONS["abs"].render
    add_custom_function("abs", (1,), lambda call: _render_abs(render_absolute, call))
    add_template_function("loggamma", "lgamma(CAST({0} AS DOUBLE))", 1)
    add_template_function("new_guid", "gen_random_uuid()", 0)
    add_custom_function("rand", (0, 1), _render_rand)
    for name, kind in _NUMBERS.items():
        writer.SPECIAL_FORMS[name] = _patch_conversion_to_number(writer.SPECIAL_FORMS[name], kind)
    replace_attribute(translate, "render_kql_tostring", _patch_tostring_of_json_paths)
    replace_attribute(translate, "_parse_convert", _patch_conversions_of_parse_operator)
    replace_attribute(translate, "_integer_from_real", _patch_conversion_of_real_to_integer)
    install_scalar_calls(CALLS)
