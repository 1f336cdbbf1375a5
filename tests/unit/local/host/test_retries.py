"""Tests of retry policies of event triggers."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from local.host.retries import RetryPolicy, retry_policy_from_worker_options
from local.host.worker_protocol import RpcRetryOptions


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.integers(0, 10_000))
def test_a_retry_delay_stays_within_its_intervals(minimum: float, span: float, retries: int) -> None:
    """A retry delay is at least four fifths of the minimum interval and at most the maximum interval."""
    delay = RetryPolicy(-1, minimum, minimum + span).compute_delay_seconds(retries)
    assert 0.8 * minimum <= delay <= minimum + span


def test_a_retry_policy_ends_after_its_number_of_retries() -> None:
    """A retry policy allows the stated number of retries; -1 means no limit."""
    assert [RetryPolicy(2, 1, 1).is_exhausted(retries) for retries in (0, 1, 2)] == [False, False, True]
    assert not RetryPolicy(-1, 1, 1).is_exhausted(10**9)


def test_retry_policies_of_the_worker_library_are_read() -> None:
    """Fixed and exponential retry policies of the worker library are read; a function without a policy has None."""
    fixed = RpcRetryOptions(retry_strategy="fixed_delay", max_retry_count=3, delay_interval=timedelta(seconds=7))
    growing = RpcRetryOptions(
        retry_strategy="exponential_backoff",
        max_retry_count=-1,
        minimum_interval=timedelta(seconds=2),
        maximum_interval=timedelta(minutes=1),
    )
    assert retry_policy_from_worker_options(fixed) == RetryPolicy(3, 7, 7)
    assert retry_policy_from_worker_options(growing) == RetryPolicy(-1, 2, 60)
    assert retry_policy_from_worker_options(None) is None
