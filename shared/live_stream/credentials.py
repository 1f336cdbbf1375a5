"""Where a listener's token stands, and the name under which its stream is known to the message service."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.auth.principals import Principal, unauthenticated

MOVED_HEADER = "x-workspace-authorization"
"""The gateway moves Authorization here: the message service would take that header for a token of its own."""

TOKEN_PARAMETER = "token"  # noqa: S105  the parameter's name
SUBPROTOCOL_PREFIX = "bearer."
_FOREVER = datetime(9999, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = re.compile(r"(?P<second>\d{1,12})\.(?P<token>[A-Za-z0-9_-]*)\.(?P<member>.+)", re.DOTALL | re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamCredential:
    """A credential as a listener offers it.

    Attributes:
        authorization: as in an Authorization header, empty where there is none.
        subprotocol: the offered subprotocol that carries it, to be echoed; empty where it stands elsewhere.
    """

    authorization: str
    subprotocol: str = ""


def find_credential(authorization: str, tokens: Sequence[str], subprotocols: Sequence[str]) -> StreamCredential:
    """Return a listener's credential: the header goes before the query parameter, that before the subprotocol.

    Args:
        authorization: value of the header, empty where there is none.
        tokens: values of the query parameter ``token``.
        subprotocols: what the listener offers; browsers, which can set no header, put ``bearer.<token>`` there.
    """
    carrying = next((each for each in subprotocols if each.startswith(SUBPROTOCOL_PREFIX)), "")
    if authorization:
        return StreamCredential(authorization, carrying)
    if tokens:
        return StreamCredential(f"Bearer {tokens[0]}", carrying)
    return StreamCredential(f"Bearer {carrying.removeprefix(SUBPROTOCOL_PREFIX)}" if carrying else "", carrying)


@dataclass(frozen=True, slots=True)
class Listener:
    """Who holds a stream open, as its name at the message service says it.

    The name is all that is kept of a stream, so that any instance can judge whether it may go on.

    Attributes:
        member_id: the team member.
        token_id: of the token that opened the stream.
        expires_at: when that token ends.
    """

    member_id: str
    token_id: str
    expires_at: datetime

    @classmethod
    def from_principal(cls, principal: Principal) -> "Listener":
        """Return the listener that a caller becomes."""
        return cls(principal.member_id, principal.credential_id, principal.expires_at or _FOREVER)

    @classmethod
    def from_user(cls, name: str) -> "Listener":
        """Return the listener of a name.

        Raises:
            WorkspaceError: UNAUTHENTICATED: the name is not one of ours.
        """
        found = _NAME.fullmatch(name)
        if found is None:
            raise unauthenticated("The link is not one that this service made.")
        return cls(found["member"], found["token"], _EPOCH + timedelta(seconds=int(found["second"])))

    @property
    def name(self) -> str:
        """The user id at the message service."""
        return f"{int(self.expires_at.timestamp())}.{self.token_id}.{self.member_id}"


def read_moved_authorization(headers: Mapping[str, str]) -> str:
    """Return the Authorization header that the gateway read_moved_authorization, from headers by lower-case name."""
    return headers.get(MOVED_HEADER, "")
