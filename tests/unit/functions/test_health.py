"""Tests of the readiness probe's reply while dependencies fail."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from types import SimpleNamespace
from typing import Any

import pytest

from functions import health
from shared.auth.principals import ANONYMOUS, CredentialKind
from shared.auth.rights import AccessRight
from shared.errors import WorkspaceError
from shared.http.messages import Request
from shared.http.operations import Call, NoBody, NoQuery

CALL: Call[Any, Any] = Call(ANONYMOUS, {}, NoQuery(), NoBody(), Request("GET", "/readyz", "", {}, b""))


def replace_services(
    monkeypatch: pytest.MonkeyPatch,
    list_failing_dependencies: Callable[[], Awaitable[list[str]]],
    read_rights: Callable[[], Awaitable[object]],
) -> None:
    """Replace the services of the readiness probe until the test ends.

    Args:
        monkeypatch: replaces the services.
        list_failing_dependencies: result of the checks.
        read_rights: awaited by the authentication of the caller, who may read the catalog.
    """

    async def authenticate(_header: str, _accepted: Collection[CredentialKind]) -> SimpleNamespace:
        await read_rights()
        return SimpleNamespace(rights={AccessRight.CATALOG_READ})

    async def list_no_warnings() -> list[str]:
        return []

    app = SimpleNamespace(
        readiness=SimpleNamespace(list_failing_dependencies=list_failing_dependencies),
        access=SimpleNamespace(authenticator=authenticate),
    )
    monkeypatch.setattr(health, "services", lambda: app)
    monkeypatch.setattr(health, "_list_readiness_warnings", list_no_warnings)


async def read_error_details(
    monkeypatch: pytest.MonkeyPatch,
    check: Callable[[], Awaitable[object]],
    read_rights: Callable[[], Awaitable[object]],
) -> dict[str, object]:
    """Return the details of the readiness probe's error while a store fails.

    Args:
        monkeypatch: replaces the services until the test ends.
        check: awaited by the check of the dependencies.
        read_rights: awaited by the authentication of the caller, who may read the catalog.
    """

    async def list_failing_dependencies() -> list[str]:
        await check()
        return ["audit log"]

    replace_services(monkeypatch, list_failing_dependencies, read_rights)
    async with asyncio.timeout(20):
        with pytest.raises(WorkspaceError) as raised:
            await health.ready(CALL)
    assert raised.value.code == "NOT_READY"
    return dict(raised.value.members)


async def succeed_check() -> None:
    """Do nothing."""


async def raise_unexpected_error() -> None:
    """Raise an error that the authentication does not convert."""
    raise RuntimeError


async def test_rights_are_read_while_slow_dependencies_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's rights are read while the dependencies are checked, so that slow stores delay the reply once."""
    monkeypatch.setattr(health, "SLOW_CHECK_SECONDS", 0)
    meeting = asyncio.Barrier(2)
    assert await read_error_details(monkeypatch, meeting.wait, meeting.wait) == {"failing": ["audit log"]}


async def test_a_reply_does_not_wait_for_rights_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the caller's rights cannot be read in time, the reply omits the list of failing dependencies."""
    monkeypatch.setattr(health, "READY_SECONDS", 0.05)
    assert await read_error_details(monkeypatch, succeed_check, asyncio.Event().wait) == {}


async def test_an_unexpected_error_of_the_authentication_hides_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the authentication fails unexpectedly, the reply is 503 without the list of failing dependencies."""
    assert await read_error_details(monkeypatch, succeed_check, raise_unexpected_error) == {}


async def test_a_ready_service_does_not_authenticate_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the checks succeed quickly, the credential of the caller is not verified and no use of it is recorded."""
    monkeypatch.setattr(health, "SLOW_CHECK_SECONDS", 1000)
    authenticated: list[bool] = []

    async def list_no_failures() -> list[str]:
        await asyncio.sleep(0)
        return []

    async def read_rights() -> None:
        authenticated.append(True)

    replace_services(monkeypatch, list_no_failures, read_rights)
    assert (await health.ready(CALL)).status == 200
    assert not authenticated


@pytest.mark.parametrize("end", [asyncio.Event().wait, raise_unexpected_error])
async def test_the_authentication_does_not_change_the_reply_of_a_ready_service(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[], Awaitable[object]]
) -> None:
    """If slow checks succeed, the reply is 200 at once, also if the authentication never ends or fails."""
    monkeypatch.setattr(health, "SLOW_CHECK_SECONDS", 0)
    monkeypatch.setattr(health, "READY_SECONDS", 1000)
    has_started = asyncio.Event()

    async def list_no_failures() -> list[str]:
        await has_started.wait()
        return []

    async def read_rights() -> None:
        has_started.set()
        await end()

    replace_services(monkeypatch, list_no_failures, read_rights)
    async with asyncio.timeout(20):
        assert (await health.ready(CALL)).status == 200
