"""Tests of authorization requests and of the consent of members."""

from dataclasses import replace
from decimal import Decimal

import pytest

from shared.auth.rights import AccessRight
from shared.auth.telemetry_binding import TelemetryBinding
from shared.errors import Kind, WorkspaceError
from shared.oauth.authorization import ConsentQuestion
from shared.oauth.parameters import Parameters
from shared.oauth.redirects import Redirect
from tests.service.oauth_client import compute_code_challenge, read_query
from tests.unit.shared.oauth.conftest import BASE, CLIENT, MEMBER, VERIFIER, Server

READ, MANAGE = AccessRight.CATALOG_READ, AccessRight.KEYS_MANAGE
VALID = {
    "response_type": "code",
    "client_id": CLIENT.client_id,
    "scope": f"{READ} {MANAGE}",
    "state": "s",
    "code_challenge": compute_code_challenge(VERIFIER),
    "code_challenge_method": "S256",
}


def read_error(result: object) -> str:
    """Return the error code in the query of a redirect."""
    assert isinstance(result, Redirect)
    return read_query(result.address).get("error", "")


async def test_the_consent_page_separates_rights_that_the_member_lacks(oauth_server: Server) -> None:
    """The consent page lists requested rights that the member lacks separately, because they cannot be given."""
    question = await oauth_server.authorization.build_consent_question(
        oauth_server.build_caller(), Parameters(VALID), BASE
    )
    assert isinstance(question, ConsentQuestion)
    assert (question.rights, question.missing, question.redirect_host) == ((READ,), (MANAGE,), "tool.example")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "Workspace.Unknown"}, "invalid_scope"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"scope": str(MANAGE)}, "access_denied"),
    ],
)
async def test_an_invalid_request_redirects_to_the_client_with_an_error(
    oauth_server: Server, changes: dict[str, str], error: str
) -> None:
    """An invalid request with a valid redirect URI redirects to the client with error and state."""
    result = await oauth_server.authorization.build_consent_question(
        oauth_server.build_caller(), Parameters({**VALID, **changes}), BASE
    )
    assert read_error(result) == error


async def test_an_unregistered_redirect_uri_gets_no_error(oauth_server: Server) -> None:
    """If the redirect URI is not registered, no error is sent to it."""
    parameters = Parameters({**VALID, "redirect_uri": "https://evil.example/"})
    for work in (
        oauth_server.authorization.build_consent_question(oauth_server.build_caller(), parameters, BASE),
        oauth_server.authorization.find_error_redirect_before_sign_in(parameters, BASE),
    ):
        with pytest.raises(WorkspaceError) as raised:
            await work
        assert raised.value.code == "REDIRECT_URI_MISMATCH"


async def test_a_request_is_checked_before_the_sign_in(oauth_server: Server) -> None:
    """A request of a declared client is checked before the user signs in."""
    assert await oauth_server.authorization.find_error_redirect_before_sign_in(Parameters(VALID), BASE) is None
    assert read_error(
        await oauth_server.authorization.find_error_redirect_before_sign_in(Parameters({**VALID, "scope": ""}), BASE)
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"client_id": "tool"}, "DELEGATED_TOKEN"), ({"binding": TelemetryBinding(("rig",))}, "CREDENTIAL_BOUND")],
)
async def test_a_delegated_or_bound_credential_cannot_consent(
    oauth_server: Server, changes: dict[str, object], code: str
) -> None:
    """A delegated or bound credential cannot consent, because a client could use it to give itself more rights."""
    caller = replace(oauth_server.build_caller(), **changes)  # type: ignore[arg-type]  # attributes by name
    with pytest.raises(WorkspaceError) as raised:
        await oauth_server.authorization.build_consent_question(caller, Parameters(VALID), BASE)
    assert raised.value.code == code


@pytest.mark.parametrize("chosen", [None, [], [str(MANAGE)]])
async def test_a_consent_without_rights_creates_no_grant(oauth_server: Server, chosen: list[str] | None) -> None:
    """A consent without any right that the member has counts as a denial and creates no grant."""
    result = await oauth_server.authorization.record_consent_decision(
        oauth_server.build_caller(), Parameters(VALID), BASE, chosen
    )
    assert (read_error(result), oauth_server.trail) == ("access_denied", [])


async def test_only_requested_rights_can_be_chosen(oauth_server: Server) -> None:
    """A consent to a right that was not requested is rejected with the right's index."""
    chosen = [str(READ), str(AccessRight.WARM_QUERY_EXECUTE)]
    with pytest.raises(WorkspaceError) as raised:
        await oauth_server.authorization.record_consent_decision(
            oauth_server.build_caller(), Parameters(VALID), BASE, chosen
        )
    errors: object = raised.value.members["errors"]
    assert "scopes[1]" in str(errors)


async def test_a_consent_is_audited(oauth_server: Server) -> None:
    """The audit event of a consent contains the client and the given rights; the client gets a code."""
    result = await oauth_server.authorization.record_consent_decision(
        oauth_server.build_caller(), Parameters(VALID), BASE, [str(READ)]
    )
    assert isinstance(result, Redirect)
    assert read_query(result.address)["code"]
    [event] = oauth_server.trail
    assert (event["ActionType"], event["AfterState"]["accessRights"]) == ("Grant.Created", [READ])


async def test_a_credential_that_was_revoked_meanwhile_cannot_consent(oauth_server: Server) -> None:
    """If the credential is revoked after its authentication, the member gets no code, and no event is recorded."""
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    await oauth_server.credential_store.revoke_key_and_find_pending_event(issued.key.key_id, oauth_server.time.now)
    with pytest.raises(WorkspaceError) as caught:
        await oauth_server.consent_as_member(issued.key.key_id)
    assert caught.value.kind is Kind.UNAUTHENTICATED
    assert [event["ActionType"] for event in oauth_server.trail] == ["ApiKey.Created"]


async def test_a_consent_names_the_key_of_a_token_that_expired_meanwhile(oauth_server: Server) -> None:
    """The grant ends with the API key of the consent, also if the token expired while the consent was processed."""
    issued = await oauth_server.api_keys.issue_without_rights_check(
        "admin@x", MEMBER, "k", expires_in_days=1, creators=("admin@x",)
    )
    caller = oauth_server.build_caller(issued.key.key_id)
    token = await oauth_server.issuer.issue_token(caller, Decimal(1), None)
    oauth_server.time.advance(61)
    parameters = await oauth_server.consent_as_member(token.token_id)
    stored = await oauth_server.grants.require_grant_by_code(CLIENT.client_id, parameters)
    assert (stored.grant.api_key_id, stored.grant.credential_ends_at) == (issued.key.key_id, issued.key.expires_at)


async def test_a_token_without_a_record_cannot_consent(oauth_server: Server) -> None:
    """If the record of the token is missing, its API key is unknown, and no grant is stored."""
    with pytest.raises(WorkspaceError) as caught:
        await oauth_server.consent_as_member("missing")
    assert caught.value.kind is Kind.UNAUTHENTICATED
    assert oauth_server.trail == []
