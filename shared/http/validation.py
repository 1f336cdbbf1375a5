"""Turns the parts of a request into models, or into one error that lists every failing field."""

from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from shared.auth.principals import Principal
from shared.errors import Faults, FieldError, Kind, WorkspaceError, invalid, invalid_fields
from shared.http.messages import MAX_PARAMETERS, Request
from shared.http.operations import Call, NoQuery, Operation, OwnBody
from shared.rules_told import rule_told
from shared.strict_json import parse

_UNREAD = object()
"""Stands for what could not be read at all, of which the caller is told already."""


async def read(operation: Operation, principal: Principal, path: Mapping[str, str], request: Request) -> Call[Any, Any]:
    """Return a request as the operation's handler receives it.

    Parameters and members that the models do not name are ignored; a body of no bytes stands for an empty object.

    Raises:
        WorkspaceError: TOO_LARGE ``BODY_TOO_LARGE``; UNKNOWN_ENCODING; INVALID listing every failing parameter and
            member. Its code is ``BODY_NOT_JSON``, else ``INVALID_REQUEST`` where a model refuses, else that of the
            operation's own check.
    """
    if len(request.body) > operation.body_limit:
        raise WorkspaceError(Kind.TOO_LARGE, "BODY_TOO_LARGE", f"The body is larger than {operation.body_limit} bytes.")
    _check_encoding(request)
    faults = Faults()
    sent = _parsed(operation, request, faults)
    query = _read_query(operation, request, faults)
    body = _validate(operation.body, sent, faults)
    call = Call(principal, path, query, body, request)
    if operation.check is not None:
        await operation.check(call, faults)
    faults.raise_all()
    return call


def validated[M: BaseModel](model: type[M], value: Any) -> M:
    """Return a value as a model.

    Raises:
        WorkspaceError: INVALID listing every failing member.
    """
    faults = Faults()
    made: M = _validate(model, value, faults)
    faults.raise_all()
    return made


def _check_encoding(request: Request) -> None:
    """Refuse a body that is encoded, and say that none may be (RFC 9110 section 15.5.16)."""
    encodings = {each.strip().lower() for each in request.headers.get("content-encoding", "").split(",")}
    if request.body and encodings - {"", "identity"}:
        detail = "The body is encoded; send it as it is, without Content-Encoding."
        raise WorkspaceError(Kind.UNKNOWN_ENCODING, "CONTENT_ENCODING_UNSUPPORTED", detail)


def _parsed(operation: Operation, request: Request, faults: Faults) -> Any:
    if operation.body is OwnBody or not operation.takes_body or (_is_object(operation.body) and not request.body):
        return {}
    try:
        return parse(request.body)
    except ValueError as error:
        faults.add(invalid("body", str(error), code="BODY_NOT_JSON"))
        return _UNREAD


def _read_query(operation: Operation, request: Request, faults: Faults) -> Any:
    if operation.query is NoQuery:
        if request.has_many_parameters():
            faults.add(
                invalid("query", f"the query string cannot be read: it has more than {MAX_PARAMETERS} parameters")
            )
        return NoQuery()
    return _validate(operation.query, _query_values(operation.query, request, faults), faults)


def _is_object(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModel)


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _query_values(model: type[BaseModel], request: Request, faults: Faults) -> Any:
    names = _names(model)
    values: dict[str, str] = {}
    try:
        pairs = request.query_pairs()
    except ValueError as error:
        faults.add(invalid("query", f"the query string cannot be read: {error}"))
        return _UNREAD
    for name, value in pairs:
        if name in values:
            faults.add(invalid(name, "is given more than once"))
        elif name in names:
            values[name] = value
    return values


def _validate(model: Any, value: Any, faults: Faults) -> Any:
    if value is not _UNREAD:
        try:
            return model.model_validate(value) if _is_object(model) else _adapter(model).validate_python(value)
        except ValidationError as failure:
            found = failure.errors(include_url=False, include_context=False, include_input=False)
            errors = [FieldError(_path(error["loc"]), rule_told(error["type"], error["msg"])) for error in found]
            faults.add(invalid_fields(errors))
    return _right_part(model, value, faults) if _is_object(model) else None


def _right_part(model: type[BaseModel], value: Any, faults: Faults) -> BaseModel:
    """Return a model of those fields alone that are right, so that rules can still be held against them."""
    part = _without_required(model)
    try:
        return part.model_validate({name: one for name, one in value.items() if faults.readable(name)})
    except (AttributeError, ValidationError):
        # It is no object, or one whose fields do not go together.
        faults.unreadable(_names(model))
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


def _names(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "body"
