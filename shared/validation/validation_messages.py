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


def reword_pydantic_error(
    error_type: str, message: str, value: object = None, *, searches_suggestion: bool = True
) -> str:
    """Convert a pydantic error to an error message in the wording of this API.

    Args:
        error_type: type of pydantic's error.
        message: message of pydantic's error.
        value: the invalid value, if it is known.
        searches_suggestion: False to omit the search for the most similar allowed value, which takes time.
    """
    if error_type in _RULES:
        return _RULES[error_type]
    if error_type == "union_tag_invalid":
        return f"must be one of {message.rpartition(_TAGS)[2]}"
    if count := _COUNT.match(message):
        unit = "character" if isinstance(value, str) else "item"
        return f"must have at {count[1]} {count[2]} {unit}{'' if count[2] == '1' else 's'}"
    if error_type == "enum" and (options := _OPTION.findall(message))[0].startswith(_RIGHTS):
        nearest = find_nearest_name(value, options) if searches_suggestion and isinstance(value, str) else None
        return f"is not an access right; did you mean {nearest}?" if nearest else "is not an access right"
    if error_type == "string_pattern_mismatch" and (described := _describe_pattern_in_message(message)):
        return described
    rule = _SUBJECT.sub("should ", message.removeprefix("Value error, "))
    rule = _UNPARSED.sub("", rule) if error_type.endswith("_parsing") else rule
    return _TYPES.get(rule, rule)


def remove_redundant_errors(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Remove the error "too short" of each list that also has an invalid item."""
    parents = {detail["loc"][:length] for detail in errors for length in range(len(detail["loc"]))}
    return [detail for detail in errors if detail["type"] != "too_short" or detail["loc"] not in parents]


def get_field_location(detail: ErrorDetails) -> Location:
    """Return the location of the invalid field.

    A union's tag is the property that selects the type of an object. For a wrong tag, pydantic states the location of
    the object instead of the location of the tag.
    """
    return (*detail["loc"], TAG_FIELD) if detail["type"].startswith("union_tag") else detail["loc"]


def remove_union_tags(location: Location, json_body: Any) -> Location:
    """Remove the steps that pydantic adds to a location for the tags of unions, because the body does not have them.

    Args:
        location: location as in pydantic's errors.
        json_body: the body.
    """
    steps: list[int | str] = []
    for step in location:
        if isinstance(json_body, dict):
            if step not in json_body and json_body.get(TAG_FIELD) == step:
                continue
            json_body = json_body.get(step)
        else:
            json_body = (
                json_body[step]
                if isinstance(json_body, list) and isinstance(step, int) and step < len(json_body)
                else None
            )
        steps.append(step)
    return tuple(steps)


def find_value_at_location(json_body: Any, location: Location) -> Any:
    """Return the value at a location of a body; None if the body has no value there.

    Args:
        json_body: JSON value.
        location: location without tags of unions, as :func:`remove_union_tags` returns it.
    """
    for step in location:
        if isinstance(json_body, dict):
            json_body = json_body.get(step)
        elif isinstance(json_body, list) and isinstance(step, int) and step < len(json_body):
            json_body = json_body[step]
        else:
            return None
    return json_body


def _describe_pattern_in_message(pydantic_message: str) -> str | None:
    """Describe the pattern in pydantic's message; return None for an unknown pattern."""
    if pydantic_message.endswith(f"'{JSON_POINTER_PATTERN}'"):
        return "must be a JSON pointer such as /ts"
    pattern = _NAME_PATTERN.search(pydantic_message)
    return _describe_name_pattern(*pattern.groups()) if pattern else None


def _describe_name_pattern(first_characters: str, other_characters: str, fewest_others: str, most_others: str) -> str:
    """Return the error message for a name that does not match its pattern, from the parts of the regular expression."""
    begin = "a letter or a digit" if first_characters.endswith("0-9") else "a letter"
    size = (
        f"up to {int(most_others) + 1}"
        if fewest_others == "0"
        else f"{int(fewest_others) + 1} to {int(most_others) + 1}"
    )
    allowed = ", ".join(["letters", "digits", *other_characters[:-1]])
    return f"must have {size} {allowed} and {other_characters[-1]}, and begin with {begin}"
