"""Replaces control characters by escapes, because texts from devices and other people are printed to a terminal."""

import re

INVISIBLE = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
"""Invisible characters that JSON does not escape, as the content of a set ``[...]`` in a regular expression."""
_CONTROLS = re.compile(rf"[\x00-\x1f{INVISIBLE}]")
_CONTROLS_IN_TEXT = re.compile(rf"[\x00-\x08\x0b-\x1f{INVISIBLE}]")


def escape_controls(text: str) -> str:
    r"""Replace control characters and invisible characters that change the direction of text by escapes such as \x1b.

    Devices send some of the texts that commands print; their characters must not control the user's terminal.
    """
    return _CONTROLS.sub(_escape_matched_character, text)


def escape_controls_except_line_breaks(text: str) -> str:
    """Replace characters as :func:`escape_controls`, but keep line breaks and tabs."""
    return _CONTROLS_IN_TEXT.sub(_escape_matched_character, text)


def _escape_matched_character(match: "re.Match[str]") -> str:
    return match[0].encode("unicode_escape").decode()
