"""The query results cache: finished results, given again to who accepts results of some age.

A result is kept when its request names an age, and found again by the same text, parameters and limits; nothing but age
makes it stale. See "Query results cache" of the Data Explorer documentation.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from emulators.kusto.frames import Answer, Origin
from emulators.kusto.options import RequestOptions

MAX_RESULT_BYTES = 16 * 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024

type Key = bytes


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A result that was computed for an earlier request."""

    answer: Answer
    origin: Origin


class ResultsCache:
    """Keeps the results that were used most recently, up to a number of bytes."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Key, KeptAnswer] = OrderedDict()
        self._bytes = 0

    @staticmethod
    def key(text: str, parameters: Mapping[str, Any], options: RequestOptions) -> Key:
        """Return what two requests share whose results are the same."""
        limits = [options.take_records, options.max_records, options.max_bytes]
        return orjson.dumps([text, parameters, limits], option=orjson.OPT_SORT_KEYS)

    def find(self, key: Key, max_age: timedelta) -> KeptAnswer | None:
        """Return the result of a key unless it is older than ``max_age``."""
        kept = self._kept.get(key)
        if kept is None or datetime.now(UTC) - kept.origin.started_at > max_age:
            return None
        self._kept.move_to_end(key)
        return kept

    def keep(self, key: Key, kept: KeptAnswer) -> None:
        """Keep a result, in place of an older one of its key; one that is too large is not kept."""
        self._drop(key)
        if len(kept.answer.rows) > MAX_RESULT_BYTES:
            return
        self._kept[key] = kept
        self._bytes += _size(key, kept)
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= _size(key, kept)


def _size(key: Key, kept: KeptAnswer) -> int:
    return len(key) + len(kept.answer.rows)
