"""Errors of the OAuth endpoints (RFC 6749, RFC 8707), and the count of the requests that were refused.

Refused requests are counted in a metric and in at most one audit event per client and hour. All unknown clients share
one count, so that invented ids cannot fill the audit log.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from shared.auth.audit import AccessAudit
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.metrics import count
from shared.provenance.ports import ServiceUser
from shared.runtime import SYSTEM_RUNTIME, Runtime


class OAuthErrorCode(StrEnum):
    """Values of the property ``error`` in an OAuth error reply."""

    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    UNAUTHORIZED_CLIENT = "unauthorized_client"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    ACCESS_DENIED = "access_denied"
    SERVER_ERROR = "server_error"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"


class OAuthError(WorkspaceError):
    """Error that an OAuth endpoint returns to a client.

    Args:
        error: the error code.
        description: one sentence for the client's developer, without secrets.
        kind: class of the error; it determines the HTTP status.
    """

    def __init__(self, error: OAuthErrorCode, description: str, kind: Kind = Kind.INVALID) -> None:
        super().__init__(kind, f"OAUTH_{error.upper()}", description)
        self.error = error


def build_invalid_request_error(description: str) -> OAuthError:
    """Build the OAuth error for a malformed request."""
    return OAuthError(OAuthErrorCode.INVALID_REQUEST, description)


def build_invalid_client_error(description: str) -> OAuthError:
    """Build the error for a client that is unknown or whose authentication failed."""
    return OAuthError(OAuthErrorCode.INVALID_CLIENT, description, Kind.UNAUTHENTICATED)


def build_invalid_grant_error(description: str) -> OAuthError:
    """Build the error for an authorization code or refresh token that is not valid."""
    return OAuthError(OAuthErrorCode.INVALID_GRANT, description)


_CODES = {
    Kind.INVALID: OAuthErrorCode.INVALID_REQUEST,
    Kind.UNAUTHENTICATED: OAuthErrorCode.INVALID_CLIENT,
    Kind.FORBIDDEN: OAuthErrorCode.UNAUTHORIZED_CLIENT,
    Kind.THROTTLED: OAuthErrorCode.TEMPORARILY_UNAVAILABLE,
    Kind.UNAVAILABLE: OAuthErrorCode.TEMPORARILY_UNAVAILABLE,
    Kind.TIMEOUT: OAuthErrorCode.TEMPORARILY_UNAVAILABLE,
    Kind.INTERNAL: OAuthErrorCode.SERVER_ERROR,
}


_REPLACED = {'"': "'", "\\": "?"}


def to_oauth_error_code(error: WorkspaceError) -> OAuthErrorCode:
    """Return the OAuth error code that corresponds to an error of the service."""
    if isinstance(error, OAuthError):
        return error.error
    return _CODES.get(error.kind, OAuthErrorCode.INVALID_REQUEST)


def to_error_description(detail: str) -> str:
    r"""Replace the characters of a text that ``error_description`` must not have: non-ASCII, control, ``"``, ``\``."""
    allowed = (_REPLACED.get(char, char if " " <= char <= "~" else "?") for char in detail)
    return "".join(allowed)


UNKNOWN_CLIENT: Final = "unknown"
_MAX_CLIENTS: Final = 1_000
_LOG = logs.get_logger("oauth")


@dataclass(slots=True)
class _Refusals:
    """Number of a client's refused requests that no audit event contains yet, by OAuth error.

    Attributes:
        hour: hour of the last audit event, of this instance or of another one.
        attempted_hour: hour of an append that failed or was cancelled, but possibly stored its event; else empty.
        is_appending: True while an append runs.
        counts: number of refused requests by error code.
    """

    hour: str = ""
    attempted_hour: str = ""
    is_appending: bool = False
    counts: Counter[str] = field(default_factory=Counter)


class RefusalRecorder:
    """Counts the requests of OAuth clients that this instance refused.

    All instances together append one audit event per client and hour. The event contains only the counts of the
    instance that appends it, since its previous event. Each other instance appends its counts in a later hour, when it
    refuses a request of the client again. If an instance stops before that, its counts are lost.

    Args:
        audit: records the audit events.
        runtime: clock and randomness.
    """

    def __init__(self, audit: AccessAudit, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._audit = audit
        self._runtime = runtime
        self._clients: dict[str, _Refusals] = {}
        self._instance = runtime.new_id()

    async def record_refused_request(self, client_id: str, error: OAuthErrorCode) -> None:
        """Count a refused request; append an audit event if the client has none for the current hour.

        If the append fails or is cancelled, the client's next refused request appends the event. Requests that are
        refused during an append are counted in a later event.

        Args:
            client_id: id of the client; empty for an unknown client.
            error: OAuth error code of the reply.
        """
        count("workspace.oauth.refusals", error=str(error))
        known = client_id or UNKNOWN_CLIENT
        if known not in self._clients and len(self._clients) >= _MAX_CLIENTS:
            known = UNKNOWN_CLIENT
        refusals = self._clients.setdefault(known, _Refusals())
        refusals.counts[str(error)] += 1
        await self._append_missing_events(known, refusals)

    async def _append_missing_events(self, client_id: str, refusals: _Refusals) -> None:
        """Append the event of a failed append and the event of the current hour, if they are missing."""
        hour = max(_format_hour(self._runtime.now()), refusals.attempted_hour)
        # The hour is earlier than the last one if the clock was set back; its event possibly has counts already.
        if refusals.is_appending or hour <= refusals.hour:
            return
        refusals.is_appending = True
        try:
            for missing in dict.fromkeys((refusals.attempted_hour or hour, hour)):
                if refusals.counts:
                    await self._append_event_of_hour(client_id, missing, refusals)
        except WorkspaceError as failure:
            _LOG.warning("refused requests of a client are not audited yet", extra=logs.fields(error=failure.code))
        finally:
            refusals.is_appending = False

    async def _append_event_of_hour(self, client_id: str, hour: str, refusals: _Refusals) -> None:
        refusals.attempted_hour = hour
        refusals.counts -= await self._append_event_and_return_recorded_counts(client_id, hour, refusals.counts)
        refusals.hour, refusals.attempted_hour = hour, ""

    async def _append_event_and_return_recorded_counts(
        self, client_id: str, hour: str, error_counts: Counter[str]
    ) -> Counter[str]:
        """Append the event of an hour unless it is stored; return the counts of this instance in the stored event."""
        record = await self._audit.record_event_if_audited(
            ServiceUser.OAUTH,
            "OAuthClient.Refused",
            "OAuthClient",
            client_id,
            append_id=f"oauth-refused-{hour}-{sha256(client_id.encode()).hexdigest()}",
            after={
                "count": error_counts.total(),
                "errors": dict(sorted(error_counts.items())),
                "instance": self._instance,
            },
        )
        if record is None:
            return error_counts.copy()
        stored = record["AfterState"]
        # An earlier attempt of this instance with an unknown outcome possibly stored the event with lower counts.
        return Counter(stored["errors"] if stored.get("instance") == self._instance else ())


def _format_hour(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H}"
