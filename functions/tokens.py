"""API keys and tokens."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, StrictInt, StringConstraints, WithJsonSchema

from functions.idempotency import answered_once
from functions.replies import keys as replies
from shared.auth.ports import MAX_MINUTES, ApiKey
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.errors import ValidationErrors
from shared.http.messages import Reply, json_reply
from shared.http.operations import Access, Call, Group
from shared.http.unknown_names import UnknownNames
from shared.timestamps import rfc3339
from shared.validation.names import Name
from shared.wiring import services

GROUP = Group("keys")
_MINUTES = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def _minutes(text: str) -> Decimal:
    if not _MINUTES.fullmatch(text) or not 1 <= Decimal(text) <= MAX_MINUTES:
        raise ValueError(f"a number from 1 to {MAX_MINUTES} is expected")
    return Decimal(text)


def _scopes(text: str) -> list[str]:
    scopes = [scope.strip() for scope in text.split(",")]
    if not all(scopes):
        raise ValueError("access rights, separated by commas, are expected; leave it out for all of them")
    return scopes


_LIFETIME: Final = {"type": "number", "minimum": 1, "maximum": MAX_MINUTES, "multipleOf": 0.000001}
_ONE: Final = f"(?:{'|'.join(AccessRight).replace('.', '[.]')})"
_RIGHTS: Final = {"type": "string", "pattern": f"^{_ONE}(?:,{_ONE})*$"}


class MintQuery(BaseModel):
    """What a token is to be like."""

    minutes: Annotated[Decimal | None, BeforeValidator(_minutes), WithJsonSchema(_LIFETIME)] = Field(
        None, description="Lifetime in minutes, 1 to 43200; 60 when left out."
    )
    scopes: Annotated[list[str] | None, BeforeValidator(_scopes), WithJsonSchema(_RIGHTS)] = Field(
        None, description="Access rights to include, separated by commas; all that the caller holds when left out."
    )


class NewKeyBody(BaseModel):
    """What an API key is to be like."""

    name: Name
    principal: Annotated[str, StringConstraints(strict=True)] | None = None
    rights: list[AccessRight] | None = None
    expires_in_days: StrictInt | None = Field(None, alias="expiresInDays", ge=1, le=3650)


async def _mintable(call: Call[MintQuery], faults: ValidationErrors) -> None:
    services().token_issuer.check(faults, call.principal, call.query.minutes, call.query.scopes)


@GROUP.endpoint(
    "GET", "workspace/api/keys/jwt", access=Access.KEYS, query=MintQuery, check=_mintable, docs=replies.MINTED
)
async def mint_token(call: Call[MintQuery]) -> Reply:
    """Issue a token that carries the caller's access rights, or some of them."""
    minted = await services().token_issuer.mint(call.principal, call.query.minutes, call.query.scopes)
    return json_reply(
        {"Token": minted.token, "ExpiresAt": rfc3339(minted.expires_at), "AccessRights": list(minted.rights)}
    )


@GROUP.endpoint("DELETE", "workspace/api/keys/jwt/{jti}", access=Access.KEYS, docs=replies.REVOKED_TOKEN)
async def revoke_token(call: Call) -> Reply:
    """Revoke a token by its id."""
    await services().token_issuer.revoke(call.principal, call.path["jti"])
    return Reply(204)


@GROUP.endpoint("POST", "workspace/api/keys", access=Access.KEYS, body=NewKeyBody, docs=replies.CREATED)
@answered_once
async def create_key(call: Call[Any, NewKeyBody]) -> Reply:
    """Make an API key; its secret is shown this once."""
    wanted = call.body
    issued = await services().api_keys.create(
        call.principal,
        wanted.name,
        principal=wanted.principal,
        rights=wanted.rights,
        expires_in_days=wanted.expires_in_days,
        id_seed=call.append_id,
    )
    shown = await _shown(issued.key)
    made = ("keyId", "name", "principal", "accessRights", "createdAt", "expiresAt")
    return json_reply({"apiKey": issued.api_key, **{name: shown[name] for name in made}}, 201)


@GROUP.endpoint("GET", "workspace/api/keys", access=Access.KEYS, docs=replies.LISTED)
async def list_keys(call: Call) -> Reply:
    """List the caller's API keys, or everybody's with the right to manage keys."""
    return json_reply({"keys": [await _shown(key) for key in await services().api_keys.list_visible(call.principal)]})


@GROUP.endpoint("DELETE", "workspace/api/keys/{keyId}", access=Access.KEYS, docs=replies.REVOKED_KEY)
async def revoke_key(call: Call) -> Reply:
    """Revoke an API key."""
    await services().api_keys.revoke(call.principal, call.path["keyId"])
    return Reply(204)


@GROUP.endpoint("GET", "workspace/api/keys/whoami", access=Access.KEYS, docs=replies.WHO)
async def whoami(call: Call) -> Reply:
    """Say who the caller is and what it may do."""
    workspace = (await services().catalog.current()).workspace
    return json_reply({**_identity(call.principal), "workspace": workspace.id if workspace else None})


@GROUP.endpoint("GET", ".well-known/jwks.json", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.KEY_SET)
async def jwks(_: Call) -> Reply:
    """Publish the keys that verify tokens."""
    keys = [dict(key) for key in await services().signing_key.public_keys()]
    return json_reply({"keys": keys}, headers={"Cache-Control": "public, max-age=300"})


def _identity(principal: Principal) -> dict[str, Any]:
    return {
        "principal": principal.identity,
        "name": principal.name,
        "accessRights": sorted(principal.rights),
        "via": principal.via,
        "expiresAt": _text(principal.expires_at),
    }


async def _shown(key: ApiKey) -> dict[str, Any]:
    return {
        "keyId": key.key_id,
        "name": key.name,
        "principal": key.principal,
        "accessRights": await services().api_keys.rights_of(key),
        "createdAt": rfc3339(key.created_at),
        "expiresAt": _text(key.expires_at),
        "lastUsedAt": _text(key.last_used_at),
        "revokedAt": _text(key.revoked_at),
    }


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
