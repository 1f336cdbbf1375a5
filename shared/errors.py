"""The one error that domains raise: a kind and a stable code, never an HTTP status."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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
    UNKNOWN_ENCODING = "unknown_encoding"
    UNPROCESSABLE = "unprocessable"
    STORAGE_FULL = "storage_full"
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


LEADING: Final = ("BODY_NOT_JSON", "SCOPE_KEY_REQUIRED")
"""Codes that are told wherever they stand among several: callers branch on them before anything else."""


class ValidationErrors:
    """All that is wrong with one request, gathered so that a caller is told of every failing field at once."""

    def __init__(self) -> None:
        self._found: list[WorkspaceError] = []
        self._failing: set[str] = set()

    def __bool__(self) -> bool:
        """Return whether anything was found."""
        return bool(self._found)

    def add(self, error: WorkspaceError) -> None:
        """Keep an INVALID error; the first one's code becomes that of all, unless one of :data:`LEADING` is there."""
        self._found.append(error)
        self.mark_invalid(_top(listed["field"]) for listed in _listed(error))

    def mark_invalid(self, fields: Iterable[str]) -> None:
        """Note fields that hold nothing a rule could look at."""
        self._failing.update(fields)

    def has_valid(self, *fields: str) -> bool:
        """Return whether all of these fields are right as far as is known, so that a rule may look at them."""
        return self._failing.isdisjoint(fields)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep what the block refuses as INVALID.

        Raises:
            WorkspaceError: of another kind, as it came; where something was found before, that instead.
        """
        try:
            yield
        except WorkspaceError as error:
            if error.kind is not Kind.INVALID:
                self.raise_all()
                raise
            self.add(error)

    def raise_all(self) -> None:
        """Return where nothing was found.

        Raises:
            WorkspaceError: INVALID with the leading or else the first code, the members of all, and every failing field
                under ``errors``.
        """
        if len(self._found) == 1:
            raise self._found[0]
        if not self._found:
            return
        members = {name: value for error in reversed(self._found) for name, value in error.members.items()}
        members["errors"] = [listed for error in self._found for listed in _listed(error)]
        codes = [error.code for error in self._found]
        code = next((code for code in LEADING if code in codes), codes[0])
        raise WorkspaceError(Kind.INVALID, code, "; ".join(error.detail for error in self._found), **members)


def _listed(error: WorkspaceError) -> list[dict[str, str]]:
    listed = error.members.get("errors")
    return listed if isinstance(listed, list) else []


def _top(field: str) -> str:
    """Return the parameter or member that a path such as ``parameters[0].name`` begins with."""
    return re.split(r"[.\[]", field, maxsplit=1)[0]
