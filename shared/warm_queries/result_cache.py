"""In-memory cache of query results, so that many dashboards with the same query cause one engine request.

It is a module of its own because eviction by rows and age is a concern apart from running queries.
"""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime, timedelta

from shared.warm_queries.results import QueryResult

MAX_RESULTS = 512
MAX_ROWS = 200_000


class ResultCache:
    """Least recently used cache of query results.

    The number of results and of rows is limited, and each result expires after its query's cache time.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, QueryResult] = OrderedDict()
        self._rows = 0

    def find(self, key: Hashable, max_age: timedelta, at: datetime) -> QueryResult | None:
        """Return the result of a key if it is not older than allowed."""
        result = self._results.get(key)
        if result is None:
            return None
        if at - result.executed_at > max_age:
            self._drop(key)
            return None
        self._results.move_to_end(key)
        return result

    def store(self, key: Hashable, result: QueryResult) -> None:
        """Store a result, and evict the least recently used results over the limits."""
        self._drop(key)
        if len(result.rows) > MAX_ROWS:
            return
        self._results[key] = result
        self._rows += len(result.rows)
        while len(self._results) > MAX_RESULTS or self._rows > MAX_ROWS:
            self._drop(next(iter(self._results)))

    def _drop(self, key: Hashable) -> None:
        result = self._results.pop(key, None)
        if result is not None:
            self._rows -= len(result.rows)
