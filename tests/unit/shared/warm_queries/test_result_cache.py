"""Tests of the cache of query results."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.warm_queries import result_cache
from shared.warm_queries.ports import Column
from shared.warm_queries.result_cache import ResultCache
from shared.warm_queries.results import QueryResult

AT = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


def build_result(rows: int, *, by_column: bool = False) -> QueryResult:
    """Return a result with a number of rows."""
    objects = [] if by_column else [{"n": number} for number in range(rows)]
    values = (list(range(rows)),) if by_column else None
    return QueryResult("q", AT, (Column("n", "long"),), objects, False, 1.0, None, values=values)


def test_a_result_expires() -> None:
    """A result is found until it is older than the cache time of its query."""
    cache = ResultCache()
    cache.store("a", build_result(1))
    assert cache.find("a", HOUR, AT + HOUR) is not None
    assert cache.find("a", HOUR, AT + 2 * HOUR) is None
    assert cache.find("a", HOUR, AT) is None


@pytest.mark.parametrize("by_column", [False, True])
def test_the_least_recently_used_results_are_evicted(by_column: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001  a case
    """The rows of results with rows and of results by column count, and a result over the limit is not cached."""
    monkeypatch.setattr(result_cache, "MAX_ROWS", 10)
    cache = ResultCache()
    for key in ("a", "b"):
        cache.store(key, build_result(4, by_column=by_column))
    assert cache.find("a", HOUR, AT) is not None
    cache.store("c", build_result(4, by_column=by_column))
    cache.store("d", build_result(11, by_column=by_column))
    assert [cache.find(key, HOUR, AT) is not None for key in "abcd"] == [True, False, True, False]
