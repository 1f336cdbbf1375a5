"""Private names of the translator library that the extensions use; the module to check when its version changes.

The names are looked up at each call, so that every extension sees the replacements of the others.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from duckdb_kql import lower, translate


class Internals:
    """Access to the private names of a module, without their underscore."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, f"_{name}")


reader = Internals(lower)
"""Conversion of the parse tree to the intermediate representation."""
writer = Internals(translate)
"""Conversion of the intermediate representation to SQL."""


def replace(module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace the attribute ``name`` of a module by the result of ``wrap`` for its value."""
    setattr(module, name, wrap(getattr(module, name)))
