"""Tests of the search for the member of an Entra ID token, and of the tokens of managed identities."""

import pytest

from shared.auth.entra import EntraTokens, ManagedIdentityTokens, find_member_by_claims, get_client_id_and_app_id_uri
from shared.catalog.models import Member
from tests.unit.shared.auth.targets import (
    AUDIENCE,
    ISSUER,
    TENANT,
    AttackTarget,
    OneKey,
    assert_rejected,
    build_entra_target,
)

V1_ISSUER = f"https://sts.windows.net/{TENANT}/"
CLIENT_ID = "8f3d8f5e-0000-4000-8000-000000000001"


class Version1Provider(OneKey):
    """Fake OpenID provider with the issuer of version 1.0."""

    async def load_issuer(self) -> str:
        """Return the issuer of version 1.0."""
        return V1_ISSUER


@pytest.fixture
def target() -> AttackTarget:
    """Return the attack target for the tokens that Web PubSub's events contain."""
    audiences = get_client_id_and_app_id_uri(f"api://{CLIENT_ID}")
    versions = {
        "1.0": EntraTokens(Version1Provider(), TENANT, *audiences),
        "2.0": EntraTokens(OneKey(), TENANT, *audiences),
    }
    signer = build_entra_target()
    return AttackTarget(
        signer.alg, signer.kid, signer.claims, signer.sign, signer.public, ManagedIdentityTokens(versions).verify
    )


@pytest.mark.parametrize("audience", [CLIENT_ID, f"api://{CLIENT_ID}"])
@pytest.mark.parametrize(("version", "issuer"), [("1.0", V1_ISSUER), ("2.0", ISSUER)])
async def test_both_versions_and_audience_forms_are_accepted(
    target: AttackTarget, version: str, issuer: str, audience: str
) -> None:
    """A token of version 1.0 or 2.0 is accepted with the client id or the App ID URI as audience."""
    token = target.build_token_with_claims(ver=version, iss=issuer, aud=audience)
    assert (await target.verify(token))["aud"] == audience


@pytest.mark.parametrize(
    "claims",
    [
        {"ver": "1.0", "iss": ISSUER},
        {"ver": "2.0", "iss": V1_ISSUER},
        {"ver": "3.0"},
        {"ver": 2},
        {"ver": None},
        {"ver": ...},
        {"ver": ["2.0"]},
        {"ver": "2.0", "aud": AUDIENCE},
        {"ver": "2.0", "aud": [CLIENT_ID]},
        {"ver": "2.0", "aud": ""},
        {"ver": "2.0", "aud": "api://"},
        {"ver": "2.0", "tid": "another"},
    ],
    ids=str,
)
async def test_wrong_issuers_and_audiences_are_rejected(target: AttackTarget, claims: dict[str, object]) -> None:
    """A token is rejected if its issuer does not match its version, or if its audience or tenant is wrong."""
    await assert_rejected(target, target.build_token_with_claims(**({"aud": CLIENT_ID, "iss": ISSUER} | claims)))


@pytest.mark.parametrize("token", ["", "a.b.c", "x" * 20_000])
async def test_malformed_tokens_are_rejected(target: AttackTarget, token: str) -> None:
    """A malformed token is rejected before its claims are read."""
    await assert_rejected(target, token)


async def test_forged_signature_is_rejected(target: AttackTarget) -> None:
    """A token with a forged signature is rejected, although its version is read before the verification."""
    token = target.build_token_with_claims(ver="1.0", iss=V1_ISSUER, aud=CLIENT_ID)
    await assert_rejected(target, token[:-8] + "AAAAAAAA")


@pytest.mark.parametrize(
    ("member_id", "email", "is_same"),
    [
        ("ann@plant.example", "Ann@PLANT.example", True),
        ("strauß@plant.example", "STRAUß@plant.example", True),
        ("strauss@plant.example", "strauß@plant.example", False),
        ("kiosk@plant.example", "\u212aiosk@plant.example", False),
        ("kiosk@plant.example", "kio\u017fk@plant.example", False),
        ("älva@plant.example", "Älva@plant.example", False),
        ("älva@plant.example", "a\u0308lva@plant.example", False),
        ("ann@plant.example", "\uff41nn@plant.example", False),
    ],
)
def test_email_addresses_are_compared_by_code_points(member_id: str, email: str, *, is_same: bool) -> None:
    """A verified address belongs to a member only if it has the same characters; ASCII letters match in any case."""
    member = Member.model_validate({"id": member_id, "name": "A", "role": "Viewer"})
    found = find_member_by_claims([member], {"oid": "other", "email": email, "email_verified": True})
    assert (found is member) is is_same
