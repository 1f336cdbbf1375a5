"""Tests of API keys and tokens over HTTP."""

import os
from typing import Any

import jwt
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until

EDITOR_RIGHTS = 21


def test_a_key_is_exchanged_for_a_token(service: Service) -> None:
    """An API key can be exchanged for a token, and the data routes accept the token."""
    reply = service.create_anonymous_client(service.read_api_key("editor@t")).get("/workspace/api/keys/jwt?minutes=15")
    assert set(reply.json()) == {"Token", "ExpiresAt", "AccessRights"}
    claims = jwt.decode(reply.json()["Token"], options={"verify_signature": False})
    assert (claims["sub"], claims["Username"], claims["WorkspaceLookup"]) == ("editor@t", "editor@t", "plant-t")
    assert claims["exp"] - claims["iat"] in (899, 900)
    client = service.create_anonymous_client(reply.json()["Token"])
    assert client.get("/oi-api/warm-queries/per-minute").status_code == 200


def test_tokens_verify_with_the_published_keys(service: Service) -> None:
    """A client can verify a token with the published JWKS and a standard library."""
    jwks = service.create_anonymous_client().get("/.well-known/jwks.json").json()
    assert all("d" not in key for key in jwks["keys"])
    token = (
        service.create_anonymous_client(service.read_api_key("viewer@t")).get("/workspace/api/keys/jwt").json()["Token"]
    )
    key = jwt.PyJWKSet.from_dict(jwks)[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(token, key, algorithms=["ES256"], audience="oi-api", issuer="oi-workspace")
    assert claims["AccessRights"] == sorted(claims["AccessRights"])


def test_whoami_returns_identity_rights_and_credential_type(service: Service) -> None:
    """The reply of whoami contains the caller's identity, access rights and type of credential."""
    by_key = service.create_anonymous_client(service.read_api_key("editor@t")).get("/workspace/api/keys/whoami").json()
    assert by_key["principal"] == "editor@t"
    assert (by_key["name"], by_key["workspace"], by_key["via"], by_key["expiresAt"]) == (
        "Editor",
        "plant-t",
        "apiKey",
        None,
    )
    assert len(by_key["accessRights"]) == EDITOR_RIGHTS
    by_token = service.create_client("historian").get("/workspace/api/keys/whoami").json()
    assert (by_token["principal"], by_token["via"]) == (None, "jwt")
    assert by_token["expiresAt"].endswith("Z")


@pytest.mark.parametrize("path", ["/oi-api/warm-queries/per-minute", "/workspace/api/keys/whoami"])
@pytest.mark.parametrize("header", [None, "Bearer garbage", "Basic abc", "Bearer a.b.c"])
def test_missing_and_invalid_credentials_get_401(service: Service, path: str, header: str | None) -> None:
    """Every protected route rejects a missing or invalid credential with 401 and names the expected scheme."""
    reply = service.create_anonymous_client().get(path, headers={} if header is None else {"Authorization": header})
    check_problem(reply, 401, "UNAUTHENTICATED")
    assert reply.headers["www-authenticate"] == "Bearer"


def test_data_routes_reject_api_keys(service: Service) -> None:
    """API keys are accepted only by the GraphQL route and the routes that issue tokens."""
    client = service.create_anonymous_client(service.read_api_key("admin@t"))
    check_problem(client.get("/oi-api/warm-queries/per-minute"), 401, "UNAUTHENTICATED")
    check_problem(client.post("/oi-api/telemetry/press", json={}), 401, "UNAUTHENTICATED")


def test_the_key_of_a_disabled_member_is_rejected(service: Service) -> None:
    """An API key in keys.json is rejected if its member is disabled."""
    check_problem(
        service.create_anonymous_client(service.read_api_key("gone@t")).get("/workspace/api/keys/jwt"),
        401,
        "UNAUTHENTICATED",
    )


@pytest.mark.parametrize("minutes", ["0", "abc", "99999", "-1", "43201", "", "NaN", "1e3", "60 ", "0.5"])
def test_an_invalid_token_lifetime_is_rejected(service: Service, minutes: str) -> None:
    """A token lifetime outside of 1 to 43200 minutes is rejected with the name of the parameter `minutes`."""
    reply = service.create_anonymous_client(service.read_api_key("editor@t")).get(
        "/workspace/api/keys/jwt", params={"minutes": minutes}
    )
    assert check_problem(reply, 400, "INVALID_REQUEST")["errors"] == [
        {"field": "minutes", "message": "must be a number from 1 to 43200"}
    ]


@pytest.mark.parametrize("scopes", ["", ",", "Workspace.Keys.Manage", "Workspace.Catalog.Read,Nothing"])
def test_a_token_request_with_invalid_rights_is_rejected(service: Service, scopes: str) -> None:
    """A token request is rejected if its rights are an empty list, are unknown, or are not rights of the caller."""
    reply = service.create_anonymous_client(service.read_api_key("editor@t")).get(
        "/workspace/api/keys/jwt", params={"scopes": scopes}
    )
    assert check_failing_fields(reply) == ["scopes"]


def test_a_token_is_limited_to_its_scopes(service: Service) -> None:
    """If a token's scopes lack the right of a route, the request is rejected with 403 and the name of the right."""
    client = service.create_client("editor@t", scopes="Workspace.Catalog.Read")
    missing = check_problem(client.get("/oi-api/warm-queries/per-minute"), 403, "ACCESS_RIGHT_MISSING")
    assert missing["accessRight"] == "Workspace.WarmQuery.Execute"


def test_an_api_key_works_until_its_revocation(service: Service) -> None:
    """The secret of a new API key is returned once and is not in the list; the key works until it is revoked."""
    owner = service.create_anonymous_client(service.read_api_key("editor@t"))
    reply = owner.post("/workspace/api/keys", json={"name": "bench", "expiresInDays": 7})
    assert reply.status_code == 201
    created = reply.json()
    assert set(created) == {"keyId", "apiKey", "name", "principal", "accessRights", "createdAt", "expiresAt"}
    mine = service.create_anonymous_client(created["apiKey"])
    assert mine.get("/workspace/api/keys/whoami").json()["principal"] == "editor@t"
    listed = wait_until(  # the time of use is stored asynchronously
        lambda: next(
            key for key in owner.get("/workspace/api/keys").json()["keys"] if key["keyId"] == created["keyId"]
        ),
        lambda key: key["lastUsedAt"] is not None,
    )
    assert "apiKey" not in listed
    assert owner.delete(f"/workspace/api/keys/{created['keyId']}").status_code == 204
    check_problem(mine.get("/workspace/api/keys/whoami"), 401, "UNAUTHENTICATED")
    assert created["apiKey"].split("_", 2)[2] not in service.read_log()


def test_a_revoked_token_is_rejected_immediately(service: Service) -> None:
    """When the revocation of a token returns 204, the same service process already rejects the token."""
    client = service.create_client("viewer@t")
    token = client.headers["Authorization"].removeprefix("Bearer ")
    assert client.get("/oi-api/warm-queries/per-minute").status_code == 200
    jti = jwt.decode(token, options={"verify_signature": False})["jti"]
    assert client.delete(f"/workspace/api/keys/jwt/{jti}").status_code == 204
    check_problem(client.get("/oi-api/warm-queries/per-minute"), 401, "UNAUTHENTICATED")
    check_problem(service.create_client("viewer@t").delete("/workspace/api/keys/jwt/nothing"), 404, "TOKEN_NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["name"]),
        ({"name": ""}, ["name"]),
        ({"name": " bench"}, ["name"]),
        ({"name": "be\u200bnch"}, ["name"]),
        ({"name": "\u202ehcneb"}, ["name"]),
        ({"name": 5, "expiresInDays": 0}, ["name", "expiresInDays"]),
        ({"name": "x", "rights": ["Nothing"]}, ["rights[0]"]),
        ({"name": "x", "rights": ["Workspace.Keys.Manage"]}, ["rights"]),
        ({"name": "x", "expiresInDays": "7"}, ["expiresInDays"]),
    ],
)
def test_the_error_about_an_api_key_request_lists_every_invalid_field(
    service: Service, body: dict[str, object], fields: list[str]
) -> None:
    """The error reply to an invalid request for an API key lists each invalid field."""
    reply = service.create_anonymous_client(service.read_api_key("editor@t")).post("/workspace/api/keys", json=body)
    assert check_failing_fields(reply) == fields


def test_the_error_about_an_api_key_names_the_rights_that_the_caller_lacks(service: Service) -> None:
    """A request for an API key with rights that the caller lacks is rejected with the names of these rights."""
    caller = service.create_client("admin@t", "Workspace.Keys.Manage,Workspace.Catalog.Read")
    reply = caller.post("/workspace/api/keys", json={"name": "x", "principal": "viewer@t"})
    problem = check_problem(reply, 403, "ACCESS_RIGHT_MISSING")
    assert "Workspace.Team.Read" in problem["accessRights"]
    assert "Workspace.Catalog.Read" not in problem["accessRights"]
    assert ", ".join(problem["accessRights"]) in problem["detail"]


def test_creating_another_members_key_requires_the_right(service: Service) -> None:
    """Creating an API key for another member requires the right to manage keys."""
    body = {"name": "x", "principal": "viewer@t"}
    reply = service.create_anonymous_client(service.read_api_key("editor@t")).post("/workspace/api/keys", json=body)
    check_problem(reply, 403, "ACCESS_RIGHT_MISSING")
    assert (
        service.create_anonymous_client(service.read_api_key("admin@t"))
        .post("/workspace/api/keys", json=body)
        .status_code
        == 201
    )


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/oi-api/nothing", 404, "ROUTE_NOT_FOUND"),
        ("GET", "/oi-api", 404, "ROUTE_NOT_FOUND"),
        ("POST", "/healthz", 405, "METHOD_NOT_ALLOWED"),
        ("PATCH", "/oi-api/warm-queries/per-minute", 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_unknown_routes_and_methods_are_problem_documents(
    service: Service, method: str, path: str, status: int, code: str
) -> None:
    """Even without a credential, an unknown route gets 404 and an unsupported method 405, as problem documents."""
    reply = service.create_anonymous_client().request(method, path)
    check_problem(reply, status, code)
    assert (status == 405) == ("allow" in reply.headers)


def test_a_head_request_issues_no_token(service: Service) -> None:
    """HEAD is not allowed where GET issues a token, because nobody would receive the token."""
    caller = service.create_anonymous_client(service.read_api_key("viewer@t"))
    reply = caller.head("/workspace/api/keys/jwt")
    assert (reply.status_code, reply.headers["allow"]) == (405, "DELETE, GET")
    assert caller.head("/workspace/api/keys").status_code == 200


def test_every_reply_has_a_request_id(service: Service) -> None:
    """Each reply, including errors, has the request id of the request or, without one, a new id.

    The log contains the id, too.
    """
    assert (
        service.create_anonymous_client().get("/healthz", headers={"x-request-id": "mine-1"}).headers["x-request-id"]
        == "mine-1"
    )
    refused = service.create_anonymous_client().get("/oi-api/warm-queries/x")
    assert refused.headers["x-request-id"] == refused.json()["traceId"]
    assert refused.headers["x-request-id"] in service.read_log()


def test_files_of_the_service_are_readable_only_by_their_owner(own_service: Service) -> None:
    """Other users of the machine cannot read the service's files, whatever the umask is."""
    before = os.umask(0o022)
    try:
        own_service.start()
    finally:
        os.umask(before)
    own_service.create_client("editor@t").post("/oi-api/telemetry/press", json={"value": 1})
    # The folder itself existed before the service started.
    created = list(own_service.data_dir.rglob("*"))
    assert len(created) > 5
    assert [path for path in created if path.stat().st_mode & 0o077] == []


def read_claims(token: str) -> dict[str, Any]:
    """Return the claims of a token."""
    return dict(jwt.decode(token, options={"verify_signature": False}))


def read_sign_in(token: str) -> dict[str, Any]:
    """Return the claims of a token that describe the sign-in."""
    return {name: value for name, value in read_claims(token).items() if name in {"auth_time", "amr", "sid"}}


def issue_token(service: Service, bearer: str) -> str:
    """Issue a token with the given API key or token."""
    return str(service.create_anonymous_client(bearer).get("/workspace/api/keys/jwt").json()["Token"])


def test_each_token_of_an_api_key_is_a_new_sign_in(service: Service) -> None:
    """Each token of an API key records a new sign-in; a token that is issued with another token copies its sign-in."""
    key = service.read_api_key("viewer@t")
    first, second = issue_token(service, key), issue_token(service, key)
    claims = read_claims(first)
    assert claims["auth_time"] == claims["iat"]
    assert (type(claims["auth_time"]), claims["amr"]) == (int, ["key"])
    assert read_sign_in(second)["sid"] not in ("", claims["sid"])
    assert read_sign_in(issue_token(service, issue_token(service, first))) == read_sign_in(first)


def test_a_token_can_be_issued_without_a_sign_in(service: Service) -> None:
    """With `signIn=false`, a token of a key or token has no sign-in, nor have the tokens that are issued with it."""
    path, key = "/workspace/api/keys/jwt?signIn=false", service.read_api_key("viewer@t")
    for bearer in (key, issue_token(service, key)):
        token = str(service.create_anonymous_client(bearer).get(path).json()["Token"])
        assert [read_sign_in(each) for each in (token, issue_token(service, token))] == [{"amr": []}] * 2
    refused = service.create_anonymous_client(key).get("/workspace/api/keys/jwt?signIn=no")
    assert check_failing_fields(refused) == ["signIn"]


def test_client_credentials_have_no_sign_in(service: Service) -> None:
    """Tokens of the grant `client_credentials`, and tokens that are issued with them, contain no sign-in time."""
    key = service.read_api_key("viewer@t")
    form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
    token = service.create_anonymous_client().post("/oauth2/token", data=form).json()["access_token"]
    for each in (token, issue_token(service, token)):
        assert read_sign_in(each) == {"amr": []}


def test_api_keys_that_another_person_created_are_not_personal(service: Service) -> None:
    """If another person created an API key, all tokens that descend from it are marked as not personal."""
    admin = service.create_client("admin@t")
    given = admin.post("/workspace/api/keys", json={"name": "given", "principal": "viewer@t"}).json()["apiKey"]
    token = issue_token(service, issue_token(service, given))
    own = service.create_anonymous_client(token).post("/workspace/api/keys", json={"name": "own"}).json()["apiKey"]
    assert [read_claims(each).get("Personal") for each in (token, issue_token(service, own))] == [False, False]
    mine = service.create_client("viewer@t").post("/workspace/api/keys", json={"name": "mine"}).json()["apiKey"]
    assert "Personal" not in read_claims(issue_token(service, mine))
