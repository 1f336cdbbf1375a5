"""SQL of ``make-series``: group rows into numbered bins (steps of the axis), add missing bins, build the arrays.

An axis of datetimes or timespans is computed in microseconds, any other axis in its own unit. Separate from
``make_series``, which reads and checks the operator, because either part fills a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from emulators.kusto.extensions.sql import quote_name

MAX_ELEMENTS = 1_048_576
"""Maximum length of an array, as documented for ``make-series``."""
_TICKS_TO_EPOCH = 62_135_596_800_000_000
"""Microseconds from 0001-01-01 to 1970-01-01; without a start, the bins of instants begin at 0001-01-01."""


@dataclass(frozen=True, slots=True)
class SeriesSql:
    """Array column of a ``make-series``: name, SQL of the aggregate, and SQL of the value for bins without rows."""

    name: str
    aggregate: str
    default: str


@dataclass(frozen=True, slots=True)
class AxisSql:
    """Axis of a ``make-series``; all expressions are SQL.

    Attributes:
        name: name of the axis column.
        value: position of a row on the axis.
        start: start of the axis; None if each array starts at its first bin with a row.
        stop: end of the axis; None if each array ends at its last bin with a row.
        step: distance between two elements of the axis.
        temporal: True if the axis consists of datetimes or timespans.
        through: True if the axis includes ``stop``.
    """

    name: str
    value: str
    start: str | None
    stop: str | None
    step: str
    temporal: bool
    through: bool

    def render_number(self, sql: str) -> str:
        """Return SQL that converts an axis value to a number, which can be divided."""
        return f"epoch_us({sql})" if self.temporal else f"({sql})"

    def render_origin(self, kind: str) -> str:
        """Return SQL for the start of bin 0; ``kind`` is SQL that returns the name of the axis's DuckDB type."""
        if self.start is not None:
            return self.render_number(self.start)
        if not self.temporal:
            return "CAST(0 AS BIGINT)"
        return f"CASE {kind} WHEN 'INTERVAL' THEN CAST(0 AS BIGINT) ELSE -{_TICKS_TO_EPOCH} END"

    def render_bin(self) -> str:
        """Return SQL that computes the number of the bin (step of the axis) to which a row belongs."""
        offset = f"({self.render_number(self.value)} - {self.render_origin(f'typeof({self.value})')})"
        step = f"nullif({self.render_number(self.step)}, 0)"  # the SQL of the parameters rejects 0 with a message
        if not self.temporal:
            return f"CAST(floor(CAST({offset} AS DOUBLE) / {step}) AS BIGINT)"
        # No row precedes the start; without a start, no instant of Kusto precedes the origin.
        return (
            f"({offset} // {step})" if self.start else f"(({offset} - ({offset} % {step} + {step}) % {step}) // {step})"
        )

    def render_condition(self) -> str:
        """Return SQL for the condition that a row is between the bounds of the axis.

        The condition compares the column directly, so that DuckDB can skip parts of a table.
        """
        conditions = [f"({self.value}) IS NOT NULL"]
        if self.start is not None:
            conditions.append(f"({self.value}) >= {self.start}")
        if self.stop is not None:
            last = f"{self.render_bin()} <= (SELECT n FROM _p)"  # noqa: S608
            conditions.append(last if self.through else f"({self.value}) < {self.stop}")
        return " AND ".join(conditions)

    def render_last_bin(self) -> str:
        """Return SQL for the number of the last bin, from columns ``lo`` (start), ``hi`` (end) and ``st`` (step)."""
        if self.temporal:
            return "(hi - lo) // st" if self.through else "(hi - lo + st - 1) // st - 1"
        steps = "(CAST(hi AS DOUBLE) - lo) / st"
        return f"CAST(floor({steps}) AS BIGINT)" if self.through else f"CAST(ceil({steps}) AS BIGINT) - 1"


def render_series(
    prev: str, keys: Sequence[tuple[str, str]], series: Sequence[SeriesSql], axis: AxisSql, *, nonempty: bool
) -> str:
    """Return one SELECT for a ``make-series``; the SELECT yields a row of arrays for each combination of keys.

    Args:
        prev: name of the subquery with the input rows.
        keys: column name and SQL of each key.
        series: array columns.
        axis: axis of all arrays.
        nonempty: True if an empty input yields arrays of default values; permitted only without keys.
    """
    by = [f"k{index}" for index in range(len(keys))]
    stages = {
        "_p AS MATERIALIZED": _render_parameters(prev, axis),
        "_b AS MATERIALIZED": _render_bins(prev, keys, series, axis),
        "_g AS MATERIALIZED": _render_nonempty_group() if nonempty else _render_groups(by, axis),
        "_e AS": f"SELECT {', '.join([*by, 'first', 'last'])}, unnest(range(first, last + 1)) AS i FROM _g",  # noqa: S608
        "_s AS": _render_arrays(by, series),
        "_a AS": f"SELECT first, last, {_render_axis_array(axis)} AS a FROM (SELECT DISTINCT first, last FROM _g), _p",  # noqa: S608
    }
    columns = [f"{key} AS {quote_name(name)}" for key, (name, _) in zip(by, keys, strict=True)]
    columns += [f"kql_array(v{index}) AS {quote_name(each.name)}" for index, each in enumerate(series)]
    columns.append(f"a AS {quote_name(axis.name)}")
    ctes = ", ".join(f"{name} ({sql})" for name, sql in stages.items())
    return f"WITH {ctes} SELECT {', '.join(columns)} FROM _s JOIN _a USING (first, last)"  # noqa: S608


def _render_parameters(prev: str, axis: AxisSql) -> str:
    """Return SQL that computes the bounds and the step of the axis, and the number ``n`` of the last bin."""
    kind = f"SELECT typeof(any_value(x)) AS kind FROM (SELECT {axis.value} AS x FROM {prev} LIMIT 0)"  # noqa: S608
    step = axis.render_number(axis.step)
    steps = f"CASE WHEN {step} > 0 THEN {step} ELSE error('the step of make-series must be above zero') END"
    stop = "NULL" if axis.stop is None else axis.render_number(axis.stop)
    numbers = f"SELECT {axis.render_origin('kind')} AS lo, {stop} AS hi, {steps} AS st, kind FROM ({kind})"  # noqa: S608
    return f"SELECT lo, hi, st, kind, {_render_last_bin(axis)} AS n FROM ({numbers})"  # noqa: S608


def _render_last_bin(axis: AxisSql) -> str:
    if axis.stop is None:
        return "NULL"
    if not axis.through:
        return axis.render_last_bin()
    origin = f"CASE kind WHEN 'INTERVAL' THEN 0 ELSE {_TICKS_TO_EPOCH} END" if axis.temporal else "0"
    message = "make-series in range() whose start is not a multiple of the step is not supported"
    return f"CASE WHEN (lo + {origin}) % st <> 0 THEN error('{message}') ELSE {axis.render_last_bin()} END"


def _render_bins(prev: str, keys: Sequence[tuple[str, str]], series: Sequence[SeriesSql], axis: AxisSql) -> str:
    columns = [f"{sql} AS k{index}" for index, (_, sql) in enumerate(keys)]
    columns += [f"{axis.render_bin()} AS i", *(f"{each.aggregate} AS v{index}" for index, each in enumerate(series))]
    grouped = ", ".join([*(sql for _, sql in keys), axis.render_bin()])
    return f"SELECT {', '.join(columns)} FROM {prev} WHERE {axis.render_condition()} GROUP BY {grouped}"  # noqa: S608


def _render_groups(by: Sequence[str], axis: AxisSql) -> str:
    """Return SQL that computes the numbers of the first and the last bin for each combination of keys."""
    first = "min(i)" if axis.start is None else "CAST(0 AS BIGINT)"
    last = "max(i)" if axis.stop is None else "any_value(n)"
    grouping = f"GROUP BY {', '.join(by)}" if by else "HAVING count(*) > 0"
    found = f"SELECT {', '.join([*by, f'{first} AS first', f'{last} AS last'])} FROM _b, _p {grouping}"  # noqa: S608
    return f"SELECT {', '.join([*by, 'first', _render_checked_last()])} FROM ({found})"  # noqa: S608


def _render_nonempty_group() -> str:
    return f"SELECT first, {_render_checked_last()} FROM (SELECT CAST(0 AS BIGINT) AS first, n AS last FROM _p)"  # noqa: S608


def _render_checked_last() -> str:
    message = f"make-series supports arrays of at most {MAX_ELEMENTS} elements"
    return f"CASE WHEN last - first >= {MAX_ELEMENTS} THEN error('{message}') ELSE last END AS last"


def _render_arrays(by: Sequence[str], series: Sequence[SeriesSql]) -> str:
    """Return SQL that builds the arrays; only bins without rows have the default value."""
    same = " AND ".join(["_e.i = _b.i", *(f"_e.{key} IS NOT DISTINCT FROM _b.{key}" for key in by)])
    lists = [
        f"list(CASE WHEN _b.i IS NULL THEN {each.default} ELSE _b.v{index} END ORDER BY _e.i) AS v{index}"
        for index, each in enumerate(series)
    ]
    grouped = [*(f"_e.{key}" for key in by), "first", "last"]
    return f"SELECT {', '.join([*grouped, *lists])} FROM _e LEFT JOIN _b ON {same} GROUP BY {', '.join(grouped)}"  # noqa: S608


def _render_axis_array(axis: AxisSql) -> str:
    points = "list_transform(range(first, last + 1), lambda _i: lo + _i * st)"
    if not axis.temporal:
        return f"kql_array({points})"
    return f"CASE kind WHEN 'INTERVAL' THEN kql_spans({points}) ELSE kql_instants({points}) END"
