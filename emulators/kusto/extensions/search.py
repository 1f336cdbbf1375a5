"""``search``: rows of one or several tables in which terms occur, in any column."""

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, translate

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import reader, replace
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute, add_operator
from emulators.kusto.extensions.sql import render
from emulators.kusto.extensions.tree import children, kind_of, position

SUPPORTED: tuple[str, ...] = ("search (in, kind, column:term, wildcards, and, or, not)",)

macros: tuple[str, ...] = ()
TABLE_COLUMN = "$table"
_SENSITIVE = {"case_sensitive": True, "case_insensitive": False, "default": False}
_TABLE = f'"{TABLE_COLUMN}"'
_WITH_CASE = {
    **{name: f"{name}_cs" for name in ("has", "contains", "startswith", "endswith", "hasprefix", "hassuffix")},
    **{f"!{name}": f"!{name}_cs" for name in ("has", "contains", "startswith", "endswith", "hasprefix", "hassuffix")},
    "=~": "==",
    "!~": "!=",
}
_IN_WORDS_ONLY = re.compile(r"[g-hj-mo-qu-yG-HJ-MO-QU-Y]")
"""A letter that the text of no number, instant, timespan, guid or bool holds."""
_LOGICAL = {"LogicalAndExpression": "and", "LogicalOrExpression": "or"}


@dataclasses.dataclass(frozen=True)
class Term(ir.Expr):
    """A text that must occur in a column, or in any.

    Attributes:
        text: with a star where anything may stand.
        column: None for any.
        sensitive: whether case counts.
    """

    text: str
    column: str | None
    sensitive: bool

    def over(self, cols: list[str]) -> ir.Expr:
        """Return the condition over an input's columns."""
        tests = [self._in_column(name) for name in (cols if self.column is None else [self.column])]
        condition = tests[0]
        for test in tests[1:]:
            condition = ir.BinaryOp("or", condition, test)
        return condition

    def _in_column(self, name: str) -> ir.Expr:
        test = self._test(ir.FunctionCall("tostring", (ir.ColumnRef(name),)))
        if not _IN_WORDS_ONLY.search(self.text):
            return test
        # The type is known before the query runs: a word is not looked for in numbers and instants.
        is_text = f"(typeof({_quote(name)}) IN ('VARCHAR', 'JSON') OR typeof({_quote(name)}) LIKE '%]')"
        return ir.BinaryOp("and", ir.RenderedAggregate(is_text), test)

    def _test(self, value: ir.Expr) -> ir.Expr:
        text = self.text.strip("*")
        if not text:
            return ir.Literal(value=True, kind="bool")
        if "*" in text:
            pattern = r"\b" + ".*".join(map(re.escape, text.split("*"))) + r"\b"
            pattern = pattern if self.sensitive else f"(?i){pattern}"
            return ir.BinaryOp("matches regex", value, ir.Literal(pattern, "string"))
        before, after = self.text.startswith("*"), self.text.endswith("*")
        operator = "contains" if before and after else "hassuffix" if before else "hasprefix" if after else "has"
        return ir.BinaryOp(operator + ("_cs" if self.sensitive else ""), value, ir.Literal(text, "string"))


@dataclasses.dataclass(frozen=True)
class Search(PipelineOperator):
    """Keeps the rows that a predicate of terms and comparisons holds for."""

    predicate: ir.Expr
    table: str | None = None

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the rows, after the name of their table where that is not a column yet."""
        label = f"{translate.quote_string(self.table)} AS {_TABLE}, " if self.table else ""
        condition = render(_spread(self.predicate, [name for name in cols if name != TABLE_COLUMN]))
        return f"SELECT {label}* FROM {prev} WHERE {condition}"  # noqa: S608  a quoted name, a rendered expression

    def columns(self, cols: list[str]) -> list[str]:
        """Return the input's columns after the table's name."""
        return [TABLE_COLUMN, *cols] if self.table else cols

    def substituted(self, substitute: Substitute) -> "Search":
        """Return the operator with the names in its comparisons bound."""
        return dataclasses.replace(self, predicate=substitute(self.predicate))


def install() -> None:
    """Teach the translator the operator, at the head of a query and after a table."""
    replace(lower, "_lower_head", _lower_head)
    add_operator("SearchOperator", lambda node: Search(_predicate_of(node)))


def _lower_head(default: Callable[[Any, list[Any]], ir.Query]) -> Callable[[Any, list[Any]], ir.Query]:
    def lower_head(head: Any, rest: list[Any]) -> ir.Query:
        inner = reader.collapse(head)
        if kind_of(inner) == "SearchOperator":
            return _searched(inner, rest)
        query = default(head, rest)
        for index, operator in enumerate(query.operators):
            if isinstance(operator, Search) and operator.table is None:
                query.operators[index] = _labelled(operator, query.source if index == 0 else None)
        return query

    return lower_head


def _labelled(search: Search, source: ir.Source | None) -> Search:
    if not isinstance(source, ir.TableRef):
        raise unsupported("search after another operator", f"its {TABLE_COLUMN} would be a generated name")
    return dataclasses.replace(search, table=source.name)


def _searched(node: Any, rest: list[Any]) -> ir.Query:
    clauses = [child for child in children(node) if kind_of(child) == "SearchOperatorInClause"]
    sources = [_source(child) for clause in clauses for child in children(clause)] or [ir.WildcardTableRef("*")]
    first, *others = (ir.Query(source) for source in sources)
    union = ir.Union(tuple(others), with_source=TABLE_COLUMN)
    search = Search(_predicate_of(node), table="")
    return ir.Query(first.source, [union, search, *reader.lower_operators(rest)])


def _source(node: Any) -> ir.Source:
    node = reader.collapse(node)
    if kind_of(node) == "WildcardedName":
        return ir.WildcardTableRef(node.getText())
    source = reader.lower_source(node)
    if not isinstance(source, ir.TableRef):
        raise unsupported("search in what is no table", position=position(node))
    return source


def _predicate_of(node: Any) -> ir.Expr:
    sensitive = False
    for parameter in children(node)[:-1]:
        name, _, value = parameter.getText().partition("=")
        if kind_of(parameter) == "SearchOperatorInClause":
            continue
        if name != "kind" or value not in _SENSITIVE:
            raise unsupported(f"search {parameter.getText()[:100]}", position=position(parameter))
        sensitive = _SENSITIVE[value]
    return _predicate(children(node)[-1], sensitive=sensitive)


def _predicate(node: Any, *, sensitive: bool) -> ir.Expr:
    node = reader.collapse(node)
    kind, parts = kind_of(node), children(node)
    if kind in _LOGICAL:
        conditions = [_predicate(parts[0], sensitive=sensitive)]
        conditions += [_predicate(children(operation)[-1], sensitive=sensitive) for operation in parts[1:]]
        return functools.reduce(functools.partial(ir.BinaryOp, _LOGICAL[kind]), conditions)
    if kind == "ParenthesizedExpression":
        return _predicate(parts[0], sensitive=sensitive)
    if kind == "NamedFunctionCallExpression" and parts[0].getText() == "not":
        return ir.FunctionCall("not", (_predicate(parts[1], sensitive=sensitive),))
    if kind in ("StarExpression", "StringLiteralExpression"):
        return Term(reader.literal_string(node) or "*", None, sensitive)
    if kind == "StringBinaryOperatorExpression" and parts[1].getText().startswith(":"):
        return _column_term(node, parts, sensitive=sensitive)
    lowered: ir.Expr = reader.lower_expr(node)
    return _sensitively(lowered) if sensitive else lowered


def _column_term(node: Any, parts: list[Any], *, sensitive: bool) -> ir.Expr:
    column, text = reader.lower_expr(parts[0]), reader.literal_string(children(parts[1])[-1])
    if not isinstance(column, ir.ColumnRef) or text is None:
        raise unsupported("search with : between other than a column and a text", position=position(node))
    return Term(text, column.name, sensitive)


def _sensitively(expr: ir.Expr) -> ir.Expr:
    if isinstance(expr, ir.BinaryOp) and expr.op in _WITH_CASE:
        return dataclasses.replace(expr, op=_WITH_CASE[expr.op])
    return expr


def _quote(name: str) -> str:
    return str(translate.quote_ident(name))


def _spread(expr: ir.Expr, cols: list[str]) -> ir.Expr:
    """Return a predicate with each term spelled out over the columns."""
    if isinstance(expr, Term):
        return expr.over(cols)
    if isinstance(expr, ir.BinaryOp):
        return dataclasses.replace(expr, left=_spread(expr.left, cols), right=_spread(expr.right, cols))
    if isinstance(expr, ir.FunctionCall):
        return dataclasses.replace(expr, args=tuple(_spread(arg, cols) for arg in expr.args))
    return expr
