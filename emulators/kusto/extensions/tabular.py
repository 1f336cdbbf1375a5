"""Query operators that select columns by pattern, operators that select a number of rows, and the operator ``as``."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, lower, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.pipeline import ExpressionReplacer, PipelineOperator, add_operator, unwrap_operator_node
from emulators.kusto.extensions.several_results import EndOfResult
from emulators.kusto.extensions.sql import Sql, quote_text
from emulators.kusto.extensions.tree import (
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    list_nodes_by_rule,
)

SUPPORTED: tuple[str, ...] = (
    "project-keep",
    "project-away (wildcards)",
    "project-reorder (wildcards, asc, desc)",
    "take, limit and top by a let or query parameter",
    "distinct *",
    "sample",
    "sample-distinct",
    "as (at the top of the query, if its name is referenced)",
)


def _install_tabular_operators() -> None:
    """Add the operators that select columns or rows to the KQL translator library."""
    add_operator("ProjectKeepOperator", _parse_project_keep)
    add_operator("ProjectAwayOperator", _parse_project_away)
    add_operator("ProjectReorderOperator", _parse_project_reorder)
    add_operator("TakeOperator", _parse_take)
    add_operator("TopOperator", _parse_top)
    add_operator("SampleOperator", _parse_sample)
    add_operator("SampleDistinctOperator", _parse_sample_distinct)
    add_operator("DistinctOperator", _parse_distinct)


@dataclasses.dataclass(frozen=True)
class ColumnPattern:
    """Pattern of column names, which may contain ``*``; ``order`` sorts the matching columns (asc, desc or empty)."""

    text: str
    order: str = ""

    def list_matching_columns(self, input_columns: Sequence[str]) -> list[str]:
        """Return the columns whose names match the pattern.

        Raises:
            QueryError: the pattern has no wildcard, and the column does not exist.
        """
        if "*" not in self.text:
            if self.text not in input_columns:
                raise semantic_error(f"Failed to resolve column named '{self.text[:200]}'")
            return [self.text]
        return self._sort_names([name for name in input_columns if self._is_matching_name(name)])

    def _is_matching_name(self, name: str) -> bool:
        # Each part is searched once; a regular expression could take exponential time.
        first, *parts, last = self.text.split("*")
        if not name.startswith(first):
            return False
        position = len(first)
        for part in parts:
            found = name.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        return name.endswith(last) and len(name) - len(last) >= position

    def to_regex(self) -> str:
        """Return the pattern as a regular expression for DuckDB, whose matching takes linear time."""
        return "(?s)" + ".*".join(map(re.escape, self.text.split("*")))

    def _sort_names(self, names: list[str]) -> list[str]:
        if not self.order:
            return names
        if self.order not in ("asc", "desc"):
            raise unsupported_error(f"project-reorder {self.order}", "the order must be asc or desc")
        return sorted(names, reverse=self.order == "desc")


@dataclasses.dataclass(frozen=True)
class SelectColumns(PipelineOperator):
    """Query operator ``project-keep``, ``project-away`` or ``project-reorder``.

    Attributes:
        patterns: patterns of the column names in the query, in order.
        mode: part of the operator's name after ``project-``: ``keep``, ``away`` or ``reorder``.
    """

    patterns: tuple[ColumnPattern, ...]
    mode: str

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that selects the columns by name."""
        selected = self.infer_output_columns(input_columns)
        if not selected:
            raise unsupported_error("a query result without columns", "keep at least one column")
        return f"SELECT {', '.join(map(translate.quote_ident, selected))} FROM {input_sql}"  # noqa: S608  quoted names

    def render_with_unknown_input_columns(self, input_sql: Sql) -> Sql:
        """Render the operator as SQL that selects columns by pattern, because the input columns are unknown."""
        if self.mode == "reorder":
            raise unsupported_error("project-reorder", "the columns of the operator's input depend on the data")
        tests = " OR ".join(f"regexp_full_match(_c, {quote_text(pattern.to_regex())})" for pattern in self.patterns)
        return f"SELECT COLUMNS(lambda _c: {'' if self.mode == 'keep' else 'NOT '}({tests})) FROM {input_sql}"  # noqa: S608

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the selected columns, in the order that the operator defines."""
        named: list[str] = []
        for pattern in self.patterns:
            named += [name for name in pattern.list_matching_columns(input_columns) if name not in named]
        if self.mode == "keep":
            return [name for name in input_columns if name in named]
        rest = [name for name in input_columns if name not in named]
        return rest if self.mode == "away" else named + rest


@dataclasses.dataclass(frozen=True)
class TakeRows(PipelineOperator):
    """Query operator ``take``, ``top`` or ``sample``, which returns a number of rows.

    Attributes:
        count: number of rows, a constant expression.
        keys: sort keys of ``top``; empty for ``take`` and ``sample``.
        random: True for ``sample``.
    """

    count: ir.Expr
    keys: tuple[ir.SortKey, ...] = ()
    random: bool = False

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the first rows, or random rows for ``sample``."""
        del input_columns
        return self.render_with_unknown_input_columns(input_sql)

    def render_with_unknown_input_columns(self, input_sql: Sql) -> Sql:
        """Return SQL that yields the first rows or random rows; for a negative number, no rows, as in Kusto."""
        order = "random()" if self.random else translate.render_sort_keys(self.keys)
        sorting = f" ORDER BY {order}" if order else ""
        return f"SELECT * FROM {input_sql}{sorting} LIMIT {render_row_limit(self.count)}"  # noqa: S608

    def replace_expressions(self, substitute: ExpressionReplacer) -> "TakeRows":
        """Return a copy of the operator with ``substitute`` applied to the sort keys and the number of rows."""
        keys = tuple(dataclasses.replace(key, expr=substitute(key.expr)) for key in self.keys)
        return dataclasses.replace(self, count=resolve_let_value(substitute(self.count)), keys=keys)


@dataclasses.dataclass(frozen=True)
class DistinctRows(PipelineOperator):
    """Query operator ``distinct *`` or ``sample-distinct``.

    ``named`` and ``count`` are the expression and the number of values of ``sample-distinct``; None for ``distinct *``.
    """

    named: ir.NamedExpr | None = None
    count: ir.Expr | None = None

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the distinct rows."""
        del input_columns
        return self.render_with_unknown_input_columns(input_sql)

    def render_with_unknown_input_columns(self, input_sql: Sql) -> Sql:
        """Render the operator as SQL that yields distinct rows or, for ``sample-distinct``, distinct values."""
        if self.named is None or self.count is None:
            return f"SELECT DISTINCT * FROM {input_sql}"  # noqa: S608
        name = translate.quote_ident(self.infer_output_columns([])[0])
        value = translate.render_expr(self.named.expr)
        return f"SELECT DISTINCT {value} AS {name} FROM {input_sql} LIMIT {render_row_limit(self.count)}"  # noqa: S608

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return all columns or, for ``sample-distinct``, the sampled column."""
        return input_columns if self.named is None else translate.naming.distinct_names([self.named])

    def replace_expressions(self, substitute: ExpressionReplacer) -> "DistinctRows":
        """Return a copy with ``substitute`` applied to the expression and the number of rows of ``sample-distinct``."""
        if self.named is None or self.count is None:
            return self
        named = dataclasses.replace(self.named, expr=substitute(self.named.expr))
        return dataclasses.replace(self, named=named, count=resolve_let_value(substitute(self.count)))


def resolve_let_value(expr: ir.Expr) -> ir.Expr:
    """Return the value of a reference to a ``let`` statement; return any other expression unchanged.

    Use this function only for arguments that cannot be columns.
    """
    return expr.value if isinstance(expr, ir.LetRef) else expr


def render_row_limit(count: ir.Expr) -> Sql:
    """Return the SQL that follows LIMIT for a number of rows; a negative number means 0, as in Kusto."""
    if isinstance(count, ir.Literal):
        return str(max(0, int(count.value or 0)))
    if writer.referenced_columns(count):
        raise semantic_error("the number of rows of an operator such as take, top or sample must be a constant")
    return f"greatest(coalesce(CAST({translate.render_expr(count)} AS BIGINT), 0), 0)"


def _parse_row_count(node: ParseNode) -> ir.Expr:
    count: ir.Expr = reader.lower_expr(node)
    if isinstance(count, ir.Literal) and not (isinstance(count.value, int) and count.kind in ("int", "long")):
        raise semantic_error(
            "the number of rows of an operator such as take, top or sample must be an integer",
            position=get_line_and_column(node),
        )
    return count


def _parse_column_patterns(node: ParseNode) -> tuple[ColumnPattern, ...]:
    found = []
    for child in get_child_rules(node):
        if get_rule_name(child) != "ProjectReorderExpression":
            found.append(_parse_column_pattern(child, ""))
            continue
        texts = [part.getText() for part in child.getChildren()]
        found.append(_parse_column_pattern(child.getChild(0), texts[1] if len(texts) > 1 else ""))
    return tuple(found)


def _parse_column_pattern(node: ParseNode, sort_order: str) -> ColumnPattern:
    name = reader.name_text(reader.collapse(node))
    return ColumnPattern(node.getText() if name is None else name, sort_order)


def _parse_project_keep(node: ParseNode) -> ir.Operator:
    return SelectColumns(_parse_column_patterns(node), "keep")


def _parse_project_away(node: ParseNode) -> ir.Operator:
    return SelectColumns(_parse_column_patterns(node), "away")


def _parse_project_reorder(node: ParseNode) -> ir.Operator:
    return SelectColumns(_parse_column_patterns(node), "reorder")


def _parse_take(node: ParseNode) -> ir.Operator:
    count = _parse_row_count(get_child_rules(node)[-1])
    if isinstance(count, ir.Literal) and isinstance(count.value, int):
        return ir.Take(max(0, count.value))
    return TakeRows(count)


def _parse_top(node: ParseNode) -> ir.Operator:
    number, key = get_child_rules(node)[-2:]
    count, keys = _parse_row_count(number), (reader.lower_sort_key(key),)
    if isinstance(count, ir.Literal) and isinstance(count.value, int):
        return ir.Top(max(0, count.value), keys)
    return TakeRows(count, keys)


def _parse_sample(node: ParseNode) -> ir.Operator:
    return TakeRows(_parse_row_count(get_child_rules(node)[-1]), random=True)


def _parse_sample_distinct(node: ParseNode) -> ir.Operator:
    number, column = get_child_rules(node)[-2:]
    return DistinctRows(reader.lower_named(column), _parse_row_count(number))


def _parse_distinct(node: ParseNode) -> ir.Operator | None:
    if any(get_rule_name(child) == "DistinctOperatorStarTarget" for child in get_child_rules(node)):
        return DistinctRows()
    return None


def _install_as_operator() -> None:
    """Add the query operator ``as`` to the KQL translator library."""
    add_operator("AsOperator", _parse_as)
    replace_attribute(lower, "_lower", _patch_query_conversion_for_as)


@dataclasses.dataclass(frozen=True)
class NameRows(PipelineOperator):
    """Query operator ``as``, which gives a name to its input rows, so that other parts of the query can read them.

    The translation replaces the operator by a ``let`` statement. The parser creates this operator only if another part
    of the query uses the name.

    Attributes:
        name: name of the rows.
        offset: index of the operator's first character in the query text.
    """

    name: str
    offset: int

    def render_with_unknown_input_columns(self, input_sql: Sql) -> Sql:
        """Reject the query, because a nested pipeline cannot contain the ``let`` statement that replaces ``as``."""
        del input_sql
        raise unsupported_error(
            "the operator 'as' inside a nested query, with a name that the query uses",
            "name the rows in a let statement instead",
            subject="as",
        )

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Reject the query, because a nested pipeline cannot contain the ``let`` statement that replaces ``as``."""
        del input_columns
        return self.render_with_unknown_input_columns(input_sql)


def _parse_as(node: ParseNode) -> list[ir.Operator]:
    name = reader.name_text(reader.collapse(get_child_rules(node)[-1]))
    root = node
    while root.parentCtx is not None:
        root = root.parentCtx
    if sum(each.getText() == name for each in list_nodes_by_rule(root, "IdentifierName")) > 1:
        return [NameRows(str(name), node.start.start)]
    return [EndOfResult(1, str(name))] if _is_last_operator_of_statement(node) else []


def _is_last_operator_of_statement(node: ParseNode) -> bool:
    """Return whether an operator is the last operator of a whole query statement, not of a nested query."""
    parent = node.parentCtx
    while parent is not None and get_rule_name(parent) != "QueryStatement":
        if get_child_rules(parent)[-1].stop is not node.stop or get_rule_name(parent) in _NESTING:
            return False
        parent = parent.parentCtx
    return parent is not None


def find_name_given_by_as(node: ParseNode) -> str | None:
    """Return the name that ``as`` at the end of a pipeline gives to its rows; None without ``as``."""
    if node is None:
        return None
    inner = reader.unparenthesize(reader.collapse(node))
    parts = get_child_rules(inner) if get_rule_name(inner) == "PipeExpression" else [inner]
    last = unwrap_operator_node(parts[-1])
    if get_rule_name(last) != "AsOperator":
        return None
    name: str = reader.name_text(reader.collapse(get_child_rules(last)[-1]))
    return name


def find_operator_before(node: ParseNode) -> ParseNode | None:
    """Return the parse tree node that precedes an operator in its pipeline; None for the first operator."""
    child, parent = node, node.parentCtx
    while parent is not None and get_rule_name(parent) != "PipeExpression":
        child, parent = parent, parent.parentCtx
    parts = get_child_rules(parent) if parent is not None else []
    index = parts.index(child) if child in parts else 0
    return parts[index - 1] if index else None


def is_first_operator(node: ParseNode) -> bool:
    """Return whether an operator is the first operator of its pipeline."""
    parent = node.parentCtx
    while parent is not None and len(get_child_rules(parent)) == 1 and get_rule_name(parent) != "PipedOperator":
        parent = parent.parentCtx
    if parent is None or get_rule_name(parent) != "PipeExpression":
        return parent is None or get_rule_name(parent) != "PipedOperator"
    return bool(get_child_rules(parent)[0].start.start == node.start.start)


def _patch_query_conversion_for_as(library_function: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    def convert_query_with_as(kql_text: str, *library_arguments: Any) -> ir.Query:
        return _convert_as_to_let(library_function(kql_text, *library_arguments))

    return convert_query_with_as


def _convert_as_to_let(query: ir.Query) -> ir.Query:
    """Return the query with a ``let`` statement in place of each operator ``as`` whose name the query uses."""
    for index, operator in enumerate(query.operators):
        if isinstance(operator, NameRows):
            before = ir.Query(query.source, list(query.operators[:index]))
            lets = [*query.lets, (operator.name, before)]
            rest = list(query.operators[index + 1 :])
            return _convert_as_to_let(ir.Query(ir.TableRef(operator.name), rest, lets, list(query.parameters)))
    return query


_NESTING = frozenset({"ParenthesizedExpression", "ForkOperatorFork", "ForkOperatorExpression", "LetStatement"})

macros: tuple[str, ...] = ()


def install_into_translator() -> None:
    """Add the operators that select columns or rows, and the operator ``as``, to the KQL translator library."""
    _install_tabular_operators()
    _install_as_operator()
