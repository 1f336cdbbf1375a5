"""Extraction of keys and values from a string, for the operator ``parse-kv`` with quotes or without delimiters.

Separate from ``parse_kv``, which translates the operator to SQL, because this code runs for each row.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

_WORD = re.compile(r"\w++")


@dataclass(frozen=True, slots=True)
class KeyValueReader:
    """Reader of the keys and values in one string.

    Attributes:
        text: the string.
        keys: keys to extract.
        pair: delimiter between pairs; empty if every character that is no letter or digit is a delimiter.
        value: delimiter between key and value.
        quotes: opening and closing quote of each kind of quotes.
        escapes: characters that escape the next character in quotes.
        greedy: True if a value without quotes ends before the next key instead of the next delimiter.
    """

    text: str
    keys: Sequence[str]
    pair: str
    value: str
    quotes: Mapping[str, str]
    escapes: str
    greedy: bool

    def read(self) -> dict[str, str]:
        """Read the string and return the first value of each key."""
        found: dict[str, str] = {}
        for key, value in self._read_pairs() if self.pair else self._read_words():
            if key in self.keys and key not in found:
                found[key] = value
        return found

    def _read_pairs(self) -> Iterator[tuple[str, str]]:
        position = 0
        while position < len(self.text):
            key, end = self._read_part(position, (self.value, self.pair))
            if not self.text.startswith(self.value, end):
                position = max(end + len(self.pair), position + 1)
                continue
            start = end + len(self.value)
            value, end = self._read_greedy(start) if self.greedy else self._read_part(start, (self.pair,))
            yield key, value
            position = max(end + len(self.pair), start)

    def _read_part(self, position: int, ends: Sequence[str]) -> tuple[str, int]:
        """Read a key or a value; return it, and the index of the delimiter after it."""
        start = position
        while start < len(self.text) and self.text[start].isspace() and not self._is_end(start, ends):
            start += 1
        quoted = self._read_quoted(start)
        end = start if quoted is None else quoted[1]
        limits = [index for each in ends if (index := self.text.find(each, end)) >= 0]
        limit = min(limits, default=len(self.text))
        return (self.text[start:limit].strip() if quoted is None else quoted[0]), limit

    def _is_end(self, position: int, ends: Sequence[str]) -> bool:
        return any(self.text.startswith(each, position) for each in ends)

    def _read_quoted(self, position: int) -> tuple[str, int] | None:
        """Return the text in quotes at a position, and the index after it; None if there are no quotes."""
        close = self.quotes.get(self.text[position : position + 1])
        if close is None:
            return None
        parts = []
        index = position + 1
        while index < len(self.text) and self.text[index] != close:
            index += self.text[index] in self.escapes
            parts.append(self.text[index : index + 1])
            index += 1
        return "".join(parts), index + 1

    def _read_greedy(self, start: int) -> tuple[str, int]:
        quoted = self._read_quoted(start)
        if quoted is not None:
            return quoted
        ends = [index for key in self.keys if (index := self.text.find(f"{self.pair}{key}{self.value}", start)) >= 0]
        end = min(ends, default=len(self.text))
        return self.text[start:end].strip(), end

    def _read_words(self) -> Iterator[tuple[str, str]]:
        position = 0
        key: str | None = None
        while position < len(self.text):
            quoted = self._read_quoted(position)
            word = _WORD.match(self.text, position)
            if quoted is None and word is None:
                position += 1
                continue
            part, position = quoted if quoted is not None else (word[0], word.end()) if word else ("", position)
            if key is not None:
                yield key, part
                key = None
            elif part in self.keys:
                key = part


def read_key_values(text: str | None, options: str) -> str | None:
    """Return the first value of each key as a JSON object; ``options`` are the reader's attributes as JSON."""
    if text is None:
        return None
    parsed: dict[str, Any] = orjson.loads(options)
    return orjson.dumps(KeyValueReader(text=text, **parsed).read()).decode()
