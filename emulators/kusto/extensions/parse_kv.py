"""``parse-kv``: columns out of a text of keys and values."""

import dataclasses
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute, add_operator
from emulators.kusto.extensions.sql import quoted, render
from emulators.kusto.extensions.tree import children, find, kind_of, position
from emulators.kusto.extensions.window_plan import free_prefix

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
    """The operator.

    Attributes:
        text: what is parsed.
        keys: name and Kusto type of each column.
        delimiters: between pairs, and between key and value; empty where there is a pattern.
        pattern: of two groups, a key and its value.
    """

    text: ir.Expr
    keys: tuple[tuple[str, str], ...]
    delimiters: tuple[str, ...]
    pattern: str = ""

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the rows with a column for each key; of a key that comes again the first value counts."""
        pairs = f"{free_prefix(self.columns(cols))}p"
        names = dict(self.keys)
        chosen = ", ".join(
            f"{self._value(name, names[name], pairs)} AS {translate.quote_ident(name)}"
            if name in names
            else translate.quote_ident(name)
            for name in self.columns(cols)
        )
        return f"SELECT {chosen} FROM (SELECT *, {self._pairs()} AS {pairs} FROM {prev})"  # noqa: S608  quoted, rendered

    def columns(self, cols: list[str]) -> list[str]:
        """Return the input's columns and one for each key."""
        return [*cols, *(name for name, _ in self.keys if name not in cols)]

    def substituted(self, substitute: Substitute) -> "ParseKv":
        """Return the operator with the names in its text bound."""
        return dataclasses.replace(self, text=substitute(self.text))

    def _pairs(self) -> str:
        text = render(self.text)
        if not self.delimiters:
            groups = ", ".join(f"regexp_extract_all({text}, {quoted(self.pattern)}, {group})" for group in (1, 2))
            return f"list_transform(list_zip({groups}), lambda z: {{'k': trim(z[1]), 'v': trim(z[2])}})"
        pair, value = map(quoted, self.delimiters)
        parts = f"list_filter(string_split({text}, {pair}), lambda s: contains(s, {value}))"
        after = f"substr(s, instr(s, {value}) + {len(self.delimiters[1])})"
        return f"list_transform({parts}, lambda s: {{'k': trim(split_part(s, {value}, 1)), 'v': trim({after})}})"

    @staticmethod
    def _value(name: str, kind: str, pairs: str) -> str:
        found = ir.RenderedAggregate(f"(list_filter({pairs}, lambda q: q.k = {quoted(name)})[1].v)")
        function = _CONVERSIONS[kind]
        return render(ir.FunctionCall(function, (found,))) if function else found.sql


def install() -> None:
    """Teach the translator the operator."""
    add_operator("ParseKvOperator", _parse_kv)


def _parse_kv(node: Any) -> ir.Operator:
    text, keys, *clauses = children(node)
    named = []
    for declaration in find(keys, "RowSchemaColumnDeclaration"):
        name, kind = children(declaration)
        if kind.getText() not in _CONVERSIONS:
            raise unsupported(f"parse-kv to {kind.getText()[:50]}", position=position(kind))
        named.append((reader.find_names(name)[0], kind.getText()))
    given = dict(_property(each) for clause in clauses for each in find(clause, "QueryOperatorProperty"))
    pair, value, pattern = (given.pop(name, "") for name in ("pair_delimiter", "kv_delimiter", "regex"))
    if given or not (pattern or (pair and value)):
        raise unsupported(f"parse-kv with {next(iter(given), 'no delimiters')[:50]}", position=position(node))
    if pattern and (pair or value):
        raise semantic_error("parse-kv takes delimiters or a regex", position=position(node))
    if pattern and writer.capture_group_count(ir.Literal(pattern, "string")) != 2:  # noqa: PLR2004  key and value
        raise semantic_error("parse-kv: the regex must have two groups", position=position(node))
    return ParseKv(reader.lower_expr(text), tuple(named), () if pattern else (pair, value), pattern)


def _property(node: Any) -> tuple[str, str]:
    name, _, _ = node.getText().partition("=")
    literals = [child for child in children(node) if kind_of(reader.collapse(child)) == "StringLiteralExpression"]
    return name, str(reader.literal_string(reader.collapse(literals[0]))) if literals else ""
