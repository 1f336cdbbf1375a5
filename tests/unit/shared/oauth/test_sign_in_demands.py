"""Tests of the sign-in that OAuth clients require with ``max_age`` and ``prompt=login``."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.auth.sign_ins import NO_SIGN_IN, SignIn, build_api_key_sign_in
from shared.auth.token_ids import build_token_id
from shared.errors import WorkspaceError
from shared.oauth.errors import OAuthError
from shared.oauth.parameters import Parameters
from shared.oauth.redirects import Redirect
from shared.oauth.sign_in_demands import (
    LONGEST_CONSENT,
    REMEMBERED_REQUESTS,
    RequestTimes,
    SignInDemand,
    parse_sign_in_demand,
)
from shared.runtime import SYSTEM_RUNTIME
from shared.timestamps import format_rfc3339
from tests.service.oauth_client import SCOPE, compute_code_challenge, read_query
from tests.unit.shared.oauth.conftest import BASE, CLIENT, VERIFIER, Server
from tests.virtual_time import VirtualTime

AT = datetime(2026, 1, 5, 8, 0, 0, 500_000, tzinfo=UTC)
NEW = SignInDemand(None, is_new=True)


def build_key_sign_in(at: datetime) -> SignIn:
    """Return a sign-in with an API key at the given time."""
    return build_api_key_sign_in(build_token_id(SYSTEM_RUNTIME, at), at)


@pytest.mark.parametrize(
    ("values", "demand"),
    [
        ({}, SignInDemand(None, is_new=False)),
        ({"max_age": "60"}, SignInDemand(60, is_new=False)),
        ({"max_age": "0"}, SignInDemand(0, is_new=True)),
        ({"prompt": "login"}, NEW),
        ({"prompt": "consent login"}, NEW),
        ({"prompt": "consent"}, SignInDemand(None, is_new=False)),
        ({"prompt": "Login"}, SignInDemand(None, is_new=False)),
        ({"prompt": "login", "max_age": "5"}, SignInDemand(5, is_new=True)),
    ],
)
def test_prompt_login_and_max_age_0_require_a_new_sign_in(values: dict[str, str], demand: SignInDemand) -> None:
    """A new sign-in is required by the word `login` in ``prompt`` and by a ``max_age`` of 0."""
    assert parse_sign_in_demand(Parameters(values)) == demand


@pytest.mark.parametrize("text", ["-1", "1.5", "soon", " 5", "1" * 10, "٣", "+1"])
def test_malformed_maximum_age_gets_invalid_request(text: str) -> None:
    """A ``max_age`` that is not a number of seconds gets `invalid_request`."""
    with pytest.raises(OAuthError, match="max_age"):
        parse_sign_in_demand(Parameters({"max_age": text}))


@pytest.mark.parametrize("age", [0, 59.9, 60, -119])
def test_recent_sign_in_meets_maximum_age(age: float) -> None:
    """A sign-in is accepted if it is not older than the client's maximum age."""
    SignInDemand(60, is_new=False).require_recent_sign_in(build_key_sign_in(AT - timedelta(seconds=age)), None, AT)


@pytest.mark.parametrize(
    "sign_in", [NO_SIGN_IN, *(build_key_sign_in(AT - timedelta(seconds=age)) for age in (60.1, -121))]
)
def test_old_and_unknown_sign_ins_do_not_meet_maximum_age(sign_in: SignIn) -> None:
    """A sign-in is rejected if it is older than the client's maximum age, unknown, or in the future."""
    with pytest.raises(WorkspaceError) as caught:
        SignInDemand(60, is_new=False).require_recent_sign_in(sign_in, None, AT)
    assert (caught.value.code, caught.value.members["maxAge"]) == ("REAUTHENTICATION_REQUIRED", 60)


def test_new_sign_in_is_later_than_the_request() -> None:
    """A new sign-in must be later than the request: by microseconds with an API key, by seconds with Entra ID."""
    NEW.require_recent_sign_in(build_key_sign_in(AT + timedelta(milliseconds=1)), AT, AT)
    NEW.require_recent_sign_in(SignIn(AT.replace(microsecond=0), ("pwd",), "entra-1"), AT, AT)


@pytest.mark.parametrize(
    ("sign_in", "requested_at"),
    [
        (build_key_sign_in(AT - timedelta(milliseconds=1)), AT),
        (SignIn(AT.replace(microsecond=0) - timedelta(seconds=1), ("pwd",), "entra-1"), AT),
        (NO_SIGN_IN, AT),
        (build_key_sign_in(AT), None),
    ],
)
def test_sign_ins_that_may_precede_the_request_are_rejected(sign_in: SignIn, requested_at: datetime | None) -> None:
    """If a new sign-in is required, a sign-in that is possibly older than the request is rejected with maxAge 0."""
    with pytest.raises(WorkspaceError) as caught:
        NEW.require_recent_sign_in(sign_in, requested_at, AT)
    assert (caught.value.code, caught.value.members["maxAge"]) == ("REAUTHENTICATION_REQUIRED", 0)


def test_the_service_stores_the_times_of_requests() -> None:
    """If a request requires a new sign-in, its time is stored, so that the consent page cannot claim an earlier one."""
    time = VirtualTime(AT)
    times = RequestTimes(runtime=time.runtime)

    def build_request(number: int, **values: str) -> Parameters:
        return Parameters({"client_id": "tool", "state": str(number), "prompt": "login"} | values)

    assert times.record_and_format_arrival_time(Parameters({"client_id": "tool"})) is None
    assert times.record_and_format_arrival_time(Parameters({"max_age": "x"})) is None
    assert times.record_and_format_arrival_time(build_request(0)) == format_rfc3339(AT)
    assert times.find_arrival_time(build_request(0)) == AT
    sent = AT + timedelta(seconds=9)
    assert times.find_arrival_time(build_request(0, requested_at=format_rfc3339(sent))) == sent
    assert times.find_arrival_time(build_request(0, requested_at=format_rfc3339(AT - timedelta(seconds=9)))) == AT
    other_instance = build_request(-1, requested_at=format_rfc3339(AT - LONGEST_CONSENT))
    assert times.find_arrival_time(other_instance) == AT - LONGEST_CONSENT
    assert (
        times.find_arrival_time(
            build_request(-1, requested_at=format_rfc3339(AT - LONGEST_CONSENT - timedelta(seconds=1)))
        )
        is None
    )
    time.advance(1)
    for number in range(1, REMEMBERED_REQUESTS + 1):
        times.record_and_format_arrival_time(build_request(number))
    assert times.find_arrival_time(build_request(0)) is None
    assert times.find_arrival_time(build_request(REMEMBERED_REQUESTS)) == AT + timedelta(seconds=1)
    with pytest.raises(WorkspaceError) as caught:
        times.find_arrival_time(build_request(1, requested_at="yesterday"))
    assert caught.value.members["errors"][0]["field"] == "requested_at"  # type: ignore[index]


async def consent_to_request(oauth_server: Server, sign_in: SignIn, **values: str) -> str:
    """Consent to a request with additional parameters; return the redirect."""
    request: dict[str, Any] = {
        "response_type": "code",
        "client_id": CLIENT.client_id,
        "scope": SCOPE,
        "code_challenge": compute_code_challenge(VERIFIER),
        "code_challenge_method": "S256",
    }
    caller = replace(oauth_server.build_caller(), sign_in=sign_in)
    redirect = await oauth_server.authorization.record_consent_decision(
        caller, Parameters(request | values), BASE, SCOPE.split()
    )
    assert isinstance(redirect, Redirect)
    return redirect.address


async def test_tokens_contain_the_sign_in_of_the_consent(oauth_server: Server) -> None:
    """Each token from a consent, even a refreshed one, contains the sign-in with which the member consented."""
    sign_in = build_key_sign_in(oauth_server.time.runtime.now())
    code = read_query(await consent_to_request(oauth_server, sign_in, max_age="60"))["code"]
    first, refresh = await oauth_server.redeem(Parameters({"code": code, "code_verifier": VERIFIER}))
    second, _ = await oauth_server.refresh(refresh)
    for token in (first, second):
        assert (await oauth_server.authenticate(token)).sign_in == sign_in


async def test_a_consent_with_an_old_sign_in_is_rejected(oauth_server: Server) -> None:
    """A consent with a sign-in that is too old is rejected, and no grant is stored."""
    sign_in = build_key_sign_in(oauth_server.time.runtime.now() - timedelta(seconds=61))
    with pytest.raises(WorkspaceError):
        await consent_to_request(oauth_server, sign_in, max_age="60")
    assert oauth_server.trail == []


async def test_a_malformed_max_age_redirects_to_the_client_with_an_error(oauth_server: Server) -> None:
    """A malformed ``max_age`` redirects to the client with an error, as other invalid parameters do."""
    address = await consent_to_request(oauth_server, NO_SIGN_IN, max_age="soon")
    assert read_query(address)["error"] == "invalid_request"
