"""Tests of audit events about credentials."""

from dataclasses import replace

from tests.unit.shared.auth.conftest import Workspace


async def test_audit_events_of_credentials_omit_unknown_states(auth_workspace: Workspace) -> None:
    """The audit event of a new credential has no `BeforeState`; the event of a revocation has no `AfterState`."""
    await auth_workspace.audit.record_event("a", "Key.Made", "ApiKey", "1", append_id="x", after={"name": "n"})
    await auth_workspace.audit.record_event("a", "Key.Ended", "ApiKey", "1", append_id="y", before={"name": "n"})
    made, ended = auth_workspace.trail
    assert (made["target"], made["user"], made["AfterState"]) == ("AccessControl", "a", {"name": "n"})
    assert ("BeforeState" in made, "AfterState" in ended) == (False, False)


async def test_a_workspace_without_provenance_records_nothing(auth_workspace: Workspace) -> None:
    """Without an audit log, credentials work and no audit event is recorded."""
    auth_workspace.team_now = replace(auth_workspace.team_now, audited=False)
    await auth_workspace.audit.record_event("a", "Key.Made", "ApiKey", "1", append_id="x")
    assert auth_workspace.trail == []
