"""Credentials of live stream listeners, and the user id of a stream at the message service (Azure Web PubSub)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.auth.principals import Principal, unauthenticated_error

MOVED_HEADER = "x-workspace-authorization"
"""Header to which the gateway moves Authorization, because Web PubSub would interpret Authorization."""

TOKEN_PARAMETER = "token"  # noqa: S105  name of a parameter
SUBPROTOCOL_PREFIX = "bearer."
_FOREVER = datetime(9999, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_USER_ID = re.compile(r"(?P<second>\d{1,12})\.(?P<token>[A-Za-z0-9_-]*)\.(?P<member>.+)", re.DOTALL | re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamCredential:
    """Credential that a listener sent in the WebSocket handshake.

    Attributes:
        authorization: credential in the form of an Authorization header; empty without a credential.
        subprotocol: offered subprotocol that contains the credential, which the server must echo; empty if no
            subprotocol contains it.
    """

    authorization: str
    subprotocol: str = ""


def find_credential(authorization: str, tokens: Sequence[str], subprotocols: Sequence[str]) -> StreamCredential:
    """Return a listener's credential: from the Authorization header, else the query parameter, else the subprotocol.

    Args:
        authorization: value of the Authorization header; empty if missing.
        tokens: values of the query parameter ``token``.
        subprotocols: offered subprotocols; browsers cannot set headers and offer ``bearer.<token>``.
    """
    subprotocol = next((each for each in subprotocols if each.startswith(SUBPROTOCOL_PREFIX)), "")
    if authorization:
        return StreamCredential(authorization, subprotocol)
    if tokens:
        return StreamCredential(f"Bearer {tokens[0]}", subprotocol)
    return StreamCredential(
        f"Bearer {subprotocol.removeprefix(SUBPROTOCOL_PREFIX)}" if subprotocol else "", subprotocol
    )


@dataclass(frozen=True, slots=True)
class Listener:
    """Listener of a live stream: team member and token, encoded in the stream's user id in Web PubSub.

    Nothing else is stored about a stream, so every instance can check whether the stream is still authorised.

    Attributes:
        member_id: id of the team member.
        token_id: id of the token that opened the stream.
        expires_at: expiry of the token that opened the stream.
    """

    member_id: str
    token_id: str
    expires_at: datetime

    @classmethod
    def from_principal(cls, principal: Principal) -> "Listener":
        """Build the listener from the authenticated principal of a request."""
        return cls(principal.member_id, principal.credential_id, principal.expires_at or _FOREVER)

    @classmethod
    def from_user_id(cls, name: str) -> "Listener":
        """Build the listener from its user id at the message service (Azure Web PubSub).

        Raises:
            WorkspaceError: UNAUTHENTICATED if the user id was not issued by this service.
        """
        found = _USER_ID.fullmatch(name)
        if found is None:
            raise unauthenticated_error("The stream link was not issued by this service; request a new link.")
        return cls(found["member"], found["token"], _EPOCH + timedelta(seconds=int(found["second"])))

    @property
    def name(self) -> str:
        """User id of the stream at the message service (Azure Web PubSub): expiry, token id and member id."""
        return f"{int(self.expires_at.timestamp())}.{self.token_id}.{self.member_id}"


def read_moved_authorization(headers: Mapping[str, str]) -> str:
    """Return the Authorization header of the client, which the gateway has moved to another header."""
    return headers.get(MOVED_HEADER, "")
