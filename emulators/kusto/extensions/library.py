"""Access to private functions of duckdb_kql, the KQL translator library, which the extensions call or replace.

Check this module when the version of the library changes. The functions are looked up at each call, so that an
extension uses the replacements that other extensions have installed.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from duckdb_kql import lower, translate


class Internals:
    """Proxy through which private functions of a module are called by their names without the underscore."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, f"_{name}")


reader = Internals(lower)
"""Library module that converts the parse tree to the intermediate representation."""
writer = Internals(translate)
"""Library module that converts the intermediate representation to SQL."""


def replace_attribute(module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace an attribute of a library module; ``wrap`` receives the old value and returns the new value."""
    setattr(module, name, wrap(getattr(module, name)))
