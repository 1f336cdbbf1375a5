"""Ports of the emulator: the functions that it runs, the SQLite file that it writes and the host that it stops with."""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

type RequestCheck = Callable[[Mapping[str, Any]], bool]
"""Returns whether the caller of an ASGI scope may use the management API."""


class FunctionCallError(Exception):
    """Exception that a function raised, with the stack trace for the log."""

    def __init__(self, message: str, stack_trace: str) -> None:
        super().__init__(message)
        self.stack_trace = stack_trace


class DurableFunction(Protocol):
    """Function of an app, as its host loaded it."""

    @property
    def name(self) -> str:
        """Unique name in the app."""
        ...

    @property
    def kind(self) -> str:
        """Type of the trigger, for instance ``orchestrationTrigger``."""
        ...

    @property
    def trigger(self) -> Mapping[str, Any]:
        """Trigger binding, as the decorators describe it."""
        ...

    @property
    def clients(self) -> Mapping[str, str | None]:
        """Durable client bindings: name, and the task hub or None for the default."""
        ...


class FunctionInvoker[F: DurableFunction](Protocol):
    """Way to call the functions of an app."""

    async def __call__(self, function: F, text: str, /) -> str | None:
        """Call a function with a text and return its result as text, None if it returns nothing.

        Raises:
            FunctionCallError: the function raised an exception.
        """
        ...


class StopSignal(Protocol):
    """Signal that is set once when the host stops."""

    def is_set(self) -> bool:
        """Return whether the host is stopping."""
        ...

    async def wait(self) -> None:
        """Wait until the host stops."""
        ...

    async def wait_for(self, seconds: float) -> bool:
        """Wait for a number of seconds or until the host stops; return whether it stops."""
        ...


class OrchestrationDatabase(Protocol):
    """SQLite file that is used from coroutines."""

    async def read[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function on one consistent view of the file."""
        ...

    async def write[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a write transaction, which is rolled back if it raises."""
        ...

    async def close(self) -> None:
        """Finish running work and close the file."""
        ...


type OpenDatabase = Callable[[Path, str], OrchestrationDatabase]
"""Opens a file and creates the tables of a schema that are missing."""

type WriteCheck = Callable[[Path], Awaitable[None]]
"""Returns if a file accepts writes, and raises ``sqlite3.Error`` if it does not."""
