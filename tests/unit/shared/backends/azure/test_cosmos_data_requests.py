"""Tests of retries of requests to the accounts of data stores."""

from collections.abc import Callable

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure.cosmos_data_requests import (
    ATTEMPTS,
    WriteRetries,
    build_error_if_nothing_changed,
    retry_document_read,
    wait_with_backoff,
)
from shared.backends.azure.cosmos_requests import CosmosUsage
from shared.errors import WorkspaceError
from shared.runtime import Runtime


async def return_at_once(_: float) -> None:
    """Return at once instead of waiting."""


RUNTIME = Runtime(sleep=return_at_once)


def build_rejection(status: int, sub_status: int = 0) -> CosmosHttpResponseError:
    """Return the error that the SDK raises for a rejected request."""
    error = CosmosHttpResponseError(status_code=status, message="x")
    error.sub_status = sub_status
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (build_rejection(429), "THROTTLED"),
        (build_rejection(403), "DATA_PLANE_FORBIDDEN"),
        (build_rejection(403, 3), "DATA_STORE_UNAVAILABLE"),
        (build_rejection(403, 1014), "PARTITION_FULL"),
        (build_rejection(401), "DATA_PLANE_FORBIDDEN"),
        (build_rejection(404), "DOCUMENT_NOT_FOUND"),
        (build_rejection(404, 1003), "TABLE_NOT_FOUND"),
        (build_rejection(404, 1002), None),
        (build_rejection(409), "UNIQUE_KEY_CONFLICT"),
        (build_rejection(412), "PRECONDITION_FAILED"),
        (build_rejection(413), "DOCUMENT_TOO_LARGE"),
        (build_rejection(400), "INVALID_REQUEST"),
        (build_rejection(503), None),
        (build_rejection(408), None),
        (TimeoutError(), None),
    ],
)
def test_only_some_failures_prove_that_a_write_was_not_applied(error: Exception, code: str | None) -> None:
    """Only some errors prove that a write was not applied; after any other error, it may have been applied."""
    found = build_error_if_nothing_changed(error)
    assert (None if found is None else found.code) == code


async def test_a_read_is_repeated_after_transient_failures() -> None:
    """After a transient error a read is repeated, and a metric counts the repetitions."""
    usage, failures = CosmosUsage(), [build_rejection(503), build_rejection(408)]

    async def read() -> str:
        if failures:
            raise failures.pop()
        return "document"

    assert await retry_document_read(read, usage, RUNTIME) == "document"
    assert usage.read_retries == 2


@pytest.mark.parametrize(
    ("error", "attempts"), [(build_rejection(404), 1), (build_rejection(429), 1), (build_rejection(503), ATTEMPTS)]
)
async def test_a_rejected_read_is_not_repeated(error: Exception, attempts: int) -> None:
    """A read that is rejected is not repeated; during an outage, a read fails after ten attempts."""
    calls: list[int] = []

    async def read() -> None:
        calls.append(1)
        raise error

    with pytest.raises(WorkspaceError):
        await retry_document_read(read, CosmosUsage(), RUNTIME)
    assert len(calls) == attempts


async def test_a_write_with_an_unknown_result_has_its_own_error() -> None:
    """If it is unknown whether a write was applied, a separate error says that the document may have changed."""
    retries = WriteRetries(CosmosUsage(), RUNTIME)
    for _ in range(ATTEMPTS - 1):
        await retries.wait_after_failure(build_rejection(503), has_if_match=False)
    with pytest.raises(WorkspaceError) as raised:
        await retries.wait_after_failure(build_rejection(503), has_if_match=False)
    assert (raised.value.code, retries.uncertain) == ("DOCUMENT_OUTCOME_UNKNOWN", True)


@pytest.mark.parametrize(("status", "sub_status"), [(449, 0), (404, 1002)])
async def test_a_write_that_the_account_wants_again_is_certain(status: int, sub_status: int) -> None:
    """A write that the account did not apply and wants again is repeated; at last, nothing was written."""
    retries = WriteRetries(CosmosUsage(), RUNTIME)
    for _ in range(ATTEMPTS - 1):
        await retries.wait_after_failure(build_rejection(status, sub_status), has_if_match=True)
    with pytest.raises(WorkspaceError) as raised:
        await retries.wait_after_failure(build_rejection(status, sub_status), has_if_match=True)
    assert (raised.value.code, retries.uncertain) == ("DATA_STORE_UNAVAILABLE", False)


async def test_a_rejected_write_is_not_repeated() -> None:
    """A write that the account rejects is not repeated, and its result is known: nothing was written."""
    retries = WriteRetries(CosmosUsage(), RUNTIME)
    with pytest.raises(WorkspaceError) as raised:
        await retries.wait_after_failure(build_rejection(403), has_if_match=False)
    assert (raised.value.code, retries.uncertain) == ("DATA_PLANE_FORBIDDEN", False)


async def test_the_wait_between_attempts_grows_up_to_a_second() -> None:
    """The wait between attempts grows up to one second, plus the delay that the account requests."""
    waits: list[float] = []

    async def record_wait(seconds: float) -> None:
        waits.append(seconds)

    longest: Callable[[float, float], float] = lambda _, high: high  # noqa: E731  a constant
    runtime = Runtime(sleep=record_wait, uniform=longest)
    for failures in (1, 2, 30):
        await wait_with_backoff(failures, 0.5, runtime)
    assert waits == [0.52, 0.54, 1.5]
