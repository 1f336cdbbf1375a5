"""Tests of the declaration of operations."""

from typing import Any

import pytest
from pydantic import BaseModel

from shared.auth.rights import AccessRight
from shared.errors import WorkspaceError
from shared.http.messages import Reply, Request
from shared.http.operations import Access, Call, Group, NoBody, RawBody
from shared.http.problems import build_default_error_reply
from shared.http.unknown_names import UnknownNames


class Body(BaseModel):
    """Request body of the test's operation."""

    name: str = ""


async def handle(_: Call[Any, Any]) -> Reply:
    """Do nothing.

    This paragraph is not part of the summary.
    """
    return Reply()


def test_an_operation_has_the_name_and_summary_of_its_handler() -> None:
    """An operation's name and summary are those of its handler; by default it needs only a token."""
    group = Group("things")
    group.endpoint("GET", "things")(handle)
    [operation] = group.operations
    assert (operation.group, operation.name, operation.summary) == ("things", "handle", "Do nothing.")
    assert (operation.access, operation.rights, operation.body) == (Access.TOKEN, (), NoBody)
    assert (operation.unknown, operation.takes_body) == (UnknownNames.REJECT, False)
    assert operation.load_operation() is operation


def test_all_rights_of_an_operation_are_listed_in_order() -> None:
    """All rights of an operation are listed, its first right first."""
    group = Group("things")
    group.endpoint("POST", "a", right=AccessRight.CATALOG_READ, further_rights=(AccessRight.KEYS_MANAGE,))(handle)
    [operation] = group.operations
    assert operation.rights == (AccessRight.CATALOG_READ, AccessRight.KEYS_MANAGE)
    assert operation.takes_body


def test_a_group_may_have_its_own_error_format() -> None:
    """A group of operations can have its own error format; the default is problem documents."""

    def build_reply(error: WorkspaceError, trace_id: str, request: Request) -> Reply:
        return build_default_error_reply(error, trace_id, request)

    own, standard = Group("own", build_reply, is_versioned=False), Group("standard")
    for group in (own, standard):
        group.endpoint("GET", "a")(handle)
    assert [each.operations[0].has_own_error_format for each in (own, standard)] == [True, False]
    assert [each.operations[0].is_versioned for each in (own, standard)] == [False, True]


@pytest.mark.parametrize("unknown", [UnknownNames.REJECT, UnknownNames.REPORT])
def test_a_body_without_a_model_cannot_have_unknown_names(unknown: UnknownNames) -> None:
    """If an operation's body has no model, declaring a policy for unknown names raises an error."""
    with pytest.raises(TypeError, match="POST /a: only an operation with a body model"):
        Group("g").endpoint("POST", "a", body=dict[str, int], unknown=unknown)
    with pytest.raises(TypeError):
        Group("g").endpoint("POST", "a", body=dict[str, int])
    for body in (Body, RawBody):
        Group("g").endpoint("POST", "a", body=body, unknown=unknown)
    Group("g").endpoint("POST", "a", body=dict[str, int], unknown=UnknownNames.IGNORE)
