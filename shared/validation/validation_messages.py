"""Error messages about invalid values, derived from pydantic's messages."""

import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic_core import ErrorDetails

from shared.validation.names import find_nearest_name

TAG_FIELD: Final = "kind"
"""Name of the field that selects the type of an object, in each union of object types."""

type Location = tuple[int | str, ...]
"""Property names and list indexes that lead from a body to a value."""

JSON_POINTER_PATTERN: Final = r"^(/([^/~]|~[01])*)*$"
"""Pattern of JSON pointers (RFC 6901)."""

_SUBJECT: Final = re.compile(r"^(?:Input|String) should ")
_UNPARSED: Final = re.compile(r", unable to .*")
_OPTION: Final = re.compile(r"'([^']*)'")
_RIGHTS: Final = "Workspace."
"""Prefix of the names of access rights."""

_TAGS: Final = "expected tags: "
_RULES: Final = {
    "missing": "is required",
    "union_tag_not_found": "is required",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "model_attributes_type": "must be an object",
}
"""Complete error messages by pydantic's type of the error."""

_NAME_PATTERN: Final = re.compile(r"'\^\[(A-Za-z(?:0-9)?)\]\[A-Za-z0-9([^\]]+)\]\{(\d+),(\d+)\}\$'$")
"""End of pydantic's message about a pattern of names: the first character, further characters, and their number."""

_COUNT: Final = re.compile(r"^\w+ should have at (least|most) (\d+) items?\b.*")
_TYPES: Final = {
    "should be a valid list": "should be a valid array",
    "should be a valid tuple": "should be a valid array",
    "should be a valid integer": "must be a whole number",
}


def reword_pydantic_error(kind: str, message: str, value: object = None, *, suggest: bool = True) -> str:
    """Convert a pydantic error to an error message in the wording of this API.

    Args:
        kind: type of pydantic's error.
        message: message of pydantic's error.
        value: the invalid value, if it is known.
        suggest: False to omit the search for the most similar allowed value, which takes time.
    """
    if kind in _RULES:
        return _RULES[kind]
    if kind == "union_tag_invalid":
        return f"must be one of {message.rpartition(_TAGS)[2]}"
    if count := _COUNT.match(message):
        unit = "character" if isinstance(value, str) else "item"
        return f"must have at {count[1]} {count[2]} {unit}{'' if count[2] == '1' else 's'}"
    if kind == "enum" and (options := _OPTION.findall(message))[0].startswith(_RIGHTS):
        nearest = find_nearest_name(value, options) if suggest and isinstance(value, str) else None
        return f"is not an access right; did you mean {nearest}?" if nearest else "is not an access right"
    if kind == "string_pattern_mismatch" and (described := _describe_pattern(message)):
        return described
    rule = _SUBJECT.sub("should ", message.removeprefix("Value error, "))
    rule = _UNPARSED.sub("", rule) if kind.endswith("_parsing") else rule
    return _TYPES.get(rule, rule)


def remove_redundant_errors(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Remove the error "too short" of each list that also has an invalid item."""
    parents = {detail["loc"][:length] for detail in errors for length in range(len(detail["loc"]))}
    return [detail for detail in errors if detail["type"] != "too_short" or detail["loc"] not in parents]


def get_field_location(detail: ErrorDetails) -> Location:
    """Return the location of the invalid field.

    For a wrong tag of a union, pydantic states the location of the object instead of the location of the tag.
    """
    return (*detail["loc"], TAG_FIELD) if detail["type"].startswith("union_tag") else detail["loc"]


def remove_union_tags(location: Location, value: Any) -> Location:
    """Remove pydantic's tags of unions from a location, because the body does not contain these steps.

    Args:
        location: location as in pydantic's errors.
        value: the body.
    """
    steps: list[int | str] = []
    for step in location:
        if isinstance(value, dict):
            if step not in value and value.get(TAG_FIELD) == step:
                continue
            value = value.get(step)
        else:
            value = value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None
        steps.append(step)
    return tuple(steps)


def find_value(body: Any, location: Location) -> Any:
    """Return the value at a location of a body; None if the body has no value there.

    Args:
        body: JSON value.
        location: location without tags of unions, as :func:`remove_union_tags` returns it.
    """
    for step in location:
        if isinstance(body, dict):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body


def _describe_pattern(message: str) -> str | None:
    """Describe the pattern in pydantic's message; return None for an unknown pattern."""
    if message.endswith(f"'{JSON_POINTER_PATTERN}'"):
        return "must be a JSON pointer such as /ts"
    pattern = _NAME_PATTERN.search(message)
    return _describe_name_pattern(*pattern.groups()) if pattern else None


def _describe_name_pattern(first: str, others: str, fewest: str, most: str) -> str:
    begin = "a letter or a digit" if first.endswith("0-9") else "a letter"
    size = f"up to {int(most) + 1}" if fewest == "0" else f"{int(fewest) + 1} to {int(most) + 1}"
    allowed = ", ".join(["letters", "digits", *others[:-1]])
    return f"must have {size} {allowed} and {others[-1]}, and begin with {begin}"
