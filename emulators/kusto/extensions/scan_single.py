"""The recursive query behind a ``scan`` of one step, such as a running value that starts again.

A row gives one result or none, and all of them are of one sequence, so that a turn carries plain columns; a list of
results and the flags of several steps are most of what a turn of the general machine costs.
"""

from collections.abc import Mapping

from emulators.kusto.extensions.scan_machine import Machine, quoted
from emulators.kusto.extensions.window_plan import Partition


class SingleStep(Machine):
    """Writes the query for a machine of one step."""

    def sql(self, prev: str, partition: Partition) -> str:
        """Return a row for each match, in the order of the rows."""
        p = self._p
        state = {self._field(0, 0, name): name for name in self._read[0]}
        nothing = {self._new(each.name): f"CAST(NULL AS {each.sql_type})" for each in self._declared.values()}
        initial = _as(nothing | {field: self._blank(name) for field, name in state.items()})
        begun = f", true AS {p}b" if partition.columns else ""
        values = [f"e.{name} AS {quoted(each)}" for name, each in zip([*nothing, f"{p}q"], self._added, strict=False)]
        result = ", ".join([*(f"i.{quoted(name)}" for name in self._cols), *values])
        shown = f"e.{p}h" if self._steps[0].shown else "false"
        return (
            f"WITH RECURSIVE {self._rows(prev, partition)}, "  # noqa: S608  generated names, rendered expressions
            f"{p}m AS (SELECT {p}r - 1 AS {p}r, false AS {p}h{initial}{begun} FROM {p}d WHERE {p}f UNION ALL "
            f"{self._turn(state, partition)}) SELECT {result} FROM {p}i AS i "
            f"JOIN (SELECT *, CAST(0 AS BIGINT) AS {p}q FROM {p}m) AS e ON e.{p}r = i.{p}r WHERE {shown} "
            f"ORDER BY e.{p}r"
        )

    def _turn(self, state: Mapping[str, str], partition: Partition) -> str:
        """Return the query of the next row of every partition after it has been through the step."""
        p = self._p
        before = "".join(f", m.{field}" for field in state)
        follows = f"d.{p}r = m.{p}r + 1" + (f" AND (m.{p}b OR NOT d.{p}f)" if partition.columns else "")
        matched = f"coalesce({self._at(self._steps[0].condition, 0)}, false) AS {p}h"
        values = _as({self._new(each.name): self._value(0, each) for each in self._declared.values()})
        after = {field: f"CASE WHEN {p}h THEN {self._taken(name)} ELSE {field} END" for field, name in state.items()}
        begun = ", false" if partition.columns else ""
        kept = "".join(f", {self._new(each)}" for each in self._declared)
        joined = f"SELECT d.*{before} FROM {p}m AS m JOIN {p}d AS d ON {follows}"  # noqa: S608
        tested = f"SELECT *, {matched}, CASE WHEN {p}h THEN 2 END AS {p}c FROM ({joined})"  # noqa: S608
        return f"SELECT {p}r, {p}h{kept}{_as(after)}{begun} FROM (SELECT *{values} FROM ({tested}))"  # noqa: S608


def _as(columns: Mapping[str, str]) -> str:
    return "".join(f", {sql} AS {name}" for name, sql in columns.items())
