"""Query operator ``partition by x { T | ... }``, which runs a subquery with a source of its own for each value of x.

The subquery runs once, over the rows of its source for every value; each operator of the subquery processes the rows of
one value separately. ``toscalar(x)`` is the value.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.grouped_pipeline import (
    GroupedOperator,
    GroupedRows,
    create_subquery_name,
    render_grouped,
)
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.sql import quote_name, quote_text
from emulators.kusto.extensions.tree import get_child_rules, get_source_position, iterate_nodes

MAX_PARTITIONS = 64
"""Maximum number of values in Kusto."""


@dataclasses.dataclass(frozen=True)
class PartitionWithSource(GroupedOperator):
    """Query operator ``partition`` with a subquery in braces.

    Attributes:
        column: column whose values the subquery runs for.
        key: name of the generated column that contains the value inside the subquery.
    """

    column: str
    key: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields the result rows of the subquery for all values."""
        if self.column not in cols:
            raise semantic_error(f"Failed to resolve column named '{self.column[:200]}'")
        known, rows, key = writer.nested_schema(), create_subquery_name("rows"), quote_name(self.key)
        source = ir.Query(self.body.source, [])
        own_columns = list(schema.output_columns(source, known))
        groups = GroupedRows(rows, [*own_columns, self.key], self.key)
        nested, own = render_grouped(groups, [], self._bind_key(own_columns))
        message = quote_text(f"kql:SEM0100:partition: the column has more than {MAX_PARTITIONS} distinct values")
        values = f"SELECT DISTINCT {quote_name(self.column)} AS v FROM {prev}"  # noqa: S608  quoted names
        keys = (
            f"SELECT CASE WHEN count(*) OVER () > {MAX_PARTITIONS} THEN error({message}) ELSE v END AS {key} "  # noqa: S608
            f"FROM ({values})"
        )
        crossed = f"SELECT s.*, k.{key} FROM ({translate.to_sql(source, known)}) AS s CROSS JOIN ({keys}) AS k"  # noqa: S608
        return f"WITH {rows} AS ({crossed}) SELECT {', '.join(map(quote_name, own))} FROM ({nested})"  # noqa: S608

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the output columns of the subquery."""
        del cols
        return list(schema.output_columns(self.body, writer.nested_schema()))

    def _bind_key(self, own_columns: Sequence[str]) -> ir.Query:
        """Return the subquery with the key in place of the column, unless the source has a column of this name."""
        if self.column in own_columns:
            return self.body
        column, key = ir.ColumnRef(self.column), ir.ColumnRef(self.key)
        operators = [_replace_nodes(operator, lambda node: node == column, key) for operator in self.body.operators]
        return ir.Query(self.body.source, operators)


def parse_partition_with_source(node: Any, by: ir.ColumnRef, body: Any) -> ir.Operator:
    """Convert the parse tree of a ``partition`` with braces to a query operator.

    Args:
        node: parse tree node of the operator.
        by: column whose values the subquery runs for.
        body: parse tree node of the braces.

    Raises:
        QueryError: the source of the subquery depends on the value.
    """
    key = f"partition key {node.start.start}"
    query = reader.lower_query_node(get_child_rules(body)[0])
    if any(_is_key(each, by.name) for each in iterate_nodes(query.source)):
        raise unsupported_error(
            "partition with toscalar() in the source of its subquery", position=get_source_position(body)
        )
    operators = [
        _replace_nodes(operator, lambda node: _is_key(node, by.name), ir.ColumnRef(key)) for operator in query.operators
    ]
    return PartitionWithSource(ir.Query(query.source, operators), by.name, key)


def _is_key(node: Any, column: str) -> bool:
    """Return True for ``toscalar(column)``; the library converts a name to a table or to the row of a ``print``."""
    if not isinstance(node, ir.ToScalar) or node.query.operators:
        return False
    source = node.query.source
    if isinstance(source, ir.TableRef):
        return source.name == column and source.database is None
    return isinstance(source, ir.PrintSource) and [each.expr for each in source.expressions] == [ir.ColumnRef(column)]


def _replace_nodes(node: Any, matches: Callable[[Any], bool], replacement: ir.Expr) -> Any:
    """Return a copy of a node in which ``replacement`` has replaced the matching nodes; subqueries are unchanged."""
    if matches(node):
        return replacement
    if isinstance(node, tuple | list):
        return type(node)(_replace_nodes(each, matches, replacement) for each in node)
    if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
        return node
    parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node) if field.init}
    changed = {name: _replace_nodes(part, matches, replacement) for name, part in parts.items()}
    return dataclasses.replace(node, **changed)
