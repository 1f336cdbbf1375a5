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

    async def authenticate(_header: str, _accepted: Collection[CredentialKind]) -> SimpleNamespace:
        await read_rights()
        return SimpleNamespace(rights={AccessRight.CATALOG_READ})

    app = SimpleNamespace(
        readiness=SimpleNamespace(list_failing_dependencies=list_failing_dependencies),
        access=SimpleNamespace(authenticator=authenticate),
    )
    monkeypatch.setattr(health, "services", lambda: app)
    async with asyncio.timeout(20):
        with pytest.raises(WorkspaceError) as raised:
            await health.ready(CALL)
    assert raised.value.code == "NOT_READY"
    return dict(raised.value.members)


async def test_rights_are_read_while_the_dependencies_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's rights are read while the dependencies are checked, so that slow stores delay the reply once."""
    meeting = asyncio.Barrier(2)
    assert await read_error_details(monkeypatch, meeting.wait, meeting.wait) == {"failing": ["audit log"]}


async def test_a_reply_does_not_wait_for_rights_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the caller's rights cannot be read in time, the reply omits the list of failing dependencies."""

    async def succeed_check() -> None:
        """Do nothing."""

    monkeypatch.setattr(health, "READY_SECONDS", 0.05)
    assert await read_error_details(monkeypatch, succeed_check, asyncio.Event().wait) == {}
