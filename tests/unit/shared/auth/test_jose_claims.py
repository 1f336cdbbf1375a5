"""Claims that a well-signed token may not have, in the manner of Project Wycheproof; not one is let in."""

import time
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from tests.unit.shared.auth.targets import AUDIENCE, ISSUER, Attacked, Json, own, part, refused


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
async def test_times_that_are_no_times(target: Attacked, name: str, value: Any) -> None:
    """An instant is a number of seconds that a calendar has; nothing is read into another type."""
    if name != "exp" and value == -(10**400):
        value = 10**400
    await refused(target, target.changed(**{name: value}))


@pytest.mark.parametrize("name", ["iss", "aud", "exp", "nbf", "iat"])
async def test_claims_that_are_missing(target: Attacked, name: str) -> None:
    """Issuer, audience and times are there, each as what it is."""
    await refused(target, target.changed(**{name: ...}))
    await refused(target, target.changed(**{name: None}))


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
async def test_claims_for_somebody_else(target: Attacked, claims: Json) -> None:
    """Issuer, audience and times are compared as they are, never as one of several."""
    await refused(target, target.changed(**claims))


@pytest.mark.parametrize(("name", "offset"), [("exp", -1), ("nbf", 600), ("iat", 600)])
async def test_instants_that_are_over_or_yet_to_come(target: Attacked, name: str, offset: int) -> None:
    """A token is good from its instants on and until they are over, by the clock of the service."""
    await refused(target, target.changed(**{name: int(time.time()) + offset}))


async def test_a_token_for_another_workspace_of_the_same_signer(workspace: Any) -> None:
    """Workspaces that share a key still do not share tokens."""
    claims = own().claims | {"WorkspaceLookup": "plant-b"}
    header = {"alg": "ES256", "kid": await workspace.key.key_id(), "typ": "JWT"}
    message = f"{part(header)}.{part(claims)}"
    token = f"{message}.{part(await workspace.key.sign(message.encode()))}"
    with pytest.raises(WorkspaceError) as told:
        await workspace.authenticator._authenticate_token(token)
    assert told.value.kind is Kind.UNAUTHENTICATED
