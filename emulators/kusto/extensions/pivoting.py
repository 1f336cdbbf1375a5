"""``evaluate pivot`` and ``narrow``: columns out of values, and values out of columns."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.discovery import Discovering, name_of
from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.names import argument_name
from emulators.kusto.extensions.pipeline import Substitute
from emulators.kusto.extensions.plugins import Schema, add_plugin, check_column, output_schema, quoted_name
from emulators.kusto.extensions.serialized import Unserializing
from emulators.kusto.extensions.sql import quoted
from emulators.kusto.extensions.sql_types import SQL_TYPES
from emulators.kusto.extensions.tree import position
from emulators.kusto.extensions.window_plan import free_prefix

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
    """Teach the translator the plugins."""
    add_plugin("pivot", _pivot)
    add_plugin("narrow", _narrow)


@dataclasses.dataclass(frozen=True)
class Values(Unserializing):
    """The probe of ``pivot``: the values of a column as texts, in order."""

    column: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the values; null and the empty text are one."""
        check_column(self.column, cols)
        text = f"coalesce({translate.render_kql_tostring(ir.ColumnRef(self.column))}, '')"
        return f"SELECT DISTINCT {text} AS v FROM {prev} ORDER BY v"  # noqa: S608  rendered expressions

    def columns(self, cols: list[str]) -> list[str]:
        """Return one column."""
        del cols
        return ["v"]


@dataclasses.dataclass(frozen=True)
class Pivot(Unserializing, Discovering):
    """``pivot(column, aggregate, kept...)``.

    Attributes:
        place: of the text.
        column: its values become columns.
        aggregate: what stands in these.
        kept: the columns that rows are grouped by; empty for all that neither of the others reads.
        schema: the result's columns, where the text gives them.
    """

    place: int
    column: str
    aggregate: ir.FunctionCall
    kept: tuple[str, ...]
    schema: Schema | None

    def probe(self) -> ir.Operator:
        """Return the query for the values of the column."""
        return Values(self.column)

    def render(self, prev: str, cols: list[str]) -> str:
        """Return one row for each combination of the kept columns; a cell without rows is an aggregate of none."""
        check_column(self.column, cols)
        kept = self._kept(cols)
        for name in kept:
            check_column(name, cols)
        p = free_prefix([*cols, *self.columns(cols)])
        text = f"coalesce({translate.render_kql_tostring(ir.ColumnRef(self.column))}, '')"
        cell = translate.render_aggregate(ir.NamedExpr(self.aggregate))
        keys = ", ".join(map(quoted_name, kept))
        rows = f"(SELECT *, {text} AS {p}v FROM {prev})"  # noqa: S608  generated names, rendered expressions
        cells = f"(SELECT {keys}{', ' if kept else ''}{p}v, {cell} AS {p}a FROM {rows} GROUP BY ALL)"  # noqa: S608
        none = f"(SELECT {cell} AS {p}n FROM (SELECT * FROM {rows} LIMIT 0))"  # noqa: S608
        typed = dict(self.schema or ())
        chosen = [
            quoted_name(name) if name in kept else self._cell(name, p, typed.get(name)) for name in self.columns(cols)
        ]
        row = f"SELECT {keys}{', ' if kept else ''}map(list({p}v), list({p}a)) AS {p}m FROM {cells}"  # noqa: S608
        grouping = f" GROUP BY {keys}" if kept else ""
        return f"SELECT {', '.join(chosen)} FROM ({row}{grouping}), {none}"  # noqa: S608

    @staticmethod
    def _cell(name: str, p: str, sql_type: str | None) -> str:
        value = f"coalesce({p}m[{quoted(name)}], {p}n)"
        return f"{value if sql_type is None else f'CAST({value} AS {sql_type})'} AS {quoted_name(name)}"

    def columns(self, cols: list[str]) -> list[str]:
        """Return the kept columns and one for each value."""
        if self.schema is not None:
            return [name for name, _ in self.schema]
        kept = self._kept(cols)
        return [*kept, *self._values(kept)]

    def _kept(self, cols: list[str]) -> list[str]:
        if self.kept:
            return list(self.kept)
        read = writer.referenced_columns(self.aggregate)
        kept = [name for name in cols if name != self.column and name not in read]
        return kept if self.schema is None else [name for name in kept if name in dict(self.schema)]

    def _values(self, kept: Sequence[str]) -> list[str]:
        if self.schema is not None:
            return [name for name, _ in self.schema if name not in kept]
        names = [name_of(row[0]) for row in self.found]
        for name in names:
            if name in kept:
                raise semantic_error(f"evaluate pivot(): the value '{name[:100]}' is the name of another column")
        return names

    def substituted(self, substitute: Substitute) -> "Pivot":
        """Return the operator with the names in its aggregate bound."""
        aggregate = substitute(self.aggregate)
        return dataclasses.replace(self, aggregate=aggregate) if isinstance(aggregate, ir.FunctionCall) else self


@dataclasses.dataclass(frozen=True)
class Narrow(Unserializing):
    """``narrow()``: a row for each value, with the names of its row and column."""

    def render(self, prev: str, cols: list[str]) -> str:
        """Return row number, column name and value as a text."""
        values = [f"{{'c': {quoted(name)}, 'v': {translate.render_kql_tostring(ir.ColumnRef(name))}}}" for name in cols]
        row = f"{free_prefix(cols)}r"
        pairs = f"unnest([{', '.join(values)}])"
        numbered = f"SELECT *, row_number() OVER () - 1 AS {row} FROM {prev}"  # noqa: S608  generated names
        paired = f"(SELECT {row}, {pairs} AS e FROM ({numbered}))"  # noqa: S608
        return f'SELECT {row} AS "Row", e.c AS "Column", e.v AS "Value" FROM {paired}'  # noqa: S608

    def columns(self, cols: list[str]) -> list[str]:
        """Return the three columns."""
        del cols
        return ["Row", "Column", "Value"]


def _pivot(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
    _refuse_names("pivot", arguments)
    lowered = [reader.lower_expr(each) for each in arguments]
    if not lowered or not isinstance(lowered[0], ir.ColumnRef):
        raise semantic_error("evaluate pivot(): the first argument must be a column", position=position(node))
    aggregate: ir.Expr = ir.FunctionCall("count")
    if len(lowered) > 1 and isinstance(lowered[1], ir.FunctionCall):
        aggregate = lowered.pop(1)
    if not isinstance(aggregate, ir.FunctionCall) or aggregate.name.lower() not in _PIVOTED:
        raise unsupported("evaluate pivot with this aggregate", position=position(node))
    kept = []
    for each in lowered[1:]:
        if not isinstance(each, ir.ColumnRef):
            raise semantic_error("evaluate pivot(): the arguments must be columns", position=position(node))
        kept.append(each.name)
    schema, star = output_schema(clause)
    if star:
        raise unsupported("evaluate pivot with * in its output schema", position=position(node))
    typed = None if schema is None else tuple((name, SQL_TYPES[kind]) for name, kind in schema)
    return Pivot(node.start.start, lowered[0].name, aggregate, tuple(kept), typed)


def _refuse_names(plugin: str, arguments: Sequence[Any]) -> None:
    if any(argument_name(each) for each in arguments):
        raise unsupported(f"evaluate {plugin} with named arguments", position=position(arguments[0]))


def _narrow(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
    if arguments or clause is not None:
        raise unsupported("evaluate narrow with arguments", position=position(node))
    return Narrow()
