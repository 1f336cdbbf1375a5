"""Tests of who can call the administration API of the local host."""

from contextlib import nullcontext
from typing import Any

import pytest

from local.host.worker import LoadedFunction
from local.http_server.admin import AdminHandler
from shared.errors import Kind, WorkspaceError

TIMER = LoadedFunction("tick", "1", {"type": "timerTrigger", "name": "timer"}, None)


@pytest.mark.parametrize(
    ("client", "allowed"),
    [
        (("127.0.0.1", 1), True),
        (("127.8.0.9", 1), True),
        (("::1", 1), True),
        (("192.168.1.20", 1), False),
        (("fe80::1", 1), False),
        (None, False),
    ],
)
def test_only_local_callers_can_run_a_timer(client: tuple[str, int] | None, allowed: bool) -> None:  # noqa: FBT001  a case
    """Only callers on the loopback interface can run a timer."""
    ran: list[str] = []
    admin = AdminHandler({"tick": TIMER}, {"tick": lambda: ran.append("tick")})
    scope: dict[str, Any] = {"method": "POST", "headers": [], "client": client}
    with nullcontext() if allowed else pytest.raises(WorkspaceError) as refused:
        admin.handle(scope, "/admin/functions/tick", b"")
    assert ran == (["tick"] if allowed else [])
    assert allowed or (refused and refused.value.kind is Kind.FORBIDDEN)


@pytest.mark.parametrize(
    "header", [(b"host", b"evil.example"), (b"host", b"evil.example:7071"), (b"origin", b"http://127.0.0.1:7071")]
)
def test_web_pages_cannot_run_functions(header: tuple[bytes, bytes]) -> None:
    """A web page cannot run functions, even if its host name resolves to this machine."""
    admin = AdminHandler({"tick": TIMER}, {"tick": pytest.fail})
    scope: dict[str, Any] = {"method": "POST", "headers": [header], "client": ("127.0.0.1", 1)}
    with pytest.raises(WorkspaceError) as refused:
        admin.handle(scope, "/admin/functions/tick", b"")
    assert refused.value.code == "ADMINISTRATION_IS_LOCAL"


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"),
    [
        ("GET", "/admin/functions/tick", b"", Kind.NOT_FOUND),
        ("POST", "/admin/functions/none", b"", Kind.NOT_FOUND),
        ("POST", "/admin/host", b"", Kind.NOT_FOUND),
        ("POST", "/admin/functions/tick", b"[]", Kind.INVALID),
        ("POST", "/admin/functions/serve", b"", Kind.INVALID),
    ],
)
def test_invalid_administration_requests_are_rejected(method: str, path: str, body: bytes, kind: Kind) -> None:
    """The administration API runs only timers and accepts only an empty body or a JSON object."""
    serve = LoadedFunction("serve", "2", {"type": "httpTrigger", "name": "req"}, None)
    admin = AdminHandler({"tick": TIMER, "serve": serve}, {"tick": pytest.fail})
    scope: dict[str, Any] = {"method": method, "headers": [], "client": ("127.0.0.1", 1)}
    with pytest.raises(WorkspaceError) as refused:
        admin.handle(scope, path, body)
    assert refused.value.kind is kind
