"""A minimal OAuth client for tests of the authorization code flow."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.service.local_service import Service

REDIRECT = "http://127.0.0.1:4711/callback"
SCOPE = "Workspace.Catalog.Read Workspace.Mcp.Use"


def compute_code_challenge(verifier: str) -> str:
    """Return the PKCE code challenge of a code verifier."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@dataclass
class OAuthClient:
    """OAuth client without a secret, which calls a running service on behalf of one member."""

    service: Service
    member: str = "viewer@t"
    client_id: str = "grafana"
    redirect_uri: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def build_request(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of an authorization request with some replaced; None removes a parameter."""
        usual = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": SCOPE,
            "state": "s1",
            "code_challenge": compute_code_challenge(self.verifier),
            "code_challenge_method": "S256",
        }
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def request_authorization(self, **changes: Any) -> httpx.Response:
        """Request the authorization endpoint as a browser does, and return the reply."""
        return self.service.create_anonymous_client().get("/oauth2/authorize", params=self.build_request(**changes))

    def decide_request(
        self, scopes: list[str] | None = None, *, approve: bool = True, **changes: Any
    ) -> httpx.Response:
        """Approve or decline the authorization request on behalf of the member, as the consent page does."""
        chosen = SCOPE.split() if scopes is None else scopes
        body = {**self.build_request(**changes), "approve": approve, "scopes": chosen}
        return self.service.create_client(self.member).post("/oauth2/authorize", json=body)

    def approve_and_read_code(self, scopes: list[str] | None = None, **changes: Any) -> str:
        """Approve an authorization request and return the authorization code."""
        reply = self.decide_request(scopes, **changes)
        assert reply.status_code == 200, reply.text
        return read_query(reply.json()["redirectTo"])["code"]

    def redeem_code(self, code: str, /, **changes: Any) -> httpx.Response:
        """Exchange an authorization code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
        } | changes
        return self.post_form({name: value for name, value in form.items() if value is not None})

    def refresh_tokens(self, refresh_token: str, /, **changes: Any) -> httpx.Response:
        """Exchange a refresh token for new tokens."""
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": self.client_id}
        return self.post_form(form | changes)

    def post_form(self, form: dict[str, Any], route: str = "/oauth2/token") -> httpx.Response:
        """Send a form to an OAuth endpoint."""
        return self.service.create_anonymous_client().post(route, data=form)

    def sign_in(self) -> dict[str, Any]:
        """Run the whole authorization code flow and return the reply with the tokens."""
        reply = self.redeem_code(self.approve_and_read_code())
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def is_accepted(self, access_token: str) -> bool:
        """Return whether the service accepts an access token."""
        return self.service.create_anonymous_client(bearer=access_token).get("/oi-api/workspace").status_code == 200


def read_query(address: str) -> dict[str, str]:
    """Return the query parameters of a URL; fail if a parameter occurs twice."""
    parsed = parse_qs(urlsplit(address).query, keep_blank_values=True, strict_parsing=True)
    assert all(len(values) == 1 for values in parsed.values())
    return {name: values[0] for name, values in parsed.items()}
