"""Functions that return small SQL expressions: literals, identifiers, conversions of dynamic values."""

import re
from collections.abc import Callable, Collection, Sequence

from duckdb_kql import ir, translate

type Sql = str
"""Text of an SQL expression, query or clause, or the name of a column or subquery in SQL."""
type NamePrefix = str
"""Start of the names of generated columns and subqueries."""
type KustoType = str
"""Name of a Kusto type, such as ``long`` or ``dynamic``."""
type DuckDbType = str
"""Name of a DuckDB type, such as ``BIGINT`` or ``JSON``."""

# A name that starts with an underscore could collide with the parameter of a lambda.
_SIMPLE = re.compile(
    r'"[^"_][^"]*"|\$\w+|CAST\([-$\w.]+ AS \w+\)|INTERVAL \'[^\']{1,40}\'|\'[^\']{0,40}\'|_\w+(\.\w+)?|[-\w.]+'
)

_MAX_CONSTANT_CHARACTERS = 20_000
"""Maximum length of a constant that may occur several times in the SQL."""


def render_expression(expr: ir.Expr) -> Sql:
    """Return the SQL of a KQL expression."""
    return str(translate.render_expr(expr))


def quote_text(text: str) -> Sql:
    """Return an SQL literal for a string."""
    return str(translate.quote_string(text))


def quote_name(name: str) -> Sql:
    """Return a name as a quoted SQL identifier."""
    return str(translate.quote_ident(name))


def render_with_arguments_evaluated_once(
    arguments: Sequence[Sql], render_body: Callable[..., Sql], constant_indexes: Collection[int] = ()
) -> Sql:
    """Return SQL that evaluates each argument only once, although ``render_body`` uses the arguments several times.

    The SQL binds each argument that is not a name or constant as a parameter of a lambda. Otherwise, each level of
    nested calls would double the length of the SQL.

    Args:
        arguments: SQL of each argument.
        render_body: function that returns the SQL; it receives a name or constant for each argument.
        constant_indexes: indexes of the arguments that contain no call and have the same value for every row.
    """
    names = list(arguments)
    bound = []
    for index, argument in enumerate(arguments):
        short = index in constant_indexes and len(argument) <= _MAX_CONSTANT_CHARACTERS
        if not short and not _SIMPLE.fullmatch(argument):
            bound.append(f"a{index} := {argument}")
            names[index] = f"_once.a{index}"
    if not bound:
        return f"({render_body(*names)})"
    return f"list_transform([struct_pack({', '.join(bound)})], lambda _once: {render_body(*names)})[1]"


def render_as_json_list(sql: Sql) -> Sql:
    """Return SQL that converts a dynamic value to a list of JSON values; null if the value is not an array."""
    return f"TRY_CAST(CASE WHEN json_type({sql}) = 'ARRAY' THEN to_json({sql}) END AS JSON[])"


def render_as_json_map(sql: Sql) -> Sql:
    """Return SQL that converts a dynamic value to a map of JSON values; null if the value is not a JSON object."""
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
"""DuckDB type for each name of a Kusto type except decimal."""
