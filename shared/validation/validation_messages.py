"""Error messages about invalid values, derived from pydantic's messages."""

import re
from typing import Final

from shared.validation.names import find_nearest_name

JSON_POINTER_PATTERN: Final = r"^(/([^/~]|~[01])*)*$"
"""Pattern of JSON pointers (RFC 6901)."""

_SUBJECT: Final = re.compile(r"^(?:Input|String) should ")
_UNPARSED: Final = re.compile(r", unable to .*")
_OPTION: Final = re.compile(r"'([^']*)'")
_RIGHTS: Final = "Workspace."
"""Prefix of the names of access rights."""

_COUNT: Final = re.compile(r"^\w+ should have at (least|most) (\d+) items?\b.*")
_TYPES: Final = {
    "should be a valid list": "should be a valid array",
    "should be a valid tuple": "should be a valid array",
    "should be a valid integer": "must be a whole number",
}


def reword_pydantic_error(kind: str, message: str, value: object = None) -> str:
    """Convert a pydantic error to an error message in the wording of this API.

    Args:
        kind: type of pydantic's error.
        message: message of pydantic's error.
        value: the invalid value, if it is known.
    """
    if kind == "missing":
        return "is required"
    if kind == "model_type":
        return "must be an object"
    if count := _COUNT.match(message):
        unit = "character" if isinstance(value, str) else "item"
        return f"must have at {count[1]} {count[2]} {unit}{'' if count[2] == '1' else 's'}"
    if kind == "enum" and (options := _OPTION.findall(message))[0].startswith(_RIGHTS):
        nearest = find_nearest_name(value, options) if isinstance(value, str) else None
        return f"is not an access right; did you mean {nearest}?" if nearest else "is not an access right"
    if kind == "string_pattern_mismatch" and message.endswith(f"'{JSON_POINTER_PATTERN}'"):
        return "must be a JSON pointer such as /ts"
    rule = _SUBJECT.sub("should ", message.removeprefix("Value error, "))
    rule = _UNPARSED.sub("", rule) if kind.endswith("_parsing") else rule
    return _TYPES.get(rule, rule)
