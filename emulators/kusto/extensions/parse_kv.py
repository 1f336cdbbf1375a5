"""Query operator ``parse-kv``, which extracts columns from a string of keys and values, such as ``a=1,b=2``.

If the operator defines quotes, or lacks delimiters, a Python function parses the string of each row. Otherwise SQL
parses it.
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.pipeline import ExpressionReplacer, PipelineOperator, add_operator
from emulators.kusto.extensions.registry import render_text_argument
from emulators.kusto.extensions.sql import KustoType, Sql, quote_text, render_expression
from emulators.kusto.extensions.tree import (
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    list_nodes_by_rule,
)
from emulators.kusto.extensions.window_plan import choose_unused_prefix
from emulators.kusto.python_functions import FunctionFailure, PythonFunction
from emulators.kusto.stop_events import EXECUTION

MAX_CHARACTERS = 65_536
"""Maximum length of a text that a Python function parses."""
_WORD = re.compile(r"\w++")


@dataclass(frozen=True, slots=True)
class KeyValueReader:
    """Reader that extracts keys and their values from one string.

    Attributes:
        text: the string.
        keys: keys to extract.
        pair: delimiter between pairs; if empty, every character other than letters and digits is a delimiter.
        value: delimiter between key and value.
        quotes: opening and closing quote of each kind of quotes.
        escapes: characters that escape the next character in quotes.
        greedy: True if an unquoted value ends before the next key, False if it ends at the next delimiter.
    """

    text: str
    keys: Sequence[str]
    pair: str
    value: str
    quotes: Mapping[str, str]
    escapes: str
    greedy: bool

    def read_first_value_of_each_key(self) -> dict[str, str]:
        """Read the string and return the first value of each key."""
        found: dict[str, str] = {}
        for key, value in (
            self._iterate_delimited_keys_and_values() if self.pair else self._iterate_undelimited_keys_and_values()
        ):
            if key in self.keys and key not in found:
                found[key] = value
        return found

    def _iterate_delimited_keys_and_values(self) -> Iterator[tuple[str, str]]:
        delimiter = _compile_alternatives([self.value, self.pair])
        end_of_value = _compile_alternatives(
            [f"{self.pair}{key}{self.value}" for key in self.keys] if self.greedy else [self.pair]
        )
        read_value = self._read_greedy_value_and_end_index if self.greedy else self._read_key_or_value_and_end_index
        position = 0
        while position < len(self.text):
            key, end = self._read_key_or_value_and_end_index(position, delimiter)
            if not self.text.startswith(self.value, end):
                position = max(end + len(self.pair), position + 1)
                continue
            start = end + len(self.value)
            value, end = read_value(start, end_of_value)
            yield key, value
            position = max(end + len(self.pair), start)

    def _read_key_or_value_and_end_index(self, position: int, delimiter: re.Pattern[str]) -> tuple[str, int]:
        """Read a key or a value at a position; return it and the index of the delimiter after it."""
        start = position
        while start < len(self.text) and self.text[start].isspace() and not delimiter.match(self.text, start):
            start += 1
        quoted = self._find_quoted_text_and_end_index(start)
        end = start if quoted is None else quoted[1]
        limit = self._find_match_start_or_text_end(delimiter, end)
        return (self.text[start:limit].strip() if quoted is None else quoted[0]), limit

    def _find_match_start_or_text_end(self, pattern: re.Pattern[str], position: int) -> int:
        """Return the index of the first match of a pattern from a position on; the text's length without a match."""
        match = pattern.search(self.text, position)
        return len(self.text) if match is None else match.start()

    def _find_quoted_text_and_end_index(self, position: int) -> tuple[str, int] | None:
        """Return the quoted text at a position and the index after its closing quote; None if no quote is there."""
        close = self.quotes.get(self.text[position : position + 1])
        if close is None:
            return None
        parts = []
        index = position + 1
        while index < len(self.text) and self.text[index] != close:
            index += self.text[index] in self.escapes
            parts.append(self.text[index : index + 1])
            index += 1
        return "".join(parts), index + 1

    def _read_greedy_value_and_end_index(self, start: int, next_key: re.Pattern[str]) -> tuple[str, int]:
        quoted = self._find_quoted_text_and_end_index(start)
        if quoted is not None:
            return quoted
        end = self._find_match_start_or_text_end(next_key, start)
        return self.text[start:end].strip(), end

    def _iterate_undelimited_keys_and_values(self) -> Iterator[tuple[str, str]]:
        position = 0
        key: str | None = None
        while position < len(self.text):
            quoted = self._find_quoted_text_and_end_index(position)
            word = _WORD.match(self.text, position)
            if quoted is None and word is None:
                position += 1
                continue
            part, position = quoted if quoted is not None else (word[0], word.end()) if word else ("", position)
            if key is not None:
                yield key, part
                key = None
            elif part in self.keys:
                key = part


def _compile_alternatives(texts: Sequence[str]) -> re.Pattern[str]:
    """Compile a regular expression that matches any of the texts literally.

    A search with it ends at the first occurrence of any text. Separate searches would be slower, because the search for
    a missing text reads to the end.
    """
    return re.compile("|".join(map(re.escape, texts)))


def read_key_values_as_json(text: str | None, options_json: str) -> str | None:
    """Return the first value of each key in a text as JSON.

    Args:
        text: the text.
        options_json: attributes of `KeyValueReader` as JSON.

    Raises:
        FunctionFailure: the text has more than ``MAX_CHARACTERS`` characters.
    """
    if text is None:
        return None
    if len(text) > MAX_CHARACTERS:
        raise FunctionFailure(
            "EMB0001",
            f"parse-kv with quotes, with greedy or without delimiters, of a text of more than {MAX_CHARACTERS} "
            "characters is not supported by the embedded query engine",
        )
    parsed: dict[str, Any] = orjson.loads(options_json)
    return orjson.dumps(KeyValueReader(text=text, **parsed).read_first_value_of_each_key()).decode()


SUPPORTED: tuple[str, ...] = ("parse-kv",)

functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_key_values", read_key_values_as_json, ("VARCHAR", "VARCHAR"), "VARCHAR"),
)

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
    """Query operator ``parse-kv``, which extracts columns from a string of keys and values.

    Attributes:
        text: expression of the string to parse.
        keys: name and Kusto type of each key to extract; each key becomes a column.
        delimiters: delimiter between pairs, and delimiter between key and value; empty if ``pattern`` is used.
        pattern: regular expression with two groups, for key and value; alternative to ``delimiters``.
        options: attributes of `KeyValueReader` as JSON, for quotes and for a string without delimiters; else empty.
    """

    text: ir.Expr
    keys: tuple[tuple[str, str], ...]
    delimiters: tuple[str, ...]
    pattern: str = ""
    options: str = ""

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that adds one column for each key, with the first value if a key is repeated."""
        pairs = f"{choose_unused_prefix(self.infer_output_columns(input_columns))}p"
        names = dict(self.keys)
        chosen = ", ".join(
            f"{self._render_value(name, names[name], pairs)} AS {translate.quote_ident(name)}"
            if name in names
            else translate.quote_ident(name)
            for name in self.infer_output_columns(input_columns)
        )
        return f"SELECT {chosen} FROM (SELECT *, {self._render_key_value_pairs()} AS {pairs} FROM {input_sql})"  # noqa: S608  quoted, rendered

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the input, and one column for each key."""
        return [*input_columns, *(name for name, _ in self.keys if name not in input_columns)]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "ParseKv":
        """Return a copy of the operator with ``substitute`` applied to the expression of the string."""
        return dataclasses.replace(self, text=substitute(self.text))

    def _render_key_value_pairs(self) -> Sql:
        text = render_text_argument(self.text)
        if self.options:
            parsed = f"kql_key_values({EXECUTION}, {text}, {quote_text(self.options)})"
            found = f"from_json({parsed}, '\"MAP(VARCHAR,VARCHAR)\"')"
            return f"list_transform(map_entries({found}), lambda z: {{'k': z.key, 'v': z.value}})"
        if not self.delimiters:
            groups = ", ".join(f"regexp_extract_all({text}, {quote_text(self.pattern)}, {group})" for group in (1, 2))
            return f"list_transform(list_zip({groups}), lambda z: {{'k': trim(z[1]), 'v': trim(z[2])}})"
        pair, value = map(quote_text, self.delimiters)
        parts = f"list_filter(string_split({text}, {pair}), lambda s: contains(s, {value}))"
        after = f"substr(s, instr(s, {value}) + {len(self.delimiters[1])})"
        return f"list_transform({parts}, lambda s: {{'k': trim(split_part(s, {value}, 1)), 'v': trim({after})}})"

    @staticmethod
    def _render_value(key: str, kusto_type: KustoType, pairs: Sql) -> Sql:
        found = ir.RenderedAggregate(f"(list_filter({pairs}, lambda q: q.k = {quote_text(key)})[1].v)")
        function = _CONVERSIONS[kusto_type]
        return render_expression(ir.FunctionCall(function, (found,))) if function else found.sql


def install_into_translator() -> None:
    """Add the operator ``parse-kv`` to the KQL translator library."""
    add_operator("ParseKvOperator", _parse_parse_kv)


def _parse_parse_kv(node: ParseNode) -> ir.Operator:
    text, keys, *clauses = get_child_rules(node)
    named = []
    for declaration in list_nodes_by_rule(keys, "RowSchemaColumnDeclaration"):
        name, kind = get_child_rules(declaration)
        if kind.getText() not in _CONVERSIONS:
            raise unsupported_error(
                f"parse-kv to a column of type {kind.getText()[:50]}", position=get_line_and_column(kind)
            )
        named.append((reader.find_names(name)[0], kind.getText()))
    listed = [
        _read_property_name_and_value(each)
        for clause in clauses
        for each in list_nodes_by_rule(clause, "QueryOperatorProperty")
    ]
    properties = dict(listed)
    pair, value, pattern = (properties.get(name, "") for name in ("pair_delimiter", "kv_delimiter", "regex"))
    unknown = properties.keys() - {"pair_delimiter", "kv_delimiter", "regex", "quote", "escape", "greedy"}
    if unknown or bool(pair) != bool(value) or (pattern and len(listed) > 1) or ("greedy" in properties and not pair):
        raise semantic_error(
            "parse-kv accepts either regex alone, or both delimiters with the options quote, escape and greedy",
            position=get_line_and_column(node),
        )
    if not pattern and (not pair or len(listed) > 2):  # noqa: PLR2004  two delimiters
        options = _build_reader_options_json(listed, [name for name, _ in named])
        return ParseKv(reader.lower_expr(text), tuple(named), (), options=options)
    if pattern and writer.capture_group_count(ir.Literal(pattern, "string")) != 2:  # noqa: PLR2004  key and value
        raise semantic_error("parse-kv: the regex must have two groups", position=get_line_and_column(node))
    return ParseKv(reader.lower_expr(text), tuple(named), () if pattern else (pair, value), pattern)


def _build_reader_options_json(properties: Sequence[tuple[str, str]], keys: Sequence[str]) -> str:
    """Build the options of `KeyValueReader` as JSON.

    Raises:
        QueryError: a quote or escape has too many characters.
    """
    quotes, escapes = {}, ""
    for name, value in properties:
        if name == "quote":
            if len(value) not in (1, 2):
                raise semantic_error("parse-kv: quote must have one or two characters")
            quotes[value[0]] = value[-1]
        elif name == "escape":
            if len(value) != 1:
                raise semantic_error("parse-kv: escape must have one character")
            escapes += value
    given = dict(properties)
    return json.dumps(
        {
            "keys": list(keys),
            "pair": given.get("pair_delimiter", ""),
            "value": given.get("kv_delimiter", ""),
            "quotes": quotes,
            "escapes": escapes,
            "greedy": given.get("greedy", "") == "true",
        }
    )


def _read_property_name_and_value(node: ParseNode) -> tuple[str, str]:
    name, _, text = node.getText().partition("=")
    literals = [
        child for child in get_child_rules(node) if get_rule_name(reader.collapse(child)) == "StringLiteralExpression"
    ]
    return name, str(reader.literal_string(reader.collapse(literals[0]))) if literals else text
