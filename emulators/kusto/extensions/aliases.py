"""``as``: a name for the rows at one place of a pipeline."""

from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.tree import children, find, position

SUPPORTED: tuple[str, ...] = ("as (where the name is not used)",)

macros: tuple[str, ...] = ()


def install() -> None:
    """Teach the translator the operator."""
    add_operator("AsOperator", _alias)


def _alias(node: Any) -> list[ir.Operator]:
    name = reader.name_text(reader.collapse(children(node)[-1]))
    root = node
    while root.parentCtx is not None:
        root = root.parentCtx
    if sum(each.getText() == name for each in find(root, "IdentifierName")) > 1:
        raise unsupported("as with a name that is used elsewhere", "bind the rows with let", position(node))
    return []
