"""HTTP operations on API keys and tokens: create, list, revoke, identity, public keys.

This module is separate from ``oauth`` because it is a different endpoint group.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StrictInt,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from functions.idempotency import call_handler_once_per_idempotency_key, derive_secret_seed
from functions.reply_docs.tokens import (
    CREATED_DOCS,
    IDENTITY_DOCS,
    KEY_SET_DOCS,
    LISTED_DOCS,
    MINTED_DOCS,
    REVOKED_KEY_DOCS,
    REVOKED_TOKEN_DOCS,
)
from functions.serialized_items import build_serialized_list_reply
from shared.auth.ports import MAX_MINUTES, ApiKey, Team
from shared.auth.principals import CredentialRestriction, Principal
from shared.auth.rights import AccessRight
from shared.auth.telemetry_binding import MAX_BYTES, TelemetryBinding
from shared.errors import Kind, ValidationErrors, build_invalid_field_error
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Access, Call, Group
from shared.http.unknown_names import UnknownNames
from shared.text_formats.serialisation import serialise_json
from shared.timestamps import format_rfc3339
from shared.validation.names import Name, validate_distinct_values
from shared.wiring import services

GROUP = Group("keys")
_REJECTS_BOUND: Final = frozenset({CredentialRestriction.BOUND})
_LISTED_RIGHTS: Final = "\0listed rights"
_MINUTES = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def parse_minutes(text: str) -> Decimal:
    """Parse the lifetime of a token in minutes.

    Raises:
        ValueError: the text is not a number from 1 to 43200.
    """
    if not _MINUTES.fullmatch(text) or not 1 <= Decimal(text) <= MAX_MINUTES:
        raise ValueError(f"must be a number from 1 to {MAX_MINUTES}")
    return Decimal(text)


def _parse_scopes(text: str) -> list[str]:
    scopes = [scope.strip() for scope in text.split(",")]
    if not all(scopes):
        raise ValueError("must be access rights separated by commas; omit the parameter to include all")
    return scopes


_LIFETIME: Final = {"type": "number", "minimum": 1, "maximum": MAX_MINUTES, "multipleOf": 0.000001}
_ONE: Final = f"(?:{'|'.join(AccessRight).replace('.', '[.]')})"
_RIGHTS: Final = {"type": "string", "pattern": f"^{_ONE}(?:,{_ONE})*$"}


class MintQuery(BaseModel):
    """Query parameters of the operation that issues an access token."""

    minutes: Annotated[Decimal | None, BeforeValidator(parse_minutes), WithJsonSchema(_LIFETIME)] = Field(
        None, description="Lifetime in minutes, 1 to 43200. Default: 60."
    )
    scopes: Annotated[list[str] | None, BeforeValidator(_parse_scopes), WithJsonSchema(_RIGHTS)] = Field(
        None, description="Access rights to include, separated by commas. Default: all rights of the caller."
    )
    sign_in: Literal["true", "false"] = Field(
        "true",
        alias="signIn",
        description="`false` for a token without `auth_time` and `sid`, which proves no sign-in of a person and signs "
        "nothing. Programs that stored an API key use it.",
    )


class NewKeyBody(BaseModel):
    """Request body that creates an API key."""

    name: Name
    principal: Annotated[str, StringConstraints(strict=True)] | None = None
    rights: list[AccessRight] | None = None
    expires_in_days: StrictInt | None = Field(None, alias="expiresInDays", ge=1, le=3650)
    connections: Annotated[list[Name], AfterValidator(validate_distinct_values)] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Lookups of the connections to which the key is bound. A bound key can only write their telemetry.",
    )
    devices: Annotated[list[Name], AfterValidator(validate_distinct_values)] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Patterns of the device ids of a bound key, such as `rig-*`; default: all. "
        f"With `connections` at most {MAX_BYTES:,} bytes.",
    )

    @field_validator("connections", "devices", mode="before")
    @classmethod
    def reject_null(cls, value: Any, info: ValidationInfo) -> Any:
        """Reject null for `connections` and `devices`; a caller who wants an unrestricted key must omit them."""
        if value is None:
            raise ValueError(
                f"must be a list; omit it to create a key that is not restricted to certain {info.field_name}"
            )
        return value

    @model_validator(mode="after")
    def check_devices_and_rights(self) -> Self:
        """Reject `devices` without `connections`, and an empty list of rights together with `connections`."""
        if self.devices is not None and self.connections is None:
            raise ValueError("`devices` requires `connections`")
        if self.connections is not None and self.rights == []:
            raise ValueError(
                f"`rights` of a key with `connections` must be omitted or [{AccessRight.TELEMETRY_WRITE!s}]"
            )
        return self

    @property
    def binding(self) -> TelemetryBinding | None:
        """Connections and devices to which the new key is restricted; None for a key without this restriction."""
        if self.connections is None:
            return None
        return TelemetryBinding(tuple(self.connections), None if self.devices is None else tuple(self.devices))


async def _check_new_token(call: Call[MintQuery], faults: ValidationErrors) -> None:
    services().access.token_issuer.add_token_request_errors(
        faults, call.principal, call.query.minutes, call.query.scopes
    )


@GROUP.endpoint(
    "GET",
    "workspace/api/keys/jwt",
    access=Access.KEYS,
    query=MintQuery,
    check=_check_new_token,
    rejects=frozenset({CredentialRestriction.DELEGATED}),
    docs=MINTED_DOCS,
    # A HEAD request would issue a token that nobody receives.
    allows_head=False,
)
async def mint_token(call: Call[MintQuery]) -> Reply:
    """Issue a token with the caller's access rights or a subset of them."""
    query = call.query
    minted = await services().access.token_issuer.issue_token(
        call.principal, query.minutes, query.scopes, has_sign_in=query.sign_in == "true"
    )
    return build_json_reply(
        {"Token": minted.token, "ExpiresAt": format_rfc3339(minted.expires_at), "AccessRights": list(minted.rights)}
    )


@GROUP.endpoint(
    "DELETE", "workspace/api/keys/jwt/{jti}", access=Access.KEYS, rejects=_REJECTS_BOUND, docs=REVOKED_TOKEN_DOCS
)
async def revoke_token(call: Call) -> Reply:
    """Revoke a token by its id."""
    await services().access.token_issuer.revoke(call.principal, call.path["jti"])
    return Reply(204)


async def _check_new_key_binding(call: Call[Any, NewKeyBody], faults: ValidationErrors) -> None:
    await _check_connections_exist(call, faults)
    if faults.has_valid_fields("connections", "devices") and (binding := call.body.binding) is not None:
        with faults.collect_raised_error():
            binding.check_size_for_token()


async def _check_connections_exist(call: Call[Any, NewKeyBody], faults: ValidationErrors) -> None:
    if not faults.has_valid_fields("connections") or not call.body.connections:
        return
    known = (await services().catalog.get_current_catalog()).connections
    for index, lookup in enumerate(call.body.connections):
        if lookup not in known:
            faults.add(build_invalid_field_error(f"connections[{index}]", f"unknown connection: {lookup}"))


@GROUP.endpoint(
    "POST",
    "workspace/api/keys",
    access=Access.KEYS,
    body=NewKeyBody,
    check=_check_new_key_binding,
    rejects=frozenset(CredentialRestriction),
    docs=CREATED_DOCS,
)
async def create_key(call: Call[Any, NewKeyBody]) -> Reply:
    """Create an API key.

    This reply is the only one that contains the secret.
    """
    # Before the search for a stored reply, because that reply contains the secret of a key without these restrictions.
    call.principal.require_not_delegated()
    call.principal.require_no_connection_binding()
    # A retry must not give a key to other persons than those who are stored as the key's creators, and a key that gets
    # later rights only to a credential that may create one.
    origin = await services().access.lineage.describe_persons_who_may_know_credential(call.principal)
    if call.principal.has_listed_rights:
        origin = [_LISTED_RIGHTS, *origin]
    return await call_handler_once_per_idempotency_key(call, _create_key_and_build_reply, origin)


async def _create_key_and_build_reply(call: Call[Any, NewKeyBody]) -> Reply:
    body, seed = call.body, await derive_secret_seed(call)
    # A key made for oneself can sign, so a refused sign-in counts as an attempt to sign.
    async with services().signatures.signing.record_refusals_in_block(call.principal, {Kind.UNAUTHENTICATED}):
        issued = await services().access.api_keys.create(
            call.principal,
            body.name,
            principal=body.principal,
            rights=body.rights,
            expires_in_days=body.expires_in_days,
            seed=seed,
            binding=body.binding,
        )
    members = _key_to_json(issued.key, await services().access.directory.get_team())
    del members["lastUsedAt"], members["revokedAt"]
    return build_json_reply({"apiKey": issued.api_key, **members}, 201)


@GROUP.endpoint("GET", "workspace/api/keys", access=Access.KEYS, rejects=_REJECTS_BOUND, docs=LISTED_DOCS)
async def list_keys(call: Call) -> Reply:
    """List the caller's API keys.

    Callers with the right to manage keys get the keys of all principals.
    """
    access = services().access
    keys = await access.api_keys.list_visible(call.principal)
    # In a worker thread, because there can be thousands of keys.
    return await services().runtime.run_in_thread(_build_key_list_reply, keys, await access.directory.get_team())


def _build_key_list_reply(keys: Sequence[ApiKey], team: Team) -> Reply:
    return build_serialized_list_reply("keys", [serialise_json(_key_to_json(key, team)) for key in keys], {})


@GROUP.endpoint(
    "DELETE", "workspace/api/keys/{keyId}", access=Access.KEYS, rejects=_REJECTS_BOUND, docs=REVOKED_KEY_DOCS
)
async def revoke_key(call: Call) -> Reply:
    """Revoke an API key."""
    await services().access.api_keys.revoke(call.principal, call.path["keyId"])
    return Reply(204)


@GROUP.endpoint("GET", "workspace/api/keys/whoami", access=Access.KEYS, docs=IDENTITY_DOCS)
async def whoami(call: Call) -> Reply:
    """Return the caller's identity and access rights."""
    workspace = (await services().catalog.get_current_catalog()).workspace
    return build_json_reply({**_identity_to_json(call.principal), "workspace": workspace.id if workspace else None})


@GROUP.endpoint("GET", ".well-known/jwks.json", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=KEY_SET_DOCS)
async def jwks(_: Call) -> Reply:
    """Return the public keys that verify tokens, as a JSON Web Key Set."""
    keys = [dict(key) for key in await services().access.signing_key.load_public_keys()]
    return build_json_reply({"keys": keys}, headers={"Cache-Control": "public, max-age=300"})


def _identity_to_json(principal: Principal) -> dict[str, Any]:
    return {
        "principal": principal.identity,
        "name": principal.name,
        "accessRights": sorted(principal.rights),
        "via": principal.via,
        "expiresAt": _format_optional_rfc3339(principal.expires_at),
        **(principal.binding.to_json() if principal.binding is not None else {}),
    }


def _key_to_json(key: ApiKey, team: Team) -> dict[str, Any]:
    return {
        "keyId": key.key_id,
        "name": key.name,
        "principal": key.principal,
        "accessRights": team.list_effective_rights(key),
        "createdAt": format_rfc3339(key.created_at),
        "expiresAt": _format_optional_rfc3339(key.expires_at),
        "lastUsedAt": _format_optional_rfc3339(key.last_used_at),
        "revokedAt": _format_optional_rfc3339(key.revoked_at),
        **(key.binding.to_json() if key.binding is not None else {}),
    }


def _format_optional_rfc3339(instant: datetime | None) -> str | None:
    return None if instant is None else format_rfc3339(instant)
