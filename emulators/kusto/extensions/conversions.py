"""KQL functions that convert between types, and functions over numbers."""

from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS

from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.registry import (
    add_bound_function,
    add_custom_function,
    add_template_function,
    read_literal_value,
)
from emulators.kusto.extensions.sql import render_expression

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
)


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


def _render_is_integer(value: str) -> str:
    """Render SQL that tests whether a JSON number is written as an integer, without a fraction or an exponent.

    DuckDB reads an integer of more than 64 bits as a double. The test is needed because such a value converts to null,
    not to the nearest integer.
    """
    return "(" + " AND ".join(f"NOT contains({value}::VARCHAR, '{mark}')" for mark in (".", "e", "E")) + ")"


def _build_json_integer_macro(kind: str, bits: int) -> str:
    """Build the SQL statement that creates a DuckDB macro to convert a JSON value to an integer."""
    plain, real = _render_is_integer("j"), writer.integer_from_real("CAST(j AS DOUBLE)", bits)
    long = "TRY_CAST(j AS BIGINT)" if bits == 64 else writer.wrap_int32("TRY_CAST(j AS BIGINT)")  # noqa: PLR2004
    return (
        f"CREATE OR REPLACE MACRO kql_json_{kind.lower()}(j) AS coalesce(CASE WHEN {plain} THEN TRY_CAST(j::VARCHAR AS "
        f"{kind}) END, CASE json_type(j) WHEN 'DOUBLE' THEN CASE WHEN NOT {plain} THEN {real} END "
        f"WHEN 'VARCHAR' THEN {writer.integer_from_text("(j ->> '$')", kind)} "
        f"WHEN 'BOOLEAN' THEN CAST(CAST(j AS BOOLEAN) AS {kind}) WHEN 'BIGINT' THEN {long} "
        f"WHEN 'UBIGINT' THEN {long} END)"
    )


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
    "CREATE OR REPLACE MACRO kql_json_double(j) AS coalesce(TRY_CAST(j ->> '$' AS DOUBLE), TRY_CAST(j AS DOUBLE))",
    # Decimals have nine digits after the point: a text with more is an error, a real is rounded.
    (
        "CREATE OR REPLACE MACRO kql_decimal(v) AS list_transform([struct_pack(t := trim(CAST(v AS VARCHAR), ' \"'), "
        "r := typeof(v) IN ('DOUBLE', 'FLOAT'))], lambda _d: CASE WHEN NOT _d.r AND "
        "regexp_matches(_d.t, '\\.[0-9]{9}[0-9]*[1-9]') THEN error('a decimal with more than nine digits after the "
        "point is not supported by the embedded query engine') ELSE TRY_CAST(_d.t AS DECIMAL(38, 9)) END)[1]"
    ),
)

_TYPE = "typeof"
_MAX_DIGITS = 16
CONVERSIONS = {
    "string": None, "bool": "tobool", "boolean": "tobool", "int": "toint", "long": "tolong", "real": "toreal",
    "double": "toreal", "datetime": "todatetime", "date": "todatetime", "timespan": "totimespan", "time": "totimespan",
    "guid": "toguid", "dynamic": "parse_json", "decimal": "todecimal",
}  # fmt: skip


def install() -> None:
    """Add conversions and functions over numbers to the KQL translator library."""
    replace_attribute(lower, "_lower_expr", _patch_lower_expr)
    extract = SCALAR_FUNCTIONS["extract"]
    add_custom_function("extract", (3, 4), lambda call: _render_extract(extract, call))
    for name in ("extract_json", "extractjson"):
        add_custom_function(name, (2, 3), _render_extract_json)
    add_template_function("todecimal", "kql_decimal({0})", 1)
    add_custom_function("tohex", (1, 2), _render_tohex)
    for side in ("left", "right"):
        sql = f"kql_shift_{side}(CAST({{0}} AS BIGINT), CAST({{1}} AS BIGINT))"
        add_template_function(f"binary_shift_{side}", sql, 2)
    add_template_function("bitset_count_ones", "CAST(bit_count(CAST({0} AS BIGINT)) AS BIGINT)", 1)
    add_bound_function(
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
        writer.SPECIAL_FORMS[name] = _patch_number_conversion(writer.SPECIAL_FORMS[name], kind)
    replace_attribute(translate, "render_kql_tostring", _patch_tostring)
    replace_attribute(translate, "_integer_from_real", _patch_integer_from_real)


def _render_abs(render: Callable[[list[str]], str], call: ir.FunctionCall) -> str:
    value = render_expression(call.args[0])
    return f"kql_abs({value})" if infer_type(call.args[0]) in (None, "timespan") else render([value])


_NUMBERS = {"toint": "INTEGER", "tolong": "BIGINT", "todouble": "DOUBLE", "toreal": "DOUBLE"}

_JSON_REAL = "CAST(TRY_CAST(_v AS JSON) AS DOUBLE)"
"""SQL of a real in a dynamic value, as the library writes it in a conversion to an integer."""

type _Conversion = Callable[[ir.FunctionCall], str | None]


def _patch_number_conversion(default: _Conversion, kind: str) -> _Conversion:
    """Patch a conversion to a number so that it uses a dynamic value's JSON type, and does not try all types."""
    macro = f"kql_json_{kind.lower()}"

    def render_conversion(call: ir.FunctionCall) -> str | None:
        if len(call.args) != 1 or not isinstance(call.args[0], ir.PathAccess):
            return default(call)
        path = call.args[0]
        # The macro for reals is so short that binding the value would cost more than it saves.
        if kind == "DOUBLE" and isinstance(path.base, ir.ColumnRef) and writer.static_path(path.steps) is not None:
            return f"{macro}({render_expression(path)})"
        return f"list_transform([{render_expression(path)}], lambda _p: {macro}(_p))[1]"

    return render_conversion


def _patch_integer_from_real(default: Callable[[str, int], str]) -> Callable[[str, int], str]:
    """Patch the conversion of dynamic values so that integers of more than 64 bits become null, as in Data Explorer."""

    def render_integer(real: str, bits: int) -> str:
        rendered = default(real, bits)
        return f"CASE WHEN NOT {_render_is_integer('_v')} THEN {rendered} END" if real == _JSON_REAL else rendered

    return render_integer


def _patch_tostring(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    """Patch ``tostring(d.x)`` so that it renders one step; the library's SQL extracts JSON text and parses it again."""

    def render_tostring(expr: ir.Expr) -> str:
        if not isinstance(expr, ir.PathAccess) or (path := writer.static_path(expr.steps)) is None:
            return default(expr)
        return f"coalesce(json_extract_string({render_expression(expr.base)}, {translate.quote_string(path)}), '')"

    return render_tostring


def _patch_lower_expr(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_expr(node: Any) -> ir.Expr:
        try:
            return default(node)
        except KqlUnsupportedError as error:
            if error.construct != "expression:TypeLiteralExpression":
                raise
            text = reader.collapse(node).getText()
            return ir.FunctionCall(_TYPE, (ir.Literal(text[len(_TYPE) + 1 : -1].strip().lower(), "string"),))

    return lower_expr


def convert_to_type(sql: str, kind: ir.Expr, function: str) -> str:
    """Return SQL that converts a text or dynamic value to the type in a function's argument ``typeof(...)``.

    Raises:
        KqlUnsupportedError: the argument has another form, or names a type that has no conversion.
    """
    if not isinstance(kind, ir.FunctionCall) or kind.name != _TYPE:
        raise KqlUnsupportedError(
            f"function:{function}", hint=f"the type argument of {function}() must have the form typeof(...)"
        )
    name = str(read_literal_value(kind.args[0], function))
    if name not in CONVERSIONS:
        raise KqlUnsupportedError(f"typeof({name})")
    conversion = CONVERSIONS[name]
    return sql if conversion is None else render_expression(ir.FunctionCall(conversion, (ir.RenderedAggregate(sql),)))


def _render_extract(plain: Any, call: ir.FunctionCall) -> str:
    args = [str(writer.render_arg("extract", index, arg)) for index, arg in enumerate(call.args[:3])]
    sql = plain.render(args)
    return convert_to_type(sql, call.args[3], "extract") if len(call.args) == 4 else str(sql)  # noqa: PLR2004


def _render_extract_json(call: ir.FunctionCall) -> str:
    path = read_literal_value(call.args[0], "extract_json")
    if not isinstance(path, str) or not path.startswith("$") or "*" in path:
        raise KqlUnsupportedError(
            "extract_json", hint="the path of extract_json() must be a literal that starts with $ and selects one value"
        )
    document = f"TRY_CAST({render_expression(call.args[1])} AS JSON)"
    sql = f"({document} ->> {translate.quote_string(path)})"
    return convert_to_type(sql, call.args[2], "extract_json") if len(call.args) == 3 else sql  # noqa: PLR2004


def _render_tohex(call: ir.FunctionCall) -> str:
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


def _render_rand(call: ir.FunctionCall) -> str:
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
