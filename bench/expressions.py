"""Finds all regular expressions in the source code of the service, so that their speed can be checked."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("shared", "functions", "local", "emulators")
ANCHORED_CALLS: Final = frozenset({"match", "fullmatch"})
_CALLS: Final = frozenset({"compile", "search", "sub", "subn", "split", "findall", "finditer"}) | ANCHORED_CALLS

# In formatted source code. Parsing the few files that contain such a call takes a third of the time.
_ANY_CALL: Final = re.compile(rf"\bre\.(?:{'|'.join(sorted(_CALLS))})\(|\bpattern=")

_parser: Any = importlib.import_module("re._parser")


@dataclass(frozen=True, slots=True)
class Expression:
    """Regular expression in the source code.

    Attributes:
        place: file and line of the expression, as ``file:line``.
        pattern: text of the expression; None if the code builds the text at run time.
        flags: flags of the module ``re``.
        is_anchored: True if the expression is matched at one position only, not searched in the text.
    """

    place: str
    pattern: str | bytes | None
    flags: int
    is_anchored: bool

    def to_parse_tree(self) -> Any:
        """Return the parse tree of the expression, from the parser of the module ``re``."""
        return _parser.parse(self.pattern, self.flags & ~re.DEBUG)


def find_expressions() -> Iterator[Expression]:
    """Yield every regular expression in the source code.

    The function imports the modules, because a pattern may refer to constants of its module.
    """
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if _ANY_CALL.search(text):
                yield from _find_expressions_in_module(path, ast.parse(text))


def _find_expressions_in_module(path: Path, tree: ast.Module) -> Iterator[Expression]:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    found = [
        (node, *each) for node in ast.walk(tree) if isinstance(node, ast.Call) for each in _find_pattern_arguments(node)
    ]
    if not found:
        return
    values = vars(importlib.import_module(name))
    nodes = list(ast.walk(tree))
    for call, function, pattern in found:
        place = f"{path.relative_to(ROOT)}:{call.lineno}"
        flags = _evaluate_constant_or_none(_find_flags_argument(call), values) if function != "pattern" else 0
        yield Expression(
            place, _evaluate_constant_or_none(pattern, values), flags or 0, _is_match_anchored(nodes, call, function)
        )


class _PatternArgument(NamedTuple):
    """Argument of a call that is a regular expression.

    Attributes:
        function: name of the called function of ``re``; ``pattern`` if the argument is a keyword ``pattern`` of any
            other function.
        pattern: syntax node of the argument.
    """

    function: str
    pattern: ast.expr


def _find_pattern_arguments(call: ast.Call) -> Iterator[_PatternArgument]:
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=attribute) if attribute in _CALLS:
            yield _PatternArgument(attribute, call.args[0])
        case _:
            keywords = (keyword for keyword in call.keywords if keyword.arg == "pattern")
            yield from (_PatternArgument("pattern", keyword.value) for keyword in keywords)


def _find_flags_argument(call: ast.Call) -> ast.expr:
    for keyword in call.keywords:
        if keyword.arg == "flags":
            return keyword.value
    last = call.args[-1]
    is_flags = any(isinstance(node, ast.Attribute) and node.attr.isupper() for node in ast.walk(last))
    return last if is_flags and len(call.args) > 1 else ast.Constant(0)


def _evaluate_constant_or_none(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression that contains only literals and names in ``values``.

    Return None for any other expression.
    """
    if any(isinstance(each, ast.Call | ast.Subscript) for each in ast.walk(node)):
        return None
    source = compile(ast.fix_missing_locations(ast.Expression(body=node)), "<pattern>", "eval")
    try:
        return eval(source, dict(values))  # noqa: S307  the project's own source
    except NameError:
        return None


def _is_match_anchored(nodes: Sequence[ast.AST], call: ast.Call, function_name: str) -> bool:
    """Return whether an expression is matched at one position only, as by ``re.fullmatch``.

    Args:
        nodes: all syntax nodes of the module, with the uses of a compiled expression.
        call: the call that contains the expression.
        function_name: name of the called function of ``re``, such as ``compile``.
    """
    if function_name != "compile":
        return function_name in ANCHORED_CALLS
    names = [
        target.id
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is call
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    if not names:
        return False
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == names[0]]
    tried = [
        node
        for node in nodes
        if isinstance(node, ast.Attribute)
        and node.attr in ANCHORED_CALLS
        and isinstance(node.value, ast.Name)
        and node.value.id == names[0]
    ]
    return len(tried) == len(uses) - 1 > 0
