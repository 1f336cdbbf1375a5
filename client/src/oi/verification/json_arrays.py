"""Parser of large JSON arrays of objects: parses one object at a time, so that only one object is in memory.

The module is separate from ``export``, because it reads not only exported records but also a bundle's array of proofs.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from oi.counts import format_count
from oi.json_text import build_object_rejecting_duplicates
from oi.verification.hash_rule import parse_integer_or_exact_float

MAX_OBJECT_CHARACTERS: Final = 4_000_000
"""Maximum length of one object; the service stores records of up to 1,500,000 bytes."""
_NO_SPACE: Final = re.compile(r"[^ \t\n\r]")
_DECODER: Final = json.JSONDecoder(
    parse_int=parse_integer_or_exact_float, object_pairs_hook=build_object_rejecting_duplicates
)


class UnreadableError(Exception):
    """A file is not a JSON array of objects, or contains no record although one is required."""


def iterate_json_objects(parts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Parse a JSON array of objects and yield the objects.

    Args:
        parts: the JSON text in UTF-8, in parts of any size.

    Raises:
        UnreadableError: the text is not a JSON array of objects, an object has a duplicate name, or has more than
            :data:`MAX_OBJECT_CHARACTERS`.
        UnicodeDecodeError: the text is not UTF-8.
    """
    text = _TextReader(codecs.iterdecode(parts, "utf-8"))
    text.require_next("[")
    if text.peek() == "]":
        text.require_next("]")
    else:
        yield text.parse_object()
        while text.peek() == ",":
            text.require_next(",")
            yield text.parse_object()
        text.require_next("]")
    if text.peek():
        raise UnreadableError("the file is not JSON: text follows the array")


class _TextReader:
    """Reader of a text that arrives in parts; only the part that is not parsed yet is in memory."""

    def __init__(self, parts: Iterator[str]) -> None:
        self._parts = parts
        self._text = ""
        self._position = 0
        self._parsed_objects = 0

    def peek(self) -> str:
        """Return the next character that is not white space; an empty string at the end of the text."""
        while (found := _NO_SPACE.search(self._text, self._position)) is None:
            self._position = len(self._text)
            if not self._try_load(1):
                return ""
        self._position = found.start()
        return found[0]

    def require_next(self, character: str) -> None:
        """Skip ``character``, and white space before it.

        Raises:
            UnreadableError: the text continues in another way.
        """
        if self.peek() != character:
            place = f"after {format_count(self._parsed_objects, 'object')}" if self._parsed_objects else "at the start"
            raise UnreadableError(f"the file is not a JSON array of objects: `{character}` is missing {place}")
        self._position += 1

    def parse_object(self) -> dict[str, Any]:
        """Parse the next object.

        Raises:
            UnreadableError: the text continues in another way, or the object is too long.
        """
        number = self._parsed_objects + 1
        if self.peek() != "{":
            raise UnreadableError(f"the file is not a JSON array of objects: item {number} is not an object")
        value: dict[str, Any]
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                length = len(self._text) - self._position
                if length > MAX_OBJECT_CHARACTERS:
                    reason = f"is not JSON, or has more than {MAX_OBJECT_CHARACTERS:,} characters"
                    raise UnreadableError(f"object {number} of the file {reason}") from None
                # The object may continue in a later part. Doubling limits the repeated work.
                if not self._try_load(max(length, 1)):
                    raise UnreadableError(f"the file is not JSON: {error.msg} in object {number}") from None
            except (ValueError, RecursionError) as error:
                raise UnreadableError(f"the file is not JSON: {error} in object {number}") from None
            else:
                if end - self._position > MAX_OBJECT_CHARACTERS:
                    reason = f"has more than {MAX_OBJECT_CHARACTERS:,} characters"
                    raise UnreadableError(f"object {number} of the file {reason}")
                self._position, self._parsed_objects = end, number
                return value

    def _try_load(self, count: int) -> bool:
        """Load at least this number of characters, or all that remain; return False at the end of the text."""
        loaded = [self._text[self._position :]]
        self._position, missing = 0, count
        for part in self._parts:
            loaded.append(part)
            missing -= len(part)
            if missing <= 0:
                break
        self._text = "".join(loaded)
        return missing < count
