"""Tests of issuing and revoking tokens and API keys."""

import dataclasses
from datetime import timedelta
from decimal import Decimal

import pytest

from shared.auth.ports import IssuedToken
from shared.auth.principals import CredentialKind
from shared.auth.rights import AccessRight, Role
from shared.auth.telemetry_binding import TelemetryBinding
from shared.errors import MAX_LISTED, Kind
from shared.timestamps import now
from tests.unit.shared.auth.conftest import ADMIN, EDITOR, SERVICE, VIEWER, Workspace, build_caller, catch_error

KEYS = frozenset({CredentialKind.JWT, CredentialKind.API_KEY})


async def test_token_expires_after_an_hour_by_default(auth_workspace: Workspace) -> None:
    """Without ``minutes``, a token expires after 60 minutes."""
    minted = await auth_workspace.issuer.issue_token(build_caller(EDITOR.id, Role.EDITOR), None, None)
    assert timedelta(minutes=59, seconds=58) < minted.expires_at - now() <= timedelta(minutes=60)


async def test_scopes_restrict_rights(auth_workspace: Workspace) -> None:
    """A token that is requested with scopes has only the rights of these scopes."""
    minted = await auth_workspace.issuer.issue_token(
        build_caller(EDITOR.id, Role.EDITOR), None, ["Workspace.Catalog.Read"]
    )
    assert minted.rights == (AccessRight.CATALOG_READ,)
    principal = await auth_workspace.authenticator(f"Bearer {minted.token}", KEYS)
    assert principal.rights == {AccessRight.CATALOG_READ}


async def test_a_token_that_would_be_too_long_is_not_issued(auth_workspace: Workspace) -> None:
    """A key that is bound to too many connections for a token gets an error instead of a token that is rejected."""
    binding = TelemetryBinding(tuple(f"connection-{number:04}" for number in range(1_000)))
    caller = dataclasses.replace(build_caller(SERVICE.id, Role.VIEWER), binding=binding)
    error = await catch_error(auth_workspace.issuer.issue_token(caller, None, None))
    assert (error.kind, error.detail.partition(":")[0]) == (Kind.INVALID, "Authorization")
    assert auth_workspace.trail == []


async def test_a_token_of_a_binding_of_the_maximum_size_is_accepted(auth_workspace: Workspace) -> None:
    """A token with all access rights and the largest permitted binding is accepted."""
    binding = TelemetryBinding(("c" * 9_000,), ("d" * 900,))
    binding.check_size_for_token()
    caller = dataclasses.replace(build_caller(ADMIN.id, Role.ADMIN), binding=binding)
    minted = await auth_workspace.issuer.issue_token(caller, None, None)
    assert (await auth_workspace.authenticator(f"Bearer {minted.token}", KEYS)).binding == binding


@pytest.mark.parametrize("scope", ["Workspace.Keys.Manage", "Workspace.Nothing", "workspace.catalog.read"])
async def test_missing_scope_is_reported(auth_workspace: Workspace, scope: str) -> None:
    """The error names each requested right that does not exist or that the caller lacks."""
    error = await catch_error(
        auth_workspace.issuer.issue_token(build_caller(EDITOR.id, Role.EDITOR), None, ["Workspace.Catalog.Read", scope])
    )
    assert error.kind is Kind.INVALID
    assert scope in error.detail


async def test_token_cannot_exceed_the_requesting_token(auth_workspace: Workspace) -> None:
    """A token cannot expire later than the token that requests it; a request for a longer lifetime is rejected."""
    parent = build_caller(EDITOR.id, Role.EDITOR, CredentialKind.JWT, minutes_until_expiry=10)
    capped = await auth_workspace.issuer.issue_token(parent, None, None)
    assert capped.expires_at == parent.expires_at
    error = await catch_error(auth_workspace.issuer.issue_token(parent, Decimal(11), None))
    message = "the new token would expire later than the caller's credential; request fewer minutes"
    assert error.members["errors"] == [{"field": "minutes", "message": message}]
    assert set(capped.rights) == parent.rights


async def test_revoked_token_is_rejected(auth_workspace: Workspace) -> None:
    """A revoked token is rejected even if it was cached; repeating the revocation records no event."""
    owner = build_caller(EDITOR.id, Role.EDITOR)
    minted = await auth_workspace.issuer.issue_token(owner, None, None)
    principal = await auth_workspace.authenticator(f"Bearer {minted.token}", KEYS)
    await auth_workspace.issuer.revoke(owner, principal.credential_id)
    await auth_workspace.issuer.revoke(owner, principal.credential_id)
    assert (
        await catch_error(auth_workspace.authenticator(f"Bearer {minted.token}", KEYS))
    ).kind is Kind.UNAUTHENTICATED
    assert [event["ActionType"] for event in auth_workspace.trail] == ["Token.Issued", "Token.Revoked"]


async def test_revoking_token_of_other_member_requires_right(auth_workspace: Workspace) -> None:
    """Members can revoke their own tokens; an administrator can revoke any token."""
    minted = await auth_workspace.issuer.issue_token(build_caller(EDITOR.id, Role.EDITOR), None, None)
    token_id = (await auth_workspace.authenticator(f"Bearer {minted.token}", KEYS)).credential_id
    assert (
        await catch_error(auth_workspace.issuer.revoke(build_caller(VIEWER.id, Role.VIEWER), token_id))
    ).kind is Kind.FORBIDDEN
    await auth_workspace.issuer.revoke(build_caller(ADMIN.id, Role.ADMIN), token_id)


@pytest.mark.parametrize("token_id", ["unknown", "expired"])
async def test_only_active_tokens_can_be_revoked(auth_workspace: Workspace, token_id: str) -> None:
    """The revocation of an unknown or expired token is rejected with 404."""
    await auth_workspace.store.add_token(IssuedToken("expired", VIEWER.id, now() - timedelta(seconds=1)))
    error = await catch_error(auth_workspace.issuer.revoke(build_caller(ADMIN.id, Role.ADMIN), token_id))
    assert (error.kind, error.code) == (Kind.NOT_FOUND, "TOKEN_NOT_FOUND")


async def test_each_issued_token_is_audited(auth_workspace: Workspace) -> None:
    """The AccessControl chain records actor, id and rights of each issued token, but not the token."""
    minted = await auth_workspace.issuer.issue_token(
        build_caller(VIEWER.id, Role.VIEWER), None, ["Workspace.Catalog.Read"]
    )
    [event] = auth_workspace.trail
    assert (event["target"], event["user"], event["ActionType"]) == ("AccessControl", VIEWER.id, "Token.Issued")
    assert event["AfterState"]["accessRights"] == ["Workspace.Catalog.Read"]
    assert event["AfterState"]["madeWith"] == {"via": "apiKey", "credentialId": "c"}
    assert minted.token not in str(event)


@pytest.mark.parametrize("via", [CredentialKind.API_KEY, CredentialKind.JWT, CredentialKind.ENTRA])
async def test_credential_events_contain_the_callers_credential(auth_workspace: Workspace, via: CredentialKind) -> None:
    """Audit events about tokens and keys contain the kind and id of the caller's credential."""
    owner = build_caller(EDITOR.id, Role.EDITOR, via, minutes_until_expiry=60)
    minted = await auth_workspace.issuer.issue_token(owner, None, None)
    token_id = (await auth_workspace.authenticator(f"Bearer {minted.token}", KEYS)).credential_id
    key = await auth_workspace.api_keys.create(owner, "k")
    await auth_workspace.issuer.revoke(owner, token_id)
    await auth_workspace.api_keys.revoke(owner, key.key.key_id)
    actions = ["Token.Issued", "ApiKey.Created", "Token.Revoked", "ApiKey.Revoked"]
    assert [event["ActionType"] for event in auth_workspace.trail] == actions
    assert [event["AfterState"]["madeWith"] for event in auth_workspace.trail] == [
        {"via": via, "credentialId": "c"}
    ] * 4


async def test_descendants_of_revoked_credential_are_revoked(auth_workspace: Workspace) -> None:
    """Revoking an API key or token also revokes all tokens that descend from it, but no other tokens."""
    key = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    by_key = await auth_workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    child = (await auth_workspace.issuer.issue_token(by_key, Decimal(30), None)).token
    by_child = await auth_workspace.authenticator(f"Bearer {child}", KEYS)
    grandchild = (await auth_workspace.issuer.issue_token(by_child, None, None)).token
    other = (await auth_workspace.issuer.issue_token(build_caller(EDITOR.id, Role.EDITOR), None, None)).token
    await auth_workspace.api_keys.revoke(by_key, key.key.key_id)
    for token in (child, grandchild):
        assert (await catch_error(auth_workspace.authenticator(f"Bearer {token}", KEYS))).kind is Kind.UNAUTHENTICATED
    assert (await auth_workspace.authenticator(f"Bearer {other}", KEYS)).member_id == EDITOR.id


async def test_token_expires_with_its_key(auth_workspace: Workspace) -> None:
    """If an API key has an expiry, the tokens issued with it expire at the same time or earlier."""
    key = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k", expires_in_days=1)
    owner = await auth_workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    assert (await auth_workspace.issuer.issue_token(owner, None, None)).expires_at <= now() + timedelta(hours=1)
    assert (await catch_error(auth_workspace.issuer.issue_token(owner, Decimal(2000), None))).kind is Kind.INVALID


async def test_all_invalid_scopes_are_listed(auth_workspace: Workspace) -> None:
    """The error lists all requested rights that are unknown or not rights of the caller."""
    scopes = ["Nope", "Workspace.Keys.Manage", "Workspace.Catalog.Read"]
    error = await catch_error(auth_workspace.issuer.issue_token(build_caller(EDITOR.id, Role.EDITOR), None, scopes))
    listed: list[dict[str, str]] = error.members["errors"]  # type: ignore[assignment]
    assert [failing["field"] for failing in listed] == ["scopes", "scopes"]
    assert "Nope" in listed[0]["message"]
    assert "Workspace.Keys.Manage" in listed[1]["message"]


async def test_at_most_a_thousand_invalid_scopes_are_listed(auth_workspace: Workspace) -> None:
    """If thousands of requested rights are unknown, the first 1,000 are listed."""
    scopes = [f"W{number}" for number in range(5_000)]
    error = await catch_error(auth_workspace.issuer.issue_token(build_caller(EDITOR.id, Role.EDITOR), None, scopes))
    listed: list[dict[str, str]] = error.members["errors"]  # type: ignore[assignment]
    assert [failing["field"] for failing in listed] == [*["scopes"] * MAX_LISTED, "..."]


async def test_a_credential_that_was_revoked_meanwhile_gets_no_token(auth_workspace: Workspace) -> None:
    """If the credential is revoked after its authentication, no token is issued, and no event is recorded."""
    key = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    by_key = await auth_workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    minted = await auth_workspace.issuer.issue_token(by_key, None, None)
    by_token = await auth_workspace.authenticator(f"Bearer {minted.token}", KEYS)
    await auth_workspace.store.revoke_key_and_find_pending_event(key.key.key_id, now())
    events = len(auth_workspace.trail)
    for caller in (by_key, by_token):
        error = await catch_error(auth_workspace.issuer.issue_token(caller, None, None))
        assert error.kind is Kind.UNAUTHENTICATED
    assert len(auth_workspace.trail) == events
