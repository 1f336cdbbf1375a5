"""Operator families that the translator does not bring: each is a module that adds itself to ``EXTENSIONS``."""

from collections.abc import Sequence
from typing import Protocol

from emulators.kusto.extensions import (
    addresses,
    aggregates,
    aliases,
    arithmetic,
    bag_unpack,
    columns,
    comparisons,
    conversions,
    datetimes,
    dynamics,
    expansions,
    filters,
    functions,
    geo,
    grammar,
    known_types,
    mv_apply,
    names,
    ordering,
    outputs,
    parse_kv,
    partition,
    pipeline,
    pivoting,
    plugins,
    ranges,
    ranks,
    scan,
    search,
    serialized,
    series,
    strings,
    subpipeline,
    tabular,
    text_sizes,
    top_nested,
    unions,
    values,
    windows,
)


class Extension(Protocol):
    """An operator family."""

    @property
    def macros(self) -> Sequence[str]:
        """SQL statements that define what the family's SQL calls; run once, before the sandbox closes."""
        ...

    def install(self) -> None:
        """Teach the translator the family's functions and operators; called once in each translator process."""
        ...


# In this order: operators before what looks at every operator, values before the macros that call them.
EXTENSIONS: tuple[Extension, ...] = (
    pipeline,
    tabular,
    names,
    functions,
    ordering,
    values,
    aggregates,
    outputs,
    datetimes,
    dynamics,
    strings,
    conversions,
    geo,
    addresses,
    columns,
    grammar,
    windows,
    serialized,
    subpipeline,
    expansions,
    mv_apply,
    partition,
    top_nested,
    series,
    scan,
    pivoting,
    search,
    known_types,
    parse_kv,
    aliases,
    filters,
    plugins,
    bag_unpack,
    ranks,
    comparisons,
    arithmetic,
    ranges,
    unions,
    text_sizes,
)
