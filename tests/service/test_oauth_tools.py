"""Tests of the authorization code flow with the clients authlib and requests-oauthlib and with curl."""

import json
import shutil
import subprocess
from urllib.parse import parse_qsl

import pytest
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client
from requests_oauthlib import OAuth2Session

from tests.service.local_service import Service
from tests.service.oauth_client import REDIRECT, SCOPE
from tests.service.test_oauth_client_credentials import METADATA


def approve_request(service: Service, address: str) -> str:
    """Open an authorization URL, consent on behalf of a viewer, and return the redirect reply."""
    started = service.create_anonymous_client().get(address)
    assert started.status_code == 302, started.text
    page, _, query = started.headers["location"].partition("?")
    assert page.endswith("/console/#/consent")
    decision = {**dict(parse_qsl(query)), "approve": True, "scopes": SCOPE.split()}
    return str(service.create_client("viewer@t").post("/oauth2/authorize", json=decision).json()["redirectTo"])


def test_authlib_signs_in_refreshes_and_revokes(service: Service) -> None:
    """Authlib can run the authorization code flow with PKCE, refresh and revoke, with the endpoints of the metadata."""
    metadata = service.create_anonymous_client().get(METADATA).json()
    verifier = generate_token(48)
    with OAuth2Client(
        client_id="grafana",
        token_endpoint_auth_method="none",
        redirect_uri=REDIRECT,
        scope=SCOPE,
        code_challenge_method="S256",
        trust_env=False,
    ) as client:
        address, state = client.create_authorization_url(metadata["authorization_endpoint"], code_verifier=verifier)
        redirect = approve_request(service, address)
        token = client.fetch_token(
            metadata["token_endpoint"], authorization_response=redirect, state=state, code_verifier=verifier
        )
        assert token["scope"] == SCOPE
        assert client.get(f"{service.url}/oi-api/workspace").status_code == 200
        renewed = client.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"])
        assert renewed["access_token"] != token["access_token"]
        assert client.get(f"{service.url}/oi-api/workspace").status_code == 200
        revoked = client.revoke_token(metadata["revocation_endpoint"], token=renewed["refresh_token"])
        assert revoked.status_code == 200
        assert client.get(f"{service.url}/oi-api/workspace").status_code == 401


def test_authlib_uses_an_api_key(service: Service) -> None:
    """Authlib gets a token with an API key as client credentials."""
    key = service.read_api_key("historian")
    with OAuth2Client(client_id=key.split("_")[1], client_secret=key, trust_env=False) as client:
        client.fetch_token(f"{service.url}/oauth2/token", grant_type="client_credentials")
        assert client.get(f"{service.url}/oi-api/workspace").status_code == 200


def test_requests_oauthlib_signs_in_and_refreshes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """requests-oauthlib can run the authorization code flow with PKCE and refresh its token."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    endpoint = f"{service.url}/oauth2/token"
    session = OAuth2Session(client_id="grafana", redirect_uri=REDIRECT, scope=SCOPE.split(), pkce="S256")
    session.trust_env = False
    address, _ = session.authorization_url(f"{service.url}/oauth2/authorize")
    token = session.fetch_token(
        endpoint, authorization_response=approve_request(service, address), include_client_id=True
    )
    assert session.get(f"{service.url}/oi-api/workspace").status_code == 200
    renewed = session.refresh_token(endpoint, refresh_token=token["refresh_token"], client_id="grafana")
    assert renewed["refresh_token"] != token["refresh_token"]
    assert session.get(f"{service.url}/oi-api/workspace").status_code == 200


def test_curl_gets_a_token(service: Service) -> None:
    """One curl command exchanges an API key for a token."""
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    key = service.read_api_key("viewer@t")
    command = [curl, "-s", "--noproxy", "*", "-u", f"{key.split('_')[1]}:{key}"]
    options = ["-d", "grant_type=client_credentials", "-d", "scope=Workspace.Mcp.Use", f"{service.url}/oauth2/token"]
    output = subprocess.run([*command, *options], capture_output=True, check=True).stdout
    assert json.loads(output)["scope"] == "Workspace.Mcp.Use"
