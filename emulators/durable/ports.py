"""Ports of the Durable Task emulator to the local Functions host: functions of the app, SQLite file, stop signal."""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

type RequestCheck = Callable[[Mapping[str, Any]], bool]
"""Returns whether the caller of an HTTP request (ASGI scope) may use the management API."""


class FunctionCallError(Exception):
    """A function of the app raised an exception; contains the exception's stack trace for the log."""

    def __init__(self, message: str, stack_trace: str) -> None:
        super().__init__(message)
        self.stack_trace = stack_trace


class DurableFunction(Protocol):
    """Azure function of an app, as the local Functions host loaded it."""

    @property
    def name(self) -> str:
        """Name of the function, unique in the app."""
        ...

    @property
    def kind(self) -> str:
        """Type of the function's trigger, for example ``orchestrationTrigger``."""
        ...

    @property
    def trigger(self) -> Mapping[str, Any]:
        """Properties of the function's trigger binding, from its decorators."""
        ...

    @property
    def clients(self) -> Mapping[str, str | None]:
        """Task hub of each ``durableClient`` binding by binding name; None for the default task hub."""
        ...


class FunctionInvoker[F: DurableFunction](Protocol):
    """Port that calls a function of the app."""

    async def __call__(self, function: F, text: str, /) -> str | None:
        """Call a function of the app with the text of its trigger; return its result as text, None for no result.

        Raises:
            FunctionCallError: the function raised an exception.
        """
        ...


class StopSignal(Protocol):
    """Signal that is set when the local Functions host begins to stop, and never cleared."""

    def is_set(self) -> bool:
        """Return whether the host has begun to stop."""
        ...

    async def wait(self) -> None:
        """Wait until the host begins to stop."""
        ...

    async def wait_until_set(self, seconds: float) -> bool:
        """Wait for a number of seconds, or until the host begins to stop; return True if the host stops."""
        ...


class OrchestrationDatabase(Protocol):
    """Port through which coroutines read and write the SQLite file of orchestrations."""

    async def read[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function with a database connection in a read transaction; return the function's result."""
        ...

    async def write[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function with a database connection in a write transaction.

        Roll back if the function raises an error.
        """
        ...

    async def close(self) -> None:
        """Wait for running transactions and close the SQLite file."""
        ...


type OpenDatabase = Callable[[Path, str], OrchestrationDatabase]
"""Opens an SQLite file and creates the missing tables of a schema."""

type WriteCheck = Callable[[Path], Awaitable[None]]
"""Raises ``sqlite3.Error`` unless an SQLite file accepts writes."""
