"""Extensions of duckdb_kql, the library that translates KQL to SQL. Each module adds related operators or functions.

Most modules are independent of each other. This package determines the order in which they are installed.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from emulators.kusto.extensions import (
    activity,
    aggregates,
    column_names,
    conversions,
    datetimes,
    digests,
    dynamics,
    encodings,
    environment,
    find,
    functions,
    funnels,
    geo,
    grammar,
    grouped_pipeline,
    known_types,
    make_series,
    names,
    nested_values,
    network,
    not_a_number,
    operators,
    parse_kv,
    partitioned_windows,
    patterns,
    pipeline,
    plugins,
    ranks,
    rendering,
    scan,
    search,
    serialized,
    series,
    series_analysis,
    several_results,
    sources,
    star_conditions,
    strings,
    subpipelines,
    tabular,
    top_nested,
    type_checks,
    windows,
)
from emulators.kusto.extensions.sql import quote_text
from emulators.kusto.python_functions import register_python_functions
from emulators.kusto.series_functions import register_series_functions

if TYPE_CHECKING:
    import duckdb

_DIGEST: Final = "kql_macros_digest"
"""Macro of the database that returns the digest of all other macros."""


class Extension(Protocol):
    """Interface of a module that adds KQL operators or functions to the KQL translator library.

    A module may also have the attributes ``functions`` and ``series_functions``. They list functions in Python
    (`PythonFunction` and `SeriesFunction`) that the generated SQL calls.
    """

    @property
    def macros(self) -> Sequence[str]:
        """SQL statements that create DuckDB macros for the generated SQL; they run before the database is locked."""
        ...

    def install_into_translator(self) -> None:
        """Add the module's operators or functions to the translator library; called once in each translator process."""
        ...


def create_functions_and_macros(connection: "duckdb.DuckDBPyConnection", database: str = "Telemetry") -> None:
    """Create the functions and macros of all extensions; call this before the database is locked.

    All statements share one transaction, because each transaction is written to the disk. If the database is a
    file, the macros stay in it. A later start creates them again only if a macro or the version of DuckDB has changed.

    Args:
        connection: connection to the database.
        database: name of the database, which ``current_database()`` returns.
    """
    macros = [macro for extension in EXTENSIONS for macro in extension.macros]
    macros.append(f"CREATE OR REPLACE MACRO {environment.DATABASE_MACRO}() AS {quote_text(database)}")
    digest = _compute_macro_digest(macros)
    if _read_macro_digest(connection) == digest:
        macros = []
    else:
        macros.append(f"CREATE OR REPLACE MACRO {_DIGEST}() AS '{digest}'")
    connection.begin()
    try:
        for extension in EXTENSIONS:
            register_python_functions(connection, getattr(extension, "functions", ()))
            register_series_functions(connection, getattr(extension, "series_functions", ()))
        for macro in macros:
            connection.execute(macro)
    except BaseException:
        connection.rollback()
        raise
    # DuckDB itself takes back a transaction that it cannot commit.
    connection.commit()


def _compute_macro_digest(macros: Sequence[str]) -> str:
    import duckdb  # noqa: PLC0415  translator processes load this module without DuckDB

    return hashlib.sha256("\0".join([duckdb.__version__, *macros]).encode()).hexdigest()


def _read_macro_digest(connection: "duckdb.DuckDBPyConnection") -> str | None:
    """Return the digest of the macros that the database contains; None if it contains none."""
    import duckdb  # noqa: PLC0415  as above

    try:
        row = connection.execute(f"SELECT {_DIGEST}()").fetchone()
    except duckdb.CatalogException:
        return None
    return None if row is None else str(row[0])


# The order matters: a later extension wraps what an earlier one installed, and a macro is created after those it calls.
EXTENSIONS: tuple[Extension, ...] = (
    pipeline,
    tabular,
    names,
    functions,
    conversions,
    aggregates,
    datetimes,
    dynamics,
    strings,
    geo,
    grammar,
    windows,
    serialized,
    grouped_pipeline,
    subpipelines,
    several_results,
    top_nested,
    series,
    make_series,
    series_analysis,
    search,
    known_types,
    parse_kv,
    plugins,
    activity,
    scan,
    ranks,
    not_a_number,
    operators,
    star_conditions,
    find,
    patterns,
    funnels,
    rendering,
    network,
    encodings,
    digests,
    nested_values,
    column_names,
    environment,
    sources,
    type_checks,
    partitioned_windows,
)
