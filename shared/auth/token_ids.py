"""Ids of tokens that contain the time of issue: UUID version 7 (RFC 9562 section 5.7).

A token is invalid if it was issued before its member was disabled. The claim ``iat`` has whole seconds, so it cannot
order two events within one second. Also, some code knows only the id of a token and not its claims.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from shared.runtime import Runtime

_VERSION_7: Final = re.compile(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}")
_FRACTIONS: Final = 4096
"""Number of steps per millisecond that the 12 bits after the version represent (RFC 9562 section 6.2, method 3)."""

_START: Final = datetime.fromtimestamp(0, UTC)


def build_token_id(runtime: Runtime, issued_at: datetime) -> str:
    """Build a unique token id that contains the time of issue, as 32 hexadecimal digits."""
    microseconds = (issued_at - _START) // timedelta(microseconds=1)
    milliseconds, rest = divmod(microseconds, 1000)
    random = int.from_bytes(runtime.random_bytes(8)) >> 2
    fraction = rest * _FRACTIONS // 1000
    return f"{(milliseconds << 80) | (7 << 76) | (fraction << 64) | (0b10 << 62) | random:032x}"


def read_issue_time(token_id: str) -> datetime | None:
    """Read a token's time of issue from its id, accurate to a microsecond; None if the id does not contain the time.

    Only tokens that earlier versions of the service issued have ids without the time.
    """
    if not _VERSION_7.fullmatch(token_id):
        return None
    fraction = int(token_id[13:16], 16)
    microseconds = int(token_id[:12], 16) * 1000 + -(-fraction * 1000 // _FRACTIONS)
    return _START + timedelta(microseconds=microseconds)
