"""Errors and reports about unknown query parameters and body properties.

An operation rejects unknown names by default. Otherwise a misspelt ``scopes`` would issue a token with every right of
the caller, and a misspelt ``surface`` (group of connections) would return the data of all connections.
"""

import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final, Union, get_args, get_origin
from urllib.parse import quote

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from shared.errors import MAX_LISTED, FieldError, WorkspaceError, build_invalid_fields_error
from shared.http.messages import Reply
from shared.validation.names import MAX_HINTS, find_nearest_name, is_hidden_character
from shared.validation.validation_messages import TAG_FIELD, Location, remove_union_tags

IGNORED: Final = "x-provenance-ignored"
"""Header of a reply with the names of the query parameters and body properties that were ignored."""

MAX_SHOWN: Final = 64
"""Maximum number of characters of an unknown name that an error message repeats."""

MAX_REPORTED: Final = 2_048
"""Maximum length of the header :data:`IGNORED`; proxies reject header lines of a few kilobytes."""


class UnknownNames(Enum):
    """Setting of an operation: reject, report or ignore unknown query parameters and body properties."""

    REJECT = "reject"
    """Reply 400 and list each unknown name with the most similar known name."""

    REPORT = "report"
    """Ignore unknown names and list them in the header :data:`IGNORED`."""

    IGNORE = "ignore"
    """Ignore unknown names, because the body is data or another protocol requires it."""


@cache
def map_accepted_names_to_documented_names(model: type[BaseModel]) -> Mapping[str, str]:
    """Return all names and aliases of a model's fields that clients may use, each with the documented name."""
    return {
        name: names[0]
        for field, info in model.model_fields.items()
        for names in [list_accepted_names_of_field(field, info)]
        for name in names
    }


def build_unknown_parameters_error(
    names: Sequence[str], documented_name_by_known_name: Mapping[str, str]
) -> WorkspaceError:
    """Build the error for unknown query parameters.

    Args:
        names: unknown names in the request.
        documented_name_by_known_name: accepted names (including aliases), each with its documented name.
    """
    return _build_unknown_names_error("parameter", names, documented_name_by_known_name)


def build_unknown_arguments_error(names: Sequence[str], known_names: Iterable[str]) -> WorkspaceError:
    """Build the error for unknown arguments of an MCP tool."""
    return _build_unknown_names_error("argument", names, {name: name for name in known_names})


def build_unknown_properties_error(
    model: Any, body: Any, locations: Iterable[Location], parameters: Collection[str] = ()
) -> WorkspaceError:
    """Build the error for unknown body properties.

    Args:
        model: model of the body.
        body: the body.
        locations: location of each unknown property, as in pydantic's errors.
        parameters: names of the operation's query parameters; the error says that the body cannot contain them.
    """
    errors: list[FieldError] = []
    for index, location in enumerate(locations):
        at, name = _find_model_at_location(model, location[:-1]), str(location[-1])
        accepted = map_accepted_names_to_documented_names(at) if at else {}
        field = format_location(remove_union_tags(location, body))
        if name in accepted:
            rule = f"repeats `{accepted[name]}`; send only one of them"
        elif len(location) == 1 and name in parameters:
            rule = f"Unknown field `{name}`; send `{name}` as a query parameter."
        else:
            rule = _format_unknown_name_message("field", name, accepted, index)
        errors.append(FieldError(field, rule))
    return build_invalid_fields_error(errors)


def format_location(location: Iterable[int | str]) -> str:
    """Format a location in a body as a path such as ``parameters[0].name``."""
    text = ""
    for part in location:
        text += (
            f"[{part}]"
            if isinstance(part, int)
            else f".{format_name_for_message(part)}"
            if text
            else format_name_for_message(part)
        )
    return text or "body"


def format_name_for_message(name: str) -> str:
    """Prepare a name that a caller sent for an error message: shorten it and escape invisible characters."""
    return "".join(f"\\u{ord(each):04x}" if is_hidden_character(each) else each for each in _shorten_name(name))


def _shorten_name(name: str) -> str:
    return name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."


def add_unknown_names_header(reply: Reply, names: Iterable[str]) -> None:
    """Add the ignored unknown names of a request to the header :data:`IGNORED` of the reply.

    Characters that are not allowed in a header or in a list of names are percent-encoded.
    """
    listed = [reply.headers[IGNORED]] if IGNORED in reply.headers else []
    length = sum(map(len, listed))
    for name in names:
        text = quote(_shorten_name(name), safe="$:[]()!*'+-._~ ", errors="replace").strip() or '""'
        length += len(text) + 2
        if length > MAX_REPORTED:
            listed.append("...")
            break
        listed.append(text)
    if listed:
        reply.headers[IGNORED] = ", ".join(listed)


def _build_unknown_names_error(
    kind: str, names: Sequence[str], documented_name_by_known_name: Mapping[str, str]
) -> WorkspaceError:
    errors = [
        FieldError(
            format_name_for_message(name),
            _format_unknown_name_message(kind, name, documented_name_by_known_name, index),
        )
        for index, name in enumerate(names[:MAX_LISTED])
    ]
    return build_invalid_fields_error(errors, total_count=len(names))


def _format_unknown_name_message(
    kind: str, name: str, documented_name_by_known_name: Mapping[str, str], index: int
) -> str:
    """Build the error message about an unknown parameter or property.

    Args:
        kind: kind of the name for the message, for example ``parameter``.
        name: unknown name in the request.
        documented_name_by_known_name: accepted names (including aliases), each with its documented name.
        index: number of unknown names before this name; a similar known name is suggested for the first names only.
    """
    unknown = f"Unknown {kind} `{format_name_for_message(name)}`"
    if index >= MAX_HINTS:
        return f"{unknown}."
    if not documented_name_by_known_name:
        return f"{unknown}; no {kind}s are accepted."
    nearest = find_nearest_name(name, documented_name_by_known_name)
    if nearest is not None:
        return f"{unknown}; did you mean `{documented_name_by_known_name[nearest]}`?"
    listed = ", ".join(f"`{one}`" for one in dict.fromkeys(documented_name_by_known_name.values()))
    return f"{unknown}; known: {listed}."


def list_accepted_names_of_field(field_name: str, field_info: FieldInfo) -> list[str]:
    """Return all names of a model's field that clients may use, beginning with the documented name.

    Args:
        field_name: name of the attribute.
        field_info: pydantic's description of the field.
    """
    alias = field_info.validation_alias
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [alias if isinstance(alias, str) else field_name]


def _find_model_at_location(model: Any, location: Iterable[int | str]) -> type[BaseModel] | None:
    """Return the model that describes a location in a body; None if no model describes it."""
    annotation = model
    for part in location:
        if isinstance(part, str):
            annotation = _find_tagged_model(annotation, part) or _find_field_type(annotation, part)
    return _find_model_in_annotation(annotation)


def _find_field_type(annotation: Any, name: str) -> Any:
    """Return the type of a property of the model in a type annotation; None if the model has no such property."""
    at = _find_model_in_annotation(annotation)
    fields = at.model_fields if at else {}
    return next(
        (info.annotation for field, info in fields.items() if name in list_accepted_names_of_field(field, info)), None
    )


def _find_tagged_model(annotation: Any, tag: str) -> type[BaseModel] | None:
    """Return the model that a tag selects in a tagged union, or in the union of a list's items; None if none does."""
    items = get_args(annotation) if get_origin(annotation) in (list, tuple) else (annotation,)
    branches = [branch for item in items if get_origin(item) is Annotated for branch in get_args(get_args(item)[0])]
    return next((branch for branch in branches if tag in _list_tags_of_union_member(branch)), None)


def _list_tags_of_union_member(branch: Any) -> tuple[Any, ...]:
    """Return the tags with which a tagged union selects this member; empty if the member has no tag field."""
    fields = branch.model_fields if isinstance(branch, type) and issubclass(branch, BaseModel) else {}
    return get_args(fields[TAG_FIELD].annotation) if TAG_FIELD in fields else ()


def _find_model_in_annotation(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a type annotation contains: the type itself, or X in ``X | None`` or ``list[X]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, list, tuple):
        return next((found for one in get_args(annotation) if (found := _find_model_in_annotation(one))), None)
    return None
