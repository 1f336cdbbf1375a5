"""Access to private functions of the translator library that the extensions use or replace.

Check this module when the version of the library changes. The functions are looked up at each call, so that every
extension uses the replacements of the others.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from duckdb_kql import lower, translate


class Internals:
    """Access to the private functions of a module by their names without the underscore."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, f"_{name}")


reader = Internals(lower)
"""Library module that converts the parse tree to the intermediate representation."""
writer = Internals(translate)
"""Library module that converts the intermediate representation to SQL."""


def replace(module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace the attribute ``name`` of a module; ``wrap`` receives the old value and returns the new one."""
    setattr(module, name, wrap(getattr(module, name)))
