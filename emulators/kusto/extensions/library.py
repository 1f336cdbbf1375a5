"""Access to private functions of duckdb_kql, the KQL translator library, which the extensions call or replace.

Check this module when the version of the library changes. Each call looks up the function again, so that it finds the
replacements that other extensions have installed.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from duckdb_kql import lower, translate


class Internals:
    """Proxy that provides the private functions of a library module by their names without the underscore."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, f"_{name}")


reader = Internals(lower)
"""Library module that converts the parse tree to the intermediate representation."""
writer = Internals(translate)
"""Library module that converts the intermediate representation to SQL."""


def replace_attribute(module: ModuleType, attribute_name: str, build_replacement: Callable[[Any], Any]) -> None:
    """Replace an attribute of a library module by the result of ``build_replacement(old_value)``."""
    setattr(module, attribute_name, build_replacement(getattr(module, attribute_name)))
