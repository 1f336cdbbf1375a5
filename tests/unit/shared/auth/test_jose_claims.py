"""Tests that validly signed tokens with wrong claims are rejected, with attacks from Project Wycheproof."""

import time
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from tests.unit.shared.auth.targets import (
    AUDIENCE,
    ISSUER,
    AttackTarget,
    Json,
    assert_rejected,
    build_service_token_target,
    encode_part,
)


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "value",
    [
        "9999999999",
        "",
        "soon",
        None,
        True,
        False,
        [],
        [9999999999],
        {},
        {"n": 1},
        float("nan"),
        float("inf"),
        -float("inf"),
        10**400,
        -(10**400),
        1e300,
        10**18,
    ],
    ids=lambda value: repr(value)[:12],
)
async def test_invalid_time_claims_are_rejected(target: AttackTarget, name: str, value: Any) -> None:
    """A time claim must be a number of seconds before the year 10000; other values are rejected."""
    if name != "exp" and value == -(10**400):
        value = 10**400
    await assert_rejected(target, target.build_token_with_claims(**{name: value}))


@pytest.mark.parametrize("name", ["iss", "aud", "exp", "nbf", "iat"])
async def test_tokens_without_required_claims_are_rejected(target: AttackTarget, name: str) -> None:
    """A token without an issuer, an audience or its times is rejected."""
    await assert_rejected(target, target.build_token_with_claims(**{name: ...}))
    await assert_rejected(target, target.build_token_with_claims(**{name: None}))


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 0}, {"exp": -1},
        {"iss": "https://login.example/other/v2.0"}, {"iss": ""}, {"iss": ["issuer"]}, {"iss": [ISSUER]}, {"iss": 5},
        {"iss": "ISSUER"}, {"iss": "issuer "}, {"iss": ISSUER + "/"}, {"iss": ISSUER.upper()},
        {"aud": "other"}, {"aud": ["audience"]}, {"aud": [AUDIENCE]}, {"aud": ["audience", "x"]}, {"aud": []},
        {"aud": {}}, {"aud": ""}, {"aud": "audience "}, {"aud": AUDIENCE + "/"}, {"aud": 5},
    ],
    ids=str,
)  # fmt: skip
async def test_claims_of_another_issuer_or_audience_are_rejected(target: AttackTarget, claims: Json) -> None:
    """Issuer and audience must equal the expected texts; lists that contain them are rejected."""
    await assert_rejected(target, target.build_token_with_claims(**claims))


@pytest.mark.parametrize(("name", "offset"), [("exp", -1), ("nbf", 600), ("iat", 600)])
async def test_expired_and_future_tokens_are_rejected(target: AttackTarget, name: str, offset: int) -> None:
    """A token is accepted only between its ``nbf`` and ``exp`` by the service's clock."""
    await assert_rejected(target, target.build_token_with_claims(**{name: int(time.time()) + offset}))


async def test_token_of_another_workspace_is_rejected(auth_workspace: Any) -> None:
    """A token of another workspace is rejected, even if both workspaces have the same signing key."""
    claims = build_service_token_target().claims | {"WorkspaceLookup": "plant-b"}
    header = {"alg": "ES256", "kid": await auth_workspace.key.get_key_id(), "typ": "JWT"}
    message = f"{encode_part(header)}.{encode_part(claims)}"
    token = f"{message}.{encode_part(await auth_workspace.key.sign(message.encode()))}"
    with pytest.raises(WorkspaceError) as caught:
        await auth_workspace.authenticator._authenticate_token(token)
    assert caught.value.kind is Kind.UNAUTHENTICATED
