"""JSON parser that keeps the position of every value; it has the same size limits as the YAML parser.

The parser of the standard library holds the interpreter lock for a whole array, so a text of several megabytes would
delay all other requests. This parser is written in Python; it uses the library only for strings.

This module is separate from ``document`` because it parses any JSON text, not only workspace documents.
"""

import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed omits it
from typing import Final

from shared.catalog.document_nodes import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES, LineIndex, Node
from shared.catalog.problems import DocumentError, Problem

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


def parse_json_document(text: str, source: str) -> Node:
    """Parse a JSON text; return the root of its syntax tree, whose nodes have character offsets.

    Args:
        text: a single JSON value.
        source: file name in the error messages.

    Raises:
        DocumentError: if the text is not JSON or exceeds a limit.
    """
    parser = _Parser(text, source)
    if len(text) > MAX_CHARACTERS:
        raise parser.build_error(0, f"the document is longer than {MAX_CHARACTERS} characters")
    return parser.parse()


class _Parser:
    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._count = 0

    def parse(self) -> Node:
        start = self._skip_space(0)
        if start == len(self._text):
            raise self.build_error(0, "the document is empty")
        root, end = self._parse_value(start, 0)
        end = self._skip_space(end)
        if end < len(self._text):
            raise self.build_error(end, "not JSON: text follows the value")
        return root

    def build_error(self, at: int, message: str) -> DocumentError:
        return DocumentError([Problem(self._source, *LineIndex(self._text).locate(at), "", message)])

    def _skip_space(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _count_value(self, at: int) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            raise self.build_error(at, f"the document has more than {MAX_NODES} values")

    def _parse_value(self, at: int, depth: int) -> tuple[Node, int]:
        self._count_value(at)
        found = _VALUE.match(self._text, at)
        if found is None:
            return self._parse_string(at)
        string, number, constant, opening = found.groups()
        if opening is None:
            return self._build_scalar(at, string, number, constant), found.end()
        if depth >= MAX_DEPTH:
            raise self.build_error(at, f"the document is nested deeper than {MAX_DEPTH} levels")
        return self._parse_object(at, depth + 1) if opening == "{" else self._parse_array(at, depth + 1)

    def _build_scalar(self, at: int, string: str | None, number: str | None, constant: str | None) -> Node:
        if string is not None:
            return Node("str", 0, at, string)
        if number is not None:
            return Node("int" if number.lstrip("-").isdigit() else "float", 0, at, number)
        return Node("null" if constant == "null" else "bool", 0, at, constant)

    def _parse_string(self, at: int) -> tuple[Node, int]:
        """Parse a JSON string that may contain escape sequences."""
        if not self._text.startswith('"', at):
            raise self.build_error(at, "not JSON: a value is expected")
        try:
            text, end = scanstring(self._text, at + 1, True)
            text.encode()
        except JSONDecodeError as error:
            raise self.build_error(error.pos, f"not JSON: {error.msg}") from None
        except UnicodeEncodeError:
            raise self.build_error(at, "a string has an unpaired surrogate, which is not a character") from None
        return Node("str", 0, at, text), end

    def _parse_array(self, at: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        node = Node("seq", 0, at, items=items)
        place = self._skip_space(at + 1)
        if self._text.startswith("]", place):
            return node, place + 1
        while True:
            item, place = self._parse_value(place, depth)
            items.append(item)
            place, is_last = self._parse_separator(place, "]")
            if is_last:
                return node, place

    def _parse_object(self, at: int, depth: int) -> tuple[Node, int]:
        entries: list[tuple[Node, Node]] = []
        node = Node("map", 0, at, entries=entries)
        place = self._skip_space(at + 1)
        if self._text.startswith("}", place):
            return node, place + 1
        while True:
            if found := _MEMBER.match(self._text, place):
                entries.append(self._build_property(found))
                place = found.end()
                if found[5] == "}":
                    return node, place
                continue
            if not self._text.startswith('"', place):
                raise self.build_error(place, "not JSON: a name in double quotes is expected")
            key, place = self._parse_value(place, depth)
            colon = _AFTER_KEY.match(self._text, place)
            if colon is None:
                raise self.build_error(self._skip_space(place), "not JSON: a colon is expected")
            value, place = self._parse_value(colon.end(), depth)
            entries.append((key, value))
            place, is_last = self._parse_separator(place, "}")
            if is_last:
                return node, place

    def _build_property(self, found: re.Match[str]) -> tuple[Node, Node]:
        self._count_value(found.start())
        name, string, number, constant, _ = found.groups()
        start = found.start(2) - 1 if string is not None else max(found.start(3), found.start(4))
        key = Node("str", 0, found.start(), name)
        return key, self._build_scalar(start, string, number, constant)

    def _parse_separator(self, at: int, closing: str) -> tuple[int, bool]:
        """Read a comma or a closing bracket; return the position after it, and True if it was a closing bracket."""
        found = _AFTER_ITEM.match(self._text, at)
        if found is None or found[1] not in (",", closing):
            raise self.build_error(self._skip_space(at), f"not JSON: a comma or {closing} is expected")
        return found.end(), found[1] == closing
