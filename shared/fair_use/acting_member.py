"""Team member (user or service) whose request is processed; limits of running work apply to this member."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

acting_member: ContextVar[str] = ContextVar("acting_member", default="")
"""Id of the team member whose request or replay is processed; empty for other work and for public operations."""


@contextmanager
def use_acting_member(member_id: str) -> Iterator[None]:
    """Context manager: set a team member as the acting member for the block.

    Args:
        member_id: id of the member; empty for work that no member has requested.
    """
    token = acting_member.set(member_id)
    try:
        yield
    finally:
        acting_member.reset(token)
