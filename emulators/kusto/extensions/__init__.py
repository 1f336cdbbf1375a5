"""Extensions of duckdb_kql, the library that translates KQL to SQL. Each module adds related operators or functions.

Most modules are independent of each other. This package determines the order in which they are installed.
"""

from collections.abc import Sequence
from typing import Protocol

import duckdb

from emulators.kusto.extensions import (
    activity,
    aggregate_columns,
    aggregates,
    array_sorting,
    bin_auto,
    column_names,
    conversions,
    datetimes,
    decimal_arithmetic,
    digests,
    dynamics,
    encodings,
    environment,
    find,
    functions,
    funnels,
    geo,
    geo_lines,
    geo_polygons,
    grammar,
    grouped_pipeline,
    hashes,
    ip_lookup,
    known_types,
    make_series,
    names,
    nested_bags,
    network,
    new_activity,
    operators,
    parse_kv,
    pattern_plugins,
    pipeline,
    pivoting,
    plugins,
    ranks,
    reduce,
    rendering,
    result_names,
    row_plugins,
    scan,
    search,
    serialized,
    series,
    series_analysis,
    series_models,
    series_statistics,
    set_intersections,
    several_results,
    signatures,
    significance,
    sources,
    star_conditions,
    strings,
    subpipelines,
    table_names,
    tabular,
    timeline_plugins,
    top_nested,
    unions,
    units,
    windows,
)
from emulators.kusto.python_functions import create_functions
from emulators.kusto.series_functions import create_series_functions


class Extension(Protocol):
    """Interface of a module that adds KQL operators or functions to the KQL translator library.

    A module may also have the attributes ``functions`` and ``series_functions``. They list functions in Python
    (`PythonFunction` and `SeriesFunction`) that the generated SQL calls.
    """

    @property
    def macros(self) -> Sequence[str]:
        """SQL statements that create DuckDB macros for the generated SQL; they run before the database is locked."""
        ...

    def install(self) -> None:
        """Add the module's operators or functions to the translator library; called once in each translator process."""
        ...


def create_sql_objects(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the functions and macros of all extensions; call this before the database is locked."""
    for extension in EXTENSIONS:
        create_functions(connection, getattr(extension, "functions", ()))
        create_series_functions(connection, getattr(extension, "series_functions", ()))
        for macro in extension.macros:
            connection.execute(macro)


# The order matters: a later extension wraps what an earlier one installed, and a macro is created after those it calls.
EXTENSIONS: tuple[Extension, ...] = (
    pipeline,
    tabular,
    names,
    functions,
    conversions,
    aggregates,
    aggregate_columns,
    datetimes,
    dynamics,
    nested_bags,
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
    series_statistics,
    series_analysis,
    series_models,
    significance,
    scan,
    pivoting,
    search,
    known_types,
    parse_kv,
    plugins,
    timeline_plugins,
    activity,
    row_plugins,
    ip_lookup,
    ranks,
    decimal_arithmetic,
    operators,
    sources,
    unions,
    star_conditions,
    find,
    reduce,
    pattern_plugins,
    funnels,
    new_activity,
    set_intersections,
    rendering,
    network,
    units,
    hashes,
    encodings,
    environment,
    digests,
    array_sorting,
    geo_lines,
    geo_polygons,
    column_names,
    bin_auto,
    table_names,
    result_names,
    signatures,
)
