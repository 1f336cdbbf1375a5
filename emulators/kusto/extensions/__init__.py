"""Extensions of the translator library: each module adds a group of related KQL operators or functions.

Most groups are independent of each other. This package imports them and determines their order.
"""

from collections.abc import Sequence
from typing import Protocol

from emulators.kusto.extensions import (
    aggregate_columns,
    aggregates,
    conversions,
    datetimes,
    dynamics,
    functions,
    geo,
    grammar,
    grouped_pipeline,
    known_types,
    make_series,
    names,
    operators,
    parse_kv,
    pipeline,
    pivoting,
    plugins,
    ranks,
    scan,
    search,
    serialized,
    series,
    series_statistics,
    sources,
    strings,
    subpipelines,
    tabular,
    top_nested,
    windows,
)


class Extension(Protocol):
    """Module that adds a group of related KQL operators or functions."""

    @property
    def macros(self) -> Sequence[str]:
        """SQL statements that create the DuckDB macros of the group; they run before the database is locked."""
        ...

    def install(self) -> None:
        """Add the group to the translator library; called once in each translator process."""
        ...


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
    strings,
    geo,
    grammar,
    windows,
    serialized,
    grouped_pipeline,
    subpipelines,
    top_nested,
    series,
    make_series,
    series_statistics,
    scan,
    pivoting,
    search,
    known_types,
    parse_kv,
    plugins,
    ranks,
    operators,
    sources,
)
