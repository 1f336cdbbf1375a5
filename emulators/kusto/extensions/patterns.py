"""Operator ``reduce`` and the plugins ``basket``, ``autocluster`` and ``diffpatterns``, which find patterns in rows.

``reduce`` groups similar texts and returns a pattern for each group. The plugins return patterns of values that many
rows share.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import ExpressionReplacer, add_operator
from emulators.kusto.extensions.plugins import add_plugin, check_column_exists
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import NamePrefix, Sql, quote_name, quote_text, render_expression
from emulators.kusto.extensions.tree import (
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    list_nodes_by_rule,
)
from emulators.kusto.extensions.type_checks import render_error
from emulators.kusto.extensions.window_plan import choose_unused_prefix
from emulators.kusto.series_functions import SeriesFunction

SUPPORTED: tuple[str, ...] = (
    "reduce by (approximate)",
    "evaluate basket (approximate order)",
    "evaluate autocluster (approximate)",
    "evaluate diffpatterns (approximate)",
)
MAX_TEXTS = 100_000
"""Maximum number of different texts that ``reduce`` groups."""
_PATTERNS = SeriesFunction(
    "text_patterns",
    ("VARCHAR[]", "DOUBLE[]", "DOUBLE", "VARCHAR"),
    {"patterns": "texts"},
    "emulators.kusto.series.text_patterns:compute_text_patterns",
)
_COLUMNS = ("Pattern", "Count", "Representative")
_TOO_MANY = render_error(
    "EMB0001", f"'reduce' of more than {MAX_TEXTS} different texts is not supported by the embedded query engine"
)


@dataclasses.dataclass(frozen=True)
class ReduceByPattern(UnorderedOutputOperator):
    """Query operator ``reduce``, which groups similar texts.

    Attributes:
        value: expression whose texts are grouped.
        threshold: minimum share of all rows that a pattern, and each of its constant words, must have; None for the
            default.
        characters: characters between words; None for the default.
        keeps_rows: True if the result has the rows of the input with their patterns (``kind=source``).
    """

    value: ir.Expr
    threshold: float | None
    characters: str | None
    keeps_rows: bool

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields one row for each pattern, or the input rows with their patterns."""
        p = choose_unused_prefix([*input_columns, *_COLUMNS])
        text = translate.render_kql_tostring(self.value)
        rows = f"(SELECT *, {text} AS {p}t FROM {input_sql})"  # noqa: S608  rendered expressions, generated names
        counted = f"(SELECT {p}t, count(*) AS {p}n FROM {rows} GROUP BY {p}t)"  # noqa: S608
        order = f"ORDER BY {p}n DESC, {p}t"
        listed = (
            f"(SELECT list({p}t {order}) AS {p}l, list({p}n {order}) AS {p}c FROM {counted} "  # noqa: S608
            f"HAVING CASE WHEN count(*) > {MAX_TEXTS} THEN {_TOO_MANY} ELSE true END)"
        )
        threshold = "NULL" if self.threshold is None else repr(self.threshold)
        characters = "NULL" if self.characters is None else quote_text(self.characters)
        found = f"{_PATTERNS.render_call_sql(f'{p}l', f'{p}c', threshold, characters)}.patterns"
        patterns = (
            f"(SELECT unnest({p}l) AS {p}t, unnest({p}c) AS {p}n, unnest({found}) AS {p}p, "  # noqa: S608
            f"generate_subscripts({p}l, 1) AS {p}i FROM {listed})"
        )
        representative = f"CASE WHEN {p}p = 'others' THEN '' ELSE arg_min({p}t, {p}i) END"
        groups = (
            f"(SELECT {p}p AS {p}g, CAST(sum({p}n) AS BIGINT) AS {p}s, {representative} AS {p}r "  # noqa: S608
            f"FROM {patterns} GROUP BY {p}p)"
        )
        pattern, count, example = map(quote_name, self.infer_output_columns(input_columns)[-3:])
        result = f"{p}g AS {pattern}, {p}s AS {count}, {p}r AS {example}"
        if not self.keeps_rows:
            return f"SELECT {result} FROM {groups} ORDER BY {p}s DESC, {p}g"  # noqa: S608
        own = "".join(f"{quote_name(name)}, " for name in input_columns)
        return (
            f"SELECT {own}{result} FROM {rows} JOIN {patterns} AS p USING ({p}t) JOIN {groups} AS g ON p.{p}p = g.{p}g"  # noqa: S608
        )

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the patterns; with ``kind=source``, they follow the columns of the input."""
        if not self.keeps_rows:
            return list(_COLUMNS)
        return [*input_columns, *(name if name not in input_columns else f"{name}1" for name in _COLUMNS)]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "ReduceByPattern":
        """Return a copy of the operator with ``substitute`` applied to the expression whose texts are grouped."""
        return dataclasses.replace(self, value=substitute(self.value))


def _parse_reduce(node: ParseNode) -> ir.Operator:
    value: ir.Expr | None = None
    keeps_rows = False
    for child in get_child_rules(node):
        kind = get_rule_name(child)
        if kind.endswith("QueryOperatorParameter"):
            name, _, text = child.getText().partition("=")
            if (name, text) != ("kind", "source"):
                raise unsupported_error(
                    f"reduce {child.getText()[:100]}",
                    "the only supported parameter is kind=source",
                    get_line_and_column(child),
                )
            keeps_rows = True
        elif kind != "ReduceByWithClause" and value is None:
            value = reader.lower_named(child).expr
    if value is None:
        raise semantic_error("reduce by requires an expression", position=get_line_and_column(node))
    clauses = list_nodes_by_rule(node, "ReduceByWithClause")
    options = dict(_parse_reduce_option_name_and_value(each) for clause in clauses for each in get_child_rules(clause))
    threshold, characters = options.get("threshold"), options.get("characters")
    if threshold is not None and not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise semantic_error("reduce: threshold must be between 0 and 1", position=get_line_and_column(node))
    if characters is not None and not isinstance(characters, str):
        raise semantic_error("reduce: characters must be a string", position=get_line_and_column(node))
    return ReduceByPattern(value, None if threshold is None else float(threshold), characters, keeps_rows)


def _parse_reduce_option_name_and_value(node: ParseNode) -> tuple[str, Any]:
    named = reader.lower_named(node)
    if named.name not in ("threshold", "characters") or not isinstance(named.expr, ir.Literal):
        raise semantic_error(
            "reduce: the only options are threshold and characters", position=get_line_and_column(node)
        )
    return named.name, named.expr.value


macros: tuple[str, ...] = ()
_MODULE = "emulators.kusto.series.row_patterns"
_ONE = {"patterns": "integers", "counts0": "series"}
_TWO = {**_ONE, "counts1": "series"}
_FUNCTIONS = {
    "basket": SeriesFunction(
        "basket", ("BIGINT[]", "DOUBLE[]", *["DOUBLE"] * 3), _ONE, f"{_MODULE}:compute_basket_patterns"
    ),
    "autocluster": SeriesFunction(
        "autocluster", ("BIGINT[]", "DOUBLE[]", *["DOUBLE"] * 2), _ONE, f"{_MODULE}:compute_cluster_patterns"
    ),
    "diffpatterns": SeriesFunction(
        "diffpatterns", ("BIGINT[]", *["DOUBLE[]"] * 2, *["DOUBLE"] * 3), _TWO, f"{_MODULE}:compute_difference_patterns"
    ),
}

series_functions: tuple[SeriesFunction, ...] = (
    _PATTERNS,
    *tuple(_FUNCTIONS.values()),
)
_OPTIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    # Names and default values in the order of the arguments; WeightColumn is a column, so its default is not used.
    "basket": (("Threshold", 0.05), ("WeightColumn", 0), ("MaxDimensions", 5)),
    "autocluster": (("SizeWeight", 0.5), ("WeightColumn", 0), ("NumSeeds", 25)),
    "diffpatterns": (("WeightColumn", 0), ("Threshold", 0.05), ("MaxDimensions", 1000)),
}
_RANGES = {"Threshold": (0.015, 1.0), "SizeWeight": (0.0, 1.0), "MaxDimensions": (1, 1_000_000), "NumSeeds": (1, 1000)}
_DEFAULT = "~"
_WILDCARD_TYPES = {"string": "VARCHAR", "long": "BIGINT", "int": "INTEGER", "real": "DOUBLE", "datetime": "TIMESTAMP"}


@dataclasses.dataclass(frozen=True)
class RowPatterns(UnorderedOutputOperator):
    """Plugin ``basket``, ``autocluster`` or ``diffpatterns``, which returns one row for each pattern of values.

    Attributes:
        plugin: name of the plugin.
        options: numeric options by parameter name.
        weight: column with the number of rows that each row represents; None if each row counts once.
        split: for ``diffpatterns``: a column, and the values of this column that define the first and the second set.
        wildcards: values that represent a wildcard in the result, one for each type.
    """

    plugin: str
    options: tuple[tuple[str, float], ...]
    weight: str | None
    split: tuple[ir.Expr, ...]
    wildcards: tuple[ir.Literal, ...]

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that yields the patterns, best pattern first."""
        names, p = self._list_pattern_columns(input_columns), choose_unused_prefix(input_columns)
        listed, count = self._render_row_lists_and_count_row_sets(input_sql, input_columns, names, p)
        arguments = [f"{p}f", *(f"{p}w{index}" for index in range(count)), str(len(names))]
        arguments += [repr(value) for name, value in self.options if name != "NumSeeds"]
        found = f"(SELECT *, {_FUNCTIONS[self.plugin].render_call_sql(*arguments)} AS {p}q FROM {listed})"  # noqa: S608
        numbered = f"(SELECT *, unnest(range(len({p}q.counts0))) AS {p}k FROM {found})"  # noqa: S608
        result = [
            f"{p}k",
            *self._render_count_and_percent_columns(p, [f"{p}q.counts{index}[{p}k + 1]" for index in range(count)]),
        ]
        result += [
            self._render_value_or_wildcard(f"{p}q.patterns[{p}k * {len(names)} + {index + 1}]", f"{p}v{index}")
            for index in range(len(names))
        ]
        chosen = ", ".join(
            f"{sql} AS {quote_name(name)}"
            for sql, name in zip(result, self.infer_output_columns(input_columns), strict=True)
        )
        return f"SELECT {chosen} FROM {numbered} ORDER BY {p}k"  # noqa: S608

    def _render_row_lists_and_count_row_sets(
        self, input_sql: Sql, input_columns: list[str], pattern_columns: list[str], prefix: NamePrefix
    ) -> tuple[Sql, int]:
        """Return SQL that collects the rows in lists, and the number of row sets: 2 for ``diffpatterns``, else 1.

        The lists contain the distinct values of each column, the values of each row as numbers, and the row weights.
        """
        if not pattern_columns:
            raise semantic_error(
                f"evaluate {self.plugin}() requires a column other than the split column and the weight column"
            )
        quoted = list(map(quote_name, pattern_columns))
        weights = self._render_row_weights(input_columns)
        sums = [f"CAST(sum({weight}) AS DOUBLE) AS {prefix}n{index}" for index, weight in enumerate(weights)]
        where = (
            f" WHERE {self._render_row_set_condition(0)} OR {self._render_row_set_condition(1)}" if self.split else ""
        )
        rows = f"(SELECT {', '.join([*quoted, *sums])} FROM {input_sql}{where} GROUP BY {', '.join(quoted)})"  # noqa: S608
        ranks = [
            f"CASE WHEN {name} IS NULL THEN 0 ELSE dense_rank() OVER (ORDER BY {name} NULLS LAST) END AS "
            f"{prefix}c{index}"
            for index, name in enumerate(quoted)
        ]
        coded = f"(SELECT *, {', '.join([f'row_number() OVER () AS {prefix}r', *ranks])} FROM {rows})"  # noqa: S608
        codes = [f"list({prefix}c{index} ORDER BY {prefix}r)" for index in range(len(pattern_columns))]
        lists = [
            f"list({prefix}n{index} ORDER BY {prefix}r) AS {prefix}w{index}, sum({prefix}n{index}) AS {prefix}t{index}"
            for index in range(len(sums))
        ]
        values = [
            f"list_sort(list(DISTINCT {name}) FILTER (WHERE {name} IS NOT NULL)) AS {prefix}v{index}"
            for index, name in enumerate(quoted)
        ]
        flat = f"flatten([{', '.join(codes)}]) AS {prefix}f"
        return f"(SELECT {', '.join([flat, *lists, *values])} FROM {coded})", len(sums)  # noqa: S608

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the output columns: measures of the pattern, then the columns of the input."""
        measures = ["SegmentId", "Count", "Percent"]
        if self.split:
            measures = ["SegmentId", "CountA", "CountB", "PercentA", "PercentB", "PercentDiffAB"]
        return [*measures, *self._list_pattern_columns(input_columns)]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "RowPatterns":
        """Return a copy of the plugin with ``substitute`` applied to the values that define the two sets."""
        column, *values = self.split or (ir.Literal("", "string"),)
        return dataclasses.replace(self, split=(column, *map(substitute, values))) if self.split else self

    def _list_pattern_columns(self, input_columns: Sequence[str]) -> list[str]:
        """Return the columns whose values form patterns: all except the weight column and the column ``split``."""
        split = self.split[0].name if self.split and isinstance(self.split[0], ir.ColumnRef) else None
        return [name for name in input_columns if name not in (self.weight, split)]

    def _render_row_weights(self, input_columns: Sequence[str]) -> list[Sql]:
        """Return, for each row set, SQL for the weight of a row in this set; 0 if the row is not in the set."""
        if self.weight is not None:
            check_column_exists(self.weight, input_columns)
        weight = "1" if self.weight is None else quote_name(self.weight)
        if not self.split:
            return [weight]
        return [f"CASE WHEN {self._render_row_set_condition(index)} THEN {weight} ELSE 0 END" for index in range(2)]

    def _render_row_set_condition(self, row_set_index: int) -> Sql:
        """Return SQL that tests whether a row is in the first (0) or second (1) row set of ``diffpatterns``."""
        column = translate.render_kql_tostring(self.split[0])
        return f"({column} = {render_expression(self.split[row_set_index + 1])})"

    def _render_count_and_percent_columns(self, prefix: NamePrefix, counts: Sequence[Sql]) -> list[Sql]:
        whole = [f"CAST(round({count}) AS BIGINT)" for count in counts]
        if not self.split:
            return [*whole, f"round({counts[0]} * 100 / {prefix}t0, 1)"]
        shares = [f"round({count} * 100 / {prefix}t{index}, 2)" for index, count in enumerate(counts)]
        return [*whole, *shares, f"round(abs({shares[0]} - {shares[1]}), 2)"]

    def _render_value_or_wildcard(self, position_sql: Sql, values_sql: Sql) -> Sql:
        """Render SQL for one value of a pattern, or for the wildcard of its type.

        ``values_sql`` is SQL for the list of the column's values; ``position_sql`` is SQL for the value's position in
        this list (from 1), or 0 for the wildcard.
        """
        wildcards = [
            f"WHEN typeof({values_sql}[1]) = {quote_text(_WILDCARD_TYPES[each.kind])} AND {position_sql} = 0 "
            f"THEN TRY_CAST({quote_text(str(each.value))} AS VARCHAR)"
            for each in self.wildcards
            if each.kind in _WILDCARD_TYPES
        ]
        if not wildcards:
            return f"CASE WHEN {position_sql} > 0 THEN {values_sql}[{position_sql}] END"
        text = (
            f"CASE WHEN {position_sql} > 0 THEN CAST({values_sql}[{position_sql}] AS VARCHAR) {' '.join(wildcards)} END"
        )
        return f"cast_to_type({text}, {values_sql}[1])"


def _parse_pattern_plugin(
    node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None, *, plugin_name: str
) -> ir.Operator:
    position = get_line_and_column(node)
    if schema_clause is not None:
        raise unsupported_error(
            f"evaluate {plugin_name} with an output schema", "remove the schema after the colon", position
        )
    lowered = [reader.lower_named(each).expr for each in arguments]
    required = 3 if plugin_name == "diffpatterns" else 0
    split, rest = tuple(lowered[:required]), lowered[required:]
    if len(split) < required or (split and not isinstance(split[0], ir.ColumnRef)):
        fault = f"evaluate {plugin_name}() requires a split column and the values of both sets"
        raise semantic_error(fault, inner="SEM0219", position=position)
    options, weight = [], None
    for index, (option, default) in enumerate(_OPTIONS[plugin_name]):
        given = rest[index] if index < len(rest) else ir.Literal(_DEFAULT, "string")
        if option == "WeightColumn":
            weight = _find_weight_column(plugin_name, given)
            continue
        options.append((option, _read_numeric_option(plugin_name, option, given, default)))
    wildcards = tuple(rest[len(_OPTIONS[plugin_name]) :])
    if not all(isinstance(each, ir.Literal) for each in wildcards):
        raise semantic_error(
            f"evaluate {plugin_name}(): a wildcard must be a literal", inner="SEM0219", position=position
        )
    literals = tuple(each for each in wildcards if isinstance(each, ir.Literal) and each.value != _DEFAULT)
    return RowPatterns(plugin_name, tuple(options), weight, split, literals)


def _is_default_placeholder(expr: ir.Expr) -> bool:
    """Return whether an argument of a plugin is ``"~"``, which requests the default of its parameter."""
    return isinstance(expr, ir.Literal) and expr.value == _DEFAULT


def _find_weight_column(plugin_name: str, expr: ir.Expr) -> str | None:
    if _is_default_placeholder(expr):
        return None
    if isinstance(expr, ir.ColumnRef):
        return expr.name
    if isinstance(expr, ir.Literal) and isinstance(expr.value, str):
        return expr.value
    raise semantic_error(f"evaluate {plugin_name}(): WeightColumn must be a column", inner="SEM0219")


def _read_numeric_option(plugin_name: str, option_name: str, expr: ir.Expr, default: float) -> float:
    if _is_default_placeholder(expr):
        return default
    value = expr.value if isinstance(expr, ir.Literal) else None
    least, most = _RANGES[option_name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise semantic_error(
            f"evaluate {plugin_name}(): {option_name} must be between {least} and {most}", inner="SEM0219"
        )
    return value


def install_into_translator() -> None:
    """Add ``reduce``, ``basket``, ``autocluster`` and ``diffpatterns`` to the KQL translator library."""
    add_operator("ReduceByOperator", _parse_reduce)
    for name in _FUNCTIONS:
        add_plugin(name, functools.partial(_parse_pattern_plugin, plugin_name=name))
