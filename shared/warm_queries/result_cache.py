"""Answers kept in memory for queries that allow it, so that a dashboard's crowd asks the engine once."""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime, timedelta

from shared.warm_queries.results import QueryResult

MAX_RUNS = 512
MAX_ROWS = 200_000


class ResultCache:
    """The runs used last, bounded in number and rows; each is given again until it is as old as its query allows."""

    def __init__(self) -> None:
        self._runs: OrderedDict[Hashable, QueryResult] = OrderedDict()
        self._rows = 0

    def find(self, key: Hashable, max_age: timedelta, at: datetime) -> QueryResult | None:
        """Return the run under a key if it is no older than allowed."""
        run = self._runs.get(key)
        if run is None:
            return None
        if at - run.executed_at > max_age:
            self._drop(key)
            return None
        self._runs.move_to_end(key)
        return run

    def store(self, key: Hashable, run: QueryResult) -> None:
        """Keep a run, and forget the ones that were not used for longest when there are too many."""
        self._drop(key)
        if len(run.rows) > MAX_ROWS:
            return
        self._runs[key] = run
        self._rows += len(run.rows)
        while len(self._runs) > MAX_RUNS or self._rows > MAX_ROWS:
            self._drop(next(iter(self._runs)))

    def _drop(self, key: Hashable) -> None:
        run = self._runs.pop(key, None)
        if run is not None:
            self._rows -= len(run.rows)
