"""SQLite files of simulated processes, with faults and crashes at the start and end of transactions."""

import sqlite3
from collections.abc import Callable
from typing import Any, Final, Protocol

BUSY_SECONDS: Final = 10.0
_REAL_CONNECT: Final[Callable[..., Any]] = sqlite3.connect


class TransactionObserver(Protocol):
    """Interface of a process that uses database connections: it is notified of transactions and can inject faults."""

    connections: "list[SimulatedConnection]"

    def before_begin(self, statement: str) -> None:
        """Handle the moment before a transaction starts: raise an injected error, crash the process, or do nothing."""
        ...

    def before_commit(self) -> None:
        """Handle the moment before a commit; after an injected error, the transaction is rolled back."""
        ...

    def after_commit(self) -> None:
        """Handle the moment after a commit; an injected error makes the commit look failed."""
        ...

    def check_alive(self) -> None:
        """Raise an error if the process has crashed, so that its clean-up code has no effect."""
        ...


class SimulatedConnection(sqlite3.Connection):
    """Connection of one simulated process to a SQLite file."""

    observer: TransactionObserver

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement; raise an error if the process has crashed."""
        self.observer.check_alive()
        if sql.startswith("BEGIN"):
            self.observer.before_begin(sql)
        elif sql == "COMMIT":
            self.observer.before_commit()
            cursor = super().execute(sql)
            self.observer.after_commit()
            return cursor
        return super().execute(sql, parameters)

    def abandon(self) -> None:
        """Close the file as a crash does: uncommitted changes are lost, and the log is not checkpointed."""
        self.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        super().close()


def build_error(code: int, message: str) -> sqlite3.OperationalError:
    """Return the SQLite error for a result code."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


def open_files_through(find_process: Callable[[], TransactionObserver | None]) -> None:
    """Make simulated code open SQLite files through its simulated process; other code opens them as usual."""

    def connect(database: Any, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        process = find_process()
        if process is None:
            real: sqlite3.Connection = _REAL_CONNECT(database, *args, **kwargs)
            return real
        process.check_alive()
        connection: SimulatedConnection = _REAL_CONNECT(database, *args, **kwargs, factory=SimulatedConnection)
        connection.observer = process
        process.connections.append(connection)
        return connection

    sqlite3.connect = connect  # type: ignore[assignment]  # overloads
