"""Documentation of the replies about consent to OAuth clients."""

from datetime import datetime
from typing import NotRequired, TypedDict

from shared.auth.rights import AccessRight
from shared.http.operation_docs import NO_CONTENT, TEXT_FORM, DocumentedReply, OperationDocs
from shared.oauth.authorization import PARAMETERS
from shared.oauth.parameters import RESOURCE


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
        DocumentedReply(302, "Redirect to the consent page, or to the client with an error."),
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
        for name in (*PARAMETERS, RESOURCE)
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
LISTED_DOCS = OperationDocs((DocumentedReply(200, "The grants.", GrantList, {"grants": [_GRANT]}),))
ENDED_DOCS = OperationDocs((NO_CONTENT,), error_statuses=(403,))
