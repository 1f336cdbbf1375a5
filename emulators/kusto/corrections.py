"""Where the translator reads a query otherwise than Data Explorer does: set right in the translator's own process."""

from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, translate

from emulators.kusto.errors import unresolved
from emulators.kusto.string_literals import text_of


def correct_reading() -> None:
    """Read every form of string literal, and sources in parentheses, and miss what is renamed and is not there.

    To be called once in each translator process.
    """
    lower._string_value = text_of  # noqa: SLF001  the library has no hook for literals
    lower._lower_head = _without_parentheses(lower._lower_head)  # noqa: SLF001  nor for sources
    translate.render_operator = _with_known_names(translate.render_operator)


def _without_parentheses(default: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    def lower_head(head: Any, rest: list[Any]) -> ir.Query:
        inner = lower._unparenthesize(head)  # noqa: SLF001
        if lower._cls(inner) == "PipeExpression":  # noqa: SLF001
            first, *piped = lower._rule_children(inner)  # noqa: SLF001
            return lower_head(first, [*piped, *rest])
        return default(inner, rest)

    return lower_head


def _with_known_names(default: Callable[..., str]) -> Callable[..., str]:
    def render_operator(op: ir.Operator, prev: str, cols: list[str] | None = None) -> str:
        if isinstance(op, ir.ProjectRename) and cols is not None:
            for old, _ in op.renames:
                if old not in cols:
                    raise unresolved(old)
        return default(op, prev, cols)

    return render_operator
