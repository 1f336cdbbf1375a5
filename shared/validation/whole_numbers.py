"""Parser of whole numbers in query parameters."""

import re

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def parse_whole_number(text: str, maximum: int) -> int:
    """Parse a whole number from 1 to a maximum; signs, spaces and underscores are not accepted.

    Raises:
        ValueError: the text is not such a number.
    """
    if not _DIGITS.fullmatch(text) or not 1 <= int(text) <= maximum:
        raise ValueError(f"must be a whole number from 1 to {maximum}")
    return int(text)
