"""Documentation of the replies of the handler modules `oauth` and `oauth_consent`.

It also documents the metadata of the authorization server.
"""

from datetime import datetime
from typing import Final, NotRequired, TypedDict

from functions.oauth_replies import ERRORS, TokenReply
from shared.auth.rights import AccessRight
from shared.http.operation_docs import NO_CONTENT, TEXT_FORM, DocumentedReply, OperationDocs
from shared.oauth.parameters import AUTHORIZATION_PARAMETERS, FORM, RESOURCE
from shared.oauth.scopes import DEFAULT_RIGHTS

TOKEN_ROUTE: Final = "oauth2/token"  # noqa: S105  a route


class ServerMetadata(TypedDict):
    """OAuth 2.0 authorization server metadata (RFC 8414)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str
    jwks_uri: str
    service_documentation: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    code_challenge_methods_supported: list[str]
    authorization_response_iss_parameter_supported: bool
    client_id_metadata_document_supported: bool


def build_server_metadata(base_url: str) -> ServerMetadata:
    """Build the metadata of the OAuth authorization server with this base URL."""
    methods = ["none", "client_secret_basic", "client_secret_post"]
    return {
        "issuer": base_url,
        "authorization_endpoint": f"{base_url}/oauth2/authorize",
        "token_endpoint": f"{base_url}/{TOKEN_ROUTE}",
        "revocation_endpoint": f"{base_url}/oauth2/revoke",
        "jwks_uri": f"{base_url}/.well-known/jwks.json",
        "service_documentation": f"{base_url}/oi-api/explorer",
        "scopes_supported": sorted(DEFAULT_RIGHTS),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


_TOKEN = {
    "access_token": "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJvaSJ9.c2lnbmF0dXJl",
    "token_type": "Bearer",
    "expires_in": 3600,
    "scope": "Workspace.Catalog.Read Workspace.WarmQuery.Execute",
}
_TEXT: Final = {"type": "string"}
_CREDENTIALS: Final = {
    "client_id": {**_TEXT, "description": "Id of the client, or of the API key; or in Authorization: Basic."},
    "client_secret": {**_TEXT, "description": "The API key of `client_credentials`; or in Authorization: Basic."},
}
_TOKEN_FORM: Final = {
    "type": "object",
    "required": ["grant_type"],
    "properties": {
        "grant_type": {"enum": ["authorization_code", "client_credentials", "refresh_token"]},
        **_CREDENTIALS,
        "scope": {**_TEXT, "description": "Access rights separated by spaces. Default: all of the credential."},
        "minutes": {**_TEXT, "description": "Lifetime in minutes, 1 to 43200, with `client_credentials`. Default: 60."},
        "resource": {**_TEXT, "description": "URL of this service or of its MCP server (RFC 8707)."},
        "code": {**_TEXT, "description": "The authorization code."},
        "code_verifier": {**_TEXT, "description": "The PKCE code verifier."},
        "redirect_uri": {**_TEXT, "description": "Redirect URI of the authorization request."},
        "refresh_token": {**_TEXT, "description": "The newest refresh token."},
    },
}
_REVOCATION_FORM: Final = {
    "type": "object",
    "required": ["token"],
    "properties": {"token": _TEXT, "token_type_hint": _TEXT, **_CREDENTIALS},
}
_KEY: Final = {"client_id": "K7JX2MQA", "client_secret": "oik_K7JX2MQA_secret"}
METADATA_DOCS = OperationDocs(
    (DocumentedReply(200, "The metadata.", ServerMetadata, build_server_metadata("https://plant-a.example")),),
    error_statuses=(400,),
    errors=ERRORS,
)
TOKEN_DOCS = OperationDocs(
    (DocumentedReply(200, "The new token.", TokenReply, _TOKEN),),
    error_statuses=(400, 401, 429),
    body_forms={FORM: _TOKEN_FORM},
    form_examples={FORM: {"grant_type": "client_credentials", **_KEY, "scope": "Workspace.Catalog.Read"}},
    errors=ERRORS,
)
REVOCATION_DOCS = OperationDocs(
    (DocumentedReply(200, "The token is revoked, or was not valid."),),
    error_statuses=(400, 401),
    body_forms={FORM: _REVOCATION_FORM},
    form_examples={FORM: {"token": _TOKEN["access_token"], **_KEY}},
    errors=ERRORS,
)


class Redirection(TypedDict):
    """URL to which the consent page redirects."""

    redirectTo: str


class ClientDescription(TypedDict):
    """OAuth client that requests rights. If the workspace does not declare the client, its name is unverified."""

    id: str
    name: str
    isDeclared: bool


class Question(TypedDict):
    """Content of the consent page, or the redirect URL that reports an error to the OAuth client."""

    client: NotRequired[ClientDescription]
    redirectHost: NotRequired[str]
    accessRights: NotRequired[list[AccessRight]]
    missingRights: NotRequired[list[AccessRight]]
    redirectTo: NotRequired[str]


class KnownGrant(TypedDict):
    """Consent of a member to an OAuth client."""

    id: str
    clientId: str
    clientName: str
    principal: str
    accessRights: list[AccessRight]
    createdAt: datetime
    lastUsedAt: datetime
    expiresAt: datetime


class GrantList(TypedDict):
    """List of a member's consents to OAuth clients."""

    grants: list[KnownGrant]


_PARAMETERS = {
    "response_type": "code",
    "client_id": "grafana",
    "redirect_uri": "https://grafana.plant-a.example/login/generic_oauth",
    "scope": "Workspace.Catalog.Read Workspace.WarmQuery.Execute",
    "state": "af0ifjsldkj",
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
}
_RIGHTS = ["Workspace.Catalog.Read", "Workspace.WarmQuery.Execute"]
_QUESTION = {
    "client": {"id": "grafana", "name": "Grafana", "isDeclared": True},
    "redirectHost": "grafana.plant-a.example",
    "accessRights": _RIGHTS,
    "missingRights": [],
}
_REDIRECTION = {
    "redirectTo": "https://grafana.plant-a.example/login/generic_oauth?code=oic_0197&state=af0ifjsldkj"
    "&iss=https%3A%2F%2Fplant-a.example"
}
_GRANT = {
    "id": "0197a0b1c2d37e4f8a9b0c1d2e3f4a5b",
    "clientId": "grafana",
    "clientName": "Grafana",
    "principal": "viewer@plant-a.example",
    "accessRights": _RIGHTS,
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "lastUsedAt": "2026-01-05T09:00:00.000000Z",
    "expiresAt": "2026-02-04T09:00:00.000000Z",
}
START_DOCS = OperationDocs(
    (
        DocumentedReply(
            302,
            "Redirect to the consent page, or to the client with an error.",
            headers={"Location": "URL of the page or of the client."},
        ),
        DocumentedReply(
            400,
            "HTML page with an error: the client is unknown, or the redirect URI does not belong to the client.",
            forms={"text/html": TEXT_FORM},
        ),
    ),
    error_statuses=(414, 421),
    query=tuple(
        {
            "name": name,
            "required": False,
            "description": f"Parameter `{name}` of the authorization request.",
            "schema": {"type": "string", "maxLength": 65_536},
        }
        for name in (*AUTHORIZATION_PARAMETERS, RESOURCE)
    ),
)
PREVIEW_DOCS = OperationDocs(
    (DocumentedReply(200, "The content of the consent page.", Question, _QUESTION),),
    error_statuses=(400, 403, 421),
    example=_PARAMETERS,
)
DECISION_DOCS = OperationDocs(
    (DocumentedReply(200, "The URL to which the consent page redirects the browser.", Redirection, _REDIRECTION),),
    error_statuses=(400, 403, 421),
    example={**_PARAMETERS, "approve": True, "scopes": _RIGHTS},
)
GRANTS_LISTED_DOCS = OperationDocs((DocumentedReply(200, "The grants.", GrantList, {"grants": [_GRANT]}),))
GRANT_ENDED_DOCS = OperationDocs((NO_CONTENT,), error_statuses=(403,))
