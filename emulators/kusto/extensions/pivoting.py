"""Plugins of ``evaluate``: ``pivot`` converts values to columns, ``narrow`` converts columns to values."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.discovery import DataDependentOperator, to_column_name
from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import Substitute
from emulators.kusto.extensions.plugins import Schema, add_plugin, check_column, read_output_schema
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import SQL_TYPES, quote_name, quote_text
from emulators.kusto.extensions.tree import get_source_position
from emulators.kusto.extensions.window_plan import find_free_prefix

SUPPORTED: tuple[str, ...] = ("evaluate pivot (aggregate, columns, output schema)", "evaluate narrow")

macros: tuple[str, ...] = ()
_PIVOTED = frozenset(
    {
        "min",
        "max",
        "take_any",
        "sum",
        "dcount",
        "avg",
        "stdev",
        "variance",
        "make_list",
        "make_bag",
        "make_set",
        "count",
    }
)


def install() -> None:
    """Add the plugins ``pivot`` and ``narrow`` to the operator ``evaluate``."""
    add_plugin("pivot", _parse_pivot)
    add_plugin("narrow", _parse_narrow)


@dataclasses.dataclass(frozen=True)
class PivotValuesProbe(UnorderedOutputOperator):
    """Operator of the probe query for ``pivot``: lists the sorted distinct values of a column, which become columns."""

    column: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Render SQL that yields the distinct values of the pivoted column; null becomes the empty string."""
        check_column(self.column, cols)
        text = f"coalesce({translate.render_kql_tostring(ir.ColumnRef(self.column))}, '')"
        return f"SELECT DISTINCT {text} AS v FROM {prev} ORDER BY v"  # noqa: S608  rendered expressions

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the name of the only output column."""
        del cols
        return ["v"]


@dataclasses.dataclass(frozen=True)
class PivotOperator(UnorderedOutputOperator, DataDependentOperator):
    """Plugin ``evaluate pivot(column, aggregate, keys...)``: makes a column of each value of a column.

    Attributes:
        offset: position of the operator in the query text.
        column: name of the column whose values become columns.
        aggregate: aggregate whose results these columns contain.
        keys: names of the columns to group by; empty for all columns that the other arguments do not read.
        schema: name and SQL type of each output column; None if the query states no output schema.
    """

    offset: int
    column: str
    aggregate: ir.FunctionCall
    keys: tuple[str, ...]
    schema: Schema | None

    def build_probe(self) -> ir.Operator:
        """Return the query operator that lists the values of the pivoted column."""
        return PivotValuesProbe(self.column)

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields one row for each combination of keys.

        A cell without input rows contains the result of the aggregate for an empty input.
        """
        check_column(self.column, cols)
        keys = self._find_keys(cols)
        for name in keys:
            check_column(name, cols)
        p = find_free_prefix([*cols, *self.infer_columns(cols)])
        text = f"coalesce({translate.render_kql_tostring(ir.ColumnRef(self.column))}, '')"
        cell = translate.render_aggregate(ir.NamedExpr(self.aggregate))
        key_list = ", ".join(map(quote_name, keys))
        rows = f"(SELECT *, {text} AS {p}v FROM {prev})"  # noqa: S608  generated names, rendered expressions
        cells = f"(SELECT {key_list}{', ' if keys else ''}{p}v, {cell} AS {p}a FROM {rows} GROUP BY ALL)"  # noqa: S608
        none = f"(SELECT {cell} AS {p}n FROM (SELECT * FROM {rows} LIMIT 0))"  # noqa: S608
        typed = dict(self.schema or ())
        chosen = [
            quote_name(name) if name in keys else self._render_cell(name, p, typed.get(name))
            for name in self.infer_columns(cols)
        ]
        row = f"SELECT {key_list}{', ' if keys else ''}map(list({p}v), list({p}a)) AS {p}m FROM {cells}"  # noqa: S608
        grouping = f" GROUP BY {key_list}" if keys else ""
        return f"SELECT {', '.join(chosen)} FROM ({row}{grouping}), {none}"  # noqa: S608

    @staticmethod
    def _render_cell(name: str, p: str, sql_type: str | None) -> str:
        value = f"coalesce({p}m[{quote_text(name)}], {p}n)"
        return f"{value if sql_type is None else f'CAST({value} AS {sql_type})'} AS {quote_name(name)}"

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the key columns, followed by one column for each value."""
        if self.schema is not None:
            return [name for name, _ in self.schema]
        keys = self._find_keys(cols)
        return [*keys, *self._find_value_columns(keys)]

    def _find_keys(self, cols: list[str]) -> list[str]:
        if self.keys:
            return list(self.keys)
        read_columns = writer.referenced_columns(self.aggregate)
        keys = [name for name in cols if name != self.column and name not in read_columns]
        return keys if self.schema is None else [name for name in keys if name in dict(self.schema)]

    def _find_value_columns(self, keys: Sequence[str]) -> list[str]:
        if self.schema is not None:
            return [name for name, _ in self.schema if name not in keys]
        names = [to_column_name(row[0]) for row in self.probe_rows]
        for name in names:
            if name in keys:
                raise semantic_error(
                    f"evaluate pivot(): the value '{name[:100]}' cannot become a column: another column has this name"
                )
        return names

    def replace_expressions(self, substitute: Substitute) -> "PivotOperator":
        """Return a copy in which the function ``substitute`` has replaced the expressions in the aggregate."""
        aggregate = substitute(self.aggregate)
        return dataclasses.replace(self, aggregate=aggregate) if isinstance(aggregate, ir.FunctionCall) else self


@dataclasses.dataclass(frozen=True)
class NarrowOperator(UnorderedOutputOperator):
    """Plugin ``evaluate narrow()``: returns one row for each cell of the input: row number, column name and value."""

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields row number, column name and value (as a string) of each cell."""
        values = [
            f"{{'c': {quote_text(name)}, 'v': {translate.render_kql_tostring(ir.ColumnRef(name))}}}" for name in cols
        ]
        row = f"{find_free_prefix(cols)}r"
        pairs = f"unnest([{', '.join(values)}])"
        numbered = f"SELECT *, row_number() OVER () - 1 AS {row} FROM {prev}"  # noqa: S608  generated names
        paired = f"(SELECT {row}, {pairs} AS e FROM ({numbered}))"  # noqa: S608
        return f'SELECT {row} AS "Row", e.c AS "Column", e.v AS "Value" FROM {paired}'  # noqa: S608

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the names of the three output columns: row number, column name and value."""
        del cols
        return ["Row", "Column", "Value"]


def _parse_pivot(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
    _reject_named_arguments("pivot", arguments)
    lowered = [reader.lower_expr(each) for each in arguments]
    if not lowered or not isinstance(lowered[0], ir.ColumnRef):
        raise semantic_error(
            "evaluate pivot(): the first argument must be a column", position=get_source_position(node)
        )
    aggregate: ir.Expr = ir.FunctionCall("count")
    if len(lowered) > 1 and isinstance(lowered[1], ir.FunctionCall):
        aggregate = lowered.pop(1)
    if not isinstance(aggregate, ir.FunctionCall) or aggregate.name.lower() not in _PIVOTED:
        raise unsupported_error(
            "evaluate pivot with another aggregate than the documented ones", position=get_source_position(node)
        )
    keys = []
    for each in lowered[1:]:
        if not isinstance(each, ir.ColumnRef):
            raise semantic_error(
                "evaluate pivot(): the arguments after the aggregate must be columns",
                position=get_source_position(node),
            )
        keys.append(each.name)
    schema, star = read_output_schema(clause)
    if star:
        raise unsupported_error("evaluate pivot with * in its output schema", position=get_source_position(node))
    typed = None if schema is None else tuple((name, SQL_TYPES[kind]) for name, kind in schema)
    return PivotOperator(node.start.start, lowered[0].name, aggregate, tuple(keys), typed)


def _reject_named_arguments(plugin: str, arguments: Sequence[Any]) -> None:
    if any(find_argument_name(each) for each in arguments):
        raise unsupported_error(f"evaluate {plugin} with named arguments", position=get_source_position(arguments[0]))


def _parse_narrow(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
    if arguments or clause is not None:
        raise unsupported_error("evaluate narrow with arguments", position=get_source_position(node))
    return NarrowOperator()
