"""Tests that the client's copies of the record rules equal the originals in the service."""

import ast

from tests.service.local_service import ROOT


def read_code(path: str) -> str:
    """Return the code of a module in a form without comments and docstrings."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.__dict__["body"] = [each for each in body if not is_docstring(each)]
    return ast.unparse(tree)


def is_docstring(node: ast.AST) -> bool:
    """Return whether a statement is only a string, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_the_record_rules_equal_those_of_the_service() -> None:
    """The client's record rules have the same code as those of the service."""
    copy = read_code("client/src/oi/verification/hash_rule.py")
    assert copy == read_code("shared/provenance/hash_rule.py")
    assert "def compute_genesis_hash" in copy


def test_the_merkle_tree_equals_that_of_the_service() -> None:
    """The client's Merkle tree has the same code as that of the service."""
    copied, own = (
        read_definitions("client/src/oi/verification/merkle.py"),
        read_definitions("shared/provenance/merkle.py"),
    )
    shared_names = copied.keys() & own.keys()
    assert "CompactRange" in shared_names
    assert {name: copied[name] for name in shared_names} == {name: own[name] for name in shared_names}


def read_definitions(path: str) -> dict[str, str]:
    """Return the code of each function and class of a module, by name."""
    definitions = (ast.FunctionDef, ast.ClassDef)
    return {node.name: ast.unparse(node) for node in ast.parse(read_code(path)).body if isinstance(node, definitions)}
