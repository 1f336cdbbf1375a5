"""Tests of rules for names in the code."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("functions", "shared", "local", "emulators", "scripts", "bench")


def list_definitions(kind: type[ast.ClassDef] | type[ast.FunctionDef]) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each class or function of the project."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, kind):
                    yield node.name, path.relative_to(ROOT)


def test_class_names_are_unique() -> None:
    """No two classes of the project have the same name."""
    places = defaultdict(list)
    for name, path in list_definitions(ast.ClassDef):
        places[name].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
