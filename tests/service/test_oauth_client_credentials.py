"""Tests of the grant type client_credentials and of the metadata of the authorization server."""

from typing import Any

import httpx
import pytest
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session

from shared.auth.rights import ROLE_RIGHTS, Role
from tests.service.local_service import Service, check_problem

TOKEN = "/oauth2/token"
METADATA = "/.well-known/oauth-authorization-server"


def request_token(service: Service, member: str = "editor@t", **parameters: str) -> httpx.Response:
    """Request a token with the API key of a member."""
    key = service.read_api_key(member)
    form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
    return service.create_anonymous_client().post(TOKEN, data=form | parameters)


def check_oauth_error(reply: httpx.Response, status: int, error: str) -> str:
    """Check that a reply is an OAuth error with this status and code (RFC 6749 section 5.2); return its description."""
    assert (reply.status_code, reply.json()["error"]) == (status, error), reply.text
    assert set(reply.json()) == {"error", "error_description"}
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["content-type"] == "application/json"
    return str(reply.json()["error_description"])


def test_metadata_contains_endpoints_and_scopes(service: Service) -> None:
    """The metadata contains the endpoints below the issuer; its scopes are the rights of a viewer."""
    reply = service.create_anonymous_client().get(METADATA)
    document: dict[str, Any] = reply.json()
    assert document["issuer"] == service.url
    assert document["token_endpoint"] == f"{service.url}{TOKEN}"
    assert service.create_anonymous_client().get(document["jwks_uri"]).status_code == 200
    assert set(document["scopes_supported"]) == set(ROLE_RIGHTS[Role.VIEWER])
    assert "client_credentials" in document["grant_types_supported"]
    unknown = service.create_anonymous_client().get(METADATA, headers={"Host": "evil.example"})
    assert unknown.status_code == 400
    assert "evil" not in unknown.text


def test_mcp_metadata_names_the_authorization_server(service: Service) -> None:
    """The metadata of the MCP server names this service as its only authorization server."""
    document = service.create_anonymous_client().get("/.well-known/oauth-protected-resource/oi-api/mcp").json()
    assert document["authorization_servers"] == [service.url]
    assert set(document["scopes_supported"]) == set(ROLE_RIGHTS[Role.VIEWER])


def test_client_credentials_give_a_token_with_all_rights_of_the_key(service: Service) -> None:
    """The token has all rights of the API key and is valid for 60 minutes; its audit event names the key."""
    reply = request_token(service)
    assert reply.status_code == 200
    body = reply.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope"}
    assert (body["token_type"], reply.headers["cache-control"]) == ("Bearer", "no-store")
    assert body["expires_in"] == 3600
    assert "ratelimit" in reply.headers
    caller = service.create_anonymous_client(bearer=body["access_token"])
    me = caller.get("/workspace/api/keys/whoami").json()
    assert (me["principal"], me["via"]) == ("editor@t", "jwt")
    assert body["scope"].split() == me["accessRights"]
    events = caller.get("/oi-api/provenance/events/query?target=AccessControl&limit=100").json()
    made_with = [event["AfterState"]["madeWith"] for event in events if event["ActionType"] == "Token.Issued"]
    assert {"via": "clientCredentials", "credentialId": service.read_api_key("editor@t").split("_")[1]} in made_with


def test_form_parameters_restrict_rights_and_lifetime_of_the_token(service: Service) -> None:
    """`scope` limits the rights and `minutes` the lifetime of the token; `resource` must be the URL of this service."""
    reply = request_token(
        service, scope="Workspace.Mcp.Use", minutes="43200", resource=f"{service.url}/oi-api/mcp", unknown="x"
    )
    assert reply.json()["scope"] == "Workspace.Mcp.Use"
    assert reply.json()["expires_in"] == 43_200 * 60
    caller = service.create_anonymous_client(bearer=reply.json()["access_token"])
    check_problem(caller.get("/oi-api/team"), 403, "ACCESS_RIGHT_MISSING")


def test_http_basic_authentication_is_accepted(service: Service) -> None:
    """The client may send its id and secret with HTTP Basic authentication instead of the form."""
    key = service.read_api_key("historian")
    client = service.create_anonymous_client()
    reply = client.post(TOKEN, data={"grant_type": "client_credentials"}, auth=(key.split("_")[1], key))
    assert reply.status_code == 200
    assert service.create_anonymous_client(bearer=reply.json()["access_token"]).get("/oi-api/team").status_code == 200


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"scope": ""}, "invalid_scope"),
        ({"scope": "Workspace.Keys.Manage"}, "invalid_scope"),
        ({"scope": "Workspace.Mcp.Use Workspace.Nothing"}, "invalid_scope"),
        ({"minutes": "0"}, "invalid_request"),
        ({"minutes": "43201"}, "invalid_request"),
        ({"minutes": "ten"}, "invalid_request"),
        ({"resource": "https://other.example"}, "invalid_target"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": ""}, "invalid_request"),
    ],
)
def test_invalid_token_request_parameters_are_rejected(
    service: Service, parameters: dict[str, str], error: str
) -> None:
    """A request with an invalid parameter is rejected with the OAuth error code for this parameter."""
    assert check_oauth_error(request_token(service, **parameters), 400, error)


def test_invalid_client_credentials_are_rejected(service: Service) -> None:
    """A missing or invalid credential, or the key of another client, gets `invalid_client` and a challenge."""
    key, other = service.read_api_key("editor@t"), service.read_api_key("viewer@t")
    token = request_token(service).json()["access_token"]
    for secret in (other, key[:-1] + ("A" if key[-1] != "A" else "B"), token, ""):
        reply = request_token(service, client_secret=secret)
        check_oauth_error(reply, 401, "invalid_client")
        assert reply.headers["www-authenticate"].startswith("Basic ")
    check_oauth_error(
        service.create_anonymous_client().post(TOKEN, data={"grant_type": "client_credentials"}), 401, "invalid_client"
    )
    check_oauth_error(service.create_anonymous_client().post(TOKEN, json={}), 400, "invalid_request")
    check_oauth_error(service.create_anonymous_client().get(TOKEN), 405, "invalid_request")


def test_a_bound_key_gets_a_bound_token(service: Service) -> None:
    """Tokens that are issued with a bound API key are bound to the same connections as the key."""
    body = {"name": "rig", "connections": ["press"], "expiresInDays": 1}
    key = service.create_client("editor@t").post("/workspace/api/keys", json=body).json()
    form = {"grant_type": "client_credentials", "client_id": key["keyId"], "client_secret": key["apiKey"]}
    reply = service.create_anonymous_client().post(TOKEN, data=form)
    assert reply.json()["scope"] == "Workspace.Telemetry.Write"
    me = service.create_anonymous_client(bearer=reply.json()["access_token"]).get("/workspace/api/keys/whoami").json()
    assert me["connections"] == ["press"]
    check_oauth_error(
        service.create_anonymous_client().post(TOKEN, data=form | {"minutes": "43200"}), 400, "invalid_request"
    )


def test_requests_oauthlib_gets_a_token(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library requests-oauthlib gets a token without code that is specific to this service."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    key = service.read_api_key("viewer@t")
    session = OAuth2Session(client=BackendApplicationClient(client_id=key.split("_")[1]))
    session.trust_env = False
    session.fetch_token(f"{service.url}{TOKEN}", client_id=key.split("_")[1], client_secret=key)
    assert session.get(f"{service.url}/oi-api/workspace").status_code == 200
