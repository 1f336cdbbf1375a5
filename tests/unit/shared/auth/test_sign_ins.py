"""Tests of the token claims that describe the member's sign-in: its time, methods and id."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import ROLE_RIGHTS, Role
from shared.auth.sign_ins import NO_SIGN_IN, SignIn, parse_epoch_seconds, sign_in_from_claims, sign_in_from_entra_claims
from shared.timestamps import now
from tests.unit.shared.auth.conftest import EDITOR, Workspace

TOKENS = frozenset({CredentialKind.JWT, CredentialKind.API_KEY})
AT = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)
SECONDS = 1_767_600_000
ENTRA = {"tid": "t", "oid": "o-1", "auth_time": SECONDS, "amr": ["pwd", "mfa"]}


def build_caller(credential_kind: CredentialKind, sign_in: SignIn = NO_SIGN_IN) -> Principal:
    """Return a caller with the given kind of credential."""
    return Principal(EDITOR.id, EDITOR.id, "E", ROLE_RIGHTS[Role.EDITOR], credential_kind, "c", None, sign_in=sign_in)


async def issue_token(auth_workspace: Workspace, caller: Principal) -> Principal:
    """Issue a token to a caller, and return the principal that the token authenticates."""
    minted = await auth_workspace.issuer.issue_token(caller, None, None)
    return await auth_workspace.authenticator(f"Bearer {minted.token}", TOKENS)


async def test_token_requested_with_key_has_new_sign_in(auth_workspace: Workspace) -> None:
    """A token that is requested with an API key has a new sign-in with the current time, method `key` and a new id."""
    before = now()
    first, second = [await issue_token(auth_workspace, build_caller(CredentialKind.API_KEY)) for _ in range(2)]
    assert first.sign_in.at is not None
    assert first.sign_in.at.microsecond == 0
    assert before - timedelta(seconds=1) < first.sign_in.at <= now()
    assert first.sign_in.exact_time is not None
    assert before - timedelta(milliseconds=1) <= first.sign_in.exact_time <= now()
    assert first.sign_in.methods == ("key",)
    assert first.sign_in.sign_in_id
    assert first.sign_in.sign_in_id != second.sign_in.sign_in_id


async def test_token_requested_with_token_inherits_sign_in(auth_workspace: Workspace) -> None:
    """A token that is requested with another token has the same sign-in as that token."""
    first = await issue_token(auth_workspace, build_caller(CredentialKind.API_KEY))
    second = await issue_token(auth_workspace, first)
    third = await issue_token(auth_workspace, second)
    assert first.sign_in == second.sign_in == third.sign_in
    assert third.personal


@pytest.mark.parametrize("via", [CredentialKind.CLIENT_CREDENTIALS, CredentialKind.LINK])
async def test_client_credentials_and_sign_in_links_prove_no_sign_in(
    auth_workspace: Workspace, via: CredentialKind
) -> None:
    """Tokens from client credentials or sign-in links have no sign-in, nor do tokens requested with them."""
    token = await issue_token(auth_workspace, await issue_token(auth_workspace, build_caller(via)))
    assert token.sign_in == NO_SIGN_IN


async def test_token_requested_with_entra_token_keeps_sign_in(auth_workspace: Workspace) -> None:
    """If a token is requested with an Entra ID token, it has the Entra ID token's sign-in time and methods."""
    sign_in = sign_in_from_entra_claims(ENTRA)
    assert (sign_in.at, sign_in.methods) == (AT, ("pwd", "mfa"))
    assert (await issue_token(auth_workspace, build_caller(CredentialKind.ENTRA, sign_in))).sign_in == sign_in


async def test_tokens_of_a_key_created_by_another_person_are_not_personal(auth_workspace: Workspace) -> None:
    """Tokens are not personal if the API key at their origin was created by another person than its member."""
    first = await issue_token(auth_workspace, replace(build_caller(CredentialKind.API_KEY), personal=False))
    second = await issue_token(auth_workspace, first)
    assert (first.personal, second.personal) == (False, False)


def test_tokens_of_one_entra_sign_in_share_its_id() -> None:
    """The id of an Entra ID sign-in depends on person and time, not on the token."""
    first = sign_in_from_entra_claims({**ENTRA, "uti": "1"})
    assert first.sign_in_id == sign_in_from_entra_claims({**ENTRA, "uti": "2", "amr": ["pwd"]}).sign_in_id
    others = [sign_in_from_entra_claims({**ENTRA, **other}).sign_in_id for other in ({"oid": "o-2"}, {"auth_time": 5})]
    assert len({first.sign_in_id, *others}) == 3
    assert first.exact_time == AT


@pytest.mark.parametrize("value", [None, "1767600000", True, -1, float("nan"), float("inf"), 10**30, [SECONDS], {}])
def test_a_malformed_auth_time_of_entra_id_is_unknown(value: Any) -> None:
    """If `auth_time` of an Entra ID token is missing or malformed, the sign-in has no time and no id."""
    assert sign_in_from_entra_claims({**ENTRA, "auth_time": value}) == SignIn(None, ("pwd", "mfa"))


@pytest.mark.parametrize("value", [None, "pwd", {"pwd": 1}, ["pwd", 1], 5])
def test_a_malformed_amr_claim_of_entra_id_is_unknown(value: Any) -> None:
    """If `amr` of an Entra ID token is missing or malformed, the sign-in has no methods."""
    assert sign_in_from_entra_claims({**ENTRA, "amr": value}).methods == ()


def test_the_fraction_of_a_second_in_auth_time_is_ignored() -> None:
    """A fraction of a second in `auth_time`, which RFC 7519 allows, is ignored."""
    assert parse_epoch_seconds(SECONDS + 0.75) == AT


def test_tokens_of_earlier_versions_have_no_sign_in() -> None:
    """A token of an earlier version, without claims about a sign-in, has no sign-in."""
    assert sign_in_from_claims({}) == NO_SIGN_IN


@pytest.mark.parametrize("claims", [{"auth_time": "1"}, {"auth_time": True}, {"amr": "key"}, {"sid": 5}])
def test_unexpected_sign_in_claims_are_rejected(claims: dict[str, Any]) -> None:
    """A token is rejected if a claim about its sign-in has a form that the service never writes."""
    with pytest.raises(ValueError, match="the claims auth_time, amr or sid"):
        sign_in_from_claims(claims)
