"""Tests of the authorization code flow: request, consent, code, refresh token, revocation and grants."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs

import pytest

from shared.auth.rights import ROLE_RIGHTS, Role
from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.oauth_client import SCOPE, OAuthClient, read_query
from tests.service.test_identity import read_sign_in
from tests.service.test_oauth_client_credentials import check_oauth_error


@pytest.fixture
def client(service: Service) -> OAuthClient:
    """Return an OAuth client that the workspace declares, used by a viewer."""
    return OAuthClient(service)


def list_events(service: Service, action: str) -> list[dict[str, Any]]:
    """Return the newest audit events in AccessControl with this action."""
    path = f"/oi-api/provenance/events/query?target=AccessControl&actionType={action}&limit=50"
    return list(service.create_client("admin@t").get(path).json())


def test_an_authorization_request_leads_to_the_consent_page(client: OAuthClient) -> None:
    """A valid authorization request redirects to the console's consent page with its parameters."""
    reply = client.request_authorization(resource=f"{client.service.url}/oi-api/mcp", other="x")
    assert (reply.status_code, reply.headers["cache-control"]) == (302, "no-store")
    page, _, query = reply.headers["location"].partition("?")
    assert page == f"{client.service.url}/console/#/consent"
    sent = {name: values[0] for name, values in parse_qs(query).items()}
    assert sent == client.build_request(resource=f"{client.service.url}/oi-api/mcp")


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "unknown"},
        {"client_id": None},
        {"client_id": "http://app.example/client.json"},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1:4711/callback/"},
        {"redirect_uri": "http://127.0.0.1:4711@evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1.evil.example/callback"},
        {"redirect_uri": None},
        {"redirect_uri": ["http://127.0.0.1/callback", "http://127.0.0.1/callback"]},
    ],
)
def test_requests_of_unknown_clients_get_a_page_without_redirect(client: OAuthClient, changes: dict[str, Any]) -> None:
    """An unknown client or redirect URI gets a 400 page, because a redirect could lead to an attacker."""
    reply = client.request_authorization(**changes)
    assert (reply.status_code, reply.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert "location" not in reply.headers
    if not isinstance(changes.get("redirect_uri"), list):
        assert client.decide_request(**changes).status_code == 400


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"scope": ""}, "invalid_scope"),
        ({"scope": "Workspace.Nothing"}, "invalid_scope"),
        ({"resource": "https://other.example"}, "invalid_target"),
        ({"max_age": "soon"}, "invalid_request"),
    ],
)
def test_errors_in_requests_of_a_known_client_redirect_to_the_client(
    client: OAuthClient, changes: dict[str, Any], error: str
) -> None:
    """Any other error in an authorization request redirects to the client with `error`, `state` and `iss`."""
    started = client.request_authorization(**changes)
    assert started.status_code == 302
    decided = client.decide_request(**changes)
    assert decided.status_code == 200
    for address in (started.headers["location"], decided.json()["redirectTo"]):
        assert address.startswith(f"{client.redirect_uri}?")
        query = read_query(address)
        assert (query["error"], query["state"], query["iss"]) == (error, "s1", client.service.url)
        assert "code" not in query


def test_the_consent_preview_lists_client_and_rights(client: OAuthClient) -> None:
    """The preview of a consent contains the client, the redirect host and the rights.

    It marks the rights that the person lacks.
    """
    caller = client.service.create_client(client.member)
    body = client.build_request(scope=f"{SCOPE} Workspace.Keys.Manage")
    question = caller.post("/oauth2/authorize/preview", json=body).json()
    assert question == {
        "client": {"id": "grafana", "name": "Grafana", "isDeclared": True},
        "redirectHost": "127.0.0.1:4711",
        "accessRights": SCOPE.split(),
        "missingRights": ["Workspace.Keys.Manage"],
    }
    faulty = caller.post("/oauth2/authorize/preview", json=client.build_request(scope="x")).json()
    assert "error=invalid_scope" in faulty["redirectTo"]
    unknown = caller.post("/oauth2/authorize/preview", json=client.build_request(client_id="x"))
    assert check_problem(unknown, 400, "OAUTH_CLIENT_UNKNOWN")["error"] == "invalid_client"


@pytest.mark.parametrize(
    ("field", "code"), [("client_id", "OAUTH_CLIENT_UNKNOWN"), ("redirect_uri", "REDIRECT_URI_MISMATCH")]
)
@pytest.mark.parametrize("path", ["/oauth2/authorize", "/oauth2/authorize/preview"])
def test_the_error_about_an_untrusted_request_names_the_field(
    client: OAuthClient, path: str, field: str, code: str
) -> None:
    """The error about an unknown client, or about another redirect URI, names the invalid field."""
    body = {**client.build_request(**{field: "https://127.0.0.1/x"}), "approve": False}
    problem = check_problem(client.service.create_client(client.member).post(path, json=body), 400, code)
    assert [error["field"] for error in problem["errors"]] == [field]


def test_prompt_login_requires_a_new_sign_in(client: OAuthClient) -> None:
    """With `prompt=login`, the person must have signed in after the time of the request.

    The consent page gets this time.
    """
    before = client.service.create_client(client.member)
    location = client.request_authorization(prompt="login").headers["location"]
    page = {name: values[0] for name, values in parse_qs(location.partition("?")[2]).items()}
    assert set(page) == {*client.build_request(prompt="login"), "requested_at"}
    after = client.service.create_client(client.member)
    for request in (page, client.build_request(prompt="login")):
        body = {**request, "approve": True, "scopes": SCOPE.split()}
        refused = before.post("/oauth2/authorize", json=body)
        check_problem(refused, 401, "REAUTHENTICATION_REQUIRED")
        challenge = 'Bearer error="insufficient_user_authentication", max_age=0'
        assert refused.headers["www-authenticate"] == challenge
        assert before.post("/oauth2/authorize/preview", json=request).status_code == 200
        accepted = after.post("/oauth2/authorize", json=body)
        assert "code" in read_query(accepted.json()["redirectTo"])
    malformed = after.post("/oauth2/authorize", json={**page, "requested_at": "now", "approve": True, "scopes": []})
    assert check_failing_fields(malformed) == ["requested_at"]


def test_max_age_requires_a_recent_sign_in(client: OAuthClient) -> None:
    """With `max_age`, the person's sign-in must be recent enough.

    The issued tokens contain the time of this sign-in.
    """
    caller = client.service.create_client(client.member)
    sign_in = read_sign_in(caller.headers["Authorization"].removeprefix("Bearer "))
    body = {**client.build_request(max_age="3600"), "approve": True, "scopes": SCOPE.split()}
    code = read_query(caller.post("/oauth2/authorize", json=body).json()["redirectTo"])["code"]
    tokens = client.redeem_code(code).json()
    renewed = client.refresh_tokens(tokens["refresh_token"]).json()
    assert read_sign_in(tokens["access_token"]) == read_sign_in(renewed["access_token"]) == sign_in
    key = client.service.read_api_key(client.member)
    form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
    unknown = client.service.create_anonymous_client(client.post_form(form).json()["access_token"])
    refused = unknown.post("/oauth2/authorize", json=body)
    assert check_problem(refused, 401, "REAUTHENTICATION_REQUIRED")["maxAge"] == 3600


def test_a_redeemed_code_gives_tokens_with_the_selected_rights(client: OAuthClient) -> None:
    """A redeemed code gives tokens with exactly the rights that the person selected.

    Audit events contain the grant id.
    """
    redirect = client.decide_request(["Workspace.Mcp.Use"], redirect_uri="https://grafana.example/login?org=1").json()
    query = read_query(redirect["redirectTo"])
    assert redirect["redirectTo"].startswith("https://grafana.example/login?org=1&code=")
    assert (query["state"], query["iss"]) == ("s1", client.service.url)
    reply = client.redeem_code(query["code"], redirect_uri="https://grafana.example/login?org=1")
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")
    body = reply.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope", "refresh_token"}
    assert (body["scope"], body["token_type"]) == ("Workspace.Mcp.Use", "Bearer")
    assert 3590 <= body["expires_in"] <= 3600
    me = client.service.create_anonymous_client(bearer=body["access_token"]).get("/workspace/api/keys/whoami").json()
    assert (me["principal"], me["accessRights"]) == ("viewer@t", ["Workspace.Mcp.Use"])
    created, issued = (list_events(client.service, action)[0] for action in ("Grant.Created", "Token.Issued"))
    assert created["AfterState"]["clientId"] == "grafana"
    tokens = list_events(client.service, "Token.Issued")
    made_with = {"via": "authorizationCode", "credentialId": created["EntityID"]}
    assert made_with in [event["AfterState"]["madeWith"] for event in tokens], issued


def test_rights_that_the_person_lacks_are_not_granted(client: OAuthClient) -> None:
    """A client gets only rights that the person has; without `scope`, it requests the rights of a viewer."""
    wide = f"{SCOPE} Workspace.Keys.Manage"
    assert client.redeem_code(client.approve_and_read_code(wide.split(), scope=wide)).json()["scope"] == SCOPE
    viewer = sorted(map(str, ROLE_RIGHTS[Role.VIEWER]))
    assert client.redeem_code(client.approve_and_read_code(viewer, scope=None)).json()["scope"].split() == viewer
    lacking = client.decide_request(["Workspace.Keys.Manage"], scope="Workspace.Keys.Manage").json()["redirectTo"]
    assert read_query(lacking)["error"] == "access_denied"


def test_a_person_can_decline_consent(client: OAuthClient) -> None:
    """If the person declines or selects no right, the client gets `access_denied`.

    The person cannot add rights to the request.
    """
    for reply in (client.decide_request(approve=False), client.decide_request([])):
        query = read_query(reply.json()["redirectTo"])
        assert (query["error"], query["state"]) == ("access_denied", "s1")
    assert check_failing_fields(client.decide_request(["Workspace.Team.Read"])) == ["scopes[0]"]
    body = {**client.build_request(), "approve": True}
    caller = client.service.create_client(client.member)
    assert caller.post("/oauth2/authorize", json=body).status_code == 400
    assert caller.post("/oauth2/authorize", json={**body, "approve": "yes", "scopes": []}).status_code == 400


def test_only_a_person_can_consent(client: OAuthClient) -> None:
    """API keys, service tokens and bound tokens cannot consent to an OAuth client."""
    service, body = client.service, {**client.build_request(), "approve": True, "scopes": []}
    assert (
        service.create_anonymous_client(bearer=service.read_api_key("viewer@t"))
        .post("/oauth2/authorize", json=body)
        .status_code
        == 401
    )
    assert service.create_client("historian").post("/oauth2/authorize", json=body).status_code == 401
    bound = (
        service.create_client("editor@t")
        .post("/workspace/api/keys", json={"name": "b", "connections": ["press"]})
        .json()
    )
    token = service.create_anonymous_client(bearer=bound["apiKey"]).get("/workspace/api/keys/jwt").json()["Token"]
    check_problem(
        service.create_anonymous_client(bearer=token).post("/oauth2/authorize", json=body), 403, "CREDENTIAL_BOUND"
    )


def test_an_authorization_code_works_once(client: OAuthClient) -> None:
    """An authorization code works once; a second redemption is rejected and revokes the tokens of the first."""
    code = client.approve_and_read_code()
    tokens = client.redeem_code(code).json()
    assert client.is_accepted(tokens["access_token"])
    check_oauth_error(client.redeem_code(code), 400, "invalid_grant")
    assert not client.is_accepted(tokens["access_token"])
    check_oauth_error(client.refresh_tokens(tokens["refresh_token"]), 400, "invalid_grant")


def test_one_of_simultaneous_redemptions_of_a_code_succeeds(client: OAuthClient) -> None:
    """Of simultaneous redemptions of one authorization code, exactly one succeeds."""
    code = client.approve_and_read_code()
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda _: client.redeem_code(code), range(6)))
    [won] = [reply for reply in replies if reply.status_code == 200]
    assert all(reply.json().get("error") == "invalid_grant" for reply in replies if reply is not won)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "x" * 43}, "invalid_grant"),
        ({"code_verifier": "short"}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_request"),
        ({"client_id": "node-red"}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:4712/callback"}, "invalid_grant"),
        ({"code": "oic_x"}, "invalid_grant"),
        ({"code": None}, "invalid_request"),
        ({"resource": "https://other.example"}, "invalid_target"),
    ],
)
def test_a_code_requires_its_verifier_client_and_redirect_uri(
    client: OAuthClient, changes: dict[str, Any], error: str
) -> None:
    """A code can be redeemed only with its verifier, client and redirect URI; a rejected attempt does not use it up."""
    code = client.approve_and_read_code()
    check_oauth_error(client.redeem_code(code, **changes), 400, error)
    assert client.redeem_code(code).status_code == 200


def test_a_secret_of_a_public_client_is_rejected(client: OAuthClient) -> None:
    """A public client is rejected if it sends a secret; an empty secret in the Authorization header is accepted."""
    code = client.approve_and_read_code()
    check_oauth_error(client.redeem_code(code, client_secret="x"), 401, "invalid_client")
    check_oauth_error(client.redeem_code(code, client_id=None), 401, "invalid_client")
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": client.verifier}
    reply = client.service.create_anonymous_client().post("/oauth2/token", data=form, auth=("grafana", ""))
    assert reply.status_code == 200


def test_each_refresh_returns_a_new_refresh_token(client: OAuthClient) -> None:
    """Each refresh returns a new access token and refresh token; a narrower scope applies only to the access token."""
    first = client.sign_in()
    second = client.refresh_tokens(first["refresh_token"], scope="Workspace.Mcp.Use").json()
    assert second["scope"] == "Workspace.Mcp.Use"
    assert second["refresh_token"] != first["refresh_token"]
    wide = client.refresh_tokens(second["refresh_token"], scope="Workspace.Team.Read")
    check_oauth_error(wide, 400, "invalid_scope")
    check_oauth_error(client.refresh_tokens(second["refresh_token"], client_id="node-red"), 400, "invalid_grant")
    third = client.refresh_tokens(second["refresh_token"]).json()
    assert third["scope"] == SCOPE
    assert client.is_accepted(third["access_token"])


def test_reuse_of_a_refresh_token_revokes_the_grant(client: OAuthClient) -> None:
    """If a client uses an old refresh token again, its newest refresh token and all its access tokens are revoked."""
    first = client.sign_in()
    second = client.refresh_tokens(first["refresh_token"]).json()
    check_oauth_error(client.refresh_tokens(first["refresh_token"]), 400, "invalid_grant")
    check_oauth_error(client.refresh_tokens(second["refresh_token"]), 400, "invalid_grant")
    assert not client.is_accepted(first["access_token"])
    assert not client.is_accepted(second["access_token"])
    assert list_events(client.service, "Grant.Ended")[0]["AfterState"]["reason"] == "tokenReused"


def test_simultaneous_refreshes_revoke_the_grant(client: OAuthClient) -> None:
    """If a refresh token is used several times at once, at most one request succeeds, and then the grant is revoked."""
    token = client.sign_in()["refresh_token"]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: client.refresh_tokens(token), range(4)))
    won = [reply.json() for reply in replies if reply.status_code == 200]
    assert len(won) <= 1
    for body in won:
        assert not client.is_accepted(body["access_token"])
        assert client.refresh_tokens(body["refresh_token"]).status_code == 400


def test_delegated_tokens_cannot_create_credentials(client: OAuthClient) -> None:
    """Tokens of the authorization code flow cannot create API keys, issue tokens or consent to a client."""
    first = client.sign_in()
    second = client.refresh_tokens(first["refresh_token"]).json()
    for body in (first, second):
        caller = client.service.create_anonymous_client(bearer=body["access_token"])
        check_problem(caller.get("/workspace/api/keys/jwt"), 403, "DELEGATED_TOKEN")
        check_problem(caller.post("/workspace/api/keys", json={"name": "x"}), 403, "DELEGATED_TOKEN")
        consent = {**client.build_request(), "approve": True, "scopes": SCOPE.split()}
        check_problem(caller.post("/oauth2/authorize", json=consent), 403, "DELEGATED_TOKEN")
        listed = caller.get("/oi-api/openapi").json()["paths"]
        assert listed["/workspace/api/keys"].keys() == {"get"}
        assert "/workspace/api/keys/jwt" not in listed
        assert listed["/oauth2/authorize"].keys() == {"get"}


def test_delegated_tokens_get_no_stored_reply_with_a_key(client: OAuthClient) -> None:
    """A token of the authorization code flow that repeats the creation of a key does not get the stored reply."""
    member = client.service.create_client(client.member, SCOPE.replace(" ", ","))
    headers = {"Idempotency-Key": "delegated-key-1"}
    assert member.post("/workspace/api/keys", json={"name": "own"}, headers=headers).status_code == 201
    caller = client.service.create_anonymous_client(bearer=client.sign_in()["access_token"])
    reply = caller.post("/workspace/api/keys", json={"name": "own"}, headers=headers)
    check_problem(reply, 403, "DELEGATED_TOKEN")


def test_a_client_can_revoke_only_its_own_tokens(client: OAuthClient) -> None:
    """If a client revokes its refresh token, its grant ends; it cannot revoke the token of another client."""
    body = client.sign_in()
    other = {"token": body["access_token"], "client_id": "node-red"}
    check_oauth_error(client.post_form(other, "/oauth2/revoke"), 400, "invalid_grant")
    assert client.post_form({"token": "unknown", "client_id": "grafana"}, "/oauth2/revoke").status_code == 200
    assert (
        client.post_form({"token": body["access_token"], "client_id": "grafana"}, "/oauth2/revoke").status_code == 200
    )
    assert not client.is_accepted(body["access_token"])
    again = client.refresh_tokens(body["refresh_token"]).json()
    assert (
        client.post_form({"token": again["refresh_token"], "client_id": "grafana"}, "/oauth2/revoke").status_code == 200
    )
    assert not client.is_accepted(again["access_token"])
    check_oauth_error(client.refresh_tokens(again["refresh_token"]), 400, "invalid_grant")
    check_oauth_error(client.post_form({"client_id": "grafana"}, "/oauth2/revoke"), 400, "invalid_request")
    check_oauth_error(client.post_form({"token": "x"}, "/oauth2/revoke"), 401, "invalid_client")


def test_a_client_with_an_api_key_can_revoke_only_tokens_of_the_key(service: Service) -> None:
    """A client that authenticates with an API key can revoke only the tokens of this key."""
    keys = [service.read_api_key(member) for member in ("editor@t", "viewer@t")]
    forms = [{"client_id": key.split("_")[1], "client_secret": key} for key in keys]
    client = OAuthClient(service)
    token = client.post_form({"grant_type": "client_credentials", **forms[0]}).json()["access_token"]
    check_oauth_error(client.post_form({"token": token, **forms[1]}, "/oauth2/revoke"), 400, "invalid_grant")
    assert client.is_accepted(token)
    assert client.post_form({"token": token, **forms[0]}, "/oauth2/revoke").status_code == 200
    assert not client.is_accepted(token)


def test_members_can_list_and_end_their_grants(client: OAuthClient) -> None:
    """Members can list and end their own grants; for grants of other members they need the right to manage keys."""
    service, body = client.service, client.sign_in()
    mine, editor, admin = (service.create_client(member) for member in ("viewer@t", "editor@t", "admin@t"))
    grant = mine.get("/oauth2/grants").json()["grants"][-1]
    assert (grant["clientId"], grant["principal"], grant["accessRights"]) == ("grafana", "viewer@t", SCOPE.split())
    assert grant["id"] in [each["id"] for each in admin.get("/oauth2/grants").json()["grants"]]
    assert grant["id"] not in [each["id"] for each in editor.get("/oauth2/grants").json()["grants"]]
    check_problem(editor.delete(f"/oauth2/grants/{grant['id']}"), 403, "ACCESS_RIGHT_MISSING")
    check_problem(mine.delete("/oauth2/grants/unknown"), 404, "GRANT_NOT_FOUND")
    assert mine.delete(f"/oauth2/grants/{grant['id']}").status_code == 204
    assert mine.delete(f"/oauth2/grants/{grant['id']}").status_code == 204
    assert not client.is_accepted(body["access_token"])
    check_oauth_error(client.refresh_tokens(body["refresh_token"]), 400, "invalid_grant")
    assert grant["id"] not in [each["id"] for each in mine.get("/oauth2/grants").json()["grants"]]
    ended = [event for event in list_events(service, "Grant.Ended") if event["EntityID"] == grant["id"]]
    assert [event["AfterState"]["reason"] for event in ended] == ["endedByMember"]


def test_grants_end_with_the_credential_of_the_consent(service: Service) -> None:
    """A grant ends if the API key or token with which the member consented is revoked."""
    for is_key in (True, False):
        admin = service.create_client("editor@t")
        key = admin.post("/workspace/api/keys", json={"name": "tmp"}).json()
        token = service.create_anonymous_client(bearer=key["apiKey"]).get("/workspace/api/keys/jwt").json()["Token"]
        client = OAuthClient(service, member="editor@t")
        body = {**client.build_request(), "approve": True, "scopes": SCOPE.split()}
        redirect = (
            service.create_anonymous_client(bearer=token).post("/oauth2/authorize", json=body).json()["redirectTo"]
        )
        tokens = client.redeem_code(read_query(redirect)["code"]).json()
        path = key["keyId"] if is_key else f"jwt/{_decode_token_id(token)}"
        assert admin.delete(f"/workspace/api/keys/{path}").status_code == 204
        assert not client.is_accepted(tokens["access_token"])
        check_oauth_error(client.refresh_tokens(tokens["refresh_token"]), 400, "invalid_grant")


def test_disabling_a_member_ends_its_grants(own_module_service: Service) -> None:
    """The grants of a disabled member end, and stay ended if the member is enabled again."""
    client = OAuthClient(own_module_service, member="viewer@t")
    admin, body = own_module_service.create_client("admin@t"), client.sign_in()
    member = {"name": "Viewer", "role": "Viewer"}
    assert admin.put("/oi-api/team/viewer@t", json={**member, "enabled": False}).status_code == 200
    assert not client.is_accepted(body["access_token"])
    check_oauth_error(client.refresh_tokens(body["refresh_token"]), 400, "invalid_grant")
    assert admin.put("/oi-api/team/viewer@t", json={**member, "enabled": True}).status_code == 200
    assert not client.is_accepted(body["access_token"])
    check_oauth_error(client.refresh_tokens(body["refresh_token"]), 400, "invalid_grant")
    ended = list_events(own_module_service, "Grant.Ended")
    assert [event["AfterState"]["reason"] for event in ended] == ["memberDisabled"]


def test_rejected_oauth_requests_of_a_client_are_audited_once_an_hour(service: Service) -> None:
    """The rejected requests of a client cause one audit event an hour, which contains their number."""
    client = OAuthClient(service, client_id="node-red", redirect_uri="https://node-red.example/cb")
    for _ in range(3):
        check_oauth_error(client.redeem_code("oic_x"), 400, "invalid_grant")
    events = [one for one in list_events(service, "OAuthClient.Refused") if one["EntityID"] == "node-red"]
    assert 1 <= len(events) <= 2
    assert events[0]["AfterState"]["count"] >= 1


def _decode_token_id(token: str) -> str:
    import jwt  # noqa: PLC0415

    return str(jwt.decode(token, options={"verify_signature": False})["jti"])
