"""Syntax tree of a workspace document: values with their positions, common to YAML and JSON."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

from shared.catalog.problems import MAX_PROBLEMS, DocumentError, DocumentPath, Problem, format_path

MAX_CHARACTERS: Final = 16 * 1024 * 1024
MAX_NODES: Final = 300_000
"""Maximum number of values; a document with 5,000 connections and 2,000 queries has about 95,000."""
MAX_DEPTH: Final = 40
_NO_TEXT: Final = "?"
"""Field name in an error about a mapping key that is not text; YAML marks such keys with a question mark."""
_KEY_RULE: Final = "keys must be text; put the key in quotes"
_BLOCK: Final = 65_536
TOO_MANY_ALIASES: Final = "aliases make the document too large or too deep"
_INDEXED: Final = 64
"""Number of entries above which a mapping gets an index, because many problems can be in the same mapping."""
MAX_DIGITS: Final = 4_300
"""Maximum digits of an integer, as in the bodies of other requests; longer ones take the interpreter much time."""
_INTEGER_LIMIT: Final = 10**MAX_DIGITS
SCALAR_PATTERNS: Final = {
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"),
    "float": re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
}
"""Text of the scalars of each type except ``str`` (YAML 1.2.2, section 10.3.2); those of JSON are a part of it.

Each pattern matches only the whole text, because the library for YAML calls ``match``.
"""


@dataclass(slots=True)
class Node:
    """Value in a YAML or JSON document, with its position.

    Attributes:
        tag: ``str``, ``null``, ``bool``, ``int`` or ``float`` for a scalar, ``map`` or ``seq`` for a container, else
            an unknown YAML tag.
        line: line of the first character, from 1; 0 if only the offset of the character is known.
        column: column of the first character, from 1. If ``line`` is 0, the offset of the first character in the
            document.
        text: text of a scalar.
        items: children of a sequence.
        entries: pairs of key and value of a mapping.
    """

    tag: str
    line: int
    column: int
    text: str | None = None
    items: "list[Node] | None" = None
    entries: "list[tuple[Node, Node]] | None" = None


def free_syntax_trees(nodes: list[Node]) -> None:
    """Free syntax trees node by node, because freeing a large tree in one call would block all other threads.

    Args:
        nodes: roots of the trees or of their parts. The function removes all elements of this list, and of all arrays
            and mappings in the trees.
    """
    while nodes:
        node = nodes.pop()
        if node.items:
            nodes.extend(node.items)
            node.items.clear()
        if node.entries:
            nodes.extend(chain.from_iterable(node.entries))
            node.entries.clear()


class LocatedValues:
    """Converter of a syntax tree to JSON values that finds the line and column of each value.

    Args:
        root: root of the syntax tree.
        source: file name in the error messages.
        text: text of the document, if the nodes of the tree have offsets.

    Attributes:
        problems: problems of values that JSON cannot represent: duplicate or non-text keys, unknown tags, texts that do
            not fit their tag, numbers that are infinite or too long.
    """

    def __init__(self, root: Node, source: str, text: str = "") -> None:
        self.problems: list[Problem] = []
        self._root = root
        self._source = source
        self._text = text
        self._visited = 0
        self._indexes: dict[int, Mapping[str | int | None, tuple[Node, Node]]] = {}

    def to_json_values(self) -> Any:
        """Convert the syntax tree to JSON values; an invalid value becomes null.

        Raises:
            DocumentError: if aliases make the tree too large or too deep, or at ``MAX_PROBLEMS`` problems.
        """
        return self._node_to_json_value(self._root, (), 0)

    def release(self) -> None:
        """Free the syntax tree; afterwards, no position can be found.

        Call this in a worker thread, because a large tree takes time.
        """
        self._indexes.clear()
        free_syntax_trees([self._root])

    def build_problem(self, path: DocumentPath, message: str, *, at_field_name: bool = False) -> Problem:
        """Build a problem at the position of a value, or of the closest parent if the value is missing.

        Args:
            path: keys and list indexes from the root of the document to the value.
            message: the violated rule.
            at_field_name: True for the position of the field's name; False for the position of its value.
        """
        return self._build_problem_at(
            self._find_deepest_existing_node(path, at_field_name=at_field_name), path, message
        )

    def drop_missing_path_steps(self, path: DocumentPath, *, keep_missing_field: bool = True) -> DocumentPath:
        """Remove the steps of a path that the document's text does not contain, such as pydantic's tags of unions.

        Args:
            path: keys and list indexes from the root of the document to the value.
            keep_missing_field: True to keep the last step if it names a field that the document lacks.
        """
        node, steps = self._root, []
        for index, step in enumerate(path):
            entry = self._find_key_and_value_node(node, step)
            if entry is not None:
                node = entry[1]
            elif not keep_missing_field or index < len(path) - 1 or node.entries is None:
                continue
            steps.append(step)
        return tuple(steps)

    def _node_to_json_value(self, node: Node, path: DocumentPath, depth: int) -> Any:
        self._visited += 1
        if depth > MAX_DEPTH or self._visited > MAX_NODES:
            raise DocumentError([self._build_problem_at(node, path[:1], TOO_MANY_ALIASES)])
        if node.entries is not None and node.tag == "map":
            return self._entries_to_json_object(node.entries, path, depth)
        if node.items is not None and node.tag == "seq":
            return [self._node_to_json_value(item, (*path, index), depth + 1) for index, item in enumerate(node.items)]
        read = None if node.text is None else _SCALARS.get(node.tag)
        try:
            if read is not None and node.text is not None:
                _check_scalar_text_fits_tag(node.tag, node.text)
                return read(node.text)
            rule = f"the YAML tag {node.tag} is not supported"
        except ValueError as error:
            rule = str(error)
        self._add_problem(node, path, rule)
        return None

    def _add_problem(self, node: Node, path: DocumentPath, message: str) -> None:
        self.problems.append(self._build_problem_at(node, path, message))
        if len(self.problems) >= MAX_PROBLEMS:
            raise DocumentError(self.problems)

    def _entries_to_json_object(
        self, entries: list[tuple[Node, Node]], path: DocumentPath, depth: int
    ) -> dict[str, Any]:
        read: dict[str, Any] = {}
        first: dict[str, Node] = {}
        for key, value in entries:
            if key.tag != "str" or key.text is None:
                self._add_problem(key, path or (key.text or _NO_TEXT,), _KEY_RULE)
            elif key.text in read:
                message = f"repeats a key of line {self._get_line_and_column_of_node(first[key.text])[0]}"
                self._add_problem(key, (*path, key.text), message)
            else:
                first[key.text] = key
                read[key.text] = self._node_to_json_value(value, (*path, key.text), depth + 1)
        return read

    def _find_deepest_existing_node(self, path: DocumentPath, *, at_field_name: bool) -> Node:
        """Return the node at which an error about a path is reported; missing steps at the path's end are ignored.

        Errors about a list item are reported at the item. Errors about a field are reported at the field's value if the
        value is a text, number, boolean or null and ``at_field_name`` is False, else at the field's name.
        """
        node = place = self._root
        for step in path:
            entry = self._find_key_and_value_node(node, step)
            if entry is not None:
                key, node = entry
                place = node if node.text is not None and not at_field_name else key
        return place

    def _find_key_and_value_node(self, node: Node, step: str | int) -> tuple[Node, Node] | None:
        """Return the key node and the value node of the next step of a path; None if the node lacks this step.

        For a list item, the item is the key node and the value node.
        """
        if node.items is not None and isinstance(step, int) and step < len(node.items):
            return node.items[step], node.items[step]
        if node.entries is None or len(node.entries) <= _INDEXED:
            return next(((key, value) for key, value in node.entries or () if key.text == step), None)
        if id(node) not in self._indexes:
            # Of repeated names, the first one has the value.
            self._indexes[id(node)] = {key.text: (key, value) for key, value in reversed(node.entries)}
        return self._indexes[id(node)].get(step)

    def _build_problem_at(self, node: Node, path: DocumentPath, message: str) -> Problem:
        return Problem(self._source, *self._get_line_and_column_of_node(node), format_path(path), message)

    def _get_line_and_column_of_node(self, node: Node) -> tuple[int, int]:
        return (node.line, node.column) if node.line else self._line_index.get_line_and_column(node.column)

    @cached_property
    def _line_index(self) -> "LineIndex":
        return LineIndex(self._text)


class LineIndex:
    """Index of the lines of a text that finds the line and column of many positions quickly."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks = [(1, -1)]
        for end in range(_BLOCK, len(text), _BLOCK):
            line, newline = self._blocks[-1]
            line += text.count("\n", end - _BLOCK, end)
            self._blocks.append((line, max(newline, text.rfind("\n", end - _BLOCK, end))))

    def get_line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and the column, both counted from 1, of the character at an offset of the text."""
        line, newline = self._blocks[min(offset // _BLOCK, len(self._blocks) - 1)]
        start = min(offset // _BLOCK, len(self._blocks) - 1) * _BLOCK
        newline = max(newline, self._text.rfind("\n", start, offset))
        return line + self._text.count("\n", start, offset), offset - newline


def _check_scalar_text_fits_tag(tag: str, text: str) -> None:
    pattern = SCALAR_PATTERNS.get(tag)
    if pattern is not None and pattern.match(text) is None:
        raise ValueError(f"the text does not fit the YAML tag {tag}")


def _parse_yaml_integer(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    number = int(text, base) if len(text.lstrip("+-")) <= MAX_DIGITS else _INTEGER_LIMIT
    if abs(number) >= _INTEGER_LIMIT:
        raise ValueError(f"an integer must have at most {MAX_DIGITS} digits")
    return number


def _parse_yaml_number(text: str) -> float:
    digits = text.lower()
    number = math.inf if digits.endswith(("inf", "nan")) else float(digits)
    if not math.isfinite(number):
        raise ValueError("a number must be finite")
    return number


_SCALARS: Final[dict[str, Callable[[str], Any]]] = {
    "str": str,
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": _parse_yaml_integer,
    "float": _parse_yaml_number,
}
