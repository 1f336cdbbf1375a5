"""Tests that test modules which share a service write to different audit scopes, so that they do not interfere."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
WRITERS = frozenset({"append_events", "create_amendment", "create", "write_event", "write_events"})
"""Helpers that append to the scope of their second argument."""


def list_written_scopes(source: str) -> set[str]:
    """Return the scopes in a module's calls, which are given as text, as constant, or as the start of an f-string."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    scopes = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in WRITERS:
            scope = call.args[1] if len(call.args) > 1 else None
            if isinstance(scope, ast.Name):
                scope = constants.get(scope.id)
            if isinstance(scope, ast.JoinedStr):
                scope = scope.values[0]
            if isinstance(scope, ast.Constant) and isinstance(scope.value, str) and scope.value:
                scopes.add(scope.value)
    return scopes


def find_shared_scopes(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return each scope to which several modules append, with these modules."""
    modules = defaultdict(list)
    for name, source in sources.items():
        for scope in list_written_scopes(source):
            modules[scope].append(name)
    return {scope: names for scope, names in modules.items() if len(names) > 1}


@pytest.mark.parametrize("folder", ["console", "service"])
def test_modules_append_to_different_scopes(folder: str) -> None:
    """No two test modules of a folder append to the same scope, because they share one service."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted((TESTS / folder).glob("test_*.py"))}
    assert any(list_written_scopes(source) for source in sources.values())
    assert find_shared_scopes(sources) == {}


@pytest.mark.parametrize(
    "source",
    [
        'append_events(editor, "altered", 4)',
        'SCOPE = "altered"\ncreate_amendment(editor, SCOPE)',
        'write_event(editor, f"altered{number}")',
    ],
)
def test_a_scope_of_two_modules_is_found(source: str) -> None:
    """The check finds a scope that two modules share, however the scope is written."""
    first = 'def test_first():\n    append_events(editor, "altered", 1)'
    assert find_shared_scopes({"a": first, "b": source}) == {"altered": ["a", "b"]}
    assert find_shared_scopes({"a": first, "b": source.replace("altered", "other")}) == {}
