"""Documentation of the replies of the handler module `tokens`."""

from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict

from shared.auth.rights import AccessRight
from shared.http.operation_docs import IDEMPOTENT, NO_CONTENT, DocumentedReply, OperationDocs


class MintedToken(TypedDict):
    """A new access token; no other reply contains it."""

    Token: str
    ExpiresAt: datetime
    AccessRights: list[AccessRight]


class NewKey(TypedDict):
    """A new API key; no other reply contains its secret."""

    keyId: str
    apiKey: str
    name: str
    principal: str
    accessRights: list[AccessRight]
    createdAt: datetime
    expiresAt: datetime | None
    connections: NotRequired[list[str]]
    devices: NotRequired[list[str] | None]


class KnownKey(TypedDict):
    """An API key without its secret."""

    keyId: str
    name: str
    principal: str
    accessRights: list[AccessRight]
    createdAt: datetime
    expiresAt: datetime | None
    lastUsedAt: datetime | None
    revokedAt: datetime | None
    connections: NotRequired[list[str]]
    devices: NotRequired[list[str] | None]


class KeyList(TypedDict):
    """List of API keys."""

    keys: list[KnownKey]


class Identity(TypedDict):
    """Identity and access rights of the caller."""

    principal: str | None
    name: str
    workspace: str | None
    accessRights: list[AccessRight]
    via: Literal["apiKey", "jwt", "entra"]
    expiresAt: datetime | None
    connections: NotRequired[list[str]]
    devices: NotRequired[list[str] | None]


class KeySet(TypedDict):
    """A JSON Web Key Set (RFC 7517)."""

    keys: list[dict[str, Any]]


_EXAMPLE_RIGHTS = ["Workspace.Catalog.Read", "Workspace.WarmQuery.Execute"]
_KEY = {
    "keyId": "abcd2345",
    "name": "dashboard",
    "principal": "viewer@plant-a.example",
    "accessRights": _EXAMPLE_RIGHTS,
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "expiresAt": None,
}
_TOKEN = {
    "Token": "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJvaSJ9.c2lnbmF0dXJl",
    "ExpiresAt": "2026-01-05T09:00:00.000000Z",
    "AccessRights": _EXAMPLE_RIGHTS,
}
_IDENTITY = {
    "principal": "viewer@plant-a.example",
    "name": "Auditor",
    "workspace": "plant-a",
    "accessRights": _EXAMPLE_RIGHTS,
    "via": "jwt",
    "expiresAt": "2026-01-05T09:00:00.000000Z",
}
_NEW_KEY = {**_KEY, "apiKey": "oik_abcd2345_43-characters-of-base64url"}
_LISTED = {"keys": [{**_KEY, "lastUsedAt": None, "revokedAt": None}]}

MINTED_DOCS = OperationDocs((DocumentedReply(200, "The new token.", MintedToken, _TOKEN),))
REVOKED_TOKEN_DOCS = OperationDocs((NO_CONTENT,), error_statuses=(403,))
CREATED_DOCS = OperationDocs(
    (DocumentedReply(201, "The new key with its secret.", NewKey, _NEW_KEY),),
    error_statuses=(403, 404, 409, 422),
    example={"name": "dashboard", "rights": _EXAMPLE_RIGHTS, "expiresInDays": 90},
    headers=IDEMPOTENT,
)
LISTED_DOCS = OperationDocs((DocumentedReply(200, "The keys, without secrets.", KeyList, _LISTED),))
REVOKED_KEY_DOCS = OperationDocs((NO_CONTENT,), error_statuses=(403,))
IDENTITY_DOCS = OperationDocs((DocumentedReply(200, "The caller's identity and access rights.", Identity, _IDENTITY),))
KEY_SET_DOCS = OperationDocs(
    (
        DocumentedReply(
            200,
            "The public keys.",
            KeySet,
            {
                "keys": [
                    {"kty": "EC", "crv": "P-256", "kid": "k1", "use": "sig", "alg": "ES256", "x": "...", "y": "..."}
                ]
            },
        ),
    )
)
