"""YAML text as a tree of located nodes: YAML 1.2's core scalars, bounded in size, depth and aliases."""

import re
from typing import Final

import yaml
from yaml._yaml import Mark as CMark

from shared.catalog.problems import DocumentError, Problem

MAX_CHARACTERS: Final = 16 * 1024 * 1024
MAX_NODES: Final = 2_000_000
MAX_DEPTH: Final = 40
MAX_ALIASES: Final = 10_000
TAG: Final = "tag:yaml.org,2002:"


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
