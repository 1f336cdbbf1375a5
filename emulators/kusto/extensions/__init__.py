"""Extensions of duckdb_kql, the library that translates KQL to SQL. Each module adds related operators or functions.

Most modules are independent of each other. This package determines the order in which they are installed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

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
from emulators.kusto.python_functions import create_functions
from emulators.kusto.series_functions import create_series_functions

if TYPE_CHECKING:
    import duckdb


class Extension(Protocol):
    """Interface of a module that adds KQL operators or functions to the KQL translator library.

    A module may also have the attributes ``functions`` and ``series_functions``. They list functions in Python
    (`PythonFunction` and `SeriesFunction`) that the generated SQL calls.
    """

    @property
    def macros(self) -> Sequence[str]:
        """SQL statements that create DuckDB macros for the generated SQL; they run before the database is locked."""
        ...

    def install_extension(self) -> None:
        """Add the module's operators or functions to the translator library; called once in each translator process."""
        ...


def create_sql_objects(connection: "duckdb.DuckDBPyConnection") -> None:
    """Create the functions and macros of all extensions; call this before the database is locked.

    One transaction is several times as fast as a hundred, each of which is written to the disk.
    """
    connection.begin()
    try:
        for extension in EXTENSIONS:
            create_functions(connection, getattr(extension, "functions", ()))
            create_series_functions(connection, getattr(extension, "series_functions", ()))
            for macro in extension.macros:
                connection.execute(macro)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


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
