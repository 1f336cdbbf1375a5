"""The one error that domains raise: a kind and a stable code, never an HTTP status."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What went wrong, in terms that every interface (REST, GraphQL, MCP) can render."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    PRECONDITION_FAILED = "precondition_failed"
    TOO_LARGE = "too_large"
    TARGET_TOO_LONG = "target_too_long"
    HEADERS_TOO_LARGE = "headers_too_large"
    UNPROCESSABLE = "unprocessable"
    UPGRADE_REQUIRED = "upgrade_required"
    THROTTLED = "throttled"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One failing field of a request: where it stands and which rule it breaks."""

    field: str
    message: str


class WorkspaceError(Exception):
    """A refusal or failure that the caller is told about.

    Args:
        kind: the class of failure; interfaces map it to their own status.
        code: UPPER_SNAKE, stable; callers branch on it.
        detail: one sentence for a person, free of secrets.
        members: further members of the problem document (for instance ``currentStatus``); ``retryAfter`` (seconds)
            also becomes the Retry-After header.
    """

    def __init__(self, kind: Kind, code: str, detail: str, **members: object) -> None:
        super().__init__(detail)
        self.kind = kind
        self.code = code
        self.detail = detail
        self.members = members


def invalid(field: str, message: str, *, code: str = "INVALID_REQUEST") -> WorkspaceError:
    """Return the 400-class error for one failing field."""
    return invalid_fields([FieldError(field, message)], code=code)


def invalid_fields(errors: Sequence[FieldError], *, code: str = "INVALID_REQUEST") -> WorkspaceError:
    """Return the 400-class error that lists every failing field under ``errors``."""
    detail = "; ".join(f"{error.field}: {error.message}" for error in errors)
    listed = [{"field": error.field, "message": error.message} for error in errors]
    return WorkspaceError(Kind.INVALID, code, detail, errors=listed)
