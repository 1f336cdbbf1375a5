"""Sign-in of a user with OAuth 2.1: authorization code with PKCE, refresh tokens, revocation."""

import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import httpx

from oi.addresses import can_use_proxy
from oi.errors import ApiError, NotFoundError, SignInError, UnreachableError
from oi.requests import build_proxy_error, find_error, parse_json_reply, require_no_html_page

OAUTH_CLIENT_UNKNOWN = "OAUTH_CLIENT_UNKNOWN"
"""Code of the error if the workspace declares no OAuth client with the id and redirect URI of a request."""
_METADATA = "/.well-known/oauth-authorization-server"
_SECRET_BYTES = 48
_TIMEOUT_SECONDS = 30.0
_SERVER_ERROR = 500
_MAX_ERROR_LENGTH = 500


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """URLs of a service's OAuth authorization server (RFC 8414).

    Attributes:
        issuer: base URL by which the server identifies itself.
        authorization_endpoint: URL of the page on which the user signs in and consents.
        token_endpoint: URL that issues tokens.
        revocation_endpoint: URL that revokes tokens.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str


@dataclass(frozen=True, slots=True)
class Grant:
    """OAuth grant: tokens that the client received because a user consented.

    Attributes:
        client_id: id of the OAuth client to which the user gave access.
        access_token: JWT with which requests are authenticated.
        expires_at: expiry of the access token, in seconds since 1970.
        refresh_token: token for one request for new tokens; the reply contains the next refresh token.
        scopes: granted access rights.
    """

    client_id: str
    access_token: str
    expires_at: float
    refresh_token: str
    scopes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """OAuth authorization request, which the user allows or denies in the browser.

    Attributes:
        client_id: id of the OAuth client.
        redirect_uri: URL to which the browser is redirected after the user's decision.
        scopes: requested access rights; if empty, the rights of a viewer.
        state: random text that the reply must repeat; a reply without this text is ignored.
        verifier: PKCE code verifier: secret that proves that this program requested the authorization code (RFC 7636).
    """

    client_id: str
    redirect_uri: str
    scopes: Sequence[str] = ()
    state: str = field(default_factory=lambda: secrets.token_urlsafe(_SECRET_BYTES))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(_SECRET_BYTES))

    def build_url(self, server: AuthorizationServer) -> str:
        """Return the URL of this request, which must be opened in a browser."""
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": self.state,
            "code_challenge": compute_code_challenge(self.verifier),
            "code_challenge_method": "S256",
        }
        if self.scopes:
            parameters["scope"] = " ".join(self.scopes)
        return f"{server.authorization_endpoint}?{urlencode(parameters)}"


def compute_code_challenge(code_verifier: str) -> str:
    """Compute the PKCE code challenge (method S256) of a code verifier.

    Example:
        >>> compute_code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    return urlsafe_b64encode(hashlib.sha256(code_verifier.encode()).digest()).rstrip(b"=").decode()


def open_http_client(base_url: str) -> httpx.Client:
    """Open an HTTP client for the functions of this module; it follows no redirects.

    Raises:
        UnreachableError: the proxy that the environment variables name cannot be used.
    """
    try:
        return httpx.Client(base_url=base_url, timeout=_TIMEOUT_SECONDS, trust_env=can_use_proxy(base_url))
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise build_proxy_error(error) from None


def request_server_metadata(client: httpx.Client, url: str) -> AuthorizationServer:
    """Request the OAuth metadata of a service, and return the URLs of its authorization server.

    Args:
        client: HTTP client from :func:`open_http_client`.
        url: address of the service.

    Raises:
        SignInError: the metadata states another address than ``url``, so the service is possibly an impostor.
        ApiError: the service has no authorization server, or cannot be reached.
    """
    server = _parse_server_metadata(_send_request(client, "GET", _METADATA))
    if server.issuer.rstrip("/") != url.rstrip("/"):
        # Tokens must not be sent to a service that only claims to be another one (RFC 8414, section 3.3).
        detail = f"The service at {url} names itself {server.issuer}; sign in with that address."
        raise SignInError(0, "", detail)
    return server


def _parse_server_metadata(response: httpx.Response) -> AuthorizationServer:
    """Parse the OAuth metadata of a service.

    Raises:
        ApiError: the reply is not OAuth metadata, most often because the address belongs to another server.
    """
    metadata = parse_json_reply(response)
    names = ("issuer", "authorization_endpoint", "token_endpoint", "revocation_endpoint")
    try:
        # Parsed here, because a URL that is not valid would end a later request with an error of the HTTP library.
        for name in names:
            httpx.URL(metadata[name])
        return AuthorizationServer(*(metadata[name] for name in names))
    except (KeyError, TypeError, ValueError, httpx.InvalidURL):
        detail = "The reply is not OAuth metadata. Is it the address of a workspace?"
        raise ApiError(response.status_code, "", detail) from None


def check_oauth_client_exists(client: httpx.Client, server: AuthorizationServer, request: AuthorizationRequest) -> None:
    """Check that the service knows the OAuth client of an authorization request, before the browser is opened.

    Raises:
        NotFoundError: the workspace document declares no OAuth client with this id and redirect URI (code
            `OAUTH_CLIENT_UNKNOWN`), or a proxy replied 404.
        ApiError: the service rejects the request for another reason, fails, or cannot be reached.
    """
    response = _send_unchecked_request(client, "GET", request.build_url(server))
    if response.status_code == HTTPStatus.BAD_REQUEST:
        detail = f"The workspace has no OAuth client {request.client_id!r} that returns to {request.redirect_uri}."
        raise NotFoundError(response.status_code, OAUTH_CLIENT_UNKNOWN, detail)
    # A redirect leads to the page on which the user signs in.
    if response.is_error and (error := find_error(response)):
        raise error


def redeem_authorization_code(
    client: httpx.Client, server: AuthorizationServer, request: AuthorizationRequest, code: str
) -> Grant:
    """Exchange an authorization code for an access token and a refresh token.

    Raises:
        SignInError: the authorization code is unknown, expired or already used.
        ApiError: the reply contains no tokens, or the service cannot be reached.
    """
    return _request_tokens(
        client,
        server,
        {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": request.client_id,
            "redirect_uri": request.redirect_uri,
            "code_verifier": request.verifier,
        },
    )


def refresh_grant(client: httpx.Client, server: AuthorizationServer, grant: Grant) -> Grant:
    """Exchange the refresh token of a grant for new tokens; the old refresh token must not be used again.

    Raises:
        SignInError: the grant has ended.
        ApiError: the reply contains no tokens, or the service cannot be reached.
    """
    form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token, "client_id": grant.client_id}
    return _request_tokens(client, server, form)


def revoke_grant(client: httpx.Client, server: AuthorizationServer, grant: Grant) -> None:
    """End an OAuth grant, which revokes all of its tokens.

    Raises:
        ApiError: the service rejects the request or cannot be reached, or another server replied.
    """
    form = {"token": grant.refresh_token, "token_type_hint": "refresh_token", "client_id": grant.client_id}
    require_no_html_page(_send_request(client, "POST", server.revocation_endpoint, form))


def _request_tokens(client: httpx.Client, server: AuthorizationServer, form_fields: Mapping[str, str]) -> Grant:
    asked_at = time.time()
    response = _send_request(client, "POST", server.token_endpoint, form_fields)
    reply = parse_json_reply(response)
    try:
        return Grant(
            client_id=form_fields["client_id"],
            access_token=str(reply["access_token"]),
            expires_at=asked_at + float(reply["expires_in"]),
            refresh_token=str(reply["refresh_token"]),
            scopes=str(reply.get("scope", "")).split(),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        detail = "The reply contains no tokens. Is it the address of a workspace?"
        raise ApiError(response.status_code, "", detail) from None


def _send_request(
    client: httpx.Client, method: str, url: str, form_fields: Mapping[str, str] | None = None
) -> httpx.Response:
    response = _send_unchecked_request(client, method, url, form_fields)
    error = find_error(response)
    if error is None:
        return response
    problem: Mapping[str, Any] = error.problem
    if response.status_code < _SERVER_ERROR and "error" in problem:
        detail = str(problem.get("error_description") or problem["error"])[:_MAX_ERROR_LENGTH]
        raise SignInError(response.status_code, str(problem["error"]), detail, problem=problem)
    raise error


def _send_unchecked_request(
    client: httpx.Client, method: str, url: str, form_fields: Mapping[str, str] | None = None
) -> httpx.Response:
    """Send a request and return the reply, even if its status reports an error."""
    try:
        return client.request(method, url, data=form_fields)
    except httpx.RequestError as error:
        raise UnreachableError(f"{client.base_url} does not respond: {str(error) or type(error).__name__}") from error
