"""Query operator ``reduce``: groups similar texts, with a pattern for each group."""

import dataclasses
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import Substitute, add_operator
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import quote_name, quote_text
from emulators.kusto.extensions.tree import find_rules, get_child_rules, get_rule_name, get_source_position
from emulators.kusto.extensions.type_guards import render_error
from emulators.kusto.extensions.window_plan import find_free_prefix
from emulators.kusto.series_functions import SeriesFunction

SUPPORTED: tuple[str, ...] = ("reduce by (approximate)",)

macros: tuple[str, ...] = ()
MAX_TEXTS = 100_000
"""Maximum number of different texts."""
_PATTERNS = SeriesFunction(
    "text_patterns",
    ("VARCHAR[]", "DOUBLE[]", "DOUBLE", "VARCHAR"),
    {"patterns": "texts"},
    "emulators.kusto.series.text_patterns:compute_text_patterns",
)
series_functions: tuple[SeriesFunction, ...] = (_PATTERNS,)
_COLUMNS = ("Pattern", "Count", "Representative")
_TOO_MANY = render_error(
    "EMB0001", f"'reduce' of more than {MAX_TEXTS} different texts is not supported by the embedded query engine"
)


@dataclasses.dataclass(frozen=True)
class ReduceByPattern(UnorderedOutputOperator):
    """Query operator ``reduce``.

    Attributes:
        value: expression whose text is reduced.
        threshold: minimum share of the rows in a group; None for the default.
        characters: characters between words; None for the default.
        keeps_rows: True if the result has the rows of the input with their patterns (``kind=source``).
    """

    value: ir.Expr
    threshold: float | None
    characters: str | None
    keeps_rows: bool

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields a row for each pattern, or the input rows with their patterns."""
        p = find_free_prefix([*cols, *_COLUMNS])
        text = translate.render_kql_tostring(self.value)
        rows = f"(SELECT *, {text} AS {p}t FROM {prev})"  # noqa: S608  rendered expressions, generated names
        counted = f"(SELECT {p}t, count(*) AS {p}n FROM {rows} GROUP BY {p}t)"  # noqa: S608
        order = f"ORDER BY {p}n DESC, {p}t"
        listed = (
            f"(SELECT list({p}t {order}) AS {p}l, list({p}n {order}) AS {p}c FROM {counted} "  # noqa: S608
            f"HAVING CASE WHEN count(*) > {MAX_TEXTS} THEN {_TOO_MANY} ELSE true END)"
        )
        threshold = "NULL" if self.threshold is None else repr(self.threshold)
        characters = "NULL" if self.characters is None else quote_text(self.characters)
        found = f"{_PATTERNS.render_call(f'{p}l', f'{p}c', threshold, characters)}.patterns"
        patterns = (
            f"(SELECT unnest({p}l) AS {p}t, unnest({p}c) AS {p}n, unnest({found}) AS {p}p, "  # noqa: S608
            f"generate_subscripts({p}l, 1) AS {p}i FROM {listed})"
        )
        representative = f"CASE WHEN {p}p = 'others' THEN '' ELSE arg_min({p}t, {p}i) END"
        groups = (
            f"(SELECT {p}p AS {p}g, CAST(sum({p}n) AS BIGINT) AS {p}s, {representative} AS {p}r "  # noqa: S608
            f"FROM {patterns} GROUP BY {p}p)"
        )
        pattern, count, example = map(quote_name, self.infer_columns(cols)[-3:])
        result = f"{p}g AS {pattern}, {p}s AS {count}, {p}r AS {example}"
        if not self.keeps_rows:
            return f"SELECT {result} FROM {groups} ORDER BY {p}s DESC, {p}g"  # noqa: S608
        own = "".join(f"{quote_name(name)}, " for name in cols)
        return (
            f"SELECT {own}{result} FROM {rows} JOIN {patterns} AS p USING ({p}t) "  # noqa: S608
            f"JOIN {groups} AS g ON p.{p}p = g.{p}g"
        )

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the pattern, after those of the input with ``kind=source``."""
        if not self.keeps_rows:
            return list(_COLUMNS)
        return [*cols, *(name if name not in cols else f"{name}1" for name in _COLUMNS)]

    def replace_expressions(self, substitute: Substitute) -> "ReduceByPattern":
        """Return a copy in which the function ``substitute`` has replaced the expression."""
        return dataclasses.replace(self, value=substitute(self.value))


def _parse_reduce(node: Any) -> ir.Operator:
    value: ir.Expr | None = None
    keeps_rows = False
    for child in get_child_rules(node):
        kind = get_rule_name(child)
        if kind.endswith("QueryOperatorParameter"):
            name, _, text = child.getText().partition("=")
            if (name, text) != ("kind", "source"):
                raise unsupported_error(f"reduce {child.getText()[:100]}", position=get_source_position(child))
            keeps_rows = True
        elif kind != "ReduceByWithClause" and value is None:
            value = reader.lower_named(child).expr
    if value is None:
        raise semantic_error("reduce by requires an expression", position=get_source_position(node))
    clauses = find_rules(node, "ReduceByWithClause")
    options = dict(_parse_option(each) for clause in clauses for each in get_child_rules(clause))
    threshold, characters = options.get("threshold"), options.get("characters")
    if threshold is not None and not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise semantic_error("reduce: threshold must be between 0 and 1", position=get_source_position(node))
    if characters is not None and not isinstance(characters, str):
        raise semantic_error("reduce: characters must be a string", position=get_source_position(node))
    return ReduceByPattern(value, None if threshold is None else float(threshold), characters, keeps_rows)


def _parse_option(node: Any) -> tuple[str, Any]:
    named = reader.lower_named(node)
    if named.name not in ("threshold", "characters") or not isinstance(named.expr, ir.Literal):
        raise semantic_error("reduce: the options are threshold and characters", position=get_source_position(node))
    return named.name, named.expr.value


def install() -> None:
    """Add the operator to the KQL translator library."""
    add_operator("ReduceByOperator", _parse_reduce)
