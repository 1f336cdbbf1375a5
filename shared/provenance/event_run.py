"""The straight stretch of a walk: sound events of ASCII text, millions of them, in one loop without calls between."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

import orjson

from shared.provenance.canonical import MAX_DEPTH, STRICT, plain
from shared.provenance.ports import PROJECTED, Row

_LINKS_AND_FIELDS: Final = itemgetter("RecordID", "PreviousHash", *PROJECTED[:5])
_NOT_IN_EVENTS: Final = frozenset(("Hash", *PROJECTED[5:]))
_STATES_DEPTH: Final = MAX_DEPTH - 1


@dataclass(slots=True)
class EventRun:
    """Where the stretch ends.

    Attributes:
        sequence: of the last sound record.
        last_hash: its Hash.
        claimed: its PreviousHash.
        hashes: of the records that were walked over, as many as are wanted.
    """

    sequence: int
    last_hash: str
    claimed: str
    hashes: list[str]

    def over(self, rows: Iterator[Row], leaves: int) -> Row | None:
        """Walk over rows; return the first that is not a sound event or cannot be told quickly, None at the end.

        Args:
            rows: the next ones; what is returned was taken from them.
            leaves: hashes are wanted up to this sequence.
        """
        here, last, claimed = self.sequence, self.last_hash, self.claimed
        loads, dumps, fields, isdisjoint = orjson.loads, orjson.dumps, _LINKS_AND_FIELDS, _NOT_IN_EVENTS.isdisjoint
        for row in rows:
            sequence, canonical, stored, time, user, action, kind, entity, reason, status, amendment = row
            try:
                value: Any = loads(canonical)
                if (
                    sequence != here + 1
                    or sha256(canonical).hexdigest() != stored
                    or fields(value) != (f"{sequence:012d}", last, time, user, action, kind, entity)
                    or dumps(value, None, STRICT) != canonical
                    or not canonical.isascii()
                    or not plain(value.values(), _STATES_DEPTH)
                    or not (reason is status is amendment is None)
                    or not isdisjoint(value)
                ):
                    break
            except (TypeError, ValueError, LookupError, AttributeError):
                break
            here, claimed, last = sequence, last, stored
            if here <= leaves:
                self.hashes.append(stored)
        else:
            row = None
        self.sequence, self.last_hash, self.claimed = here, last, claimed
        return row
