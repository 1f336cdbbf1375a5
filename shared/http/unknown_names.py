"""Query parameters and body members that an operation does not know: how they are named to the caller.

An operation refuses them unless its declaration says otherwise. Ignoring a misspelt ``scopes`` would issue a token with
every right of the caller, and ignoring a misspelt ``surface`` would return other data than the caller wanted.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final, Union, get_args, get_origin
from urllib.parse import quote

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from shared.errors import FieldError, WorkspaceError, invalid_fields
from shared.http.messages import Reply
from shared.validation.names import find_nearest_name, is_hidden

IGNORED: Final = "x-provenance-ignored"
"""Header that names the parameters that had no effect on a reply."""

MAX_HINTS: Final = 20
"""Names of one request that are compared with the known ones; each comparison takes time on the event loop."""

MAX_LISTED: Final = 1_000
"""ValidationErrors of one part of a request that are listed one by one."""

MAX_SHOWN: Final = 64
"""Characters of an unknown name that are repeated to the caller."""

MAX_REPORTED: Final = 2_048
"""Characters of the header's value; proxies refuse header lines of a few kilobytes."""


class UnknownNames(Enum):
    """What an operation does with query parameters and body members that it does not know."""

    REJECT = "reject"
    """Answer 400 and name each one with the nearest known name."""

    REPORT = "report"
    """Ignore them and name each one in the header :data:`IGNORED`."""

    IGNORE = "ignore"
    """Ignore them: the body is data, or another protocol says so."""


@cache
def accepted_names(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the names under which clients send the fields of a model, each with the field's documented name."""
    return {
        name: names[0]
        for field, info in model.model_fields.items()
        for names in [_sent_as(field, info)]
        for name in names
    }


def unknown_parameters(names: Sequence[str], known: Mapping[str, str]) -> WorkspaceError:
    """Return the refusal of query parameters.

    Args:
        names: the unknown names.
        known: the names that the operation accepts, each with the documented name of the same thing.
    """
    return _refusal("parameter", names, known)


def unknown_arguments(names: Sequence[str], known: Iterable[str]) -> WorkspaceError:
    """Return the refusal of a tool's arguments, given the unknown names and those that the tool has."""
    return _refusal("argument", names, {name: name for name in known})


def unknown_members(model: Any, locations: Iterable[tuple[int | str, ...]]) -> WorkspaceError:
    """Return the refusal of body members.

    Args:
        model: of the body.
        locations: pydantic's location of each unknown member.
    """
    errors: list[FieldError] = []
    for index, location in enumerate(locations):
        at, name = _model_at(model, location[:-1]), str(location[-1])
        accepted = accepted_names(at) if at else {}
        twice = f"is given as `{accepted[name]}`, too" if name in accepted else ""
        errors.append(FieldError(format_location(location), twice or _message("member", name, accepted, index)))
    return invalid_fields(errors)


def format_location(location: Iterable[int | str]) -> str:
    """Return a location in a body as clients write it: ``parameters[0].name``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{display_name(part)}" if text else display_name(part)
    return text or "body"


def display_name(name: str) -> str:
    """Return a name that a caller sent, cut to what a message has room for, with hidden characters as escapes."""
    return "".join(f"\\u{ord(each):04x}" if is_hidden(each) else each for each in _cut(name))


def _cut(name: str) -> str:
    return name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."


def report_unknown_names(reply: Reply, names: Iterable[str]) -> None:
    """Add unknown names to the header :data:`IGNORED`, after those that the handler put there.

    Characters that a header or a list of names cannot hold are percent-encoded.
    """
    listed = [reply.headers[IGNORED]] if IGNORED in reply.headers else []
    length = sum(map(len, listed))
    for name in names:
        text = quote(_cut(name), safe="$:[]()!*'+-._~ ", errors="replace").strip() or '""'
        length += len(text) + 2
        if length > MAX_REPORTED:
            listed.append("...")
            break
        listed.append(text)
    if listed:
        reply.headers[IGNORED] = ", ".join(listed)


def _refusal(kind: str, names: Sequence[str], known: Mapping[str, str]) -> WorkspaceError:
    errors = [
        FieldError(display_name(name), _message(kind, name, known, index))
        for index, name in enumerate(names[:MAX_LISTED])
    ]
    if more := len(names) - len(errors):
        errors.append(FieldError("...", f"{more} more unknown {kind}s."))
    return invalid_fields(errors)


def _message(kind: str, name: str, known: Mapping[str, str], index: int) -> str:
    """Return the message about an unknown name.

    Args:
        kind: what it is a name of.
        name: as the caller sent it.
        known: the known names, each with the documented name of the same thing.
        index: how many names of the request came before.
    """
    unknown = f"Unknown {kind} `{display_name(name)}`"
    if index >= MAX_HINTS:
        return f"{unknown}."
    if not known:
        return f"{unknown}; there are no {kind}s here."
    nearest = find_nearest_name(name, known)
    if nearest is not None:
        return f"{unknown}; did you mean `{known[nearest]}`?"
    listed = ", ".join(f"`{one}`" for one in dict.fromkeys(known.values()))
    return f"{unknown}; known: {listed}."


def _sent_as(field: str, info: FieldInfo) -> list[str]:
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [alias if isinstance(alias, str) else field]


def _model_at(model: Any, location: Iterable[int | str]) -> type[BaseModel] | None:
    """Return the model at a location of a body, None where the location leaves the models."""
    at = _model_in(model)
    for part in location:
        if isinstance(part, str):
            fields = at.model_fields if at else {}
            found = (info.annotation for name, info in fields.items() if part in _sent_as(name, info))
            at = _model_in(next(found, None))
    return at


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a type is, or holds as an optional value or as the items of an array."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, list, tuple):
        return next((found for one in get_args(annotation) if (found := _model_in(one))), None)
    return None
