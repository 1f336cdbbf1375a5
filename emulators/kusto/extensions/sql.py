"""Writing SQL out of rendered arguments without writing any of them more than once."""

import re
from collections.abc import Callable, Collection, Sequence

from duckdb_kql import ir, translate

# A name that begins like a lambda's parameter would meet it.
_SIMPLE = re.compile(
    r'"[^"_][^"]*"|\$\w+|CAST\([-$\w.]+ AS \w+\)|INTERVAL \'[^\']{1,40}\'|\'[^\']{0,40}\'|_\w+(\.\w+)?|[-\w.]+'
)

_LONGEST_CONSTANT = 20_000
"""Characters of a constant that may be written repeatedly."""


def render(expr: ir.Expr) -> str:
    """Return the SQL of an expression."""
    return str(translate.render_expr(expr))


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return str(translate.quote_string(text))


def once(arguments: Sequence[str], body: Callable[..., str], constants: Collection[int] = ()) -> str:
    """Return ``body`` over the arguments, each of them evaluated, and written, a single time.

    A body may name an argument as often as it likes: what is more than a name or a constant is bound by a lambda.
    Nested calls would otherwise double the SQL at every level.

    Args:
        arguments: the SQL of each.
        body: writes SQL over names, or constants, of as many arguments.
        constants: positions of the arguments that hold no call and are the same for every row.
    """
    names = list(arguments)
    bound = []
    for index, argument in enumerate(arguments):
        short = index in constants and len(argument) <= _LONGEST_CONSTANT
        if not short and not _SIMPLE.fullmatch(argument):
            bound.append(f"a{index} := {argument}")
            names[index] = f"_once.a{index}"
    if not bound:
        return f"({body(*names)})"
    return f"list_transform([struct_pack({', '.join(bound)})], lambda _once: {body(*names)})[1]"


def array(sql: str) -> str:
    """Return a dynamic as a list of JSON values, null where it is no array."""
    return f"TRY_CAST(CASE WHEN json_type({sql}) = 'ARRAY' THEN to_json({sql}) END AS JSON[])"


def bag(sql: str) -> str:
    """Return a dynamic as a map of JSON values, null where it is no property bag."""
    return f"TRY(from_json(CASE WHEN json_type({sql}) = 'OBJECT' THEN {sql} END, '\"MAP(VARCHAR,JSON)\"'))"
