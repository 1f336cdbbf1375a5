"""Functions of a query whose results differ from Data Explorer's, because their arithmetic is not documented.

Separate from the translation, because the marks of the reference define these functions.
"""

import functools
import re
from collections.abc import Mapping, Sequence

from antlr4 import Token  # type: ignore[import-untyped]  # its stubs are no part of this project

from emulators.kusto.extensions import EXTENSIONS

_MARK = re.compile(r"(?:evaluate )?(\w+)(?: by)? \((approximate[^)]*)\)")


@functools.cache
def _list_marks() -> Mapping[str, str]:
    """List the approximate functions, plugins and operators by name, each with the mark that the reply shows."""
    listed = (entry for extension in EXTENSIONS for entry in getattr(extension, "SUPPORTED", ()))
    return {found[1]: found[2] for entry in listed if (found := _MARK.fullmatch(entry))}


def find_approximations(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return name and mark of each approximate function that a query calls, sorted by name.

    Args:
        tokens: tokens of the query without comments and white space.
    """
    marks = _list_marks()
    names = [token.text.lower() for token in tokens]
    found = {
        name
        for before, name, after in zip(["", *names], names, [*names[1:], ""], strict=False)
        if name in marks and (after == "(" or before == "|")
    }
    return tuple(f"{name} ({marks[name]})" for name in sorted(found))
