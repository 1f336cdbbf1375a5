"""Parsed statements, so that a query which is asked again is not parsed again."""

import threading
from collections import OrderedDict

import duckdb

from emulators.kusto.errors import internal_error

CHARACTERS = 1_000_000
"""Of SQL that is kept; its parse tree takes some ten times as much memory."""


class Statements:
    """Keeps what was parsed most recently. Threads share it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, duckdb.Statement] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def select(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
        """Return the one SELECT that a text is; executing it leaves it as it is.

        Raises:
            QueryError: it is anything else.
            duckdb.ParserException: it is no SQL.
        """
        with self._lock:
            known = self._kept.get(sql)
            if known is not None:
                self._kept.move_to_end(sql)
                return known
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
            raise internal_error()
        self._keep(sql, statements[0])
        return statements[0]

    def _keep(self, sql: str, statement: duckdb.Statement) -> None:
        with self._lock:
            if sql not in self._kept:
                self._kept[sql] = statement
                self._characters += len(sql)
            while self._characters > CHARACTERS:
                oldest, _ = self._kept.popitem(last=False)
                self._characters -= len(oldest)
