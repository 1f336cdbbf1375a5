"""Validation of a request: parses its parts into models, or raises one error that lists every invalid field."""

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
    format_location,
    list_accepted_names,
    unknown_members_error,
    unknown_parameters_error,
)
from shared.text_formats.strict_json import parse_body
from shared.timestamps import parse_rfc3339
from shared.validation.validation_messages import reword_pydantic_error
from shared.worker_threads import run_in_worker

_UNKNOWN: Final = "extra_forbidden"
"""Type of pydantic's error about an unknown member."""

_UNPARSED = object()
"""Placeholder for a part of the request that cannot be parsed; its error is already collected."""


async def read_call(
    operation: Operation, principal: Principal, path: Mapping[str, str], request: Request
) -> Call[Any, Any]:
    """Validate a request and build the call for the operation's handler.

    The operation declares whether unknown parameters and members are rejected. An empty body counts as an empty object.

    Raises:
        WorkspaceError: TOO_LARGE ``BODY_TOO_LARGE``; UNKNOWN_ENCODING; INVALID with every invalid parameter and member.
            The error's code is ``BODY_NOT_JSON`` if the body is not JSON, ``INVALID_REQUEST`` if a model rejects the
            request, and otherwise the code of the operation's own check.
    """
    if len(request.body) > operation.body_limit:
        raise WorkspaceError(
            Kind.TOO_LARGE, "BODY_TOO_LARGE", f"The body must have at most {operation.body_limit} bytes."
        )
    _check_encoding(request)
    faults = ValidationErrors()
    sent = await _parse_body(operation, request, faults)
    values, unknown = _read_query(operation, request, faults)
    rejects, reports = (operation.unknown is policy for policy in (UnknownNames.REJECT, UnknownNames.REPORT))
    if unknown and rejects:
        faults.add(unknown_parameters_error(unknown, _list_accepted_parameters(operation)))
    query = NoQuery() if operation.query is NoQuery else _validate(operation.query, values, faults)
    sent = await _remove_server_set(operation, path, sent, faults)
    # Some models check large members by serialising them in canonical form, which takes time.
    body = await run_in_worker(len(request.body), _validate, operation.body, sent, faults, reject_unknown=rejects)
    reported = (*unknown, *_find_unknown_members(operation.body, sent)) if reports else ()
    call = Call(principal, path, query, body, request, unknown=reported)
    if operation.check is not None:
        await operation.check(call, faults)
    faults.raise_all()
    return call


def validate_model[M: BaseModel](model: type[M], value: Any) -> M:
    """Validate a value with a model.

    Raises:
        WorkspaceError: INVALID with every invalid member.
    """
    faults = ValidationErrors()
    validated: M = _validate(model, value, faults)
    faults.raise_all()
    return validated


def _check_encoding(request: Request) -> None:
    """Reject a body with a Content-Encoding (RFC 9110 section 15.5.16)."""
    encodings = {each.strip().lower() for each in request.headers.get("content-encoding", "").split(",")}
    if request.body and encodings - {"", "identity"}:
        detail = "Encoded bodies are not supported; send the body without Content-Encoding."
        raise WorkspaceError(Kind.UNKNOWN_ENCODING, "CONTENT_ENCODING_UNSUPPORTED", detail)


async def _parse_body(operation: Operation, request: Request, faults: ValidationErrors) -> Any:
    if operation.body is RawBody or not operation.takes_body or (is_model(operation.body) and not request.body):
        return {}
    try:
        return await parse_body(request.body)
    except ValueError as error:
        faults.add(invalid("body", str(error), code="BODY_NOT_JSON"))
        return _UNPARSED


def _read_query(operation: Operation, request: Request, faults: ValidationErrors) -> tuple[Any, list[str]]:
    """Return the known query parameters by name, and the names of the unknown ones."""
    if operation.query is NoQuery and operation.unknown is UnknownNames.IGNORE:
        if request.has_many_parameters():
            faults.add(invalid("query", f"the query string is invalid: it has more than {MAX_PARAMETERS} parameters"))
        return {}, []
    try:
        pairs = request.query_pairs
    except ValueError as error:
        faults.add(invalid("query", f"the query string is invalid: {error}"))
        return _UNPARSED, []
    return _split_parameters(operation, pairs, faults)


def _list_accepted_parameters(operation: Operation) -> Mapping[str, str]:
    return {**list_accepted_names(operation.query), **{name: name for name in operation.extra_parameters}}


def _split_parameters(
    operation: Operation, pairs: Iterable[tuple[str, str]], faults: ValidationErrors
) -> tuple[dict[str, str], list[str]]:
    accepted = _list_accepted_parameters(operation)
    prefixes = tuple(name.removesuffix("*") for name in operation.extra_parameters if name.endswith("*"))
    values: dict[str, str] = {}
    present: set[str] = set()
    unknown: dict[str, None] = {}
    for name, value in pairs:
        if name not in accepted:
            if not (prefixes and name.startswith(prefixes)):
                unknown[name] = None
        elif accepted[name] in present:
            faults.add(invalid(name, "is repeated; send it once"))
        else:
            present.add(accepted[name])
            values[name] = value
    return values, list(unknown)


def _find_unknown_members(model: Any, sent: Any) -> list[str]:
    """Return the names of unknown members at the first level of a body."""
    known = list_accepted_names(model)
    return [name for name in sent if name not in known] if isinstance(sent, dict) else []


async def _remove_server_set(operation: Operation, path: Mapping[str, str], sent: Any, faults: ValidationErrors) -> Any:
    """Return a body without the members that the service sets; reject such a member if its value is not current."""
    owned = operation.server_set
    if owned is None or not isinstance(sent, dict) or owned.names.isdisjoint(sent):
        return sent
    current = await owned.read_current(path)
    errors = [
        FieldError(name, "is read-only; omit it or send the stored value")
        for name in sent
        if name in owned.names - owned.volatile
        and not (sent[name] is None and name in owned.nullable)
        and not _is_equal(sent[name], current.get(name))
    ]
    if errors:
        faults.add(invalid_fields(errors))
    return {name: value for name, value in sent.items() if name not in owned.names}


def _is_equal(sent: Any, current: Any) -> bool:
    """Return whether two JSON values are equal; two texts that denote the same time are equal, too."""
    if isinstance(sent, dict) and isinstance(current, dict):
        return sent.keys() == current.keys() and all(_is_equal(sent[name], current[name]) for name in sent)
    if isinstance(sent, str) and isinstance(current, str) and sent != current:
        try:
            return parse_rfc3339(sent) == parse_rfc3339(current)
        except ValueError:
            return False
    return type(sent) is type(current) and bool(sent == current)


@cache
def _get_adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _validate(model: Any, value: Any, faults: ValidationErrors, *, reject_unknown: bool = False) -> Any:
    if value is not _UNPARSED:
        # Passed here, because models ignore unknown members by default.
        extra: Literal["forbid"] | None = "forbid" if reject_unknown else None
        try:
            if is_model(model):
                return model.model_validate(value, extra=extra)
            return _get_adapter(model).validate_python(value)
        except ValidationError as failure:
            _add_errors(failure, model, faults)
    return _build_valid_part(model, value, faults) if is_model(model) else None


def _add_errors(failure: ValidationError, model: Any, faults: ValidationErrors) -> None:
    """Add pydantic's errors to the collector.

    Unknown members are listed first, because a misspelt name explains why a required member is missing.
    """
    if failure.error_count() > MAX_LISTED:
        # Messages for a hundred thousand errors would block the event loop.
        faults.add(invalid("body", f"has {failure.error_count()} errors; at most {MAX_LISTED} are listed individually"))
        # No further rule can be checked, because the invalid fields of the body are not listed.
        faults.raise_all()
    found = failure.errors(include_url=False, include_context=False, include_input=False)
    unknown = [error["loc"] for error in found if error["type"] == _UNKNOWN]
    if unknown:
        faults.add(unknown_members_error(model, unknown))
    errors = [
        FieldError(format_location(error["loc"]), reword_pydantic_error(error["type"], error["msg"]))
        for error in found
        if error["type"] != _UNKNOWN
    ]
    if errors:
        faults.add(invalid_fields(errors))


def _build_valid_part(model: type[BaseModel], value: Any, faults: ValidationErrors) -> BaseModel:
    """Build a model instance from the valid fields only, so that further rules can be checked against them."""
    partial_model, known = _make_optional(model), list_accepted_names(model)
    try:
        valid = {name: value[name] for name in known.keys() & value.keys() if faults.has_valid(name)}
        return partial_model.model_validate(valid, extra="ignore")
    except (AttributeError, ValidationError):
        # The value is not an object, or its fields contradict each other.
        faults.mark_invalid(known)
        return partial_model.model_construct()


@cache
def _make_optional(model: type[BaseModel]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if info.is_required():
            optional = copy(info)
            optional.default = None
            fields[name] = (info.annotation, optional)
    return create_model(model.__name__, __base__=model, **fields)
