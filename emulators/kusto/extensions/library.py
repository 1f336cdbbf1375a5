"""The translator's inner parts, which it does not offer publicly: one place to look when its version changes.

They are looked up at each call, so that every family sees what another has put in their place.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from duckdb_kql import lower, translate


class Internals:
    """The names of a module that begin with an underscore, without it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, f"_{name}")


reader = Internals(lower)
"""From the parse tree to the intermediate representation."""
writer = Internals(translate)
"""From there to SQL."""


def replace(module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
    """Put ``wrap`` of what a module calls ``name`` in its place."""
    setattr(module, name, wrap(getattr(module, name)))
