"""Tests of the audit events of revocations: each is recorded once, also after interruptions."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from shared.auth.ports import ApiKey
from shared.auth.principals import CredentialKind
from shared.auth.rights import Role
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import Target
from shared.timestamps import format_rfc3339
from tests.unit.shared.auth.conftest import ADMIN, EDITOR, Workspace, build_caller, catch_error

ALICE, BOB = build_caller(ADMIN.id, Role.ADMIN), build_caller(EDITOR.id, Role.EDITOR)
UNAVAILABLE = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The audit log does not respond.")
REJECTED = WorkspaceError(Kind.INVALID, "INVALID_FIELDS", "The event is invalid.")


@dataclass
class Chain:
    """Audit chain of a workspace that rejects the events of some credentials with an error."""

    workspace: Workspace
    errors: dict[str, WorkspaceError]

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append an event, or raise the error of its credential."""
        if error := self.errors.get(event["EntityID"], self.errors.get("")):
            raise error
        return await self.workspace.append(target, user_id, event, append_id=append_id, scope_key=scope_key)


@pytest.fixture
def chain(auth_workspace: Workspace) -> Chain:
    """Return the chain to which the workspace appends its events."""
    chain = Chain(auth_workspace, {})
    auth_workspace.audit._audit_log = chain
    return chain


async def create_key(workspace: Workspace) -> ApiKey:
    """Create an API key of the editor without an event."""
    issued = await workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    workspace.trail.clear()
    return issued.key


async def load_revocation_time(workspace: Workspace, key_id: str) -> str:
    """Return the stored time of a key's revocation."""
    revoked_at = (await workspace.store.load()).keys[key_id].revoked_at
    assert revoked_at is not None
    return format_rfc3339(revoked_at)


@pytest.mark.parametrize("kind", ["ApiKey", "Token"])
async def test_the_event_of_an_interrupted_revocation_is_recorded_later(
    auth_workspace: Workspace, chain: Chain, kind: str
) -> None:
    """If the chain is unavailable, the revocation is in force and its event is appended once by the background job."""
    key = await create_key(auth_workspace)
    minted = await auth_workspace.issuer.issue_token(BOB, None, None)
    auth_workspace.trail.clear()
    credential_id = key.key_id if kind == "ApiKey" else minted.token_id
    revoke = auth_workspace.api_keys.revoke if kind == "ApiKey" else auth_workspace.issuer.revoke
    chain.errors[""] = UNAVAILABLE
    assert (await catch_error(revoke(ALICE, credential_id))).code == "PROVENANCE_UNAVAILABLE"
    assert await auth_workspace.store.is_revoked(credential_id)
    assert (await catch_error(auth_workspace.revoker.complete_pending_revocations())).code == "PROVENANCE_UNAVAILABLE"
    del chain.errors[""]
    await auth_workspace.revoker.complete_pending_revocations()
    await auth_workspace.revoker.complete_pending_revocations()
    [event] = auth_workspace.trail
    assert (event["ActionType"], event["EntityID"]) == (f"{kind}.Revoked", credential_id)
    assert event["user"] == ALICE.member_id
    assert event["BeforeState"] == {"principal": EDITOR.id}
    assert await auth_workspace.store.list_pending_events() == []


async def test_the_event_states_the_time_of_the_revocation(auth_workspace: Workspace, chain: Chain) -> None:
    """An event that is appended later states when the key was revoked."""
    key = await create_key(auth_workspace)
    chain.errors[""] = UNAVAILABLE
    await catch_error(auth_workspace.api_keys.revoke(ALICE, key.key_id))
    chain.errors.clear()
    await auth_workspace.revoker.complete_pending_revocations()
    revoked_at = await load_revocation_time(auth_workspace, key.key_id)
    [event] = auth_workspace.trail
    assert event["AfterState"] == {"madeWith": ALICE.describe_credential(), "revokedAt": revoked_at}


async def test_a_repeated_revocation_appends_the_pending_event_of_the_first(
    auth_workspace: Workspace, chain: Chain
) -> None:
    """The first revocation decides the actor of the event, also if another member repeats it."""
    key = await create_key(auth_workspace)
    chain.errors[""] = UNAVAILABLE
    await catch_error(auth_workspace.api_keys.revoke(ALICE, key.key_id))
    await catch_error(auth_workspace.api_keys.revoke(BOB, key.key_id))
    chain.errors.clear()
    await auth_workspace.api_keys.revoke(BOB, key.key_id)
    await auth_workspace.api_keys.revoke(BOB, key.key_id)
    await auth_workspace.revoker.complete_pending_revocations()
    assert [event["user"] for event in auth_workspace.trail] == [ALICE.member_id]
    assert await auth_workspace.store.list_pending_events() == []


async def test_simultaneous_revocations_record_one_event(auth_workspace: Workspace) -> None:
    """Repeated requests and background jobs that run at the same time record one event."""
    key = await create_key(auth_workspace)
    revoke, append = auth_workspace.api_keys.revoke, auth_workspace.revoker.complete_pending_revocations
    await asyncio.gather(*(revoke(caller, key.key_id) for caller in (ALICE, BOB, BOB)), append(), append())
    await append()
    assert [event["ActionType"] for event in auth_workspace.trail] == ["ApiKey.Revoked"]
    assert await auth_workspace.store.list_pending_events() == []


async def test_a_revocation_by_an_earlier_version_is_recorded_when_it_is_repeated(auth_workspace: Workspace) -> None:
    """If an earlier version revoked a key without an event, a repeated request records it with the stored time."""
    key = await create_key(auth_workspace)
    await auth_workspace.store.revoke_key_and_find_pending_event(key.key_id, key.created_at)
    await auth_workspace.api_keys.revoke(ALICE, key.key_id)
    [event] = auth_workspace.trail
    assert event["AfterState"]["revokedAt"] == format_rfc3339(key.created_at)


async def test_tokens_that_an_interrupted_revocation_left_are_revoked(auth_workspace: Workspace, chain: Chain) -> None:
    """The job revokes the tokens of a revoked key that the interrupted request did not revoke yet."""
    issued = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    caller = await auth_workspace.authenticator(f"Bearer {issued.api_key}", frozenset({CredentialKind.API_KEY}))
    token = await auth_workspace.issuer.issue_token(caller, None, None)
    chain.errors[""] = UNAVAILABLE
    await catch_error(auth_workspace.api_keys.revoke(ALICE, issued.key.key_id))
    await auth_workspace.store._database.write(
        lambda connection: connection.execute("UPDATE issued_tokens SET revoked_at = NULL")
    )
    chain.errors.clear()
    assert not await auth_workspace.store.is_revoked(token.token_id)
    await auth_workspace.revoker.complete_pending_revocations()
    assert await auth_workspace.store.is_revoked(token.token_id)


async def test_an_event_that_the_chain_rejects_does_not_block_others(auth_workspace: Workspace, chain: Chain) -> None:
    """The job appends all events but those that the chain rejects, and keeps the rejected ones."""
    first, second = await create_key(auth_workspace), await create_key(auth_workspace)
    chain.errors[""] = UNAVAILABLE
    for key in (first, second):
        await catch_error(auth_workspace.api_keys.revoke(ALICE, key.key_id))
    del chain.errors[""]
    chain.errors[first.key_id] = REJECTED
    await auth_workspace.revoker.complete_pending_revocations()
    assert [event["EntityID"] for event in auth_workspace.trail] == [second.key_id]
    assert [event.entity_id for event in await auth_workspace.store.list_pending_events()] == [first.key_id]


async def test_a_revocation_that_cannot_be_completed_does_not_block_others(
    auth_workspace: Workspace, chain: Chain
) -> None:
    """The job completes all revocations that it can, and then raises the first error of the others."""
    keys = [await create_key(auth_workspace) for _ in range(3)]
    chain.errors[""] = UNAVAILABLE
    for key in keys:
        await catch_error(auth_workspace.api_keys.revoke(ALICE, key.key_id))
    chain.errors.clear()
    chain.errors[keys[0].key_id] = UNAVAILABLE
    chain.errors[keys[1].key_id] = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_BUSY", "The chain is busy.")
    assert (await catch_error(auth_workspace.revoker.complete_pending_revocations())).code == "PROVENANCE_UNAVAILABLE"
    assert [event["EntityID"] for event in auth_workspace.trail] == [keys[2].key_id]
    assert len(await auth_workspace.store.list_pending_events()) == 2


async def test_without_provenance_no_event_is_pending(auth_workspace: Workspace) -> None:
    """If the workspace has no provenance, a key is revoked without a pending event."""
    key = await create_key(auth_workspace)
    auth_workspace.team_now = replace(auth_workspace.team_now, audited=False)
    await auth_workspace.api_keys.revoke(ALICE, key.key_id)
    assert await auth_workspace.store.is_revoked(key.key_id)
    assert await auth_workspace.store.list_pending_events() == []
    assert auth_workspace.trail == []


async def test_events_stay_pending_while_provenance_is_off(
    auth_workspace: Workspace, chain: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    """While the workspace has no provenance, the job appends no event and logs that the events stay pending."""
    key = await create_key(auth_workspace)
    chain.errors[""] = UNAVAILABLE
    await catch_error(auth_workspace.api_keys.revoke(ALICE, key.key_id))
    chain.errors.clear()
    audited, auth_workspace.team_now = auth_workspace.team_now, replace(auth_workspace.team_now, audited=False)
    caplog.clear()
    await auth_workspace.revoker.complete_pending_revocations()
    assert auth_workspace.trail == []
    assert caplog.messages == ["provenance is not configured; events of revocations stay pending"]
    auth_workspace.team_now = audited
    await auth_workspace.revoker.complete_pending_revocations()
    assert [event["EntityID"] for event in auth_workspace.trail] == [key.key_id]


async def test_a_revocation_succeeds_although_its_recorded_event_stays_pending(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a recorded event cannot be removed from the pending ones, the request succeeds and the job removes it."""
    key = await create_key(auth_workspace)

    async def fail(append_id: str) -> None:
        raise WorkspaceError(Kind.UNAVAILABLE, "CREDENTIALS_UNAVAILABLE", append_id)

    with monkeypatch.context() as patched:
        patched.setattr(auth_workspace.store, "delete_pending_event", fail)
        await auth_workspace.api_keys.revoke(ALICE, key.key_id)
    assert len(await auth_workspace.store.list_pending_events()) == 1
    await auth_workspace.revoker.complete_pending_revocations()
    assert await auth_workspace.store.list_pending_events() == []
    assert len(auth_workspace.trail) == 1
