"""Test process that reads queries over the table T as a JSON list and writes a JSON list of results.

Each result is ``[code, columns]``: the code of the error, empty if the query was accepted, and name and type of the
columns.
"""

import json
import sys
from typing import Any

import duckdb

from emulators.kusto.errors import QueryError
from emulators.kusto.extensions import EXTENSIONS, create_functions_and_macros
from emulators.kusto.frames import columns_from_cursor_description, encode_rows
from emulators.kusto.library_errors import error_from_duckdb
from emulators.kusto.query_checks import install_sql_length_check
from emulators.kusto.translate import translate
from emulators.kusto.translator_process import patch_translator_library
from tests.emulators.kusto.kql_generator import TABLE

_VALUES = {
    "bool": ("BOOLEAN", "true"), "int": ("INTEGER", "3"), "long": ("BIGINT", "7"), "real": ("DOUBLE", "1.5"),
    "string": ("VARCHAR", "'a b'"), "datetime": ("TIMESTAMP", "'2024-01-02'"), "timespan": ("INTERVAL", "'1h'"),
    "dynamic": ("JSON", "'[1, 2]'"), "guid": ("UUID", "'74be27de-1e4e-49d9-b579-fe0b331d3642'"),
}  # fmt: skip


def main() -> None:
    """Read queries from standard input, execute them, and write the results to standard output."""
    sys.setrecursionlimit(3000)
    patch_translator_library()
    install_sql_length_check()
    for extension in EXTENSIONS:
        extension.install_into_translator()
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    create_functions_and_macros(connection)
    cells = ", ".join(f'CAST({_VALUES[kind][1]} AS {_VALUES[kind][0]}) AS "{name}"' for name, kind in TABLE.items())
    connection.execute(f"CREATE TABLE T AS SELECT {cells}")
    json.dump([run_query(connection, text) for text in json.load(sys.stdin)], sys.stdout)


def run_query(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[str, list[tuple[str, str]]]:
    """Execute a query; return the error code, or the columns of the result."""
    types = {name: _VALUES[kind][0] for name, kind in TABLE.items()}
    found: list[Any] = []
    try:
        while True:
            translation = translate(text, {"T": list(TABLE)}, found, types)
            try:
                connection.execute(translation.sql)
                columns = columns_from_cursor_description(connection.description or ())
                rows = json.loads(b"[" + encode_rows(columns, connection.fetchall()) + b"]")
            except duckdb.Error as error:
                raise error_from_duckdb(error) from error
            if not translation.is_discovery_query:
                return "", list(columns)
            found.append(rows)
    except QueryError as error:
        return f"{error.inner or error.code} {error.message}", []
    except Exception as error:  # noqa: BLE001  a defect of the translator, which rejects the query
        return f"{type(error).__name__} {error}", []


if __name__ == "__main__":
    main()
