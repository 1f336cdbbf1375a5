"""Plugins ``basket``, ``autocluster`` and ``diffpatterns``: patterns of values that many rows have in common."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import Substitute
from emulators.kusto.extensions.plugins import add_plugin, check_column
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import quote_name, quote_text, render_expression
from emulators.kusto.extensions.tree import get_source_position
from emulators.kusto.extensions.window_plan import find_free_prefix
from emulators.kusto.series_functions import SeriesFunction

SUPPORTED: tuple[str, ...] = (
    "evaluate basket (approximate order)",
    "evaluate autocluster (approximate)",
    "evaluate diffpatterns (approximate)",
)

macros: tuple[str, ...] = ()
_MODULE = "emulators.kusto.series.row_patterns"
_ONE = {"patterns": "integers", "counts0": "series"}
_TWO = {**_ONE, "counts1": "series"}
_FUNCTIONS = {
    "basket": SeriesFunction("basket", ("BIGINT[]", "DOUBLE[]", *["DOUBLE"] * 3), _ONE, f"{_MODULE}:compute_basket"),
    "autocluster": SeriesFunction(
        "autocluster", ("BIGINT[]", "DOUBLE[]", *["DOUBLE"] * 2), _ONE, f"{_MODULE}:compute_clusters"
    ),
    "diffpatterns": SeriesFunction(
        "diffpatterns", ("BIGINT[]", *["DOUBLE[]"] * 2, *["DOUBLE"] * 3), _TWO, f"{_MODULE}:compute_differences"
    ),
}
series_functions: tuple[SeriesFunction, ...] = tuple(_FUNCTIONS.values())
_OPTIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    # Names and default values; the position of the column with the weights is marked.
    "basket": (("Threshold", 0.05), ("WeightColumn", 0), ("MaxDimensions", 5)),
    "autocluster": (("SizeWeight", 0.5), ("WeightColumn", 0), ("NumSeeds", 25)),
    "diffpatterns": (("WeightColumn", 0), ("Threshold", 0.05), ("MaxDimensions", 1000)),
}
_RANGES = {"Threshold": (0.015, 1.0), "SizeWeight": (0.0, 1.0), "MaxDimensions": (1, 1_000_000), "NumSeeds": (1, 1000)}
_DEFAULT = "~"
_WILDCARD_TYPES = {"string": "VARCHAR", "long": "BIGINT", "int": "INTEGER", "real": "DOUBLE", "datetime": "TIMESTAMP"}


@dataclasses.dataclass(frozen=True)
class RowPatterns(UnorderedOutputOperator):
    """Plugin that returns a row for each pattern.

    Attributes:
        plugin: name of the plugin.
        options: numbers by the names of the parameters.
        weight: column with the number of rows that each row stands for; None without one.
        split: column, and its values in the first and the second set, of ``diffpatterns``.
        wildcards: values that stand for a wildcard, one for each type.
    """

    plugin: str
    options: tuple[tuple[str, float], ...]
    weight: str | None
    split: tuple[ir.Expr, ...]
    wildcards: tuple[ir.Literal, ...]

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the plugin as SQL that yields the patterns, the best first."""
        names, p = self._find_dimensions(cols), find_free_prefix(cols)
        listed, count = self._render_lists(prev, cols, names, p)
        arguments = [f"{p}f", *(f"{p}w{index}" for index in range(count)), str(len(names))]
        arguments += [repr(value) for name, value in self.options if name != "NumSeeds"]
        found = f"(SELECT *, {_FUNCTIONS[self.plugin].render_call(*arguments)} AS {p}q FROM {listed})"  # noqa: S608
        numbered = f"(SELECT *, unnest(range(len({p}q.counts0))) AS {p}k FROM {found})"  # noqa: S608
        result = [f"{p}k", *self._render_measures(p, [f"{p}q.counts{index}[{p}k + 1]" for index in range(count)])]
        result += [
            self._render_value(f"{p}q.patterns[{p}k * {len(names)} + {index + 1}]", f"{p}v{index}")
            for index in range(len(names))
        ]
        chosen = ", ".join(
            f"{sql} AS {quote_name(name)}" for sql, name in zip(result, self.infer_columns(cols), strict=True)
        )
        return f"SELECT {chosen} FROM {numbered} ORDER BY {p}k"  # noqa: S608

    def _render_lists(self, prev: str, cols: list[str], names: list[str], p: str) -> tuple[str, int]:
        """Render SQL that collects codes, weights and values of all rows in lists; return it and the number of sets."""
        if not names:
            raise semantic_error(f"evaluate {self.plugin}() requires a column with values")
        quoted = list(map(quote_name, names))
        weights = self._render_weights(cols)
        sums = [f"CAST(sum({weight}) AS DOUBLE) AS {p}n{index}" for index, weight in enumerate(weights)]
        where = f" WHERE {self._render_set(0)} OR {self._render_set(1)}" if self.split else ""
        rows = f"(SELECT {', '.join([*quoted, *sums])} FROM {prev}{where} GROUP BY {', '.join(quoted)})"  # noqa: S608
        ranks = [
            f"CASE WHEN {name} IS NULL THEN 0 ELSE dense_rank() OVER (ORDER BY {name} NULLS LAST) END AS {p}c{index}"
            for index, name in enumerate(quoted)
        ]
        coded = f"(SELECT *, {', '.join([f'row_number() OVER () AS {p}r', *ranks])} FROM {rows})"  # noqa: S608
        codes = [f"list({p}c{index} ORDER BY {p}r)" for index in range(len(names))]
        lists = [
            f"list({p}n{index} ORDER BY {p}r) AS {p}w{index}, sum({p}n{index}) AS {p}t{index}"
            for index in range(len(sums))
        ]
        values = [
            f"list_sort(list(DISTINCT {name}) FILTER (WHERE {name} IS NOT NULL)) AS {p}v{index}"
            for index, name in enumerate(quoted)
        ]
        flat = f"flatten([{', '.join(codes)}]) AS {p}f"
        return f"(SELECT {', '.join([flat, *lists, *values])} FROM {coded})", len(sums)  # noqa: S608

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the names of the output columns: measures of the patterns, and columns of the input."""
        measures = ["SegmentId", "Count", "Percent"]
        if self.split:
            measures = ["SegmentId", "CountA", "CountB", "PercentA", "PercentB", "PercentDiffAB"]
        return [*measures, *self._find_dimensions(cols)]

    def replace_expressions(self, substitute: Substitute) -> "RowPatterns":
        """Return a copy in which the function ``substitute`` has replaced the values of the sets."""
        column, *values = self.split or (ir.Literal("", "string"),)
        return dataclasses.replace(self, split=(column, *map(substitute, values))) if self.split else self

    def _find_dimensions(self, cols: Sequence[str]) -> list[str]:
        split = self.split[0].name if self.split and isinstance(self.split[0], ir.ColumnRef) else None
        return [name for name in cols if name not in (self.weight, split)]

    def _render_weights(self, cols: Sequence[str]) -> list[str]:
        if self.weight is not None:
            check_column(self.weight, cols)
        weight = "1" if self.weight is None else quote_name(self.weight)
        if not self.split:
            return [weight]
        return [f"CASE WHEN {self._render_set(index)} THEN {weight} ELSE 0 END" for index in range(2)]

    def _render_set(self, index: int) -> str:
        column = translate.render_kql_tostring(self.split[0])
        return f"({column} = {render_expression(self.split[index + 1])})"

    def _render_measures(self, p: str, counts: Sequence[str]) -> list[str]:
        whole = [f"CAST(round({count}) AS BIGINT)" for count in counts]
        if not self.split:
            return [*whole, f"round({counts[0]} * 100 / {p}t0, 1)"]
        shares = [f"round({count} * 100 / {p}t{index}, 2)" for index, count in enumerate(counts)]
        return [*whole, *shares, f"round(abs({shares[0]} - {shares[1]}), 2)"]

    def _render_value(self, code: str, values: str) -> str:
        """Render SQL for one value of a pattern, or for the wildcard of its type."""
        wildcards = [
            f"WHEN typeof({values}[1]) = {quote_text(_WILDCARD_TYPES[each.kind])} AND {code} = 0 "
            f"THEN TRY_CAST({quote_text(str(each.value))} AS VARCHAR)"
            for each in self.wildcards
            if each.kind in _WILDCARD_TYPES
        ]
        if not wildcards:
            return f"CASE WHEN {code} > 0 THEN {values}[{code}] END"
        text = f"CASE WHEN {code} > 0 THEN CAST({values}[{code}] AS VARCHAR) {' '.join(wildcards)} END"
        return f"cast_to_type({text}, {values}[1])"


def _parse_patterns(node: Any, arguments: Sequence[Any], clause: Any, *, name: str) -> ir.Operator:
    position = get_source_position(node)
    if clause is not None:
        raise unsupported_error(f"evaluate {name} with an output schema", position=position)
    lowered = [reader.lower_named(each).expr for each in arguments]
    required = 3 if name == "diffpatterns" else 0
    split, rest = tuple(lowered[:required]), lowered[required:]
    if len(split) < required or (split and not isinstance(split[0], ir.ColumnRef)):
        raise semantic_error(f"evaluate {name}() requires a column and two strings", inner="SEM0219", position=position)
    options, weight = [], None
    for index, (option, default) in enumerate(_OPTIONS[name]):
        given = rest[index] if index < len(rest) else ir.Literal(_DEFAULT, "string")
        if option == "WeightColumn":
            weight = _read_weight(name, given)
            continue
        options.append((option, _read_number(name, option, given, default)))
    wildcards = tuple(rest[len(_OPTIONS[name]) :])
    if not all(isinstance(each, ir.Literal) for each in wildcards):
        raise semantic_error(f"evaluate {name}(): a wildcard must be a literal", inner="SEM0219", position=position)
    literals = tuple(each for each in wildcards if isinstance(each, ir.Literal) and each.value != _DEFAULT)
    return RowPatterns(name, tuple(options), weight, split, literals)


def _is_default(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Literal) and expr.value == _DEFAULT


def _read_weight(plugin: str, expr: ir.Expr) -> str | None:
    if _is_default(expr):
        return None
    if isinstance(expr, ir.ColumnRef):
        return expr.name
    if isinstance(expr, ir.Literal) and isinstance(expr.value, str):
        return expr.value
    raise semantic_error(f"evaluate {plugin}(): WeightColumn must be a column", inner="SEM0219")


def _read_number(plugin: str, option: str, expr: ir.Expr, default: float) -> float:
    if _is_default(expr):
        return default
    value = expr.value if isinstance(expr, ir.Literal) else None
    least, most = _RANGES[option]
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise semantic_error(f"evaluate {plugin}(): {option} must be between {least} and {most}", inner="SEM0219")
    return value


def install() -> None:
    """Add the plugins to the operator ``evaluate``."""
    for name in _FUNCTIONS:
        add_plugin(name, functools.partial(_parse_patterns, name=name))
