"""HTTP operations of the OAuth 2.1 authorization server that clients call: metadata, tokens, revocation."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Final, NamedTuple

from functions.oauth_replies import NO_STORE, build_oauth_error_reply, build_token_reply
from functions.public_address import FORWARDED_SCHEME, get_public_url, has_known_host
from functions.reply_docs import oauth as replies
from functions.tokens import parse_minutes
from shared.auth.principals import CredentialKind, Principal
from shared.errors import WorkspaceError
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Access, Call, Group, RawBody, read_authorization_header
from shared.http.unknown_names import UnknownNames
from shared.oauth.errors import OAuthError, OAuthErrorCode, build_invalid_client_error, build_invalid_request_error
from shared.oauth.parameters import (
    ClientIdentification,
    Parameters,
    check_resources_are_this_service,
    identify_client,
    parse_form_parameters,
)
from shared.wiring import services

GROUP = Group("oauth", build_oauth_error_reply)
BODY_LIMIT: Final = 65_536
_SECONDS_TO_CACHE: Final = 300


@GROUP.endpoint(
    "GET",
    ".well-known/oauth-authorization-server",
    access=Access.PUBLIC,
    unknown=UnknownNames.IGNORE,
    docs=replies.METADATA_DOCS,
)
async def authorization_server_metadata(call: Call) -> Reply:
    """Return the metadata of the OAuth 2.1 authorization server (RFC 8414)."""
    if not has_known_host(call.request):
        # A forged Host header must not become the issuer in a cached reply.
        raise build_invalid_request_error("Unknown Host header; use the address of this service.")
    headers = {"Cache-Control": f"public, max-age={_SECONDS_TO_CACHE}", "Vary": FORWARDED_SCHEME}
    return build_json_reply(replies.build_server_metadata(get_public_url(call.request)), headers=headers)


@GROUP.endpoint(
    "POST",
    replies.TOKEN_ROUTE,
    access=Access.PUBLIC,
    body=RawBody,
    body_limit=BODY_LIMIT,
    unknown=UnknownNames.IGNORE,
    docs=replies.TOKEN_DOCS,
)
async def issue_oauth_token(call: Call[Any, RawBody]) -> Reply:
    """Issue an access token for an authorization code, a refresh token or client credentials (RFC 6749)."""
    async with _record_oauth_errors_in_block(call):
        parameters = parse_form_parameters(call.request.media_type, call.request.body)
        grant_type = parameters.require("grant_type")
        if grant_type not in _GRANT_TYPES:
            raise OAuthError(
                OAuthErrorCode.UNSUPPORTED_GRANT_TYPE,
                f"The parameter grant_type must be one of {', '.join(_GRANT_TYPES)}.",
            )
        client = identify_client(read_authorization_header(call.request), parameters)
        request = await _GRANT_TYPES[grant_type](client, parameters)
        return await _issue_token_within_rate_limit(call, request, parameters)


@GROUP.endpoint(
    "POST",
    "oauth2/revoke",
    access=Access.PUBLIC,
    body=RawBody,
    body_limit=BODY_LIMIT,
    unknown=UnknownNames.IGNORE,
    docs=replies.REVOCATION_DOCS,
)
async def revoke_oauth_token(call: Call[Any, RawBody]) -> Reply:
    """Revoke an access or refresh token of the client (RFC 7009)."""
    async with _record_oauth_errors_in_block(call):
        parameters = parse_form_parameters(call.request.media_type, call.request.body)
        token = parameters.require("token")
        client = identify_client(read_authorization_header(call.request), parameters)
        await services().oauth.revocation.revoke(client, token)
        return Reply(200, b"", dict(NO_STORE))


type _IssueToken = Callable[[], Awaitable[Reply]]


class _TokenRequest(NamedTuple):
    """Authenticated request for a token: the token's owner, and a function that issues the token."""

    owner: Principal
    issue_token: _IssueToken


type _Authenticate = Callable[[ClientIdentification, Parameters], Awaitable[_TokenRequest]]
"""Function that authenticates an OAuth client."""


async def _authenticate_by_client_credentials(client: ClientIdentification, parameters: Parameters) -> _TokenRequest:
    """Authenticate a client by its API key; return the key's principal, and a function that issues an access token."""
    grant = services().oauth.client_credentials
    caller = await grant.authenticate_client(client)

    async def issue_token() -> Reply:
        minutes = _parse_optional_minutes(parameters.get("minutes"))
        return build_token_reply(await grant.issue_token(caller, parameters.get("scope"), minutes))

    return _TokenRequest(caller, issue_token)


async def _authenticate_by_authorization_code(client: ClientIdentification, parameters: Parameters) -> _TokenRequest:
    """Return the principal who consented, and a function that redeems the authorization code for tokens."""
    grants = services().oauth.grants
    stored = await grants.require_grant_by_code(_get_public_client_id(client), parameters)

    async def issue_tokens() -> Reply:
        return build_token_reply(*await grants.redeem_code(stored))

    owner = await grants.require_principal(stored.grant, CredentialKind.AUTHORIZATION_CODE)
    return _TokenRequest(owner, issue_tokens)


async def _authenticate_by_refresh_token(client: ClientIdentification, parameters: Parameters) -> _TokenRequest:
    """Return the principal who consented, and a function that redeems the refresh token for new tokens."""
    grants, text = services().oauth.grants, parameters.require("refresh_token")
    stored = await grants.require_grant_by_refresh_token(_get_public_client_id(client), text)

    async def issue_tokens() -> Reply:
        return build_token_reply(*await grants.refresh_tokens(stored, text, parameters.get("scope")))

    owner = await grants.require_principal(stored.grant, CredentialKind.REFRESH_TOKEN)
    return _TokenRequest(owner, issue_tokens)


def _get_public_client_id(client: ClientIdentification) -> str:
    """Return the id of a public OAuth client (one without a secret) from a request.

    Raises:
        OAuthError: ``invalid_client`` if the client has sent a secret, which public clients do not have.
    """
    if client.secret:
        raise build_invalid_client_error("The client is public; send no client secret.")
    return client.client_id


async def _issue_token_within_rate_limit(
    call: Call[Any, RawBody], request: _TokenRequest, parameters: Parameters
) -> Reply:
    """Issue a token unless its owner has exceeded the rate limit; add the rate-limit headers to the reply."""
    async with services().rate_limits.admit(request.owner) as decision:
        if decision.rejection is not None:
            reply = build_oauth_error_reply(decision.rejection)
        else:
            try:
                check_resources_are_this_service(parameters, get_public_url(call.request))
                reply = await request.issue_token()
            except OAuthError as error:
                await _count_oauth_error(call, error)
                reply = build_oauth_error_reply(error)
        reply.headers.update(decision.headers)
        return reply


@asynccontextmanager
async def _record_oauth_errors_in_block(call: Call[Any, RawBody]) -> AsyncIterator[None]:
    """Context manager: if the block raises an OAuthError, count a refused request of the client; raise the error again.

    The counts of a client appear in its hourly audit events.
    """
    try:
        yield
    except OAuthError as error:
        await _count_oauth_error(call, error)
        raise


async def _count_oauth_error(call: Call[Any, RawBody], error: OAuthError) -> None:
    await services().oauth.refusals.record_refused_request(await _get_known_client_id_or_empty(call), error.error)


async def _get_known_client_id_or_empty(call: Call[Any, RawBody]) -> str:
    """Return the id of the OAuth client or API key in a request; empty if the workspace does not know the id."""
    try:
        parameters = parse_form_parameters(call.request.media_type, call.request.body)
        client_id = identify_client(read_authorization_header(call.request), parameters).client_id
        if client_id in (await services().catalog.get_current_catalog()).oauth_clients:
            return client_id
        return client_id if client_id in (await services().access.credentials.load_current_value()).keys else ""
    except WorkspaceError:
        return ""


def _parse_optional_minutes(minutes_text: str | None) -> Decimal | None:
    if minutes_text is None:
        return None
    try:
        return parse_minutes(minutes_text)
    except ValueError as error:
        raise build_invalid_request_error(f"The parameter minutes {error}.") from None


_GRANT_TYPES: Final[dict[str, _Authenticate]] = {
    "authorization_code": _authenticate_by_authorization_code,
    "client_credentials": _authenticate_by_client_credentials,
    "refresh_token": _authenticate_by_refresh_token,
}
