"""Query operator ``parse-kv``: parses a string of keys and values into columns."""

import dataclasses
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute, add_operator
from emulators.kusto.extensions.sql import quote_text, render
from emulators.kusto.extensions.tree import find_rules, get_child_rules, get_rule_name, get_source_position
from emulators.kusto.extensions.window_plan import find_free_prefix

SUPPORTED: tuple[str, ...] = ("parse-kv (pair_delimiter and kv_delimiter, or regex)",)

macros: tuple[str, ...] = ()
_CONVERSIONS = {
    "string": "",
    "bool": "tobool",
    "int": "toint",
    "long": "tolong",
    "real": "todouble",
    "double": "todouble",
    "datetime": "todatetime",
    "timespan": "totimespan",
    "guid": "toguid",
    "dynamic": "parse_json",
}


@dataclasses.dataclass(frozen=True)
class ParseKv(PipelineOperator):
    """Query operator ``parse-kv``.

    Attributes:
        text: expression of the string to parse.
        keys: name and Kusto type of each column.
        delimiters: delimiter between pairs, and delimiter between key and value; empty with a pattern.
        pattern: regular expression with two groups, for key and value.
    """

    text: ir.Expr
    keys: tuple[tuple[str, str], ...]
    delimiters: tuple[str, ...]
    pattern: str = ""

    def render(self, prev: str, cols: list[str]) -> str:
        """Return SQL that yields the rows with a column for each key; of a repeated key, the first value is used."""
        pairs = f"{find_free_prefix(self.infer_columns(cols))}p"
        names = dict(self.keys)
        chosen = ", ".join(
            f"{self._render_value(name, names[name], pairs)} AS {translate.quote_ident(name)}"
            if name in names
            else translate.quote_ident(name)
            for name in self.infer_columns(cols)
        )
        return f"SELECT {chosen} FROM (SELECT *, {self._render_pairs()} AS {pairs} FROM {prev})"  # noqa: S608  quoted, rendered

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the input, and one column for each key."""
        return [*cols, *(name for name, _ in self.keys if name not in cols)]

    def replace_expressions(self, substitute: Substitute) -> "ParseKv":
        """Return a copy with the expression of the string replaced."""
        return dataclasses.replace(self, text=substitute(self.text))

    def _render_pairs(self) -> str:
        text = render(self.text)
        if not self.delimiters:
            groups = ", ".join(f"regexp_extract_all({text}, {quote_text(self.pattern)}, {group})" for group in (1, 2))
            return f"list_transform(list_zip({groups}), lambda z: {{'k': trim(z[1]), 'v': trim(z[2])}})"
        pair, value = map(quote_text, self.delimiters)
        parts = f"list_filter(string_split({text}, {pair}), lambda s: contains(s, {value}))"
        after = f"substr(s, instr(s, {value}) + {len(self.delimiters[1])})"
        return f"list_transform({parts}, lambda s: {{'k': trim(split_part(s, {value}, 1)), 'v': trim({after})}})"

    @staticmethod
    def _render_value(name: str, kind: str, pairs: str) -> str:
        found = ir.RenderedAggregate(f"(list_filter({pairs}, lambda q: q.k = {quote_text(name)})[1].v)")
        function = _CONVERSIONS[kind]
        return render(ir.FunctionCall(function, (found,))) if function else found.sql


def install() -> None:
    """Add the operator ``parse-kv`` to the translator library."""
    add_operator("ParseKvOperator", _lower_parse_kv)


def _lower_parse_kv(node: Any) -> ir.Operator:
    text, keys, *clauses = get_child_rules(node)
    named = []
    for declaration in find_rules(keys, "RowSchemaColumnDeclaration"):
        name, kind = get_child_rules(declaration)
        if kind.getText() not in _CONVERSIONS:
            raise unsupported_error(f"parse-kv to {kind.getText()[:50]}", position=get_source_position(kind))
        named.append((reader.find_names(name)[0], kind.getText()))
    properties = dict(
        _read_property(each) for clause in clauses for each in find_rules(clause, "QueryOperatorProperty")
    )
    pair, value, pattern = (properties.pop(name, "") for name in ("pair_delimiter", "kv_delimiter", "regex"))
    if properties or not (pattern or (pair and value)):
        raise unsupported_error(
            f"parse-kv with {next(iter(properties), 'neither delimiters nor a regex')[:50]}",
            position=get_source_position(node),
        )
    if pattern and (pair or value):
        raise semantic_error(
            "parse-kv must have either delimiters or a regex, not both", position=get_source_position(node)
        )
    if pattern and writer.capture_group_count(ir.Literal(pattern, "string")) != 2:  # noqa: PLR2004  key and value
        raise semantic_error("parse-kv: the regex must have two groups", position=get_source_position(node))
    return ParseKv(reader.lower_expr(text), tuple(named), () if pattern else (pair, value), pattern)


def _read_property(node: Any) -> tuple[str, str]:
    name, _, _ = node.getText().partition("=")
    literals = [
        child for child in get_child_rules(node) if get_rule_name(reader.collapse(child)) == "StringLiteralExpression"
    ]
    return name, str(reader.literal_string(reader.collapse(literals[0]))) if literals else ""
