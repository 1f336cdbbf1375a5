"""Tests that credentials end with their member, and tests of finding the creators of API keys."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from shared.auth.credential_lineage import MAX_TOKENS, CredentialLineage
from shared.auth.ports import CredentialCutoff, IssuedToken
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.auth.tokens import Claims
from shared.errors import WorkspaceError
from shared.timestamps import now
from tests.unit.shared.auth.conftest import ADMIN, EDITOR, SERVICE, Workspace

ANY = frozenset({CredentialKind.API_KEY, CredentialKind.JWT})


def build_caller(member: str, credential_id: str = "c") -> Principal:
    """Return an administrator who uses a token."""
    return Principal(member, member, member, frozenset(AccessRight), CredentialKind.JWT, credential_id, None)


async def is_accepted(workspace: Workspace, credential: str) -> bool:
    """Return whether a credential is accepted."""
    try:
        await workspace.authenticator(f"Bearer {credential}", ANY)
    except WorkspaceError as error:
        return error.code != "UNAUTHENTICATED"
    return True


async def test_tokens_from_before_a_cutoff_stay_ended(workspace: Workspace) -> None:
    """Tokens and streams from before a member's cutoff time are rejected; later tokens and API keys are accepted."""
    key = await workspace.api_keys.create(build_caller(EDITOR.id), "mine")
    principal = await workspace.authenticator(f"Bearer {key.api_key}", ANY)
    earlier = await workspace.issuer.mint(principal, Decimal(5), None)
    earlier_id = (await workspace.authenticator(f"Bearer {earlier.token}", ANY)).credential_id
    workspace.team_now = replace(workspace.team_now, cutoffs={EDITOR.id: CredentialCutoff(tokens=now())})
    later = await workspace.issuer.mint(principal, Decimal(5), None)
    assert [await is_accepted(workspace, each) for each in (earlier.token, later.token, key.api_key)] == [
        False,
        True,
        True,
    ]
    with pytest.raises(WorkspaceError):
        await workspace.authenticator.resume(EDITOR.id, earlier_id, earlier.expires_at)


async def test_a_token_without_a_time_in_its_id_ends_with_any_cutoff(workspace: Workspace) -> None:
    """A token of an earlier service version, whose id contains no time, counts as older than any cutoff time."""
    expires_at = now() + timedelta(hours=1)
    claims = Claims("0af7651916cd43dd8448eb211c80319c", EDITOR.id, EDITOR.id, "plant-a", frozenset(), expires_at)
    token = await workspace.codec.sign(claims, now())
    assert await is_accepted(workspace, token)
    workspace.team_now = replace(workspace.team_now, cutoffs={EDITOR.id: CredentialCutoff(tokens=now())})
    assert not await is_accepted(workspace, token)


async def test_keys_from_before_a_removal_stay_revoked(workspace: Workspace) -> None:
    """If a member is removed and added again, earlier API keys stay revoked and later keys are accepted."""
    earlier = await workspace.api_keys.create(build_caller(EDITOR.id), "earlier")
    at = now()
    workspace.team_now = replace(workspace.team_now, cutoffs={EDITOR.id: CredentialCutoff(keys=at, tokens=at)})
    later = await workspace.api_keys.create(build_caller(EDITOR.id), "later")
    assert [await is_accepted(workspace, each.api_key) for each in (earlier, later)] == [False, True]
    listed = {key.name: key.revoked_at for key in await workspace.api_keys.list_visible(build_caller(EDITOR.id))}
    assert listed == {"earlier": at, "later": None}


async def test_a_token_has_the_creators_of_its_key(workspace: Workspace) -> None:
    """The creators of an API key are found for each token and key that descends from it."""
    lineage = CredentialLineage(workspace.store)
    own = await workspace.api_keys.create(build_caller(EDITOR.id), "own")
    given = await workspace.api_keys.create(build_caller(ADMIN.id), "given", principal=EDITOR.id, rights=[])
    found = {}
    for name, key in (("own", own), ("given", given)):
        principal = await workspace.authenticator(f"Bearer {key.api_key}", ANY)
        for _ in range(3):
            minted = await workspace.issuer.mint(principal, None, None)
            principal = await workspace.authenticator(f"Bearer {minted.token}", ANY)
        found[name] = (principal, await lineage.find_creators(principal))
    assert {name: creators for name, (_, creators) in found.items()} == {"own": frozenset(), "given": {ADMIN.id}}
    second = await workspace.api_keys.create(found["given"][0], "second", rights=[])
    assert second.key.creators == (ADMIN.id,)


async def test_services_count_as_the_creators_of_their_keys(workspace: Workspace) -> None:
    """In decisions, the creator of a service's API key also counts as the service; for a person's key it is not so."""
    lineage = CredentialLineage(workspace.store)
    for member in (SERVICE, EDITOR):
        await workspace.api_keys.create(build_caller(ADMIN.id), "given", principal=member.id, rights=[])
    found = [await lineage.find_decider_identities(build_caller(each.id), workspace) for each in (ADMIN, EDITOR)]
    assert found == [{SERVICE.id}, frozenset()]
    members = {name: each for name, each in workspace.team_now.members.items() if name != SERVICE.id}
    workspace.team_now = replace(workspace.team_now, members=members)
    assert await lineage.find_decider_identities(build_caller(ADMIN.id), workspace) == {SERVICE.id}


async def test_too_many_tokens_cannot_hide_a_creator(workspace: Workspace) -> None:
    """A token that descends from its API key through too many tokens cannot approve."""
    expires_at = now() + timedelta(hours=1)
    for number in range(MAX_TOKENS + 1):
        await workspace.store.add_token(IssuedToken(f"t{number}", EDITOR.id, expires_at, f"t{number + 1}"))
    with pytest.raises(WorkspaceError) as raised:
        await CredentialLineage(workspace.store).find_creators(build_caller(EDITOR.id, "t0"))
    assert raised.value.code == "MAKER_CHECKER_VIOLATION"
