"""Where sessions begin: a session's start decides where the next one may begin, so its rows follow from each other.

A gap or a restart ends every session; between two such breaks ("run") the starts form a chain. In a run whose values
ascend, the next start lies in the rows of the next span as long as a session, so the chain goes from span to span; in
any other run it goes from row to row. All runs advance together, one span in each turn of a recursive query.
"""

from typing import Protocol

_RUNNING = "OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"


class Columns(Protocol):
    """Where columns are added, and the one that numbers the rows."""

    row: str

    def column(self, sql: str, depth: int) -> str:
        """Add a column that is computed over those of lower depth, and return its name."""
        ...

    def chain(self, write: "Chain", depth: int) -> str:
        """Add a column whose values a query of its own gives for row numbers; null where it gives none."""
        ...


class Chain(Protocol):
    """Writes a query over the named rows that returns row numbers (``r``) and values (``v``)."""

    def __call__(self, rows: str) -> str:
        """Return the query."""
        ...


def session_starts(
    columns: Columns, arguments: tuple[str, str, str], begins: str | None, depth: int
) -> tuple[str, int]:
    """Add the column of each row's session start.

    A session begins where the value is the first, follows a null, lies ``longest`` or more after the session's start
    or ``gap`` or more after the value before it, or where ``begins`` says so (documentation of row_window_session()).

    Args:
        columns: takes the columns.
        arguments: SQL of the value, the longest session and the largest gap.
        begins: a column that is true where a session must begin.
        depth: of the columns that these arguments read.

    Returns:
        The column and its depth.
    """
    value, longest, gap = arguments
    at = columns.column(f"epoch_us({value})", depth + 1)
    before = f"lag({at}) OVER ()"
    breaks = f"coalesce({at} >= {before} + epoch_us({gap}), true)" + (f" OR {begins}" if begins else "")
    broken = columns.column(f"({breaks})", depth + 2)
    falls = columns.column(f"coalesce({at} < {before}, false)", depth + 2)
    run = columns.column(f"count(*) FILTER (WHERE {broken}) {_RUNNING}", depth + 3)
    origin = columns.column(f"last_value(CASE WHEN {broken} THEN {at} END IGNORE NULLS) {_RUNNING}", depth + 3)
    unsorted = columns.column(f"(NOT {broken} AND {falls})", depth + 3)

    def chain(rows: str) -> str:
        return _chain(rows, (columns.row, at, run, origin, unsorted), f"epoch_us({longest})")

    start = columns.chain(chain, depth + 4)
    last = f"last_value({start} IGNORE NULLS) {_RUNNING}"
    return columns.column(f"CASE WHEN {at} IS NOT NULL THEN make_timestamp({last}) END", depth + 5), depth + 5


def _chain(rows: str, names: tuple[str, str, str, str, str], longest: str) -> str:
    row, at, run, origin, unsorted = names
    falling = f"{run} IN (SELECT {run} FROM {rows} WHERE {unsorted})"  # noqa: S608  generated names
    span = f"CASE WHEN {falling} THEN {row} ELSE ({at} - {origin}) // greatest({longest}, 1) END"
    return (
        f"WITH RECURSIVE spans AS MATERIALIZED (SELECT g, b, rows, "  # noqa: S608  generated names
        f"lead(b) OVER (PARTITION BY g ORDER BY b) AS n, b = min(b) OVER (PARTITION BY g) AS f FROM "
        f"(SELECT {run} AS g, {span} AS b, list({{'t': {at}, 'r': {row}}}) AS rows FROM {rows} "
        f"WHERE {at} IS NOT NULL GROUP BY ALL)), "
        f"chain AS (SELECT g, n, list_min(rows).t + {longest} AS x, list_min(rows) AS s FROM spans WHERE f UNION ALL "
        f"SELECT g, n, CASE WHEN s IS NULL THEN x ELSE s.t + {longest} END, s FROM (SELECT p.g, p.n, c.x, "
        f"list_min(list_filter(p.rows, lambda q: q.t >= c.x)) AS s FROM chain c "
        f"JOIN spans p ON p.g = c.g AND p.b = c.n)) SELECT s.r AS r, s.t AS v FROM chain WHERE s IS NOT NULL"
    )
