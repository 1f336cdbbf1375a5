"""Messages about invalid values, made from pydantic's error messages."""

import re
from typing import Final

_SUBJECT: Final = re.compile(r"^(?:Input|String) should ")
_COUNT: Final = re.compile(r"^\w+ should have at (least|most) (\d+) items?\b.*")
_TYPES: Final = {
    "should be a valid list": "should be a valid array",
    "should be a valid tuple": "should be a valid array",
}


def reword_pydantic_error(kind: str, message: str) -> str:
    """Return the rule that an invalid value breaks, in the wording of this API.

    Args:
        kind: type of pydantic's error.
        message: message of pydantic's error.
    """
    if kind == "missing":
        return "is required"
    if kind == "model_type":
        return "must be an object"
    if count := _COUNT.match(message):
        return f"must have at {count[1]} {count[2]} item{'' if count[2] == '1' else 's'}"
    rule = _SUBJECT.sub("should ", message.removeprefix("Value error, "))
    return _TYPES.get(rule, rule)
