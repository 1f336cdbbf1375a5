"""YAML text as a tree of located nodes: YAML 1.2's core scalars, bounded in size, depth and aliases."""

import math
import re
from collections.abc import Callable
from typing import Any, Final

import yaml
from yaml._yaml import Mark as CMark

from shared.catalog.problems import DocumentError, Path, Problem, format_path

MAX_CHARACTERS: Final = 16 * 1024 * 1024
MAX_NODES: Final = 2_000_000
MAX_DEPTH: Final = 40
MAX_ALIASES: Final = 10_000
TAG: Final = "tag:yaml.org,2002:"
SAFE_INTEGER: Final = 2**53 - 1
"""Integers beyond it have no exact JSON number (RFC 8785 appendix D)."""


class _Loader(yaml.CSafeLoader):
    """Resolves YAML 1.2's core scalars alone: ``no`` and dates are text, ``<<`` is an ordinary key."""


_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(TAG + _kind, re.compile(rf"^(?:{_pattern})$"), list(_first))


def parse_yaml(text: str, source: str) -> yaml.Node:
    """Return the root node of the one YAML document in a text.

    Args:
        text: the YAML.
        source: name of the file, for the problems.

    Raises:
        DocumentError: not YAML, empty, more than one document, or beyond a limit.
    """
    if len(text) > MAX_CHARACTERS:
        raise _refusal(source, None, f"is longer than {MAX_CHARACTERS} characters")
    try:
        _guard(text, source)
        root = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _refusal(source, error.problem_mark or error.context_mark, _told(error)) from None
    except yaml.YAMLError as error:
        raise _unreadable(text, source, error) from None
    except UnicodeEncodeError as error:
        raise _outside(text, source, error.start, "holds half of a surrogate pair") from None
    if root is None:
        raise _refusal(source, None, "is empty")
    return root


class LocatedValues:
    """Reads the values of a tree and finds the place of each path again.

    Args:
        root: from :func:`shared.catalog.yaml_document.parse_yaml`.
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


def _guard(text: str, source: str) -> None:
    """Walk the events, which needs no recursion, before anything is built from them."""
    depth = nodes = aliases = 0
    for event in yaml.parse(text, Loader=_Loader):
        nodes += isinstance(event, yaml.NodeEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        for value, limit, rule in (
            (depth, MAX_DEPTH, f"is nested deeper than {MAX_DEPTH} levels"),
            (nodes, MAX_NODES, f"holds more than {MAX_NODES} values"),
            (aliases, MAX_ALIASES, f"holds more than {MAX_ALIASES} aliases"),
        ):
            if value > limit:
                raise _refusal(source, event.start_mark, rule)


def _told(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part) or "is not YAML"


def _refusal(source: str, mark: yaml.Mark | CMark | None, message: str) -> DocumentError:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return DocumentError([Problem(source, line, column, "", message)])


def _unreadable(text: str, source: str, error: yaml.YAMLError) -> DocumentError:
    found = next((index for index, char in enumerate(text) if not _printable(char)), 0)
    reason = getattr(error, "reason", None) or "is not YAML"
    return _outside(text, source, found, str(reason))


def _printable(char: str) -> bool:
    return char in "\t\n\r\x85" or "\x20" <= char <= "\x7e" or char >= "\xa0"


def _outside(text: str, source: str, index: int, message: str) -> DocumentError:
    before = text[:index]
    line = before.count("\n") + 1
    return DocumentError([Problem(source, line, index - before.rfind("\n"), "", message)])


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
