"""Tests of attempts that several callers share."""

import asyncio

import pytest

from shared.backends.azure.shared_attempts import SharedAttempts
from shared.errors import Kind, WorkspaceError


class FailingClient:
    """Client whose attempts fail; they do so after :meth:`fail_attempt` is called."""

    def __init__(self) -> None:
        self.attempts = 0
        self._shared = SharedAttempts()
        self._may_fail = asyncio.Event()

    async def reach_service(self) -> None:
        """Make an attempt that fails."""
        async with self._shared.hold_lock_or_raise_shared_failure():
            self.attempts += 1
            await self._may_fail.wait()
            raise WorkspaceError(Kind.UNAVAILABLE, "CODE", f"Attempt {self.attempts} failed.", retryAfter=7)

    def fail_attempt(self) -> None:
        """Let the current attempt and all later ones fail."""
        self._may_fail.set()


async def test_callers_that_wait_for_a_failing_attempt_get_its_error() -> None:
    """The failure of an attempt is the result of all callers that waited for it, and none of them starts another."""
    client = FailingClient()
    calls = [asyncio.create_task(client.reach_service()) for _ in range(5)]
    await asyncio.sleep(0)
    client.fail_attempt()
    errors = await asyncio.gather(*calls, return_exceptions=True)
    found = {
        (error.code, error.detail, error.members["retryAfter"]) for error in errors if isinstance(error, WorkspaceError)
    }
    assert (len(errors), found, client.attempts) == (5, {("CODE", "Attempt 1 failed.", 7)}, 1)


async def test_a_caller_after_a_failure_starts_a_new_attempt() -> None:
    """A caller that comes after a failure starts a new attempt."""
    client = FailingClient()
    client.fail_attempt()
    for number in (1, 2):
        with pytest.raises(WorkspaceError, match=f"Attempt {number} failed"):
            await client.reach_service()


async def test_a_caller_that_waits_for_a_cancelled_attempt_starts_a_new_one() -> None:
    """If the caller of an attempt is cancelled, the next waiting caller starts a new attempt."""
    client = FailingClient()
    first, second = (asyncio.create_task(client.reach_service()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    client.fail_attempt()
    with pytest.raises(WorkspaceError, match="Attempt 2 failed"):
        await second
