"""What pydantic says of a value, in the words in which the service tells rules."""

import re
from typing import Final

_SUBJECT: Final = re.compile(r"^(?:Input|String) should ")
_COUNT: Final = re.compile(r"^\w+ should have at (least|most) (\d+) items?\b.*")
_TYPES: Final = {
    "should be a valid list": "should be a valid array",
    "should be a valid tuple": "should be a valid array",
}


def reword_pydantic_error(kind: str, message: str) -> str:
    """Return the rule that a value breaks.

    Args:
        kind: pydantic's type of the error.
        message: pydantic's text.
    """
    if kind == "missing":
        return "is required"
    if kind == "model_type":
        return "an object is expected"
    if count := _COUNT.match(message):
        return f"must hold at {count[1]} {count[2]} item{'' if count[2] == '1' else 's'}"
    told = _SUBJECT.sub("should ", message.removeprefix("Value error, "))
    return _TYPES.get(told, told)
