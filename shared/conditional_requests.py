"""Conditional requests on anything that has entity tags: If-Match and If-None-Match (RFC 9110 section 13)."""

import re
from dataclasses import dataclass
from typing import Final

from shared.errors import Kind, WorkspaceError, invalid

ANY: Final = "*"
HEADER_PATTERN: Final = (
    r'^[ \t]*\*[ \t]*$|^[ \t,]*(W/)?"[\x21\x23-\x7e\x80-\uffff]*"'
    r'([ \t]*,[ \t,]*(W/)?"[\x21\x23-\x7e\x80-\uffff]*")*[ \t,]*$'
)
"""What :func:`condition_from_headers` takes, as a regular expression of JSON Schema."""

_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\uffff]*")')
_BETWEEN = re.compile(r"[ \t]*(?:,[ \t]*)*")


@dataclass(frozen=True, slots=True)
class EntityTags:
    """What a condition names.

    Attributes:
        every: ``*``, any state.
        strong: entity tags with their quotes.
        weak: those marked ``W/``, without the mark.
    """

    every: bool = False
    strong: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """What a request asks of what is stored before it acts; None where it asks nothing."""

    match: EntityTags | None = None
    none_match: EntityTags | None = None

    @property
    def single(self) -> str | None:
        """The one tag that says all that the condition asks, None where it asks otherwise."""
        match = self.match
        if self.none_match is not None or match is None or match.every or match.weak or len(match.strong) != 1:
            return None
        return match.strong[0]

    @property
    def empty(self) -> bool:
        """Whether nothing is asked that something which exists could fail."""
        return self.none_match is None and (self.match is None or self.match.every)

    def check_match(self, etag: str) -> None:
        """Refuse what If-Match does not name.

        Raises:
            WorkspaceError: PRECONDITION_FAILED ``PRECONDITION_FAILED``.
        """
        if not self._matches(etag):
            raise precondition_failed()

    def known(self, etag: str | None) -> bool:
        """Return whether If-None-Match names what is stored, None for nothing; weak comparison (section 13.1.2)."""
        tags = self.none_match
        return tags is not None and etag is not None and (tags.every or etag in tags.strong or etag in tags.weak)

    def allows(self, etag: str | None) -> bool:
        """Return whether what is stored, None for nothing, may be changed (section 13.2.2)."""
        return self._matches(etag) and not self.known(etag)

    def check_write(self, etag: str | None) -> None:
        """Refuse to change what is stored, None for nothing, where the condition does not allow it.

        Raises:
            WorkspaceError: PRECONDITION_FAILED ``PRECONDITION_FAILED``.
        """
        if not self.allows(etag):
            raise precondition_failed()

    def _matches(self, etag: str | None) -> bool:
        """Return whether If-Match names what is stored; a weak tag names nothing (section 13.1.1)."""
        tags = self.match
        return tags is None or (etag is not None and (tags.every or etag in tags.strong))


UNCONDITIONAL: Final = Condition()
"""What a request without such headers asks."""


def precondition_failed() -> WorkspaceError:
    """Return the error for a condition that does not hold."""
    detail = "The ETag does not match the stored version; read the item again."
    return WorkspaceError(Kind.PRECONDITION_FAILED, "PRECONDITION_FAILED", detail)


def condition_from_headers(if_match: str | None, if_none_match: str | None) -> Condition:
    """Return the condition of a request.

    Raises:
        WorkspaceError: INVALID naming the header that is no list of entity tags.
    """
    return Condition(_tags(if_match, "If-Match"), _tags(if_none_match, "If-None-Match"))


def _tags(header: str | None, name: str) -> EntityTags | None:
    if header is None:
        return None
    text = header.strip(" \t")
    if text == ANY:
        return EntityTags(every=True)
    strong: list[str] = []
    weak: list[str] = []
    position = _after_commas(text, 0)
    while position < len(text):
        found = _TAG.match(text, position)
        if found is None:
            break
        (weak if found[1] else strong).append(found[2])
        following = _after_commas(text, found.end())
        if following < len(text) and "," not in text[found.end() : following]:
            break
        position = following
    if position < len(text) or not (strong or weak):
        raise invalid(name, 'a list of entity tags, such as "1a", or * is expected')
    return EntityTags(strong=tuple(strong), weak=tuple(weak))


def _after_commas(text: str, position: int) -> int:
    found = _BETWEEN.match(text, position)
    return found.end() if found else position
