"""``evaluate``: plugins, by name."""

from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.grammar import NOTHING
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.sql_types import SQL_TYPES
from emulators.kusto.extensions.tree import children, find, position

type Schema = tuple[tuple[str, str], ...]
"""Name and Kusto type of each column."""
type Plugin = Callable[[Any, Sequence[Any], Any], ir.Operator]
"""Lowers a plugin: the operator's node, its arguments' and, where the text has one, its output schema's."""

macros: tuple[str, ...] = ()
_PLUGINS: dict[str, Plugin] = {}


def add_plugin(name: str, lowering: Plugin) -> None:
    """Lower ``evaluate name(...)`` with ``lowering``."""
    _PLUGINS[name] = lowering


def install() -> None:
    """Teach the translator the operator."""
    add_operator("EvaluateOperator", _evaluate)


def _evaluate(node: Any) -> ir.Operator:
    calls = find(node, "NamedFunctionCallExpression")
    name = children(calls[0])[0].getText() if calls else ""
    plugin = _PLUGINS.get(name)
    if plugin is None:
        raise unsupported(f"evaluate {name[:100]}", position=position(node))
    clauses = find(node, "EvaluateOperatorSchemaClause")
    return plugin(node, children(calls[0])[1:], clauses[0] if clauses else None)


def output_schema(clause: Any) -> tuple[Schema | None, bool]:
    """Return the columns of an output schema, and whether those of the input come too."""
    if clause is None:
        return None, False
    columns, star = [], False
    for declaration in find(clause, "RowSchemaColumnDeclaration"):
        name, kind = children(declaration)
        if name.getText() == NOTHING:
            star = True
            continue
        if kind.getText() not in SQL_TYPES:
            raise unsupported(f"an output schema with {kind.getText()[:50]}", position=position(kind))
        columns.append((reader.find_names(name)[0], kind.getText()))
    return tuple(columns), star


def text_of(expr: ir.Expr | None, otherwise: str) -> str:
    """Return the text of a literal argument, or what stands for one that is not given."""
    if expr is None:
        return otherwise
    if not isinstance(expr, ir.Literal) or expr.value is None:
        raise unsupported("evaluate with an argument that is no literal")
    return str(expr.value)


def check_column(name: str, cols: Sequence[str]) -> None:
    """Pass when the input has a column.

    Raises:
        QueryError: it has not.
    """
    if name not in cols:
        raise semantic_error(f"Failed to resolve column named '{name[:200]}'")


def quoted_name(name: str) -> str:
    """Return a column's name as SQL."""
    return str(translate.quote_ident(name))
