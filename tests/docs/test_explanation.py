"""Tests that the files and functions that docs/explanation/request.md names exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "explanation" / "request.md").read_text(encoding="utf-8")
_STEP = re.compile(r"`([\w/]+\.py)`((?:,\s+`[\w.]+`)*)")
_NAME = re.compile(r"`([\w.]+)`")
_CALL = re.compile(r"([\w.]+)\(\)")
_WITHOUT_FUNCTION = {"functions/__init__.py", "tests/docs/test_explanation.py"}
STEPS = [(path, tuple(_NAME.findall(names))) for path, names in _STEP.findall(TEXT)]


def _read_defined_names(node: ast.AST, prefix: str = "") -> set[str]:
    """Return the functions, methods (with their class) and classes that a module defines."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            found |= {child.name} | _read_defined_names(child, f"{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= {prefix + child.name} | _read_defined_names(child)
        else:
            found |= _read_defined_names(child, prefix)
    return found


@pytest.mark.parametrize(("path", "names"), STEPS, ids=[path for path, _ in STEPS])
def test_each_step_of_a_request_names_an_existing_function(path: str, names: tuple[str, ...]) -> None:
    """The file that a step names exists and defines the functions that the step names."""
    assert names or path in _WITHOUT_FUNCTION
    assert set(names) <= _read_defined_names(ast.parse((ROOT / path).read_text(encoding="utf-8")))


def test_each_request_path_has_steps_and_a_diagram() -> None:
    """Each path of a request has steps and a diagram, and the diagram calls only functions of the steps."""
    assert len(STEPS) > 40
    assert TEXT.count("sequenceDiagram") == 4
    called = {
        call for diagram in re.findall(r"```mermaid\n(.*?)```", TEXT, re.DOTALL) for call in _CALL.findall(diagram)
    }
    assert called
    assert called <= {name for _, names in STEPS for name in names}


def test_each_python_file_on_the_page_belongs_to_a_step() -> None:
    """Each Python file that the page names in backticks belongs to a step, because only steps are tested."""
    assert len(re.findall(r"`[\w./]+\.py`", TEXT)) == len(STEPS)
