"""The SQL of ``make-series``: rows into numbered bins, bins that are missing, bins into arrays.

The axis is computed in whole microseconds where it is an instant or a timespan, in its own numbers elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from duckdb_kql import translate

MAX_ELEMENTS = 1_048_576
"""Of one array, as the documentation says."""
_TICKS_TO_EPOCH = 62_135_596_800_000_000
"""Microseconds from 0001-01-01 to 1970-01-01: without a start, bins of instants are counted from there."""

_quoted = translate.quote_ident


@dataclass(frozen=True, slots=True)
class Series:
    """One array: its column's name, the SQL of its aggregate, and of what stands where there is no row."""

    name: str
    aggregate: str
    default: str


@dataclass(frozen=True, slots=True)
class Axis:
    """What the arrays run along, in SQL.

    Attributes:
        name: of the column.
        value: of a row.
        start: the first element, None where each array begins with its first bin.
        stop: the end, None where each array ends with its last bin.
        step: the distance between elements.
        temporal: the axis is an instant or a timespan, and not a number.
        through: ``stop`` belongs to the axis.
    """

    name: str
    value: str
    start: str | None
    stop: str | None
    step: str
    temporal: bool
    through: bool

    def number(self, sql: str) -> str:
        """Return a value of the axis as a number that can be divided."""
        return f"epoch_us({sql})" if self.temporal else f"({sql})"

    def origin(self, kind: str) -> str:
        """Return where bins are counted from; ``kind`` is SQL of the name of the axis's type."""
        if self.start is not None:
            return self.number(self.start)
        if not self.temporal:
            return "CAST(0 AS BIGINT)"
        return f"CASE {kind} WHEN 'INTERVAL' THEN CAST(0 AS BIGINT) ELSE -{_TICKS_TO_EPOCH} END"

    def bin(self) -> str:
        """Return the number of a row's bin."""
        offset = f"({self.number(self.value)} - {self.origin(f'typeof({self.value})')})"
        step = f"nullif({self.number(self.step)}, 0)"  # which is refused elsewhere, in words
        if not self.temporal:
            return f"CAST(floor(CAST({offset} AS DOUBLE) / {step}) AS BIGINT)"
        # No row lies before the start; without one, nothing in Kusto's calendar lies before the origin.
        return (
            f"({offset} // {step})" if self.start else f"(({offset} - ({offset} % {step} + {step}) % {step}) // {step})"
        )

    def inside(self) -> str:
        """Return the condition on a row: comparisons of the column, by which parts of a table can be left out."""
        conditions = [f"({self.value}) IS NOT NULL"]
        if self.start is not None:
            conditions.append(f"({self.value}) >= {self.start}")
        if self.stop is not None:
            last = f"{self.bin()} <= (SELECT n FROM _p)"  # noqa: S608
            conditions.append(last if self.through else f"({self.value}) < {self.stop}")
        return " AND ".join(conditions)

    def last(self) -> str:
        """Return the number of the last bin before the end, from the columns ``lo``, ``hi`` and ``st``."""
        if self.temporal:
            return "(hi - lo) // st" if self.through else "(hi - lo + st - 1) // st - 1"
        steps = "(CAST(hi AS DOUBLE) - lo) / st"
        return f"CAST(floor({steps}) AS BIGINT)" if self.through else f"CAST(ceil({steps}) AS BIGINT) - 1"


def series_sql(
    prev: str, keys: Sequence[tuple[str, str]], series: Sequence[Series], axis: Axis, *, nonempty: bool
) -> str:
    """Return one SELECT: for each combination of keys an array of each series, and the axis.

    Args:
        prev: the stage to read.
        keys: names and SQL of what the arrays are made by.
        series: the arrays.
        axis: what they run along.
        nonempty: give arrays of defaults where there are no rows; there are no keys then.
    """
    by = [f"k{index}" for index in range(len(keys))]
    stages = {
        "_p AS MATERIALIZED": _parameters(prev, axis),
        "_b AS MATERIALIZED": _bins(prev, keys, series, axis),
        "_g AS MATERIALIZED": _nonempty_group() if nonempty else _groups(by, axis),
        "_e AS": f"SELECT {', '.join([*by, 'first', 'last'])}, unnest(range(first, last + 1)) AS i FROM _g",  # noqa: S608
        "_s AS": _arrays(by, series),
        "_a AS": f"SELECT first, last, {_axis_array(axis)} AS a FROM (SELECT DISTINCT first, last FROM _g), _p",  # noqa: S608
    }
    columns = [f"{key} AS {_quoted(name)}" for key, (name, _) in zip(by, keys, strict=True)]
    columns += [f"kql_array(v{index}) AS {_quoted(each.name)}" for index, each in enumerate(series)]
    columns.append(f"a AS {_quoted(axis.name)}")
    ctes = ", ".join(f"{name} ({sql})" for name, sql in stages.items())
    return f"WITH {ctes} SELECT {', '.join(columns)} FROM _s JOIN _a USING (first, last)"  # noqa: S608


def _parameters(prev: str, axis: Axis) -> str:
    """The axis in numbers, and the number ``n`` of its last bin, null where no end is given."""
    kind = f"SELECT typeof(any_value(x)) AS kind FROM (SELECT {axis.value} AS x FROM {prev} LIMIT 0)"  # noqa: S608
    step = axis.number(axis.step)
    steps = f"CASE WHEN {step} > 0 THEN {step} ELSE error('the step of make-series must be above zero') END"
    stop = "NULL" if axis.stop is None else axis.number(axis.stop)
    numbers = f"SELECT {axis.origin('kind')} AS lo, {stop} AS hi, {steps} AS st, kind FROM ({kind})"  # noqa: S608
    return f"SELECT lo, hi, st, kind, {_last(axis)} AS n FROM ({numbers})"  # noqa: S608


def _last(axis: Axis) -> str:
    if axis.stop is None:
        return "NULL"
    if not axis.through:
        return axis.last()
    origin = f"CASE kind WHEN 'INTERVAL' THEN 0 ELSE {_TICKS_TO_EPOCH} END" if axis.temporal else "0"
    message = "make-series in range() whose start is no multiple of the step is not supported"
    return f"CASE WHEN (lo + {origin}) % st <> 0 THEN error('{message}') ELSE {axis.last()} END"


def _bins(prev: str, keys: Sequence[tuple[str, str]], series: Sequence[Series], axis: Axis) -> str:
    columns = [f"{sql} AS k{index}" for index, (_, sql) in enumerate(keys)]
    columns += [f"{axis.bin()} AS i", *(f"{each.aggregate} AS v{index}" for index, each in enumerate(series))]
    grouped = ", ".join([*(sql for _, sql in keys), axis.bin()])
    return f"SELECT {', '.join(columns)} FROM {prev} WHERE {axis.inside()} GROUP BY {grouped}"  # noqa: S608


def _groups(by: Sequence[str], axis: Axis) -> str:
    """The first and the last bin of each row of arrays."""
    first = "min(i)" if axis.start is None else "CAST(0 AS BIGINT)"
    last = "max(i)" if axis.stop is None else "any_value(n)"
    grouping = f"GROUP BY {', '.join(by)}" if by else "HAVING count(*) > 0"
    found = f"SELECT {', '.join([*by, f'{first} AS first', f'{last} AS last'])} FROM _b, _p {grouping}"  # noqa: S608
    return f"SELECT {', '.join([*by, 'first', _checked_last()])} FROM ({found})"  # noqa: S608


def _nonempty_group() -> str:
    return f"SELECT first, {_checked_last()} FROM (SELECT CAST(0 AS BIGINT) AS first, n AS last FROM _p)"  # noqa: S608


def _checked_last() -> str:
    message = f"make-series gives arrays of at most {MAX_ELEMENTS} elements"
    return f"CASE WHEN last - first >= {MAX_ELEMENTS} THEN error('{message}') ELSE last END AS last"


def _arrays(by: Sequence[str], series: Sequence[Series]) -> str:
    """The bins with what stands in for the missing ones; a bin that has rows keeps its value, a null included."""
    same = " AND ".join(["_e.i = _b.i", *(f"_e.{key} IS NOT DISTINCT FROM _b.{key}" for key in by)])
    lists = [
        f"list(CASE WHEN _b.i IS NULL THEN {each.default} ELSE _b.v{index} END ORDER BY _e.i) AS v{index}"
        for index, each in enumerate(series)
    ]
    grouped = [*(f"_e.{key}" for key in by), "first", "last"]
    return f"SELECT {', '.join([*grouped, *lists])} FROM _e LEFT JOIN _b ON {same} GROUP BY {', '.join(grouped)}"  # noqa: S608


def _axis_array(axis: Axis) -> str:
    points = "list_transform(range(first, last + 1), lambda _i: lo + _i * st)"
    if not axis.temporal:
        return f"kql_array({points})"
    return f"CASE kind WHEN 'INTERVAL' THEN kql_spans({points}) ELSE kql_instants({points}) END"
