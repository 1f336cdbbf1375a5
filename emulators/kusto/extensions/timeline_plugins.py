"""Base of the ``evaluate`` plugins that count events in windows of a timeline, such as ``activity_metrics``.

A timeline is a column of instants or numbers. Window 0 begins at the start of the analysis. Window
numbers are computed from instants in microseconds. The begin of each window is computed from the start of the analysis,
so that it has the type of the timeline.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import Substitute
from emulators.kusto.extensions.plugins import check_column
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import quote_name, quote_text, render_expression
from emulators.kusto.extensions.tree import get_source_position

_NOT_ON_A_TIMELINE = ("string", "bool")

macros: tuple[str, ...] = (
    # An instant or a duration in microseconds; other values as a double.
    """CREATE OR REPLACE MACRO kql_axis(value) AS list_transform([value], lambda _v: CASE typeof(_v)
        WHEN 'TIMESTAMP' THEN CAST(epoch_us(CAST(_v AS TIMESTAMP)) AS DOUBLE)
        WHEN 'INTERVAL' THEN CAST(epoch_us(CAST(_v AS INTERVAL)) AS DOUBLE) ELSE TRY_CAST(_v AS DOUBLE) END)[1]""",
    # The number of a window of positive length that contains a position.
    """CREATE OR REPLACE MACRO kql_window(position, begin, size, message) AS list_transform(
        [struct_pack(p := kql_axis(position) - kql_axis(begin), s := kql_axis(size))], lambda _w: CASE
        WHEN _w.s > 0 THEN CAST(floor(_w.p / _w.s) AS BIGINT) ELSE error(message) END)[1]""",
)


def install() -> None:
    """Do nothing, because this module contains only SQL macros for the plugins of other modules."""


@dataclasses.dataclass(frozen=True)
class TimelinePlugin(UnorderedOutputOperator):
    """Base class of plugins with an id column, a timeline column, constants and dimension columns.

    Attributes:
        plugin: name of the plugin.
        columns: the id column and the timeline column.
        constants: constants that follow these columns.
        dimensions: columns by whose values the results are grouped.
    """

    plugin: str
    columns: tuple[str, ...]
    constants: tuple[ir.Expr, ...]
    dimensions: tuple[str, ...]

    def replace_expressions(self, substitute: Substitute) -> "TimelinePlugin":
        """Return a copy of the plugin with ``substitute`` applied to its constants."""
        return dataclasses.replace(self, constants=tuple(map(substitute, self.constants)))

    def check_columns(self, cols: Sequence[str]) -> None:
        """Check that all columns to which the plugin refers exist.

        Raises:
            QueryError: a column does not exist.
        """
        for name in (*self.columns, *self.dimensions):
            check_column(name, cols)

    def render_constants(self) -> list[str]:
        """Return the SQL of each constant."""
        return [f"({render_expression(each)})" for each in self.constants]

    def render_window(self, begin: str, size: str) -> str:
        """Return SQL for the number of the window that contains a row's value in the timeline column."""
        message = quote_text(f"kql:SEM0100:evaluate {self.plugin}(): the size of a window must be positive")
        return f"kql_window({quote_name(self.columns[-1])}, {begin}, {size}, {message})"

    def render_dimensions(self) -> str:
        """Return SQL for the dimension columns, each with a comma before it."""
        return "".join(f", {quote_name(name)}" for name in self.dimensions)


def parse_arguments(
    plugin: str, node: Any, arguments: Sequence[Any], columns: int, constants: Collection[int]
) -> Mapping[str, Any]:
    """Return the fields of a `TimelinePlugin` from the arguments of a plugin call.

    Args:
        plugin: name of the plugin.
        node: parse tree node of the operator, for positions.
        arguments: parse tree nodes of the arguments.
        columns: number of columns before the constants.
        constants: accepted numbers of constants. With the largest number dimension columns may follow.

    Raises:
        QueryError: the number or the form of the arguments is wrong.
    """
    position = get_source_position(node)
    if any(find_argument_name(each) for each in arguments):
        raise semantic_error(f"evaluate {plugin}(): arguments have no names", position=position)
    lowered = [reader.lower_expr(each) for each in arguments]
    most = max(constants)
    count = most if len(lowered) >= columns + most else len(lowered) - columns
    if count not in constants:
        raise semantic_error(
            f"evaluate {plugin}() requires {columns} columns and {' or '.join(map(str, sorted(constants)))} constants",
            inner="SEM0219",
            position=position,
        )
    names = [*lowered[:columns], *lowered[columns + count :]]
    if not all(isinstance(each, ir.ColumnRef) for each in names):
        raise semantic_error(
            f"evaluate {plugin}(): the first {columns} arguments and the dimensions must be columns", position=position
        )
    given = lowered[columns : columns + count]
    if any(isinstance(each, ir.Literal) and each.kind in _NOT_ON_A_TIMELINE for each in given):
        raise semantic_error(
            f"evaluate {plugin}(): the constants must be numbers, datetimes or timespans", position=position
        )
    found = [each.name for each in names]
    return {
        "plugin": plugin,
        "columns": tuple(found[:columns]),
        "constants": tuple(given),
        "dimensions": tuple(found[columns:]),
    }
