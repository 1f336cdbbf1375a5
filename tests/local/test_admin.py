"""Who may use the host's administration."""

from typing import Any

import pytest

from local.admin import Admin
from local.worker import LoadedFunction

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
def test_only_this_machine_is_answered(client: tuple[str, int] | None, allowed: bool) -> None:  # noqa: FBT001  a case
    """A timer runs for callers on the loopback interface only."""
    ran: list[str] = []
    admin = Admin({"tick": TIMER}, {"tick": lambda: ran.append("tick")})
    scope: dict[str, Any] = {"method": "POST", "headers": [], "client": client}
    status, _ = admin.handle(scope, "/admin/functions/tick", b"")
    assert (status, ran) == ((202, ["tick"]) if allowed else (403, []))
