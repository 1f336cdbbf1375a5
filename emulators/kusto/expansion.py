"""A bound on how far a query may expand while it is rendered.

The translator writes an argument into the SQL as often as a function's template names it, so nested calls multiply: 150
bytes of KQL can become gigabytes. The length is therefore checked after every expression, not at the end alone.
"""

from collections.abc import Callable
from typing import Any

from duckdb_kql import translate

from emulators.kusto.errors import too_complex

MAX_SQL_CHARACTERS = 1_000_000


def check_length(sql: str) -> None:
    """Pass when the SQL is short enough to be executed.

    Raises:
        QueryError: it is not.
    """
    if len(sql) > MAX_SQL_CHARACTERS:
        raise too_complex("the query expands beyond what can be executed")


def bound_expansion() -> None:
    """Make the translator of this process check every expression that it renders."""
    translate.render_expr = _checked(translate.render_expr)


def _checked(render: Callable[..., str]) -> Callable[..., str]:
    def checked(*args: Any) -> str:
        sql = render(*args)
        check_length(sql)
        return sql

    return checked
