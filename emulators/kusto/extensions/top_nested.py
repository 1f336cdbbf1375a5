"""Query operators ``top-nested`` and ``top-hitters``, which return the top values by an aggregate.

The result of the aggregate for a value, such as the number of its rows, is called the weight of the value.
"""

import dataclasses

from duckdb_kql import ir, translate
from duckdb_kql.translate import naming

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.pipeline import ExpressionReplacer, add_operator
from emulators.kusto.extensions.ranks import render_number_sort_key
from emulators.kusto.extensions.serialized import SerializedOutputOperator, UnorderedOutputOperator
from emulators.kusto.extensions.sql import Sql, render_expression
from emulators.kusto.extensions.tabular import render_row_limit, resolve_let_value
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_line_and_column, get_rule_name
from emulators.kusto.extensions.window_plan import choose_unused_prefix

SUPPORTED: tuple[str, ...] = ("top-nested (several levels, with others, asc)", "top-hitters (by)")

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TopNestedLevel:
    """Level of the operator ``top-nested``: an expression, and the rule that selects its top values.

    Attributes:
        of: expression whose values are ranked.
        by: aggregate by which the values are ranked; its result is the weight of a value.
        count: number of top values to return; None for all values.
        others: label of the row for all values outside the top values; None for no such row.
        ascending: True if the values with the smallest weights are returned.
    """

    of: ir.NamedExpr
    by: ir.NamedExpr
    count: ir.Expr | None
    others: ir.Expr | None
    ascending: bool


@dataclasses.dataclass(frozen=True)
class TopNested(UnorderedOutputOperator):
    """Query operator ``top-nested``: returns the top values of several expressions.

    For each top value of one expression, it returns the top values of the next expression.
    """

    levels: tuple[TopNestedLevel, ...]

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Return SQL that yields one row for each combination of top values, with value and aggregate of each level."""
        return _TopNestedSql(self, input_sql, input_columns).render()

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the output columns: for each level, the value and the result of its aggregate."""
        del input_columns
        namer = naming.Namer()
        names = []
        for level in self.levels:
            value = namer.name(level.of)
            names += [value, namer.take(level.by.name or f"aggregated_{value}")]
        return names

    def replace_expressions(self, substitute: ExpressionReplacer) -> "TopNested":
        """Return a copy of the operator with ``substitute`` applied to the expressions of all levels."""
        return TopNested(tuple(_replace_level_expressions(level, substitute) for level in self.levels))


def _replace_level_expressions(level: TopNestedLevel, substitute: ExpressionReplacer) -> TopNestedLevel:
    return dataclasses.replace(
        level,
        of=dataclasses.replace(level.of, expr=substitute(level.of.expr)),
        by=dataclasses.replace(level.by, expr=substitute(level.by.expr)),
        count=None if level.count is None else resolve_let_value(substitute(level.count)),
        others=None if level.others is None else resolve_let_value(substitute(level.others)),
    )


class _TopNestedSql:
    """Builder of the SQL for ``top-nested``, one level after the other.

    Each level ranks the values of its expression and assigns the records (input rows) to the top values. The remaining
    records are called the "others" of this level; lower levels do not rank their values.
    """

    def __init__(self, operator: TopNested, input_sql: Sql, input_columns: list[str]) -> None:
        self._levels = operator.levels
        self._names = [translate.quote_ident(name) for name in operator.infer_output_columns(input_columns)]
        self._prev = input_sql
        self._p = choose_unused_prefix(input_columns)
        weighed = writer.referenced_columns(tuple(level.by.expr for level in operator.levels))
        self._read = [name for name in input_columns if name in weighed]
        self._ctes: list[str] = []

    def render(self) -> Sql:
        p = self._p
        values = ", ".join(f"{render_expression(level.of.expr)} AS {p}k{i}" for i, level in enumerate(self._levels))
        # The levels read the records repeatedly, so unused columns are removed.
        read = [*map(translate.quote_ident, self._read), values, f"false AS {p}o"]
        records = self._add_cte_and_get_name("r", f"SELECT {', '.join(read)} FROM {self._prev}")  # noqa: S608  rendered expressions
        weights = []
        for index, level in enumerate(self._levels):
            top = self._add_cte_and_get_name(f"t{index}", self._render_top_values(index, level, records))
            others = any(each.others is not None for each in self._levels[: index + 1])
            last = index + 1 == len(self._levels) and not others
            if not last:
                records = self._add_cte_and_get_name(
                    f"b{index}", self._render_records_of_top_or_other_values(index, level, records, top)
                )
            weights.append(
                top
                if last
                else self._add_cte_and_get_name(f"w{index}", self._render_weight_per_group(index, level, records))
            )
        return f"WITH {', '.join(self._ctes)} {self._render_join_of_weight_tables(weights)}"

    def _add_cte_and_get_name(self, name_suffix: str, sql: Sql) -> Sql:
        self._ctes.append(f"{self._p}{name_suffix} AS ({sql})")
        return f"{self._p}{name_suffix}"

    def _list_key_column_names(self, count: int) -> list[str]:
        """Return the names of the SQL columns with the values of the first ``count`` levels."""
        return [f"{self._p}k{i}" for i in range(count)]

    def _render_top_values(self, level_index: int, level: TopNestedLevel, records: Sql) -> Sql:
        p = self._p
        keys = self._list_key_column_names(level_index + 1)
        weight = translate.render_aggregate(level.by)
        limit = ""
        if level.count is not None:
            within = f"PARTITION BY {', '.join(keys[:-1])} " if level_index else ""
            order = f"{render_number_sort_key(f'{p}a')} {'ASC NULLS FIRST' if level.ascending else 'DESC NULLS LAST'}"
            limit = f" QUALIFY row_number() OVER ({within}ORDER BY {order}) <= {render_row_limit(level.count)}"
        grouped = f"SELECT {', '.join(keys)}, {weight} AS {p}a FROM {records} WHERE NOT {p}o GROUP BY {', '.join(keys)}"  # noqa: S608
        return f"SELECT *, false AS {p}o FROM ({grouped}){limit}"  # noqa: S608  generated names, rendered expressions

    def _render_records_of_top_or_other_values(
        self, level_index: int, level: TopNestedLevel, records: Sql, top_values: Sql
    ) -> Sql:
        """Return SQL for the records that have a top value of this level, or belong to the "others" of a level."""
        p, key = self._p, f"{self._p}k{level_index}"
        same = " AND ".join(
            f"b.{each} IS NOT DISTINCT FROM t.{each}" for each in self._list_key_column_names(level_index + 1)
        )
        if all(each.others is None for each in self._levels[: level_index + 1]):
            return f"SELECT b.* FROM {records} b SEMI JOIN {top_values} t ON {same}"  # noqa: S608  generated names
        joined = f"{records} b LEFT JOIN {top_values} t ON NOT b.{p}o AND {same}"
        if level.others is None:
            named = f"b.* REPLACE (CASE WHEN b.{p}o THEN NULL ELSE b.{key} END AS {key})"
            return f"SELECT {named} FROM {joined} WHERE b.{p}o OR NOT t.{p}o"  # noqa: S608
        other = f"b.{p}o OR t.{p}o IS NULL"
        named = f"CASE WHEN {other} THEN {render_expression(level.others)} ELSE b.{key} END AS {key}"
        return f"SELECT b.* REPLACE ({named}, {other} AS {p}o) FROM {joined}"  # noqa: S608

    def _render_weight_per_group(self, level_index: int, level: TopNestedLevel, records: Sql) -> Sql:
        p, keys = self._p, ", ".join(self._list_key_column_names(level_index + 1))
        weight = translate.render_aggregate(level.by)
        if level.others is None:
            weight = f"CASE WHEN NOT {p}o THEN {weight} END"
        return f"SELECT {keys}, {weight} AS {p}a, {p}o FROM {records} GROUP BY {keys}, {p}o"  # noqa: S608

    def _render_join_of_weight_tables(self, weight_tables: list[Sql]) -> Sql:
        """Return SQL that joins the tables with the weights of each level to the result of ``top-nested``."""
        p, last = self._p, weight_tables[-1]
        sql = last
        for index, weight in enumerate(weight_tables[:-1]):
            keys = [
                f"{last}.{each} IS NOT DISTINCT FROM {weight}.{each}" for each in self._list_key_column_names(index + 1)
            ]
            # A path of the "others" of a lower level is an ordinary one here, unless this level did not rank it.
            others = f"({last}.{p}o OR NOT {weight}.{p}o)"
            sql += f" JOIN {weight} ON {' AND '.join([*keys, others])}"
        selected = []
        for index, weight in enumerate(weight_tables):
            selected += [
                f"{last}.{p}k{index} AS {self._names[2 * index]}",
                f"{weight}.{p}a AS {self._names[2 * index + 1]}",
            ]
        return f"SELECT {', '.join(selected)} FROM {sql}"  # noqa: S608  generated and quoted names


@dataclasses.dataclass(frozen=True)
class TopHitters(SerializedOutputOperator):
    """Query operator ``top-hitters``, which returns the most frequent values, or the values with the largest sums.

    Attributes:
        count: number of values to return.
        of: expression whose values are returned.
        by: expression that is summed for each value; None to count the rows of each value.
    """

    count: ir.Expr
    of: ir.NamedExpr
    by: ir.NamedExpr | None

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the values with their counts or sums, largest first."""
        value, weight = (translate.quote_ident(name) for name in self.infer_output_columns(input_columns))
        aggregate = "count(*)" if self.by is None else translate.render_aggregate(self._build_sum_aggregate(self.by))
        return (
            f"SELECT {render_expression(self.of.expr)} AS {value}, {aggregate} AS {weight} "  # noqa: S608
            f"FROM {input_sql} GROUP BY ALL ORDER BY {weight} DESC NULLS LAST LIMIT {render_row_limit(self.count)}"
        )

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the two output columns: the value, and its count or sum."""
        del input_columns
        value = naming.Namer().name(self.of)
        weight = "count" if self.by is None else "sum"
        summed = value if self.by is None else self.by.name or naming.expression_name(self.by.expr) or ""
        return [value, f"approximate_{weight}_{summed}"]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "TopHitters":
        """Return a copy of the operator with ``substitute`` applied to all expressions."""
        by = self.by and dataclasses.replace(self.by, expr=substitute(self.by.expr))
        of = dataclasses.replace(self.of, expr=substitute(self.of.expr))
        return TopHitters(resolve_let_value(substitute(self.count)), of, by)

    @staticmethod
    def _build_sum_aggregate(by: ir.NamedExpr) -> ir.NamedExpr:
        return ir.NamedExpr(ir.FunctionCall("sum", (by.expr,)))


def install_into_translator() -> None:
    """Add the operators ``top-nested`` and ``top-hitters`` to the KQL translator library."""
    add_operator("TopNestedOperator", _parse_top_nested)
    add_operator("TopNestedOperatorPart", lambda node: TopNested((_parse_top_nested_level(node),)))
    add_operator("TopHittersOperator", _parse_top_hitters)


def _parse_top_nested(node: ParseNode) -> ir.Operator:
    return TopNested(tuple(_parse_top_nested_level(child) for child in get_child_rules(node)))


def _parse_top_nested_level(node: ParseNode) -> TopNestedLevel:
    *before, by = get_child_rules(node)
    others = [
        get_child_rules(each)[-1] for each in before if get_rule_name(each) == "TopNestedOperatorWithOthersClause"
    ]
    before = [each for each in before if get_rule_name(each) != "TopNestedOperatorWithOthersClause"]
    aggregate, ascending = _parse_sort_expression_and_ascending_flag(by)
    count = reader.lower_expr(before[0]) if len(before) > 1 else None
    return TopNestedLevel(
        reader.lower_named(before[-1]), aggregate, count, reader.lower_expr(others[0]) if others else None, ascending
    )


def _parse_sort_expression_and_ascending_flag(node: ParseNode) -> tuple[ir.NamedExpr, bool]:
    parts = get_child_rules(node) if get_rule_name(node) == "OrderedExpression" else [node]
    text = parts[-1].getText() if len(parts) > 1 else ""
    if text not in ("", "asc", "desc"):
        raise unsupported_error(f"top-nested {text[:50]}", "the order must be asc or desc", get_line_and_column(node))
    return reader.lower_named(parts[0]), text == "asc"


def _parse_top_hitters(node: ParseNode) -> ir.Operator:
    count, of, *by = get_child_rules(node)
    summed = _parse_sort_expression_and_ascending_flag(get_child_rules(by[0])[-1])[0] if by else None
    return TopHitters(reader.lower_expr(count), reader.lower_named(of), summed)
