"""Errors that the domain packages raise: a kind and a stable code, without an HTTP status."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

MAX_LISTED: Final = 1_000
"""Maximum number of invalid fields that one error lists; a longer list would block the event loop."""

MAX_DETAIL: Final = 8_192
"""Maximum number of characters of the message of an invalid field, and of the joined messages in an error's detail."""

_MAX_FIELD: Final = 512
"""Maximum number of characters of the name of an invalid field, which the caller can choose."""

_UNLISTED: Final = "..."
"""Name of the last entry of a list of invalid fields that is not complete."""


class Kind(StrEnum):
    """Kind of an error; each interface (REST, GraphQL, MCP) converts the kind to its own status."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    PRECONDITION_FAILED = "precondition_failed"
    PRECONDITION_REQUIRED = "precondition_required"
    LENGTH_REQUIRED = "length_required"
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
    """Name of an invalid field of a request, and the rule that the field breaks."""

    field: str
    message: str


class WorkspaceError(Exception):
    """Error that is returned to the caller.

    Args:
        kind: class of the error.
        code: stable code in UPPER_SNAKE case, for programs.
        detail: one sentence for a person, without secrets.
        members: further properties of the problem document, for example ``currentStatus``; ``retryAfter`` (seconds) is
            also sent as the Retry-After header.
    """

    def __init__(self, kind: Kind, code: str, detail: str, **members: object) -> None:
        super().__init__(detail)
        self.kind = kind
        self.code = code
        self.detail = detail
        self.members = members


def is_permanent(error: WorkspaceError) -> bool:
    """Return whether an error has no Retry-After, because no retry can succeed, for instance if a file is damaged."""
    return error.members.get("retryAfter", 0) is None


def build_invalid_field_error(field: str, message: str, *, code: str = "INVALID_REQUEST") -> WorkspaceError:
    """Build an INVALID error about one field of a request; ``message`` is the rule that the field breaks."""
    return build_invalid_fields_error([FieldError(field, message)], code=code)


def build_invalid_fields_error(
    errors: Iterable[FieldError], *, code: str = "INVALID_REQUEST", total_count: int | None = None
) -> WorkspaceError:
    """Build an INVALID error that lists the first :data:`MAX_LISTED` invalid fields under ``errors``.

    If there are more, the last entry states the number of all invalid fields.

    Args:
        errors: invalid fields; an iterator is read only as far as needed.
        code: code of the error.
        total_count: number of all invalid fields, if ``errors`` may contain only the first of them.
    """
    listed = list(islice(errors, MAX_LISTED + 1))
    if len(listed) > MAX_LISTED or (total_count or 0) > len(listed):
        listed = [*listed[:MAX_LISTED], build_entry_about_omitted_errors(total_count)]
    fields = [
        {"field": _shorten(error.field, _MAX_FIELD), "message": _shorten(error.message, MAX_DETAIL)} for error in listed
    ]
    detail = _join_and_shorten_details(f"{each['field']}: {each['message']}" for each in fields)
    return WorkspaceError(Kind.INVALID, code, detail, errors=fields)


def build_entry_about_omitted_errors(total_count: int | None) -> FieldError:
    """Build the last entry of an incomplete list of invalid fields, which states how many fields are invalid.

    Args:
        total_count: number of all invalid fields; None if it is not known.
    """
    count = f"more than {MAX_LISTED}" if total_count is None else total_count
    return FieldError(_UNLISTED, f"{count} errors were found; at most {MAX_LISTED} of them are listed")


def _join_and_shorten_details(details: Iterable[str]) -> str:
    return _shorten("; ".join(details), MAX_DETAIL)


def _shorten(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


LEADING: Final = ("VERSION_UNKNOWN", "BODY_NOT_JSON", "SCOPE_KEY_REQUIRED")
"""Error codes that take precedence if a request breaks several rules, because clients check for these codes."""


class ValidationErrors:
    """Collector of the errors of one request, so that one reply lists every invalid field."""

    def __init__(self) -> None:
        self._errors: list[WorkspaceError] = []
        self._invalid: set[str] = set()

    def __bool__(self) -> bool:
        """True if at least one error was collected."""
        return bool(self._errors)

    def add(self, error: WorkspaceError) -> None:
        """Add an INVALID error and mark its fields as invalid."""
        self._errors.append(error)
        self.mark_invalid(_get_top_level_field(listed["field"]) for listed in _list_field_errors(error))

    def mark_invalid(self, fields: Iterable[str]) -> None:
        """Mark fields as invalid, so that :meth:`has_valid_fields` returns False for them."""
        self._invalid.update(fields)

    def has_valid_fields(self, *fields: str) -> bool:
        """Return True if all of these fields are valid so far, so that a further rule about them can be checked."""
        return self._invalid.isdisjoint(fields)

    @contextmanager
    def collect_raised_error(self) -> Iterator[None]:
        """Context manager: collect an INVALID error that the block raises.

        Raises:
            WorkspaceError: the block raises an error of another kind. If INVALID errors were collected before, the
                collected errors are raised instead, as by :meth:`raise_all`.
        """
        try:
            yield
        except WorkspaceError as error:
            if error.kind is not Kind.INVALID:
                self.raise_all()
                raise
            self.add(error)

    def raise_all(self) -> None:
        """Raise one error for all collected errors; do nothing if no errors were collected.

        Raises:
            WorkspaceError: INVALID with the ``members`` of all errors, and with the first :data:`MAX_LISTED` invalid
                fields under ``errors``. Its code is that of the first error, unless an error has a code in
                :data:`LEADING`; such codes take precedence, in the order of :data:`LEADING`.
        """
        if len(self._errors) == 1:
            raise self._errors[0]
        if not self._errors:
            return
        members = {name: value for error in reversed(self._errors) for name, value in error.members.items()}
        members["errors"] = _merge_field_errors(self._errors)
        codes = [error.code for error in self._errors]
        code = next((code for code in LEADING if code in codes), codes[0])
        raise WorkspaceError(
            Kind.INVALID, code, _join_and_shorten_details(error.detail for error in self._errors), **members
        )


def _merge_field_errors(errors: Iterable[WorkspaceError]) -> list[dict[str, str]]:
    fields = [listed for error in errors for listed in _list_field_errors(error)]
    named = [listed for listed in fields if listed["field"] != _UNLISTED]
    unlisted = [listed for listed in fields if listed["field"] == _UNLISTED]
    if len(unlisted) > 1 or (len(named) > MAX_LISTED and not unlisted):
        # Each of several entries states only the number of its own part of the request.
        last = build_entry_about_omitted_errors(None if unlisted else len(named))
        unlisted = [{"field": last.field, "message": last.message}]
    return [*named[:MAX_LISTED], *unlisted]


def _list_field_errors(error: WorkspaceError) -> list[dict[str, str]]:
    listed = error.members.get("errors")
    return listed if isinstance(listed, list) else []


def _get_top_level_field(field_path: str) -> str:
    """Return the first name in the path of a field, for instance ``parameters`` for ``parameters[0].name``."""
    return re.split(r"[.\[]", field_path, maxsplit=1)[0]
