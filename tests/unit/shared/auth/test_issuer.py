"""Tests of issuing and revoking tokens and keys."""

from datetime import timedelta
from decimal import Decimal

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now
from tests.unit.shared.auth.conftest import ADMIN, EDITOR, VIEWER, Workspace

KEYS = frozenset({CredentialKind.JWT, CredentialKind.API_KEY})


def caller(
    member: str, role: Role, via: CredentialKind = CredentialKind.API_KEY, minutes: int | None = None
) -> Principal:
    """Return a caller with the rights of a role."""
    expires_at = None if minutes is None else now() + timedelta(minutes=minutes)
    return Principal(member, member, member, ROLE_RIGHTS[role], via, "c", expires_at)


async def catch_error(awaitable: object) -> WorkspaceError:
    """Return the error that a call raises."""
    with pytest.raises(WorkspaceError) as raised:
        await awaitable  # type: ignore[misc]
    return raised.value


async def test_token_expires_after_an_hour_by_default(workspace: Workspace) -> None:
    """Without ``minutes``, a token expires after 60 minutes."""
    minted = await workspace.issuer.mint(caller(EDITOR.id, Role.EDITOR), None, None)
    assert timedelta(minutes=59, seconds=58) < minted.expires_at - now() <= timedelta(minutes=60)


async def test_scopes_restrict_rights(workspace: Workspace) -> None:
    """A token with scopes has only those rights."""
    minted = await workspace.issuer.mint(caller(EDITOR.id, Role.EDITOR), None, ["Workspace.Catalog.Read"])
    assert minted.rights == (AccessRight.CATALOG_READ,)
    principal = await workspace.authenticator(f"Bearer {minted.token}", KEYS)
    assert principal.rights == {AccessRight.CATALOG_READ}


@pytest.mark.parametrize("scope", ["Workspace.Keys.Manage", "Workspace.Nothing", "workspace.catalog.read"])
async def test_missing_scope_is_reported(workspace: Workspace, scope: str) -> None:
    """A right that the caller lacks or that does not exist is reported by name."""
    error = await catch_error(
        workspace.issuer.mint(caller(EDITOR.id, Role.EDITOR), None, ["Workspace.Catalog.Read", scope])
    )
    assert error.kind is Kind.INVALID
    assert scope in error.detail


async def test_token_cannot_exceed_the_requesting_token(workspace: Workspace) -> None:
    """The lifetime is limited by the caller's token; a longer lifetime is an error."""
    parent = caller(EDITOR.id, Role.EDITOR, CredentialKind.JWT, minutes=10)
    capped = await workspace.issuer.mint(parent, None, None)
    assert capped.expires_at == parent.expires_at
    error = await catch_error(workspace.issuer.mint(parent, Decimal(11), None))
    assert error.members["errors"] == [
        {"field": "minutes", "message": "the new token would expire later than the caller's token"}
    ]
    assert set(capped.rights) == parent.rights


async def test_revoked_token_is_rejected(workspace: Workspace) -> None:
    """A revocation invalidates a cached token, and is recorded once for any number of requests."""
    owner = caller(EDITOR.id, Role.EDITOR)
    minted = await workspace.issuer.mint(owner, None, None)
    principal = await workspace.authenticator(f"Bearer {minted.token}", KEYS)
    await workspace.issuer.revoke(owner, principal.credential_id)
    await workspace.issuer.revoke(owner, principal.credential_id)
    assert (await catch_error(workspace.authenticator(f"Bearer {minted.token}", KEYS))).kind is Kind.UNAUTHENTICATED
    assert [event["ActionType"] for event in workspace.trail] == ["Token.Issued", "Token.Revoked"]


async def test_revoking_token_of_other_member_requires_right(workspace: Workspace) -> None:
    """A member can revoke only its own tokens; an administrator can revoke any."""
    minted = await workspace.issuer.mint(caller(EDITOR.id, Role.EDITOR), None, None)
    token_id = (await workspace.authenticator(f"Bearer {minted.token}", KEYS)).credential_id
    assert (await catch_error(workspace.issuer.revoke(caller(VIEWER.id, Role.VIEWER), token_id))).kind is Kind.FORBIDDEN
    await workspace.issuer.revoke(caller(ADMIN.id, Role.ADMIN), token_id)
    error = await catch_error(workspace.issuer.revoke(caller(ADMIN.id, Role.ADMIN), "unknown"))
    assert (error.kind, error.code) == (Kind.NOT_FOUND, "TOKEN_NOT_FOUND")


async def test_each_issued_token_is_audited(workspace: Workspace) -> None:
    """The AccessControl chain records the actor, the token id and its rights, but not the token."""
    minted = await workspace.issuer.mint(caller(VIEWER.id, Role.VIEWER), None, ["Workspace.Catalog.Read"])
    [event] = workspace.trail
    assert (event["target"], event["user"], event["ActionType"]) == ("AccessControl", VIEWER.id, "Token.Issued")
    assert event["AfterState"]["accessRights"] == ["Workspace.Catalog.Read"]
    assert event["AfterState"]["madeWith"] == {"via": "apiKey", "credentialId": "c"}
    assert minted.token not in str(event)


@pytest.mark.parametrize("via", [CredentialKind.API_KEY, CredentialKind.JWT, CredentialKind.ENTRA])
async def test_each_event_contains_the_callers_credential(workspace: Workspace, via: CredentialKind) -> None:
    """Issues and revocations of tokens and keys record kind and id of the caller's credential."""
    owner = caller(EDITOR.id, Role.EDITOR, via, minutes=60)
    minted = await workspace.issuer.mint(owner, None, None)
    token_id = (await workspace.authenticator(f"Bearer {minted.token}", KEYS)).credential_id
    key = await workspace.api_keys.create(owner, "k")
    await workspace.issuer.revoke(owner, token_id)
    await workspace.api_keys.revoke(owner, key.key.key_id)
    actions = ["Token.Issued", "ApiKey.Created", "Token.Revoked", "ApiKey.Revoked"]
    assert [event["ActionType"] for event in workspace.trail] == actions
    assert [event["AfterState"]["madeWith"] for event in workspace.trail] == [{"via": via, "credentialId": "c"}] * 4


async def test_key_of_command_has_no_credential_in_event(workspace: Workspace) -> None:
    """The event of a key from the deployment's own command has no credential."""
    await workspace.api_keys.issue("command", EDITOR.id, "k")
    [event] = workspace.trail
    assert event["AfterState"]["madeWith"] == {"via": "command", "credentialId": None}


async def test_key_cannot_exceed_rights_of_creator(workspace: Workspace) -> None:
    """A caller with the right to manage keys cannot create a key with a right that the caller lacks."""
    manager = caller(VIEWER.id, Role.VIEWER)
    manager = Principal(
        **{name: getattr(manager, name) for name in Principal.__slots__ if name != "rights"},
        rights=manager.rights | {AccessRight.KEYS_MANAGE},
    )
    error = await catch_error(workspace.api_keys.create(manager, "k", principal=ADMIN.id))
    assert error.kind is Kind.FORBIDDEN
    error = await catch_error(
        workspace.api_keys.create(manager, "k", principal=ADMIN.id, rights=[AccessRight.AMENDMENT_APPROVE])
    )
    assert error.kind is Kind.INVALID
    issued = await workspace.api_keys.create(manager, "k", principal=ADMIN.id, rights=[AccessRight.CATALOG_READ])
    assert issued.key.rights == frozenset({AccessRight.CATALOG_READ})


async def test_key_of_restricted_token_is_restricted(workspace: Workspace) -> None:
    """A token with restricted rights cannot create a key with all rights."""
    full = await workspace.issuer.mint(caller(EDITOR.id, Role.EDITOR), None, ["Workspace.Catalog.Read"])
    cut = await workspace.authenticator(f"Bearer {full.token}", KEYS)
    key = await workspace.api_keys.create(cut, "k")
    principal = await workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    assert principal.rights == {AccessRight.CATALOG_READ}


async def test_keys_of_other_members_require_right(workspace: Workspace) -> None:
    """Creating, listing and revoking another member's key requires the right to manage keys."""
    editor, viewer, admin = (
        caller(EDITOR.id, Role.EDITOR),
        caller(VIEWER.id, Role.VIEWER),
        caller(ADMIN.id, Role.ADMIN),
    )
    assert (await catch_error(workspace.api_keys.create(viewer, "k", principal=EDITOR.id))).kind is Kind.FORBIDDEN
    key = (await workspace.api_keys.create(admin, "k", principal=EDITOR.id)).key
    assert [seen.key_id for seen in await workspace.api_keys.list_visible(editor)] == [key.key_id]
    assert await workspace.api_keys.list_visible(viewer) == []
    assert (await catch_error(workspace.api_keys.revoke(viewer, key.key_id))).kind is Kind.FORBIDDEN
    assert (await catch_error(workspace.api_keys.revoke(admin, "AAAAAAAA"))).code == "API_KEY_NOT_FOUND"
    await workspace.api_keys.revoke(editor, key.key_id)
    assert (await workspace.api_keys.list_visible(editor))[0].revoked_at is not None


async def test_only_a_hash_of_a_key_is_stored(workspace: Workspace) -> None:
    """The stored file contains no part of a secret."""
    issued = await workspace.api_keys.issue("test", EDITOR.id, "k")
    secret = issued.api_key.rsplit("_", 1)[1]
    stored = (await workspace.store.load()).keys[issued.key.key_id]
    assert secret not in repr(stored)
    assert secret[:8] not in repr(stored)


async def test_descendants_of_revoked_credential_are_revoked(workspace: Workspace) -> None:
    """Revoking a key or token revokes all tokens that descend from it, and no others."""
    key = await workspace.api_keys.issue("test", EDITOR.id, "k")
    by_key = await workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    child = (await workspace.issuer.mint(by_key, Decimal(30), None)).token
    by_child = await workspace.authenticator(f"Bearer {child}", KEYS)
    grandchild = (await workspace.issuer.mint(by_child, None, None)).token
    other = (await workspace.issuer.mint(caller(EDITOR.id, Role.EDITOR), None, None)).token
    await workspace.api_keys.revoke(by_key, key.key.key_id)
    for token in (child, grandchild):
        assert (await catch_error(workspace.authenticator(f"Bearer {token}", KEYS))).kind is Kind.UNAUTHENTICATED
    assert (await workspace.authenticator(f"Bearer {other}", KEYS)).member_id == EDITOR.id


async def test_token_expires_with_its_key(workspace: Workspace) -> None:
    """Tokens of a key with an expiry expire with the key."""
    key = await workspace.api_keys.issue("test", EDITOR.id, "k", expires_in_days=1)
    owner = await workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    assert (await workspace.issuer.mint(owner, None, None)).expires_at <= now() + timedelta(hours=1)
    assert (await catch_error(workspace.issuer.mint(owner, Decimal(2000), None))).kind is Kind.INVALID


async def test_all_invalid_scopes_are_listed(workspace: Workspace) -> None:
    """All unknown and all missing rights are listed."""
    scopes = ["Nope", "Workspace.Keys.Manage", "Workspace.Catalog.Read"]
    error = await catch_error(workspace.issuer.mint(caller(EDITOR.id, Role.EDITOR), None, scopes))
    listed: list[dict[str, str]] = error.members["errors"]  # type: ignore[assignment]
    assert [failing["field"] for failing in listed] == ["scopes", "scopes"]
    assert "Nope" in listed[0]["message"]
    assert "Workspace.Keys.Manage" in listed[1]["message"]


async def test_retry_replaces_unused_key(workspace: Workspace) -> None:
    """A retry after a crash leaves one key and one event; used and later keys are not replaced."""
    first = await workspace.api_keys.issue("admin@x", "editor@x", "n", id_seed="work")
    second = await workspace.api_keys.issue("admin@x", "editor@x", "n", id_seed="work")
    assert first.key.key_id == second.key.key_id
    stored_keys = (await workspace.store.load()).keys
    assert list(stored_keys.values()) == [second.key]
    assert [event["ActionType"] for event in workspace.trail] == ["ApiKey.Created"]
    with pytest.raises(WorkspaceError):
        await workspace.store.add_key(first.key)
    await workspace.store.store_last_use(second.key.key_id, second.key.created_at)
    with pytest.raises(WorkspaceError):
        await workspace.api_keys.issue("admin@x", "editor@x", "n", id_seed="work")
