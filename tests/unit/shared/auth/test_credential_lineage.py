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


async def is_accepted(auth_workspace: Workspace, credential: str) -> bool:
    """Return whether a credential is accepted."""
    try:
        await auth_workspace.authenticator(f"Bearer {credential}", ANY)
    except WorkspaceError as error:
        return error.code != "UNAUTHENTICATED"
    return True


async def test_tokens_from_before_the_cutoff_of_a_member_stay_rejected(auth_workspace: Workspace) -> None:
    """Tokens and streams from before a member's cutoff time are rejected; later tokens and API keys are accepted."""
    key = await auth_workspace.api_keys.create(build_caller(EDITOR.id), "mine")
    principal = await auth_workspace.authenticator(f"Bearer {key.api_key}", ANY)
    earlier = await auth_workspace.issuer.issue_token(principal, Decimal(5), None)
    earlier_id = (await auth_workspace.authenticator(f"Bearer {earlier.token}", ANY)).credential_id
    auth_workspace.team_now = replace(auth_workspace.team_now, cutoffs={EDITOR.id: CredentialCutoff(tokens=now())})
    later = await auth_workspace.issuer.issue_token(principal, Decimal(5), None)
    assert [await is_accepted(auth_workspace, each) for each in (earlier.token, later.token, key.api_key)] == [
        False,
        True,
        True,
    ]
    with pytest.raises(WorkspaceError):
        await auth_workspace.authenticator.recheck_token_access(EDITOR.id, earlier_id, earlier.expires_at)


async def test_a_token_without_a_time_in_its_id_ends_with_any_cutoff(auth_workspace: Workspace) -> None:
    """A token of an earlier service version, whose id contains no time, counts as older than any cutoff time."""
    expires_at = now() + timedelta(hours=1)
    claims = Claims("0af7651916cd43dd8448eb211c80319c", EDITOR.id, EDITOR.id, "plant-a", frozenset(), expires_at)
    token = await auth_workspace.codec.sign(claims, now())
    assert await is_accepted(auth_workspace, token)
    auth_workspace.team_now = replace(auth_workspace.team_now, cutoffs={EDITOR.id: CredentialCutoff(tokens=now())})
    assert not await is_accepted(auth_workspace, token)


async def test_keys_from_before_a_removal_stay_revoked(auth_workspace: Workspace) -> None:
    """If a member is removed and added again, earlier API keys stay revoked and later keys are accepted."""
    earlier = await auth_workspace.api_keys.create(build_caller(EDITOR.id), "earlier")
    at = now()
    auth_workspace.team_now = replace(
        auth_workspace.team_now, cutoffs={EDITOR.id: CredentialCutoff(keys=at, tokens=at)}
    )
    later = await auth_workspace.api_keys.create(build_caller(EDITOR.id), "later")
    assert [await is_accepted(auth_workspace, each.api_key) for each in (earlier, later)] == [False, True]
    listed = {key.name: key.revoked_at for key in await auth_workspace.api_keys.list_visible(build_caller(EDITOR.id))}
    assert listed == {"earlier": at, "later": None}


async def test_a_token_has_the_creators_of_its_key(auth_workspace: Workspace) -> None:
    """The creators of an API key are found for each token and each key that was created with it."""
    lineage = CredentialLineage(auth_workspace.store)
    own = await auth_workspace.api_keys.create(build_caller(EDITOR.id), "own")
    given = await auth_workspace.api_keys.create(build_caller(ADMIN.id), "given", principal=EDITOR.id, rights=[])
    found = {}
    for name, key in (("own", own), ("given", given)):
        principal = await auth_workspace.authenticator(f"Bearer {key.api_key}", ANY)
        for _ in range(3):
            minted = await auth_workspace.issuer.issue_token(principal, None, None)
            principal = await auth_workspace.authenticator(f"Bearer {minted.token}", ANY)
        found[name] = (principal, await lineage.find_key_creator_ids(principal))
    assert {name: creators for name, (_, creators) in found.items()} == {"own": frozenset(), "given": {ADMIN.id}}
    second = await auth_workspace.api_keys.create(found["given"][0], "second", rights=[])
    assert second.key.creators == (ADMIN.id,)


async def test_the_creator_of_a_services_key_counts_as_the_service(auth_workspace: Workspace) -> None:
    """In decisions, a person who created an API key for a service also counts as that service.

    This is also true after the service was removed or became a person.
    """
    lineage = CredentialLineage(auth_workspace.store)
    for member in (SERVICE, EDITOR):
        await auth_workspace.api_keys.create(build_caller(ADMIN.id), "given", principal=member.id, rights=[])
    found = [
        await lineage.find_author_ids_caller_cannot_approve(build_caller(each.id), auth_workspace)
        for each in (ADMIN, EDITOR)
    ]
    assert found == [{SERVICE.id}, frozenset()]
    team = auth_workspace.team_now
    others = {name: each for name, each in team.members.items() if name != SERVICE.id}
    person = SERVICE.model_copy(update={"service": False})
    for changed in (
        replace(team, members=others),
        replace(team, members={**others, person.id: person}, service_ends={person.id: now()}),
    ):
        auth_workspace.team_now = changed
        found = [await lineage.find_author_ids_caller_cannot_approve(build_caller(ADMIN.id), auth_workspace)]
        assert found == [{SERVICE.id}]


async def test_too_many_tokens_cannot_hide_a_creator(auth_workspace: Workspace) -> None:
    """If too many tokens lie between a token and its API key, the token cannot be used to approve."""
    expires_at = now() + timedelta(hours=1)
    for number in range(MAX_TOKENS + 1):
        await auth_workspace.store.add_token(IssuedToken(f"t{number}", EDITOR.id, expires_at, f"t{number + 1}"))
    with pytest.raises(WorkspaceError) as raised:
        await CredentialLineage(auth_workspace.store).find_key_creator_ids(build_caller(EDITOR.id, "t0"))
    assert raised.value.code == "MAKER_CHECKER_VIOLATION"


async def test_a_token_that_expired_during_its_request_hides_no_creator(auth_workspace: Workspace) -> None:
    """The creators of an API key are also found if its token, or a token in between, has expired meanwhile."""
    given = await auth_workspace.api_keys.create(build_caller(ADMIN.id), "given", principal=EDITOR.id, rights=[])
    expired_at = now() - timedelta(seconds=1)
    await auth_workspace.store.add_token(IssuedToken("parent", EDITOR.id, expired_at, given.key.key_id))
    await auth_workspace.store.add_token(IssuedToken("expired", EDITOR.id, expired_at, "parent"))
    lineage = CredentialLineage(auth_workspace.store)
    caller = build_caller(EDITOR.id, "expired")
    assert await lineage.find_author_ids_caller_cannot_approve(caller, auth_workspace) == {ADMIN.id}


@pytest.mark.parametrize("credential_id", ["missing", "child"])
async def test_a_token_without_a_record_cannot_approve(auth_workspace: Workspace, credential_id: str) -> None:
    """If the record of a token or of its parent is missing, its creators are unknown, and the caller is rejected."""
    await auth_workspace.store.add_token(IssuedToken("child", EDITOR.id, now() + timedelta(hours=1), "missing"))
    lineage = CredentialLineage(auth_workspace.store)
    with pytest.raises(WorkspaceError) as raised:
        await lineage.find_author_ids_caller_cannot_approve(build_caller(EDITOR.id, credential_id), auth_workspace)
    assert raised.value.code == "UNAUTHENTICATED"


async def test_an_entra_token_has_no_creators(auth_workspace: Workspace) -> None:
    """An Entra ID token descends from no API key, so it needs no record in the store."""
    caller = replace(build_caller(EDITOR.id, "entra"), via=CredentialKind.ENTRA)
    assert await CredentialLineage(auth_workspace.store).find_key_creator_ids(caller) == frozenset()
