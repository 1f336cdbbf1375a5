"""The query results cache: what counts as the same request, what a hit says, and how much is kept."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from azure.kusto.data import ClientRequestProperties, KustoClient, KustoConnectionStringBuilder

from emulators.kusto.frames import Answer, Origin
from emulators.kusto.options import RequestOptions
from emulators.kusto.results_cache import MAX_RESULT_BYTES, KeptAnswer, ResultsCache
from tests.emulators.kusto.endpoints import Endpoint

NOW = "declare query_parameters(n:long = 1); print at = now(), n = n"
MINUTE = timedelta(minutes=1)


def asked(endpoint: Endpoint, text: str = NOW, request_id: str = "", n: int | None = None, **options: Any) -> Any:
    """Return the answer's value and the value of the row ServerCache, None where there is none."""
    properties = ClientRequestProperties()
    if request_id:
        properties.client_request_id = request_id
    for name, option in options.items():
        properties.set_option(name, option)
    if n is not None:
        properties.set_parameter("n", str(n))
    with KustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client:
        answer = client.execute_query("Telemetry", text, properties)
    extended = {row["Key"]: row["Value"] for row in answer.tables[0]}
    cached = extended.get("ServerCache")
    return answer.primary_results[0].raw_rows[0][0], cached if cached is None else json.loads(
        str(cached).replace("'", '"')
    )


def test_a_young_result_is_given_again(endpoint: Endpoint) -> None:
    """The same request within the age gets the same result, and is told whose it was."""
    text = NOW + " | where n > -1"
    first, fresh = asked(endpoint, text, "first-request", query_results_cache_max_age="00:05:00")
    again, kept = asked(endpoint, text, "second-request", query_results_cache_max_age="00:05:00")
    assert fresh is None
    assert again == first
    assert kept["OriginalClientRequestId"] == "first-request"
    started = datetime.fromisoformat(kept["OriginalStartedOn"])
    assert abs(datetime.now(UTC) - started) < timedelta(minutes=5)


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"query_results_cache_max_age": "00:00:00"},
        {"query_results_cache_max_age": "00:05:00", "n": 2},
        {"query_results_cache_max_age": "00:05:00", "text": NOW + " | where n > 0"},
        {"query_results_cache_max_age": "00:05:00", "query_take_max_records": 7},
        {"query_results_cache_max_age": "00:05:00", "query_results_cache_force_refresh": True},
    ],
)
def test_another_request_is_computed(endpoint: Endpoint, other: dict[str, Any]) -> None:
    """Without an age, or with other parameters, text or limits, or when asked to, the query runs."""
    first, _ = asked(endpoint, query_results_cache_max_age="00:05:00")
    then, kept = asked(endpoint, **other)
    assert kept is None
    assert then > first


def test_a_failure_is_not_kept(endpoint: Endpoint) -> None:
    """A failed query fails again."""
    text = "print toscalar(range i from 1 to 3 step 1 | where error_(i))"
    for _ in range(2):
        assert endpoint.code(text, query_results_cache_max_age="00:05:00")


@pytest.mark.parametrize("age", ["soon", 5, "-00:00:01"])
def test_an_age_is_a_timespan(endpoint: Endpoint, age: object) -> None:
    """An age that is no timespan is refused by name."""
    options = {"Options": {"query_results_cache_max_age": age}}
    reply = httpx.post(f"{endpoint.url}/v2/rest/query", json={"csl": "print 1", "properties": options})
    assert reply.status_code == 400
    assert "query_results_cache_max_age" in reply.text


def kept(size: int, age: timedelta = timedelta()) -> KeptAnswer:
    """Return a result of so many bytes that is so old."""
    return KeptAnswer(Answer((), b"x" * size, 0.0), Origin("id", datetime.now(UTC) - age))


def key(text: str) -> bytes:
    """Return a key."""
    return ResultsCache.key(text, {}, RequestOptions())


def test_old_results_are_not_found() -> None:
    """A result older than the age asked for is not given; a younger age leaves it for others."""
    cache = ResultsCache()
    cache.keep(key("a"), kept(1, MINUTE))
    assert cache.find(key("a"), MINUTE / 2) is None
    assert cache.find(key("a"), 2 * MINUTE) is not None


def test_what_was_not_used_longest_goes_first() -> None:
    """The results stay within their number of bytes, and one that is too large is not kept at all."""
    cache = ResultsCache(max_bytes=1000)
    for name in "abc":
        cache.keep(key(name), kept(300))
    assert cache.find(key("a"), MINUTE) is not None
    cache.keep(key("d"), kept(300))
    assert [cache.find(key(name), MINUTE) is not None for name in "abcd"] == [True, False, True, True]
    cache.keep(key("a"), kept(MAX_RESULT_BYTES + 1))
    assert cache.find(key("a"), MINUTE) is None
