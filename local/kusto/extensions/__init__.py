"""Operator families that the translator does not bring: each is a module that adds itself to ``EXTENSIONS``."""

from collections.abc import Sequence
from typing import Protocol


class Extension(Protocol):
    """An operator family.

    Attributes:
        macros: SQL statements that define what its SQL calls; run once, before the sandbox closes.
    """

    macros: Sequence[str]

    def install(self) -> None:
        """Teach the translator the family's functions and operators; called once in each translator process."""
        ...


EXTENSIONS: tuple[Extension, ...] = ()
