"""Cache of the results of KQL queries in memory."""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Final

from shared.warm_queries.results import QueryResult

MAX_RESULTS: Final = 512
MAX_ROWS: Final = 200_000


class ResultCache:
    """Least recently used cache of query results.

    The number of results and of rows is limited, and each result expires after its query's cache time.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, QueryResult] = OrderedDict()
        self._rows = 0

    def find(self, key: Hashable, max_age: timedelta, at: datetime) -> QueryResult | None:
        """Return the cached result with this key if it is at most ``max_age`` old, else None."""
        result = self._results.get(key)
        if result is None:
            return None
        if at - result.executed_at > max_age:
            self._remove_result(key)
            return None
        self._results.move_to_end(key)
        return result

    def store(self, key: Hashable, result: QueryResult) -> None:
        """Cache a result, and evict the least recently used results if a limit is exceeded."""
        self._remove_result(key)
        if result.row_count > MAX_ROWS:
            return
        self._results[key] = result
        self._rows += result.row_count
        while len(self._results) > MAX_RESULTS or self._rows > MAX_ROWS:
            self._remove_result(next(iter(self._results)))

    def _remove_result(self, key: Hashable) -> None:
        result = self._results.pop(key, None)
        if result is not None:
            self._rows -= result.row_count
