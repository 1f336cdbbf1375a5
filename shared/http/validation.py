"""Turns the parts of a request into models, or into one error that lists every failing field."""

from collections.abc import Iterable, Mapping
from copy import copy
from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from shared.auth.principals import Principal
from shared.errors import FieldError, Kind, ValidationErrors, WorkspaceError, invalid, invalid_fields
from shared.http.messages import MAX_PARAMETERS, Request
from shared.http.operations import Call, NoQuery, Operation, RawBody, is_model
from shared.http.unknown_names import (
    MAX_LISTED,
    UnknownNames,
    accepted_names,
    format_location,
    unknown_members,
    unknown_parameters,
)
from shared.text_formats.strict_json import parse_body
from shared.timestamps import parse_rfc3339
from shared.validation.validation_messages import reword_pydantic_error
from shared.worker_threads import run_in_worker

_UNKNOWN: Final = "extra_forbidden"
"""pydantic's type of the error for a member that the model does not have."""

_UNREAD = object()
"""Stands for what could not be read at all, of which the caller is told already."""


async def read_call(
    operation: Operation, principal: Principal, path: Mapping[str, str], request: Request
) -> Call[Any, Any]:
    """Return a request as the operation's handler receives it.

    What becomes of parameters and members that the models do not have, the operation's declaration says. A body of no
    bytes stands for an empty object.

    Raises:
        WorkspaceError: TOO_LARGE ``BODY_TOO_LARGE``; UNKNOWN_ENCODING; INVALID listing every failing parameter and
            member. Its code is ``BODY_NOT_JSON``, else ``INVALID_REQUEST`` where a model refuses, else that of the
            operation's own check.
    """
    if len(request.body) > operation.body_limit:
        raise WorkspaceError(Kind.TOO_LARGE, "BODY_TOO_LARGE", f"The body is larger than {operation.body_limit} bytes.")
    _check_encoding(request)
    faults = ValidationErrors()
    sent = await _parsed(operation, request, faults)
    values, unknown = _read_query(operation, request, faults)
    refuses, reports = (operation.unknown is policy for policy in (UnknownNames.REJECT, UnknownNames.REPORT))
    if unknown and refuses:
        faults.add(unknown_parameters(unknown, _known(operation)))
    query = NoQuery() if operation.query is NoQuery else _validate(operation.query, values, faults)
    sent = await _without_owned(operation, path, sent, faults)
    # Some models write large members in canonical form to see whether they have one.
    body = await run_in_worker(len(request.body), _validate, operation.body, sent, faults, refuse_unknown=refuses)
    reported = (*unknown, *_unknown_members(operation.body, sent)) if reports else ()
    call = Call(principal, path, query, body, request, unknown=reported)
    if operation.check is not None:
        await operation.check(call, faults)
    faults.raise_all()
    return call


def validate_model[M: BaseModel](model: type[M], value: Any) -> M:
    """Return a value as a model.

    Raises:
        WorkspaceError: INVALID listing every failing member.
    """
    faults = ValidationErrors()
    made: M = _validate(model, value, faults)
    faults.raise_all()
    return made


def _check_encoding(request: Request) -> None:
    """Refuse a body that is encoded, and say that none may be (RFC 9110 section 15.5.16)."""
    encodings = {each.strip().lower() for each in request.headers.get("content-encoding", "").split(",")}
    if request.body and encodings - {"", "identity"}:
        detail = "The body is encoded; send it as it is, without Content-Encoding."
        raise WorkspaceError(Kind.UNKNOWN_ENCODING, "CONTENT_ENCODING_UNSUPPORTED", detail)


async def _parsed(operation: Operation, request: Request, faults: ValidationErrors) -> Any:
    if operation.body is RawBody or not operation.takes_body or (is_model(operation.body) and not request.body):
        return {}
    try:
        return await parse_body(request.body)
    except ValueError as error:
        faults.add(invalid("body", str(error), code="BODY_NOT_JSON"))
        return _UNREAD


def _read_query(operation: Operation, request: Request, faults: ValidationErrors) -> tuple[Any, list[str]]:
    """Return the query parameters that the operation knows, by name, and the names of those that it does not know."""
    if operation.query is NoQuery and operation.unknown is UnknownNames.IGNORE:
        if request.has_many_parameters():
            faults.add(
                invalid("query", f"the query string cannot be read: it has more than {MAX_PARAMETERS} parameters")
            )
        return {}, []
    try:
        pairs = request.query_pairs()
    except ValueError as error:
        faults.add(invalid("query", f"the query string cannot be read: {error}"))
        return _UNREAD, []
    return _known_parameters(operation, pairs, faults)


def _known(operation: Operation) -> Mapping[str, str]:
    return {**accepted_names(operation.query), **{name: name for name in operation.extra_parameters}}


def _known_parameters(
    operation: Operation, pairs: Iterable[tuple[str, str]], faults: ValidationErrors
) -> tuple[dict[str, str], list[str]]:
    accepted = _known(operation)
    prefixes = tuple(name.removesuffix("*") for name in operation.extra_parameters if name.endswith("*"))
    values: dict[str, str] = {}
    given: set[str] = set()
    unknown: dict[str, None] = {}
    for name, value in pairs:
        if name not in accepted:
            if not (prefixes and name.startswith(prefixes)):
                unknown[name] = None
        elif accepted[name] in given:
            faults.add(invalid(name, "is given more than once"))
        else:
            given.add(accepted[name])
            values[name] = value
    return values, list(unknown)


def _unknown_members(model: Any, sent: Any) -> list[str]:
    """Return the members of a body, of its first level only, that its model does not have."""
    known = accepted_names(model)
    return [name for name in sent if name not in known] if isinstance(sent, dict) else []


async def _without_owned(operation: Operation, path: Mapping[str, str], sent: Any, faults: ValidationErrors) -> Any:
    """Return a body without the members that the service sets itself; another value than the current one is refused."""
    owned = operation.server_set
    if owned is None or not isinstance(sent, dict) or owned.names.isdisjoint(sent):
        return sent
    current = await owned.current(path)
    errors = [
        FieldError(name, "is read-only; leave it out, or send the stored value")
        for name in sent
        if name in owned.names - owned.volatile
        and not (sent[name] is None and name in owned.nullable)
        and not _is_same(sent[name], current.get(name))
    ]
    if errors:
        faults.add(invalid_fields(errors))
    return {name: value for name, value in sent.items() if name not in owned.names}


def _is_same(sent: Any, current: Any) -> bool:
    """Return whether two JSON values are the same; two texts also are where they name one instant."""
    if isinstance(sent, dict) and isinstance(current, dict):
        return sent.keys() == current.keys() and all(_is_same(sent[name], current[name]) for name in sent)
    if isinstance(sent, str) and isinstance(current, str) and sent != current:
        try:
            return parse_rfc3339(sent) == parse_rfc3339(current)
        except ValueError:
            return False
    return type(sent) is type(current) and bool(sent == current)


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _validate(model: Any, value: Any, faults: ValidationErrors, *, refuse_unknown: bool = False) -> Any:
    if value is not _UNREAD:
        # Not left to the models' configuration: a model without one would ignore what it does not have.
        extra: Literal["forbid"] | None = "forbid" if refuse_unknown else None
        try:
            if is_model(model):
                return model.model_validate(value, extra=extra)
            return _adapter(model).validate_python(value)
        except ValidationError as failure:
            _add(failure, model, faults)
    return _right_part(model, value, faults) if is_model(model) else None


def _add(failure: ValidationError, model: Any, faults: ValidationErrors) -> None:
    """Add what pydantic found; unknown members come first, so that a misspelt one explains the missing one."""
    if failure.error_count() > MAX_LISTED:
        # A message for each of a hundred thousand faults would block the event loop.
        faults.add(invalid("body", f"has {failure.error_count()} faults; at most {MAX_LISTED} are listed one by one"))
        # No further rule may look at a body of which not even the failing fields are known.
        faults.raise_all()
    found = failure.errors(include_url=False, include_context=False, include_input=False)
    unknown = [error["loc"] for error in found if error["type"] == _UNKNOWN]
    if unknown:
        faults.add(unknown_members(model, unknown))
    errors = [
        FieldError(format_location(error["loc"]), reword_pydantic_error(error["type"], error["msg"]))
        for error in found
        if error["type"] != _UNKNOWN
    ]
    if errors:
        faults.add(invalid_fields(errors))


def _right_part(model: type[BaseModel], value: Any, faults: ValidationErrors) -> BaseModel:
    """Return a model of those fields alone that are right, so that rules can still be held against them."""
    part, known = _without_required(model), accepted_names(model)
    try:
        readable = {name: value[name] for name in known.keys() & value.keys() if faults.has_valid(name)}
        return part.model_validate(readable, extra="ignore")
    except (AttributeError, ValidationError):
        # It is no object, or one whose fields do not go together.
        faults.mark_invalid(known)
        return part.model_construct()


@cache
def _without_required(model: type[BaseModel]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if info.is_required():
            optional = copy(info)
            optional.default = None
            fields[name] = (info.annotation, optional)
    return create_model(model.__name__, __base__=model, **fields)
