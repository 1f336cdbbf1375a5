"""Tests of the names of the modules that document replies."""

import ast
import re
from pathlib import Path

import pytest

import functions

FUNCTIONS = Path(functions.__file__).parent
MODULES = sorted(path.stem for path in (FUNCTIONS / "reply_docs").glob("*.py") if path.stem != "__init__")


def imports_reply_docs(handler: str, module: str) -> bool:
    """Return whether a handler module imports a module that documents replies."""
    text = (FUNCTIONS / f"{handler}.py").read_text(encoding="utf-8")
    return bool(re.search(rf"^from functions\.reply_docs(\.{module} import | import {module}\b)", text, re.MULTILINE))


@pytest.mark.parametrize("module", MODULES)
def test_the_docstring_of_a_module_lists_its_handlers(module: str) -> None:
    """A module has the name of a handler module, and its docstring lists the handler modules that import it."""
    text = (FUNCTIONS / "reply_docs" / f"{module}.py").read_text(encoding="utf-8")
    handlers = re.findall(r"`(\w+)`", (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0])
    assert handlers[0] == module
    assert all(imports_reply_docs(handler, module) for handler in handlers)
