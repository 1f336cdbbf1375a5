"""Tabular operators that choose columns by pattern or rows by number."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute, add_operator
from emulators.kusto.extensions.sql import quoted
from emulators.kusto.extensions.tree import children, kind_of, position

SUPPORTED: tuple[str, ...] = (
    "project-keep",
    "project-away (wildcards)",
    "project-reorder (wildcards, asc, desc)",
    "take, limit and top by a let or query parameter",
    "distinct *",
    "sample",
    "sample-distinct",
)

macros: tuple[str, ...] = ()


def install() -> None:
    """Teach the translator the operators of this module."""
    add_operator("ProjectKeepOperator", _project_keep)
    add_operator("ProjectAwayOperator", _project_away)
    add_operator("ProjectReorderOperator", _project_reorder)
    add_operator("TakeOperator", _take)
    add_operator("TopOperator", _top)
    add_operator("SampleOperator", _sample)
    add_operator("SampleDistinctOperator", _sample_distinct)
    add_operator("DistinctOperator", _distinct)


@dataclasses.dataclass(frozen=True)
class ColumnPattern:
    """A name, perhaps with wildcards, and how the columns that it matches are ordered among themselves."""

    text: str
    order: str = ""

    def matches(self, cols: Sequence[str]) -> list[str]:
        """Return the columns that the pattern names.

        Raises:
            QueryError: it is a plain name, and there is no such column.
        """
        if "*" not in self.text:
            if self.text not in cols:
                raise semantic_error(f"Failed to resolve column named '{self.text[:200]}'")
            return [self.text]
        return self._ordered([name for name in cols if self._fits(name)])

    def _fits(self, name: str) -> bool:
        # Part after part, each at its first place: the regular expression would try all places of all parts.
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

    def expression(self) -> str:
        """Return the pattern as a regular expression for DuckDB, whose time is linear in the text."""
        return "(?s)" + ".*".join(map(re.escape, self.text.split("*")))

    def _ordered(self, names: list[str]) -> list[str]:
        if not self.order:
            return names
        if self.order not in ("asc", "desc"):
            raise unsupported(
                f"project-reorder {self.order}", "its order of numbers inside names is not documented clearly"
            )
        return sorted(names, reverse=self.order == "desc")


@dataclasses.dataclass(frozen=True)
class SelectColumns(PipelineOperator):
    """``project-keep``, ``project-away`` or ``project-reorder`` with patterns."""

    patterns: tuple[ColumnPattern, ...]
    mode: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the chosen columns, written out."""
        chosen = self.columns(cols)
        if not chosen:
            raise unsupported("a result without columns")
        return f"SELECT {', '.join(map(translate.quote_ident, chosen))} FROM {prev}"  # noqa: S608  quoted names

    def render_blindly(self, prev: str) -> str:
        """Return the columns that DuckDB finds by the patterns."""
        if self.mode == "reorder":
            raise unsupported("project-reorder", "the columns before it depend on the data")
        tests = " OR ".join(f"regexp_full_match(_c, {quoted(pattern.expression())})" for pattern in self.patterns)
        return f"SELECT COLUMNS(lambda _c: {'' if self.mode == 'keep' else 'NOT '}({tests})) FROM {prev}"  # noqa: S608

    def columns(self, cols: list[str]) -> list[str]:
        """Return the columns that are kept, in the order that the operator gives them."""
        named: list[str] = []
        for pattern in self.patterns:
            named += [name for name in pattern.matches(cols) if name not in named]
        if self.mode == "keep":
            return [name for name in cols if name in named]
        rest = [name for name in cols if name not in named]
        return rest if self.mode == "away" else named + rest


@dataclasses.dataclass(frozen=True)
class TakeRows(PipelineOperator):
    """``take``, ``top`` or ``sample`` of as many rows as a constant expression says."""

    count: ir.Expr
    keys: tuple[ir.SortKey, ...] = ()
    random: bool = False

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the rows, as many as the number says."""
        del cols
        return self.render_blindly(prev)

    def render_blindly(self, prev: str) -> str:
        """Return the rows; Kusto answers none for a negative number."""
        order = "random()" if self.random else translate.render_sort_keys(self.keys)
        sorting = f" ORDER BY {order}" if order else ""
        return f"SELECT * FROM {prev}{sorting} LIMIT {row_limit(self.count)}"  # noqa: S608

    def substituted(self, substitute: Substitute) -> "TakeRows":
        """Return the operator with its number bound: no column can be meant there."""
        keys = tuple(dataclasses.replace(key, expr=substitute(key.expr)) for key in self.keys)
        return dataclasses.replace(self, count=bound_value(substitute(self.count)), keys=keys)


@dataclasses.dataclass(frozen=True)
class DistinctRows(PipelineOperator):
    """``distinct *``, or ``sample-distinct`` of one column."""

    named: ir.NamedExpr | None = None
    count: ir.Expr | None = None

    def render(self, prev: str, cols: list[str]) -> str:
        """Return each combination of values once."""
        del cols
        return self.render_blindly(prev)

    def render_blindly(self, prev: str) -> str:
        """Return each combination of values once."""
        if self.named is None or self.count is None:
            return f"SELECT DISTINCT * FROM {prev}"  # noqa: S608
        name = translate.quote_ident(self.columns([])[0])
        value = translate.render_expr(self.named.expr)
        return f"SELECT DISTINCT {value} AS {name} FROM {prev} LIMIT {row_limit(self.count)}"  # noqa: S608

    def columns(self, cols: list[str]) -> list[str]:
        """Return every column, or the sampled one."""
        return cols if self.named is None else translate.naming.distinct_names([self.named])

    def substituted(self, substitute: Substitute) -> "DistinctRows":
        """Return the operator with its number bound."""
        if self.named is None or self.count is None:
            return self
        named = dataclasses.replace(self.named, expr=substitute(self.named.expr))
        return dataclasses.replace(self, named=named, count=bound_value(substitute(self.count)))


def bound_value(expr: ir.Expr) -> ir.Expr:
    """Return what a name is bound to where the translator would leave it open whether a column is meant."""
    return expr.value if isinstance(expr, ir.LetRef) else expr


def row_limit(count: ir.Expr) -> str:
    """Return the SQL of a number of rows; Kusto answers none for a negative one."""
    if isinstance(count, ir.Literal):
        return str(max(0, int(count.value or 0)))
    if writer.referenced_columns(count):
        raise semantic_error("the number of rows must be a constant")
    return f"greatest(coalesce(CAST({translate.render_expr(count)} AS BIGINT), 0), 0)"


def _count_expr(node: Any) -> ir.Expr:
    count: ir.Expr = reader.lower_expr(node)
    if isinstance(count, ir.Literal) and not (isinstance(count.value, int) and count.kind in ("int", "long")):
        raise semantic_error("the number of rows must be an integer", position=position(node))
    return count


def _patterns(node: Any) -> tuple[ColumnPattern, ...]:
    found = []
    for child in children(node):
        if kind_of(child) != "ProjectReorderExpression":
            found.append(_pattern(child, ""))
            continue
        texts = [part.getText() for part in child.getChildren()]
        found.append(_pattern(child.getChild(0), texts[1] if len(texts) > 1 else ""))
    return tuple(found)


def _pattern(node: Any, order: str) -> ColumnPattern:
    name = reader.name_text(reader.collapse(node))
    return ColumnPattern(node.getText() if name is None else name, order)


def _project_keep(node: Any) -> ir.Operator:
    return SelectColumns(_patterns(node), "keep")


def _project_away(node: Any) -> ir.Operator:
    return SelectColumns(_patterns(node), "away")


def _project_reorder(node: Any) -> ir.Operator:
    return SelectColumns(_patterns(node), "reorder")


def _take(node: Any) -> ir.Operator:
    count = _count_expr(children(node)[-1])
    if isinstance(count, ir.Literal) and isinstance(count.value, int):
        return ir.Take(max(0, count.value))
    return TakeRows(count)


def _top(node: Any) -> ir.Operator:
    number, key = children(node)[-2:]
    count, keys = _count_expr(number), (reader.lower_sort_key(key),)
    if isinstance(count, ir.Literal) and isinstance(count.value, int):
        return ir.Top(max(0, count.value), keys)
    return TakeRows(count, keys)


def _sample(node: Any) -> ir.Operator:
    return TakeRows(_count_expr(children(node)[-1]), random=True)


def _sample_distinct(node: Any) -> ir.Operator:
    number, column = children(node)[-2:]
    return DistinctRows(reader.lower_named(column), _count_expr(number))


def _distinct(node: Any) -> ir.Operator | None:
    if any(kind_of(child) == "DistinctOperatorStarTarget" for child in children(node)):
        return DistinctRows()
    return None
