"""Tests of audit events about credentials."""

from dataclasses import replace

import pytest

from shared.auth.rights import Role
from tests.unit.shared.auth.conftest import EDITOR, Workspace, build_caller


async def test_audit_events_of_credentials_omit_unknown_states(auth_workspace: Workspace) -> None:
    """The audit event of a new credential has no `BeforeState`; the event of a revocation has no `AfterState`."""
    await auth_workspace.audit.record_event_if_audited(
        "a", "Key.Made", "ApiKey", "1", append_id="x", after={"name": "n"}
    )
    await auth_workspace.audit.record_event_if_audited(
        "a", "Key.Ended", "ApiKey", "1", append_id="y", before={"name": "n"}
    )
    made, ended = auth_workspace.trail
    assert (made["target"], made["user"], made["AfterState"]) == ("AccessControl", "a", {"name": "n"})
    assert ("BeforeState" in made, "AfterState" in ended) == (False, False)


async def test_without_provenance_a_token_is_issued_with_a_warning(
    auth_workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    """Without provenance, a token is issued without an audit event, and a warning in the log names the action."""
    auth_workspace.team_now = replace(auth_workspace.team_now, audited=False)
    issued = await auth_workspace.issuer.issue_token(build_caller(EDITOR.id, Role.EDITOR), None, None)
    assert await auth_workspace.store.find_token(issued.token_id) is not None
    assert auth_workspace.trail == []
    [warning] = caplog.records
    assert (warning.levelname, vars(warning)["fields"]) == ("WARNING", {"action": "Token.Issued"})
    assert warning.message == "provenance is not configured; the action is not audited"
