"""Conditional requests on items that have ETags: If-Match and If-None-Match (RFC 9110 section 13)."""

import re
from dataclasses import dataclass
from typing import Final

from shared.errors import Kind, WorkspaceError, build_invalid_field_error

ANY: Final = "*"
HEADER_PATTERN: Final = (
    r'^[ \t]*\*[ \t]*$|^[ \t,]*(W/)?"[\x21\x23-\x7e\x80-\uffff]*"'
    r'([ \t]*,[ \t,]*(W/)?"[\x21\x23-\x7e\x80-\uffff]*")*[ \t,]*$'
)
"""Regular expression, for JSON Schema, of the header values that :func:`condition_from_headers` accepts."""

# The negated class contains the same characters as HEADER_PATTERN, and compiles much faster.
_TAG = re.compile(r'(W/)?("[^\x00-\x20\x22\x7f\U00010000-\U0010ffff]*")')
_BETWEEN = re.compile(r"[ \t]*(?:,[ \t]*)*")


@dataclass(frozen=True, slots=True)
class EntityTags:
    """ETags in an If-Match or If-None-Match header.

    Attributes:
        every: True if the header is ``*``, which matches every version.
        strong: strong ETags, with their quotes.
        weak: weak ETags, with their quotes and without ``W/``.
    """

    every: bool = False
    strong: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """Conditions of a request on the stored version of an item: If-Match and If-None-Match.

    An attribute is None if the request does not have the header.
    """

    match: EntityTags | None = None
    none_match: EntityTags | None = None

    @property
    def single_etag(self) -> str | None:
        """The only ETag in If-Match, if it is strong and the request has no other condition; else None."""
        match = self.match
        if self.none_match is not None or match is None or match.every or match.weak or len(match.strong) != 1:
            return None
        return match.strong[0]

    @property
    def is_empty(self) -> bool:
        """True if there is no condition, or only ``If-Match: *``; every existing item then satisfies the request."""
        return self.none_match is None and (self.match is None or self.match.every)

    def check_if_match(self, stored_etag: str) -> None:
        """Reject a request whose If-Match header contains neither this ETag, as a strong ETag, nor ``*``.

        Raises:
            WorkspaceError: PRECONDITION_FAILED ``PRECONDITION_FAILED`` if the condition is not satisfied.
        """
        if not self._is_if_match_satisfied_by(stored_etag):
            raise build_precondition_failed_error()

    def is_not_modified(self, stored_etag: str | None) -> bool:
        """Return whether If-None-Match matches the stored version by weak comparison (RFC 9110 section 13.1.2).

        Args:
            stored_etag: ETag of the stored version; None if nothing is stored.
        """
        tags = self.none_match
        return (
            tags is not None
            and stored_etag is not None
            and (tags.every or stored_etag in tags.strong or stored_etag in tags.weak)
        )

    def is_satisfied_by(self, stored_etag: str | None) -> bool:
        """Return whether the stored version satisfies the condition of a write (RFC 9110 section 13.2.2).

        Args:
            stored_etag: ETag of the stored version; None if nothing is stored.
        """
        return self._is_if_match_satisfied_by(stored_etag) and not self.is_not_modified(stored_etag)

    def check_write_allowed(self, stored_etag: str | None) -> None:
        """Reject a write if the stored version does not satisfy the condition.

        Args:
            stored_etag: ETag of the stored version; None if nothing is stored.

        Raises:
            WorkspaceError: PRECONDITION_FAILED ``PRECONDITION_FAILED`` if the condition is not satisfied.
        """
        if not self._is_if_match_satisfied_by(stored_etag):
            raise build_item_missing_error() if stored_etag is None else build_precondition_failed_error()
        if self.is_not_modified(stored_etag):
            raise _build_item_exists_error()

    def _is_if_match_satisfied_by(self, stored_etag: str | None) -> bool:
        """Return whether the stored version satisfies If-Match; True if the request does not have this header.

        Weak ETags never match (RFC 9110 section 13.1.1).
        """
        tags = self.match
        return tags is None or (stored_etag is not None and (tags.every or stored_etag in tags.strong))


UNCONDITIONAL: Final = Condition()
"""Condition of a request without conditional headers."""


def build_precondition_failed_error() -> WorkspaceError:
    """Build the error for a request whose If-Match or If-None-Match condition is not satisfied."""
    detail = "The ETag does not match the stored version; read the item again."
    return WorkspaceError(Kind.PRECONDITION_FAILED, "PRECONDITION_FAILED", detail)


def build_item_missing_error() -> WorkspaceError:
    """Build the error for a request with If-Match on an item that does not exist."""
    detail = "The item does not exist, so no ETag matches the header If-Match."
    return WorkspaceError(Kind.PRECONDITION_FAILED, "PRECONDITION_FAILED", detail)


def _build_item_exists_error() -> WorkspaceError:
    detail = "The item exists already, and If-None-Match matches it; omit the header to replace the item."
    return WorkspaceError(Kind.PRECONDITION_FAILED, "PRECONDITION_FAILED", detail)


def condition_from_headers(if_match: str | None, if_none_match: str | None) -> Condition:
    """Parse the conditional headers of a request.

    Raises:
        WorkspaceError: INVALID naming the header whose value is not a list of ETags.
    """
    return Condition(_parse_etags(if_match, "If-Match"), _parse_etags(if_none_match, "If-None-Match"))


def _parse_etags(header_value: str | None, header_name: str) -> EntityTags | None:
    if header_value is None:
        return None
    text = header_value.strip(" \t")
    if text == ANY:
        return EntityTags(every=True)
    strong: list[str] = []
    weak: list[str] = []
    position = _find_position_after_commas(text, 0)
    while position < len(text):
        found = _TAG.match(text, position)
        if found is None:
            break
        (weak if found[1] else strong).append(found[2])
        following = _find_position_after_commas(text, found.end())
        if following < len(text) and "," not in text[found.end() : following]:
            break
        position = following
    if position < len(text) or not (strong or weak):
        raise build_invalid_field_error(header_name, 'must be a list of ETags, such as "1a", or *')
    return EntityTags(strong=tuple(strong), weak=tuple(weak))


def _find_position_after_commas(text: str, position: int) -> int:
    found = _BETWEEN.match(text, position)
    return found.end() if found else position
