"""SQL fragments: literals, identifiers, conversions of dynamics, and arguments that are bound once."""

import re
from collections.abc import Callable, Collection, Sequence

from duckdb_kql import ir, translate

# A name that starts with an underscore could collide with the parameter of a lambda.
_SIMPLE = re.compile(
    r'"[^"_][^"]*"|\$\w+|CAST\([-$\w.]+ AS \w+\)|INTERVAL \'[^\']{1,40}\'|\'[^\']{0,40}\'|_\w+(\.\w+)?|[-\w.]+'
)

_MAX_CONSTANT_CHARACTERS = 20_000
"""Maximum length of a constant that may occur several times in the SQL."""


def render(expr: ir.Expr) -> str:
    """Return the SQL of an expression."""
    return str(translate.render_expr(expr))


def quote_text(text: str) -> str:
    """Return a text as an SQL literal."""
    return str(translate.quote_string(text))


def quote_name(name: str) -> str:
    """Return a name as an SQL identifier."""
    return str(translate.quote_ident(name))


def bind_once(arguments: Sequence[str], body: Callable[..., str], constants: Collection[int] = ()) -> str:
    """Return the SQL of ``body``, with each argument evaluated and written once.

    A body may use an argument repeatedly. Arguments other than names and constants are bound by a lambda; otherwise
    nested calls would double the SQL at every level.

    Args:
        arguments: the SQL of the arguments.
        body: returns SQL for names or constants, one for each argument.
        constants: positions of the arguments that contain no call and are the same for every row.
    """
    names = list(arguments)
    bound = []
    for index, argument in enumerate(arguments):
        short = index in constants and len(argument) <= _MAX_CONSTANT_CHARACTERS
        if not short and not _SIMPLE.fullmatch(argument):
            bound.append(f"a{index} := {argument}")
            names[index] = f"_once.a{index}"
    if not bound:
        return f"({body(*names)})"
    return f"list_transform([struct_pack({', '.join(bound)})], lambda _once: {body(*names)})[1]"


def render_array(sql: str) -> str:
    """Return the SQL of a dynamic as a list of JSON values, null if it is not an array."""
    return f"TRY_CAST(CASE WHEN json_type({sql}) = 'ARRAY' THEN to_json({sql}) END AS JSON[])"


def render_bag(sql: str) -> str:
    """Return the SQL of a dynamic as a map of JSON values, null if it is not a property bag."""
    return f"TRY(from_json(CASE WHEN json_type({sql}) = 'OBJECT' THEN {sql} END, '\"MAP(VARCHAR,JSON)\"'))"


SQL_TYPES = {
    "bool": "BOOLEAN",
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "real": "DOUBLE",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "datetime": "TIMESTAMP",
    "date": "TIMESTAMP",
    "timespan": "INTERVAL",
    "time": "INTERVAL",
    "guid": "UUID",
    "dynamic": "JSON",
}
"""DuckDB types by the names of Kusto types."""
