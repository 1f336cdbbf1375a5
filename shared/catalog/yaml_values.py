"""The values of a YAML tree as JSON values, and where in the text each one stands."""

import math
from collections.abc import Callable
from typing import Any, Final

import yaml

from shared.catalog.problems import DocumentError, Path, Problem, format_path
from shared.catalog.yaml_tree import MAX_DEPTH, MAX_NODES, TAG

SAFE_INTEGER: Final = 2**53 - 1
"""Integers beyond it have no exact JSON number (RFC 8785 appendix D)."""


class LocatedValues:
    """Reads the values of a tree and finds the place of each path again.

    Args:
        root: from :func:`shared.catalog.yaml_tree.parse_yaml`.
        source: name of the file, for the problems.

    Attributes:
        problems: what is not JSON: repeated or non-text keys, unknown tags, numbers without an exact JSON form.
    """

    def __init__(self, root: yaml.Node, source: str) -> None:
        self.problems: list[Problem] = []
        self._root = root
        self._source = source
        self._visited = 0

    def read(self) -> Any:
        """Return the whole tree as JSON values; a value with a problem reads as null.

        Raises:
            DocumentError: aliases make the tree larger or deeper than allowed.
        """
        return self._value(self._root, (), 0)

    def problem(self, path: Path, message: str, *, of_name: bool = False) -> Problem:
        """Return a problem at the place of a path, or of its nearest part that exists.

        Args:
            path: from the top.
            message: the rule.
            of_name: whether the field's name is at fault, not its value.
        """
        return self._at(self._place(path, of_name=of_name), path, message)

    def resolve(self, path: Path, *, names_missing: bool = True) -> Path:
        """Return a path without the steps that name no field of the text, such as the tag of a union's member.

        Args:
            path: from the top.
            names_missing: whether the last step may name a field that is missing, and then stays.
        """
        node, kept = self._root, []
        for index, step in enumerate(path):
            entry = _entry(node, step)
            if entry is not None:
                node = entry[1]
            elif not names_missing or index < len(path) - 1 or not isinstance(node, yaml.MappingNode):
                continue
            kept.append(step)
        return tuple(kept)

    def _value(self, node: yaml.Node, path: Path, depth: int) -> Any:
        self._visited += 1
        if depth > MAX_DEPTH or self._visited > MAX_NODES:
            raise DocumentError([self._at(node, path[:1], "aliases make the document too large or too deep")])
        if isinstance(node, yaml.MappingNode) and node.tag == f"{TAG}map":
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{TAG}seq":
            return [self._value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        read = _SCALARS.get(node.tag) if isinstance(node, yaml.ScalarNode) else None
        try:
            if read is not None:
                return read(node.value)
            self.problems.append(self._at(node, path, f"the tag {node.tag.removeprefix(TAG)} is not taken"))
        except ValueError as error:
            self.problems.append(self._at(node, path, str(error)))
        return None

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        read: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            if key.tag != f"{TAG}str" or not isinstance(key, yaml.ScalarNode):
                self.problems.append(self._at(key, path, "a key must be text; put it in quotes"))
            elif key.value in read:
                message = f"is given twice, first on line {lines[key.value]}"
                self.problems.append(self._at(key, (*path, key.value), message))
            else:
                lines[key.value] = key.start_mark.line + 1
                read[key.value] = self._value(value, (*path, key.value), depth + 1)
        return read

    def _place(self, path: Path, *, of_name: bool) -> yaml.Node:
        node = place = self._root
        for step in path:
            entry = _entry(node, step)
            if entry is not None:
                key, node = entry
                place = node if isinstance(node, yaml.ScalarNode) and not of_name else key
        return place

    def _at(self, node: yaml.Node, path: Path, message: str) -> Problem:
        mark = node.start_mark
        return Problem(self._source, mark.line + 1, mark.column + 1, format_path(path), message)


def _entry(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the key's and the value's node of one step down; an item of a sequence is its own key."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    return None


def _integer(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    if len(text) > len("-0x") + len(str(SAFE_INTEGER)) or abs(int(text, base)) > SAFE_INTEGER:
        raise ValueError(f"an integer beyond {SAFE_INTEGER} has no exact JSON form")
    return int(text, base)


def _number(text: str) -> float:
    digits = text.lower()
    number = math.inf if digits.endswith(("inf", "nan")) else float(digits)
    if not math.isfinite(number):
        raise ValueError("a number must be finite")
    if number.is_integer() and abs(number) > SAFE_INTEGER:
        raise ValueError(f"an integer beyond {SAFE_INTEGER} has no exact JSON form")
    return number


_SCALARS: Final[dict[str, Callable[[str], Any]]] = {
    f"{TAG}str": str,
    f"{TAG}null": lambda _: None,
    f"{TAG}bool": lambda text: text.lower() == "true",
    f"{TAG}int": _integer,
    f"{TAG}float": _number,
}
