"""Parsers of YAML 1.2 and JSON that limit the size of a text and record the position of every value.

The syntax tree of a YAML text is built from parser events, so that a text that exceeds a limit is rejected before the
whole tree exists. The JSON parser of the standard library holds the interpreter lock for a whole array, so a text of
several megabytes would delay all other requests. The JSON parser here is written in Python; it uses the library only
for strings.

This module is separate from ``document``, because its parsers accept any text, not only workspace documents.
"""

import re
from collections.abc import Callable
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed omits it
from typing import Any, Final

import yaml
from yaml._yaml import Mark as CMark

from shared.catalog.document_nodes import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_NODES,
    SCALAR_PATTERNS,
    TOO_MANY_ALIASES,
    LineIndex,
    Node,
    free_syntax_trees,
)
from shared.catalog.problems import DocumentError, Problem

MAX_ALIASES: Final = 10_000
_TAG: Final = "tag:yaml.org,2002:"


class CoreSchema:
    """YAML 1.2 rules for the types of scalars: ``no`` and dates are texts, and ``<<`` is an ordinary key."""

    yaml_implicit_resolvers: Final[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


for _kind, _first in (
    ("bool", "tTfF"),
    ("int", "-+0123456789"),
    ("float", "-+.0123456789"),
    ("null", ["~", "n", "N", ""]),
):
    for _character in _first:
        _resolver = (_TAG + _kind, SCALAR_PATTERNS[_kind])
        CoreSchema.yaml_implicit_resolvers.setdefault(_character, []).append(_resolver)


def parse_yaml(text: str, source_name: str) -> Node:
    """Parse a YAML text with one document and return the root of its syntax tree.

    Args:
        text: YAML text.
        source_name: file name in the error messages.

    Raises:
        DocumentError: if the text is not YAML, is empty, has several documents, or exceeds a limit.
    """
    if len(text) > MAX_CHARACTERS:
        raise _build_error_at_mark(source_name, None, f"the document is longer than {MAX_CHARACTERS} characters")
    unfinished: list[Node] = []
    try:
        root = _Composer(text, source_name, unfinished).compose_document()
    except yaml.MarkedYAMLError as error:
        raise _build_error_at_mark(
            source_name, error.problem_mark or error.context_mark, _describe_yaml_error(error)
        ) from None
    except yaml.YAMLError as error:
        raise _build_invalid_character_error(text, source_name, error) from None
    except UnicodeEncodeError as error:
        raise _build_error_at_index(
            text, source_name, error.start, "the text has an unpaired surrogate, which is not a character"
        ) from None
    finally:
        free_syntax_trees(unfinished)
    if root is None:
        raise _build_error_at_mark(source_name, None, "the document is empty")
    return root


class _Composer:
    """Builder of the syntax tree of one text from the events of the YAML parser.

    Args:
        text: YAML text.
        source: file name in the error messages.
        unfinished: receives the arrays and mappings whose end was not parsed yet, from the outermost to the innermost;
            after an error, the caller frees them.
    """

    def __init__(self, text: str, source: str, unfinished: list[Node]) -> None:
        self._next: Callable[[], Any] = yaml.CSafeLoader(text).get_event
        self._source = source
        self._anchors: dict[str, Node] = {}
        self._unfinished = unfinished
        self._count = 0
        self._aliases = 0
        self._expanded = 0
        """Number of values so far, if each alias is replaced with the value of its anchor."""
        self._sizes: dict[int, int] = {}
        """Number of expanded values in each complete value that has an anchor, by the id of its node."""
        self._field = ""
        """Top-level property of the document that is being parsed."""

    def compose_document(self) -> Node | None:
        """Return the root of the only document; None if the text has no document."""
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        self._unfinished.append(self._compose_node(self._next(), 0))
        self._next()
        following = self._next()
        if not isinstance(following, yaml.StreamEndEvent):
            raise self._build_error(following, "expected a single document, but found another document")
        return self._unfinished.pop()

    def _compose_node(self, event: Any, depth: int) -> Node:
        self._count += 1
        if self._count > MAX_NODES:
            raise self._build_error(event, f"the document has more than {MAX_NODES} values")
        # There is an event for each value, and `type` is faster than `isinstance`; the classes have no subclasses.
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._get_node_of_alias(event)
        self._expanded += 1
        if kind is yaml.ScalarEvent:
            mark = event.start_mark
            node = Node(_resolve_scalar_tag(event), mark.line + 1, mark.column + 1, event.value)
            if event.anchor is not None:
                self._sizes[id(node)] = 1
                self._anchors[event.anchor] = node
            return node
        if depth >= MAX_DEPTH:
            raise self._build_error(event, f"the document is nested deeper than {MAX_DEPTH} levels")
        start = self._expanded - 1
        node = self._compose_container(event, depth + 1)
        if event.anchor is not None:
            self._sizes[id(node)] = self._expanded - start
        return node

    def _compose_container(self, event: Any, depth: int) -> Node:
        mark = event.start_mark
        if type(event) is yaml.SequenceStartEvent:
            items: list[Node] = []
            node = Node(_resolve_container_tag(event, "seq"), mark.line + 1, mark.column + 1, items=items)
            self._unfinished.append(node)
            self._add_anchor(event, node)
            while type(following := self._next()) is not yaml.SequenceEndEvent:
                items.append(self._compose_node(following, depth))
            return self._unfinished.pop()
        entries: list[tuple[Node, Node]] = []
        node = Node(_resolve_container_tag(event, "map"), mark.line + 1, mark.column + 1, entries=entries)
        self._unfinished.append(node)
        self._add_anchor(event, node)
        while type(following := self._next()) is not yaml.MappingEndEvent:
            key = self._compose_node(following, depth)
            if depth == 1:
                self._field = key.text or ""
            entries.append((key, self._compose_node(self._next(), depth)))
        return self._unfinished.pop()

    def _add_anchor(self, event: Any, node: Node) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _get_node_of_alias(self, event: Any) -> Node:
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            raise self._build_error(event, f"the document has more than {MAX_ALIASES} aliases")
        node = self._anchors.get(event.anchor)
        if node is None:
            raise self._build_error(event, f"found undefined alias {event.anchor!r}")
        # A value that contains itself is not complete yet, so its size is unknown.
        self._expanded += self._sizes.get(id(node), MAX_NODES)
        if self._expanded > MAX_NODES:
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            raise DocumentError([Problem(self._source, line, column, self._field, TOO_MANY_ALIASES)])
        return node

    def _build_error(self, event: Any, message: str) -> DocumentError:
        return _build_error_at_mark(self._source, event.start_mark, message)


def _resolve_scalar_tag(event: Any) -> str:
    if event.tag is not None and event.tag != "!":
        return str(event.tag).removeprefix(_TAG)
    if event.tag is None and event.implicit[0]:
        value = event.value
        for tag, pattern in CoreSchema.yaml_implicit_resolvers.get(value[:1], ()):
            if pattern.match(value):
                return tag.removeprefix(_TAG)
    return "str"


def _resolve_container_tag(event: Any, default: str) -> str:
    return default if event.tag in (None, "!") else str(event.tag).removeprefix(_TAG)


def _describe_yaml_error(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part) or "the text is not YAML"


def _build_error_at_mark(source_name: str, mark: yaml.Mark | CMark | None, message: str) -> DocumentError:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return DocumentError([Problem(source_name, line, column, "", message)])


def _build_invalid_character_error(text: str, source_name: str, error: yaml.YAMLError) -> DocumentError:
    found = next((index for index, char in enumerate(text) if not _is_printable_in_yaml(char)), 0)
    reason = getattr(error, "reason", None) or "the text is not YAML"
    return _build_error_at_index(text, source_name, found, str(reason))


def _is_printable_in_yaml(char: str) -> bool:
    return char in "\t\n\r\x85" or "\x20" <= char <= "\x7e" or char >= "\xa0"


def _build_error_at_index(text: str, source_name: str, index: int, message: str) -> DocumentError:
    return DocumentError([Problem(source_name, *LineIndex(text).get_line_and_column(index), "", message)])


_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_SCALAR: Final = r"""
      "([^"\\\x00-\x1f]*+)"                                       # a string without escapes
    | (-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)   # a number
    | (true|false|null)                                           # a constant
"""
_VALUE: Final = re.compile(rf"{_SCALAR}|([{{\[])", re.VERBOSE)
# Most properties of objects have this form, so that one match is enough for them.
_MEMBER: Final = re.compile(
    rf"""
    "([^"\\\x00-\x1f]*+)"[ \t\n\r]*+:[ \t\n\r]*+(?:{_SCALAR})[ \t\n\r]*+([,}}])[ \t\n\r]*+
    """,
    re.VERBOSE,
)
_AFTER_KEY: Final = re.compile(r"[ \t\n\r]*+:[ \t\n\r]*+")
_AFTER_ITEM: Final = re.compile(r"[ \t\n\r]*+([,\]}])[ \t\n\r]*+")


def parse_json_document(text: str, source_name: str) -> Node:
    """Parse a JSON text; return the root of its syntax tree, whose nodes have offsets instead of lines and columns.

    Args:
        text: a single JSON value.
        source_name: file name in the error messages.

    Raises:
        DocumentError: if the text is not JSON or exceeds a limit.
    """
    parser = _JsonParser(text, source_name)
    if len(text) > MAX_CHARACTERS:
        raise parser.build_error(0, f"the document is longer than {MAX_CHARACTERS} characters")
    try:
        return parser.parse()
    finally:
        parser.release_unfinished_nodes()


type EndOffset = int
"""Offset of the first character after a parsed value."""


class _JsonParser:
    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._unfinished: list[Node] = []
        """Arrays and objects whose end was not parsed yet, from the outermost to the innermost."""
        self._count = 0

    def release_unfinished_nodes(self) -> None:
        """Free the arrays and objects that were not complete when the parser found an error."""
        free_syntax_trees(self._unfinished)

    def parse(self) -> Node:
        start = self._find_position_after_whitespace(0)
        if start == len(self._text):
            raise self.build_error(0, "the document is empty")
        root, end = self._parse_value(start, 0)
        self._unfinished.append(root)
        end = self._find_position_after_whitespace(end)
        if end < len(self._text):
            raise self.build_error(end, "not JSON: text follows the value")
        return self._unfinished.pop()

    def build_error(self, position: int, message: str) -> DocumentError:
        return DocumentError([Problem(self._source, *LineIndex(self._text).get_line_and_column(position), "", message)])

    def _find_position_after_whitespace(self, position: int) -> int:
        found = _SPACE.match(self._text, position)
        return found.end() if found else position

    def _count_value_and_check_limit(self, position: int) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            raise self.build_error(position, f"the document has more than {MAX_NODES} values")

    def _parse_value(self, position: int, depth: int) -> tuple[Node, EndOffset]:
        self._count_value_and_check_limit(position)
        found = _VALUE.match(self._text, position)
        if found is None:
            return self._parse_string(position)
        string, number, constant, opening = found.groups()
        if opening is None:
            return self._build_scalar_node(position, string, number, constant), found.end()
        if depth >= MAX_DEPTH:
            raise self.build_error(position, f"the document is nested deeper than {MAX_DEPTH} levels")
        return self._parse_object(position, depth + 1) if opening == "{" else self._parse_array(position, depth + 1)

    def _build_scalar_node(self, position: int, string: str | None, number: str | None, constant: str | None) -> Node:
        if string is not None:
            return Node("str", 0, position, string)
        if number is not None:
            return Node("int" if number.lstrip("-").isdigit() else "float", 0, position, number)
        return Node("null" if constant == "null" else "bool", 0, position, constant)

    def _parse_string(self, position: int) -> tuple[Node, EndOffset]:
        """Parse a JSON string, which can contain escape sequences; return its node and the position after it."""
        if not self._text.startswith('"', position):
            raise self.build_error(position, "not JSON: a value is expected")
        try:
            text, end = scanstring(self._text, position + 1, True)
            text.encode()
        except JSONDecodeError as error:
            raise self.build_error(error.pos, f"not JSON: {error.msg}") from None
        except UnicodeEncodeError:
            raise self.build_error(position, "a string has an unpaired surrogate, which is not a character") from None
        return Node("str", 0, position, text), end

    def _parse_array(self, position: int, depth: int) -> tuple[Node, EndOffset]:
        items: list[Node] = []
        self._unfinished.append(Node("seq", 0, position, items=items))
        place = self._find_position_after_whitespace(position + 1)
        if self._text.startswith("]", place):
            return self._unfinished.pop(), place + 1
        while True:
            item, place = self._parse_value(place, depth)
            items.append(item)
            place, is_last = self._parse_comma_or_closing_bracket(place, "]")
            if is_last:
                return self._unfinished.pop(), place

    def _parse_object(self, position: int, depth: int) -> tuple[Node, EndOffset]:
        entries: list[tuple[Node, Node]] = []
        self._unfinished.append(Node("map", 0, position, entries=entries))
        place = self._find_position_after_whitespace(position + 1)
        if self._text.startswith("}", place):
            return self._unfinished.pop(), place + 1
        while True:
            if found := _MEMBER.match(self._text, place):
                entries.append(self._build_key_and_value_node(found))
                place = found.end()
                if found[5] == "}":
                    return self._unfinished.pop(), place
                continue
            if not self._text.startswith('"', place):
                raise self.build_error(place, "not JSON: a name in double quotes is expected")
            key, place = self._parse_value(place, depth)
            colon = _AFTER_KEY.match(self._text, place)
            if colon is None:
                raise self.build_error(self._find_position_after_whitespace(place), "not JSON: a colon is expected")
            value, place = self._parse_value(colon.end(), depth)
            entries.append((key, value))
            place, is_last = self._parse_comma_or_closing_bracket(place, "}")
            if is_last:
                return self._unfinished.pop(), place

    def _build_key_and_value_node(self, match: re.Match[str]) -> tuple[Node, Node]:
        self._count_value_and_check_limit(match.start())
        name, string, number, constant, _ = match.groups()
        start = match.start(2) - 1 if string is not None else max(match.start(3), match.start(4))
        key = Node("str", 0, match.start(), name)
        return key, self._build_scalar_node(start, string, number, constant)

    def _parse_comma_or_closing_bracket(self, position: int, closing_bracket: str) -> tuple[EndOffset, bool]:
        """Read a comma or a closing bracket; return the offset after it, and True if it was a closing bracket."""
        found = _AFTER_ITEM.match(self._text, position)
        if found is None or found[1] not in (",", closing_bracket):
            raise self.build_error(
                self._find_position_after_whitespace(position), f"not JSON: a comma or {closing_bracket} is expected"
            )
        return found.end(), found[1] == closing_bracket
