"""Turns the parts of a request into models, or into one error that lists every failing field."""

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from shared.errors import FieldError, Kind, WorkspaceError, invalid, invalid_fields
from shared.http.messages import Request
from shared.http.operations import NoBody, NoQuery, Operation
from shared.strict_json import parse


def read(operation: Operation, request: Request) -> tuple[Any, Any]:
    """Return the query model and the body model of a request.

    Parameters and members that the models do not name are ignored; an empty body stands for an empty object.

    Raises:
        WorkspaceError: TOO_LARGE ``BODY_TOO_LARGE``; INVALID ``BODY_NOT_JSON``; INVALID ``INVALID_REQUEST`` listing
            every failing parameter and member.
    """
    if len(request.body) > operation.body_limit:
        raise WorkspaceError(Kind.TOO_LARGE, "BODY_TOO_LARGE", f"The body is larger than {operation.body_limit} bytes.")
    errors: list[FieldError] = []
    query = _read_query(operation, request, errors)
    body = _read_body(operation, request, errors)
    if errors:
        raise invalid_fields(errors)
    return query, body


def _read_query(operation: Operation, request: Request, errors: list[FieldError]) -> Any:
    if operation.query is NoQuery:
        return NoQuery()
    values = _query_values(operation.query, request, errors)
    return _validate(operation.query.model_validate, values, errors)


def _read_body(operation: Operation, request: Request, errors: list[FieldError]) -> Any:
    if operation.body is NoBody:
        return NoBody()
    try:
        value = {} if _is_object(operation.body) and not request.body.strip() else parse(request.body)
    except ValueError as error:
        raise invalid("body", str(error), code="BODY_NOT_JSON") from None
    return _validate(_adapter(operation.body).validate_python, value, errors)


def _is_object(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModel)


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _query_values(model: type[BaseModel], request: Request, errors: list[FieldError]) -> dict[str, str]:
    names = {field.alias or name for name, field in model.model_fields.items()}
    values: dict[str, str] = {}
    try:
        pairs = request.query_pairs()
    except ValueError as error:
        raise invalid("query", f"the query string cannot be read: {error}") from None
    for name, value in pairs:
        if name in values:
            errors.append(FieldError(name, "is given more than once"))
        elif name in names:
            values[name] = value
    return values


def _validate(validator: Callable[[Any], Any], value: Any, errors: list[FieldError]) -> Any:
    try:
        return validator(value)
    except ValidationError as failure:
        found = failure.errors(include_url=False, include_context=False, include_input=False)
        errors.extend(FieldError(_path(error["loc"]), _message(error["type"], error["msg"])) for error in found)


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "body"


def _message(kind: str, message: str) -> str:
    if kind == "missing":
        return "is required"
    return message.removeprefix("Value error, ")
