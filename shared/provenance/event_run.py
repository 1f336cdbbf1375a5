"""The straight stretch of a walk: sound events of ASCII text, millions of them, in one loop with few calls between."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

import orjson

from shared.provenance.canonical import LARGEST_PLAIN, SMALLEST_PLAIN, STRICT, plain
from shared.provenance.hash_rule import DAY_OF_ANY_MONTH, MAX_DEPTH, is_time
from shared.provenance.ports import PROJECTED, Row

_OF_EVENTS: Final = 5
_fields = itemgetter(*PROJECTED[:_OF_EVENTS])
_NO_MORE: Final = b",null" * (len(PROJECTED) - _OF_EVENTS) + b"]"
_NOT_IN_EVENTS: Final = frozenset(("Hash", *PROJECTED[_OF_EVENTS:]))
_TEXTS: Final = _OF_EVENTS + 2
_STATES_DEPTH: Final = MAX_DEPTH - 1


@dataclass(slots=True)
class EventRun:
    """Where the stretch ends.

    Attributes:
        sequence: of the last sound record.
        last_hash: its Hash.
        claimed: its PreviousHash.
        time: its own.
        hashes: of the records that were walked over, as many as are wanted.
    """

    sequence: int
    last_hash: str
    claimed: str
    time: str
    hashes: list[str]

    def over(self, rows: Iterator[Row], leaves: int) -> Row | None:
        """Walk over rows; return the first that is not a sound event or cannot be told quickly, None at the end.

        Args:
            rows: the next ones; what is returned was taken from them.
            leaves: hashes are wanted up to this sequence.
        """
        here, last, claimed, time = self.sequence, self.last_hash, self.claimed, self.time
        loads, dumps, fields, told = orjson.loads, orjson.dumps, _fields, DAY_OF_ANY_MONTH.fullmatch
        for row in rows:
            sequence, canonical, stored, projected = row
            try:
                value: Any = loads(canonical)
                if (
                    sequence != here + 1
                    or sha256(canonical).hexdigest() != stored
                    or value["PreviousHash"] != last
                    or value["RecordID"] != f"{sequence:012d}"
                    or dumps(said := fields(value))[:-1] + _NO_MORE != projected
                    or None in said
                    or said[0] < time
                    or not (said[0] == time > "" or told(said[0]) or is_time(said[0]))
                    or dumps(value, None, STRICT) != canonical
                    or not canonical.isascii()
                    or not _plain_event(value)
                ):
                    break
            except (TypeError, ValueError, LookupError, AttributeError):
                break
            here, claimed, last, time = sequence, last, stored, said[0]
            if here <= leaves:
                self.hashes.append(stored)
        else:
            row = None
        self.sequence, self.last_hash, self.claimed, self.time = here, last, claimed, time
        return row


def _plain_event(value: dict[str, Any]) -> bool:
    """Tell whether an event, whose links and projected fields are text, is :func:`plain` and no other kind of record.

    Most have these, and one or two states with numbers and text. Those are looked through here.
    """
    states = 0
    for name in ("BeforeState", "AfterState"):
        if name not in value:
            continue
        states += 1
        for item in value[name].values():
            kind = type(item)
            if (
                kind is str
                or kind is int
                or (kind is float and item % 1.0 and SMALLEST_PLAIN <= item <= LARGEST_PLAIN)
                or plain((item,), _STATES_DEPTH - 1)
            ):
                continue
            return False
    if len(value) == _TEXTS + states:
        return True
    return _NOT_IN_EVENTS.isdisjoint(value) and plain(value.values(), _STATES_DEPTH)
