"""Conversions, and functions of numbers."""

from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS

from emulators.kusto.extensions.library import reader, replace, writer
from emulators.kusto.extensions.registry import body, constant, form, template
from emulators.kusto.extensions.sql import render

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


def _json_integer(kind: str, bits: int) -> str:
    """Return the macro that makes an integer of a JSON value: of a plain one at once, of any other by its type."""
    plain = "NOT (contains(j::VARCHAR, '.') OR contains(j::VARCHAR, 'e') OR contains(j::VARCHAR, 'E'))"
    long = "TRY_CAST(j AS BIGINT)" if bits == 64 else writer.wrap_int32("TRY_CAST(j AS BIGINT)")  # noqa: PLR2004
    return (
        f"CREATE OR REPLACE MACRO kql_json_{kind.lower()}(j) AS coalesce(CASE WHEN {plain} THEN TRY_CAST(j::VARCHAR AS "
        f"{kind}) END, CASE json_type(j) WHEN 'DOUBLE' THEN {writer.integer_from_real('CAST(j AS DOUBLE)', bits)} "
        f"WHEN 'VARCHAR' THEN {writer.integer_from_text("(j ->> '$')", kind)} "
        f"WHEN 'BOOLEAN' THEN CAST(CAST(j AS BOOLEAN) AS {kind}) WHEN 'BIGINT' THEN {long} "
        f"WHEN 'UBIGINT' THEN {long} END)"
    )


macros: tuple[str, ...] = (
    _json_integer("INTEGER", 32),
    _json_integer("BIGINT", 64),
    "CREATE OR REPLACE MACRO kql_json_double(j) AS coalesce(TRY_CAST(j ->> '$' AS DOUBLE), TRY_CAST(j AS DOUBLE))",
    # Nine digits behind the point are kept: a text with more is an error, a real is the nearest that has no more.
    (
        "CREATE OR REPLACE MACRO kql_decimal(v) AS list_transform([struct_pack(t := trim(CAST(v AS VARCHAR), ' \"'), "
        "r := typeof(v) IN ('DOUBLE', 'FLOAT'))], lambda _d: CASE WHEN NOT _d.r AND "
        "regexp_matches(_d.t, '\\.[0-9]{9}[0-9]*[1-9]') THEN error('a decimal with more than nine digits behind the "
        "point is not supported by the embedded query engine') ELSE TRY_CAST(_d.t AS DECIMAL(38, 9)) END)[1]"
    ),
)

_TYPE = "typeof"
_MOST_DIGITS = 16
_CONVERSIONS = {
    "string": None, "bool": "tobool", "boolean": "tobool", "int": "toint", "long": "tolong", "real": "toreal",
    "double": "toreal", "datetime": "todatetime", "date": "todatetime", "timespan": "totimespan", "time": "totimespan",
    "guid": "toguid", "dynamic": "parse_json", "decimal": "todecimal",
}  # fmt: skip


def install() -> None:
    """Teach the translator the functions."""
    replace(lower, "_lower_expr", _type_literals)
    extract = SCALAR_FUNCTIONS["extract"]
    form("extract", (3, 4), lambda call: _extract(extract, call))
    for name in ("extract_json", "extractjson"):
        form(name, (2, 3), _extract_json)
    template("todecimal", "kql_decimal({0})", 1)
    form("tohex", (1, 2), _tohex)
    template("bitset_count_ones", "CAST(bit_count(CAST({0} AS BIGINT)) AS BIGINT)", 1)
    body(
        "factorial",
        (1,),
        lambda n: f"CASE WHEN {n} BETWEEN 0 AND 20 THEN CAST(factorial(CAST({n} AS INTEGER)) AS BIGINT) END",
    )
    template("loggamma", "lgamma(CAST({0} AS DOUBLE))", 1)
    template("new_guid", "gen_random_uuid()", 0)
    form("rand", (0, 1), _rand)
    for name, kind in _NUMBERS.items():
        writer.SPECIAL_FORMS[name] = _number(writer.SPECIAL_FORMS[name], kind)
    replace(translate, "render_kql_tostring", _tostring)


_NUMBERS = {"toint": "INTEGER", "tolong": "BIGINT", "todouble": "DOUBLE", "toreal": "DOUBLE"}


def _number(default: Callable[[ir.FunctionCall], str | None], kind: str) -> Callable[[ir.FunctionCall], str | None]:
    """Convert what is inside a dynamic by what it is there; the library asks of any value which type it has."""
    macro = f"kql_json_{kind.lower()}"

    def convert(call: ir.FunctionCall) -> str | None:
        if len(call.args) != 1 or not isinstance(call.args[0], ir.PathAccess):
            return default(call)
        path = call.args[0]
        # Only the reading of a real is so short that binding the value costs more than what it saves.
        if kind == "DOUBLE" and isinstance(path.base, ir.ColumnRef) and writer.static_path(path.steps) is not None:
            return f"{macro}({render(path)})"
        return f"list_transform([{render(path)}], lambda _p: {macro}(_p))[1]"

    return convert


def _tostring(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    """Take a text out of a dynamic in one step, where the library extracts JSON and reads that again."""

    def tostring(expr: ir.Expr) -> str:
        if not isinstance(expr, ir.PathAccess) or (path := writer.static_path(expr.steps)) is None:
            return default(expr)
        return f"coalesce(json_extract_string({render(expr.base)}, {translate.quote_string(path)}), '')"

    return tostring


def _type_literals(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_expr(node: Any) -> ir.Expr:
        try:
            return default(node)
        except KqlUnsupportedError as error:
            if error.construct != "expression:TypeLiteralExpression":
                raise
            text = reader.collapse(node).getText()
            return ir.FunctionCall(_TYPE, (ir.Literal(text[len(_TYPE) + 1 : -1].strip().lower(), "string"),))

    return lower_expr


def _converted(sql: str, kind: ir.Expr, function: str) -> str:
    if not isinstance(kind, ir.FunctionCall) or kind.name != _TYPE:
        raise KqlUnsupportedError(f"function:{function}", hint="the type must be given as typeof(...)")
    name = str(constant(kind.args[0], function))
    if name not in _CONVERSIONS:
        raise KqlUnsupportedError(f"typeof({name})")
    conversion = _CONVERSIONS[name]
    return sql if conversion is None else render(ir.FunctionCall(conversion, (ir.RenderedAggregate(sql),)))


def _extract(plain: Any, call: ir.FunctionCall) -> str:
    args = [str(writer.render_arg("extract", index, arg)) for index, arg in enumerate(call.args[:3])]
    sql = plain.render(args)
    return _converted(sql, call.args[3], "extract") if len(call.args) == 4 else str(sql)  # noqa: PLR2004


def _extract_json(call: ir.FunctionCall) -> str:
    path = constant(call.args[0], "extract_json")
    if not isinstance(path, str) or not path.startswith("$") or "*" in path:
        raise KqlUnsupportedError("extract_json", hint="the path must be a literal that names one value")
    document = f"TRY_CAST({render(call.args[1])} AS JSON)"
    sql = f"({document} ->> {translate.quote_string(path)})"
    return _converted(sql, call.args[2], "extract_json") if len(call.args) == 3 else sql  # noqa: PLR2004


def _tohex(call: ir.FunctionCall) -> str:
    digits = f"lower(to_hex(CAST({render(call.args[0])} AS BIGINT)))"
    if len(call.args) == 1:
        return digits
    width = constant(call.args[1], "tohex")
    if not isinstance(width, int) or not 0 <= width <= _MOST_DIGITS:
        raise KqlUnsupportedError("tohex", hint=f"the length must be from 0 to {_MOST_DIGITS}")
    return f"lpad({digits}, greatest(CAST({width} AS INTEGER), length({digits})::INTEGER), '0')"


def _rand(call: ir.FunctionCall) -> str:
    if not call.args:
        return "random()"
    return f"CAST(floor(random() * {render(call.args[0])}) AS BIGINT)"
