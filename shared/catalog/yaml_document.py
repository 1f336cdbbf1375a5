"""YAML 1.2 parser with size limits, which keeps the position of every value.

Separate from ``document`` because it parses any YAML text and knows nothing of workspaces.
"""

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
"""Largest integer with an exact JSON number (RFC 8785 appendix D)."""


class _Loader(yaml.CSafeLoader):
    """Loader of YAML 1.2 core scalars: ``no`` and dates are text, and ``<<`` is an ordinary key."""


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
    """Return the root node of a YAML text with one document.

    Args:
        text: the YAML.
        source: file name for the problems.

    Raises:
        DocumentError: if the text is not YAML, is empty, has several documents, or exceeds a limit.
    """
    if len(text) > MAX_CHARACTERS:
        raise _error_at_mark(source, None, f"is longer than {MAX_CHARACTERS} characters")
    try:
        _check_limits(text, source)
        root = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _error_at_mark(source, error.problem_mark or error.context_mark, _describe(error)) from None
    except yaml.YAMLError as error:
        raise _error_for_character(text, source, error) from None
    except UnicodeEncodeError as error:
        raise _error_at_index(text, source, error.start, "contains an unpaired surrogate") from None
    if root is None:
        raise _error_at_mark(source, None, "is empty")
    return root


class LocatedValues:
    """JSON values of a YAML tree, with the position of each path.

    Args:
        root: from :func:`parse_yaml`.
        source: file name for the problems.

    Attributes:
        problems: values that are not JSON: duplicate or non-text keys, unknown tags, numbers without exact JSON form.
    """

    def __init__(self, root: yaml.Node, source: str) -> None:
        self.problems: list[Problem] = []
        self._root = root
        self._source = source
        self._visited = 0

    def read(self) -> Any:
        """Return the tree as JSON values; an invalid value becomes null.

        Raises:
            DocumentError: if aliases make the tree too large or too deep.
        """
        return self._read_value(self._root, (), 0)

    def build_problem(self, path: Path, message: str, *, of_name: bool = False) -> Problem:
        """Return a problem at the position of a path, or of its longest existing part.

        Args:
            path: path from the root.
            message: the violated rule.
            of_name: whether the name of the field is wrong, not its value.
        """
        return self._problem_at(self._find_node(path, of_name=of_name), path, message)

    def resolve(self, path: Path, *, names_missing: bool = True) -> Path:
        """Return a path without steps that are not fields of the text, such as the tag of a union member.

        Args:
            path: path from the root.
            names_missing: whether the last step may be a missing field, which is then retained.
        """
        node, steps = self._root, []
        for index, step in enumerate(path):
            entry = _find_entry(node, step)
            if entry is not None:
                node = entry[1]
            elif not names_missing or index < len(path) - 1 or not isinstance(node, yaml.MappingNode):
                continue
            steps.append(step)
        return tuple(steps)

    def _read_value(self, node: yaml.Node, path: Path, depth: int) -> Any:
        self._visited += 1
        if depth > MAX_DEPTH or self._visited > MAX_NODES:
            raise DocumentError([self._problem_at(node, path[:1], "aliases make the document too large or too deep")])
        if isinstance(node, yaml.MappingNode) and node.tag == f"{TAG}map":
            return self._read_mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{TAG}seq":
            return [self._read_value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        read = _SCALARS.get(node.tag) if isinstance(node, yaml.ScalarNode) else None
        try:
            if read is not None:
                return read(node.value)
            self.problems.append(self._problem_at(node, path, f"the tag {node.tag.removeprefix(TAG)} is not supported"))
        except ValueError as error:
            self.problems.append(self._problem_at(node, path, str(error)))
        return None

    def _read_mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        read: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            if key.tag != f"{TAG}str" or not isinstance(key, yaml.ScalarNode):
                self.problems.append(self._problem_at(key, path, "keys must be text; put the key in quotes"))
            elif key.value in read:
                message = f"is a duplicate of line {lines[key.value]}"
                self.problems.append(self._problem_at(key, (*path, key.value), message))
            else:
                lines[key.value] = key.start_mark.line + 1
                read[key.value] = self._read_value(value, (*path, key.value), depth + 1)
        return read

    def _find_node(self, path: Path, *, of_name: bool) -> yaml.Node:
        node = place = self._root
        for step in path:
            entry = _find_entry(node, step)
            if entry is not None:
                key, node = entry
                place = node if isinstance(node, yaml.ScalarNode) and not of_name else key
        return place

    def _problem_at(self, node: yaml.Node, path: Path, message: str) -> Problem:
        mark = node.start_mark
        return Problem(self._source, mark.line + 1, mark.column + 1, format_path(path), message)


def _check_limits(text: str, source: str) -> None:
    """Check the limits on the parser events, before any node is built and without recursion."""
    depth = nodes = aliases = 0
    for event in yaml.parse(text, Loader=_Loader):
        nodes += isinstance(event, yaml.NodeEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        for value, limit, rule in (
            (depth, MAX_DEPTH, f"is nested deeper than {MAX_DEPTH} levels"),
            (nodes, MAX_NODES, f"has more than {MAX_NODES} values"),
            (aliases, MAX_ALIASES, f"has more than {MAX_ALIASES} aliases"),
        ):
            if value > limit:
                raise _error_at_mark(source, event.start_mark, rule)


def _describe(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part) or "is not YAML"


def _error_at_mark(source: str, mark: yaml.Mark | CMark | None, message: str) -> DocumentError:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return DocumentError([Problem(source, line, column, "", message)])


def _error_for_character(text: str, source: str, error: yaml.YAMLError) -> DocumentError:
    found = next((index for index, char in enumerate(text) if not _is_printable(char)), 0)
    reason = getattr(error, "reason", None) or "is not YAML"
    return _error_at_index(text, source, found, str(reason))


def _is_printable(char: str) -> bool:
    return char in "\t\n\r\x85" or "\x20" <= char <= "\x7e" or char >= "\xa0"


def _error_at_index(text: str, source: str, index: int, message: str) -> DocumentError:
    before = text[:index]
    line = before.count("\n") + 1
    return DocumentError([Problem(source, line, index - before.rfind("\n"), "", message)])


def _find_entry(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the key node and value node of one step; the item of a sequence is its own key."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    return None


def _integer(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    if len(text) > len("-0x") + len(str(SAFE_INTEGER)) or abs(int(text, base)) > SAFE_INTEGER:
        raise ValueError(f"an integer beyond {SAFE_INTEGER} has no exact JSON number; use text")
    return int(text, base)


def _number(text: str) -> float:
    digits = text.lower()
    number = math.inf if digits.endswith(("inf", "nan")) else float(digits)
    if not math.isfinite(number):
        raise ValueError("a number must be finite")
    if number.is_integer() and abs(number) > SAFE_INTEGER:
        raise ValueError(f"an integer beyond {SAFE_INTEGER} has no exact JSON number; use text")
    return number


_SCALARS: Final[dict[str, Callable[[str], Any]]] = {
    f"{TAG}str": str,
    f"{TAG}null": lambda _: None,
    f"{TAG}bool": lambda text: text.lower() == "true",
    f"{TAG}int": _integer,
    f"{TAG}float": _number,
}
