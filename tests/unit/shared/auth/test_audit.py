"""Tests of audit events about credentials."""

from dataclasses import replace

from tests.unit.shared.auth.conftest import Workspace


async def test_an_event_has_only_the_states_that_are_known(workspace: Workspace) -> None:
    """A creation event has no state before; a revocation event without details has no state after."""
    await workspace.audit.record("a", "Key.Made", "ApiKey", "1", append_id="x", after={"name": "n"})
    await workspace.audit.record("a", "Key.Ended", "ApiKey", "1", append_id="y", before={"name": "n"})
    made, ended = workspace.trail
    assert (made["target"], made["user"], made["AfterState"]) == ("AccessControl", "a", {"name": "n"})
    assert ("BeforeState" in made, "AfterState" in ended) == (False, False)


async def test_a_workspace_without_provenance_records_nothing(workspace: Workspace) -> None:
    """Without an audit log, credentials work and no audit event is recorded."""
    workspace.team_now = replace(workspace.team_now, audited=False)
    await workspace.audit.record("a", "Key.Made", "ApiKey", "1", append_id="x")
    assert workspace.trail == []
