"""Real SQLite files of simulated processes, with faults and crashes where transactions begin and end."""

import sqlite3
from collections.abc import Callable
from typing import Any, Final, Protocol

BUSY_SECONDS: Final = 10.0
_REAL_CONNECT: Final[Callable[..., Any]] = sqlite3.connect


class TransactionObserver(Protocol):
    """Process that owns connections, as far as its transactions are concerned."""

    connections: "list[SimulatedConnection]"

    def begin(self, statement: str) -> None:
        """Do what happens before a transaction begins: nothing, an error, or the end of the process."""
        ...

    def before_commit(self) -> None:
        """Do what happens before a commit; an error rolls the transaction back."""
        ...

    def after_commit(self) -> None:
        """Do what happens after a commit; an error hides that it succeeded."""
        ...

    def check_alive(self) -> None:
        """Raise if the process is dead, so that its clean-up code has no effect."""
        ...


class SimulatedConnection(sqlite3.Connection):
    """Connection of one process to a SQLite file."""

    observer: TransactionObserver

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement, unless the process is dead."""
        self.observer.check_alive()
        if sql.startswith("BEGIN"):
            self.observer.begin(sql)
        elif sql == "COMMIT":
            self.observer.before_commit()
            cursor = super().execute(sql)
            self.observer.after_commit()
            return cursor
        return super().execute(sql, parameters)

    def abandon(self) -> None:
        """Close the file as the end of a process does: uncommitted changes vanish, and the log is not checkpointed."""
        self.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        super().close()


def build_error(code: int, message: str) -> sqlite3.OperationalError:
    """Build the error that SQLite raises with a result code."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


def open_files_through(find_process: Callable[[], TransactionObserver | None]) -> None:
    """Give every file that simulated code opens to the process that runs; other code opens files as usual."""

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
