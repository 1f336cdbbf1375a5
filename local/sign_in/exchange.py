"""Exchange of a one-time sign-in code for an access token; only the local host has this route."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from local.sign_in.codes import SignInCodes
from shared.auth.principals import CredentialKind, Principal, build_unauthenticated_error
from shared.auth.rights import Role
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.text_formats.strict_json import parse_json
from shared.timestamps import format_rfc3339

PATH: Final = "/local/sign-in"
TOKEN_MINUTES: Final = Decimal(480)
"""Lifetime of the token: a working day, because the console has no API key to renew the token."""


class SignInExchange:
    """Handler of ``POST /local/sign-in``, which exchanges a one-time sign-in code for an access token."""

    def __init__(self, codes: SignInCodes) -> None:
        self._codes = codes

    async def handle(self, method: str, body: bytes) -> Mapping[str, Any]:
        """Exchange the code in a body ``{code}`` for a reply ``{token, expiresAt}``; the code becomes invalid.

        Raises:
            WorkspaceError: METHOD_NOT_ALLOWED unless the method is POST; INVALID if the body has no code;
                SIGN_IN_CODE_INVALID if the code is unknown, used or expired; UNAUTHENTICATED if the member is unknown
                or disabled.
        """
        if method != "POST":
            raise WorkspaceError(
                Kind.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "This route accepts POST only.", allow=["POST"]
            )
        member_id = await self._codes.redeem_and_find_member_id(_parse_sign_in_code(body))
        if member_id is None:
            detail = "The sign-in code is unknown, used or expired; run python -m local.sign_in for a new one."
            raise WorkspaceError(Kind.UNAUTHENTICATED, "SIGN_IN_CODE_INVALID", detail)
        return await _issue_token_as_json(member_id)


def _parse_sign_in_code(body: bytes) -> str:
    try:
        given = parse_json(body)
    except ValueError as error:
        raise build_invalid_field_error("body", str(error)) from None
    code = given.get("code") if isinstance(given, dict) else None
    if not isinstance(code, str):
        raise build_invalid_field_error("code", "must be the code of a sign-in link")
    return code


async def _issue_token_as_json(member_id: str) -> Mapping[str, Any]:
    """Issue a token to an enabled member; an empty id selects the first enabled administrator."""
    from shared.wiring import services  # noqa: PLC0415  the settings are complete only after the start

    catalog = await services().catalog.get_current_catalog()
    chosen = [
        member
        for member in catalog.members.values()
        if member.enabled
        and (member.id == member_id if member_id else member.role is Role.ADMIN and not member.service)
    ]
    if not chosen:
        raise build_unauthenticated_error(
            "The sign-in link is for a member who is unknown or disabled; run python -m local.sign_in --as MEMBER."
        )
    member = chosen[0]
    identity = None if member.service else member.id
    caller = Principal(member.id, identity, member.name, member.access_rights, CredentialKind.LINK, "", None)
    minted = await services().access.token_issuer.issue_token(caller, TOKEN_MINUTES, None)
    return {"token": minted.token, "expiresAt": format_rfc3339(minted.expires_at)}
