"""Signatures of decisions: their stored form in audit records, and the port through which decisions are signed."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from shared.errors import WorkspaceError, build_invalid_field_error
from shared.provenance.ports import ChainKey
from shared.timestamps import format_rfc3339

MEMBER: Final = "Signature"
"""Property of a decision's record that contains its signature."""

REQUEST_MEMBER: Final = "signature"
"""Property of a request's body that contains the signature of a decision."""

SIGNED_EVENT: Final = "signed-"
"""Start of the append ids of audit events about signed decisions; events that members write have other append ids."""

CONFIRMATION_SECONDS: Final = 5.0
"""Time in seconds after the start of :attr:`SigningSession.confirm` within which the write of the decision begins."""

DECISION_WRITE_SECONDS: Final = 25.0
"""Maximum time in seconds that the write of a decision takes; a write of an audit chain ends within it by itself."""

SIGNED_AT: Final = "SignedAt"
RECORD_HASH: Final = "RecordHash"


@dataclass(frozen=True, slots=True)
class DecisionSignature:
    """Signature of a decision, without its time and the hash of the signed record.

    Attributes:
        user_id: id of the member who signs.
        printed_name: name of the member at the time of the signature.
        meaning: meaning of the signature, for example ``approval``.
        statement: text of the member about the decision; None if there is none.
        auth_time: time of the member's sign-in.
        auth_methods: authentication methods of the sign-in (RFC 8176).
    """

    user_id: str
    printed_name: str
    meaning: str
    statement: str | None
    auth_time: datetime
    auth_methods: tuple[str, ...]

    def to_record_properties(self, record_hash: str) -> dict[str, Any]:
        """Convert the signature to the properties that the audit record contains, without ``SignedAt``."""
        return {
            "UserID": self.user_id,
            "PrintedName": self.printed_name,
            "Meaning": self.meaning,
            "Statement": self.statement,
            "AuthTime": format_rfc3339(self.auth_time),
            "AuthMethods": list(self.auth_methods),
            RECORD_HASH: record_hash,
        }


async def skip_confirmation() -> None:
    """Do nothing: the default of :attr:`SigningSession.confirm`, for sign-ins that may sign several decisions."""


@dataclass(slots=True)
class SigningSession:
    """Session in which one signed decision may be appended.

    Attributes:
        signature: signature of the decision.
        confirm: function that the caller calls directly before each attempt to write the decision. The write must begin
            within :data:`CONFIRMATION_SECONDS`, otherwise the caller calls it again. It raises CONFLICT
            ``SIGNATURE_TOKEN_USED`` if another decision has used the sign-in meanwhile.
        is_decided: the caller sets this to True if the stored decision was signed with this sign-in, also by an earlier
            attempt of the request; if it stays False, the sign-in may sign again.
    """

    signature: DecisionSignature
    confirm: Callable[[], Awaitable[None]] = skip_confirmation
    is_decided: bool = False


class DecisionSigner(Protocol):
    """Port through which the member who sent a request signs one decision."""

    @property
    def sent_signature(self) -> Any:
        """Body property ``signature`` of the request, not yet validated; None if it is missing."""
        ...

    def sign(self, append_id: str, chain: ChainKey) -> AbstractAsyncContextManager[SigningSession]:
        """Check that the caller may sign, and open the session in which the decision is appended.

        Call this after all other checks of the decision.

        Args:
            append_id: id with which the decision is appended to its audit chain.
            chain: key of this chain.

        Raises:
            WorkspaceError: the first of these errors that applies: THROTTLED ``SIGNATURE_LOCKED`` after too many
                refused attempts to sign; INVALID ``SIGNATURE_REQUIRED`` if the request has no signature,
                ``SIGNATURE_MEANING_INVALID`` if the decision does not allow its meaning, or an error that names the
                invalid fields; UNAUTHENTICATED ``REAUTHENTICATION_REQUIRED`` if the sign-in is too old, or reserved for
                an interrupted decision; FORBIDDEN ``DELEGATED_TOKEN`` for a token of an OAuth client,
                ``SIGNATURE_NOT_PERSONAL`` if another person created the API key of the token; CONFLICT
                ``SIGNATURE_TOKEN_USED`` if another decision has used the sign-in. UNAVAILABLE
                ``SIGNATURES_UNAVAILABLE`` if the store of sign-ins and refused attempts does not respond.
        """
        ...


def build_signature_required_error() -> WorkspaceError:
    """Build the error for a decision without the signature that the workspace's policy requires."""
    return build_invalid_field_error(REQUEST_MEMBER, "is required for this decision", code="SIGNATURE_REQUIRED")


def find_signature_in_content(content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the signature in the content of a decision's record; None if the record has none."""
    signature = content.get(MEMBER)
    return signature if isinstance(signature, dict) else None
