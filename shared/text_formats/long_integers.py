"""Search for JSON integers beyond 64 bits, which the parser orjson would silently convert to doubles."""

import re
from typing import Final

_ZEROS: Final = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG: Final = b"0" * 19
"""19 digits, which every integer beyond 64 bits has; searching for them is ten times faster than the pattern."""

_BEYOND_64_BIT: Final = re.compile(rb"-\d{19}|\d{20}")


def may_have_long_integers(text: bytes) -> bool:
    """Return whether a JSON text may have an integer beyond 64 bits; digits of a string or a fraction count, too."""
    return _LONG in text.translate(_ZEROS) and _BEYOND_64_BIT.search(text) is not None
