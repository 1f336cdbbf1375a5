"""Validation of requests: query and body are parsed into models, or one error lists all invalid fields."""

import json
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from shared.auth.principals import Principal
from shared.conditional_requests import condition_from_headers
from shared.errors import (
    MAX_LISTED,
    FieldError,
    ValidationErrors,
    WorkspaceError,
    build_entry_about_omitted_errors,
    build_invalid_field_error,
    build_invalid_fields_error,
)
from shared.http.deprecations import iterate_used_deprecations
from shared.http.messages import MAX_PARAMETERS, Request
from shared.http.operations import Call, NoQuery, Operation, RawBody, StrictBody, is_body_model
from shared.http.size_limits import (
    build_body_too_large_error,
    build_unsupported_encoding_error,
    decode_body,
    read_content_encodings,
    reject_missing_chunked_body,
)
from shared.http.unknown_names import (
    UnknownNames,
    build_unknown_parameters_error,
    build_unknown_properties_error,
    format_location,
    list_accepted_names_of_field,
    map_accepted_names_to_documented_names,
)
from shared.http.versions import check_api_version
from shared.runtime import Runtime
from shared.text_formats.strict_json import parse_json_body
from shared.timestamps import parse_rfc3339
from shared.validation.names import MAX_HINTS
from shared.validation.validation_messages import (
    find_value_at_location,
    get_field_location,
    remove_redundant_errors,
    remove_union_tags,
    reword_pydantic_error,
)
from shared.validation.value_counts import count_json_values

_MAX_READ: Final = 10_000
"""Maximum number of pydantic's errors that are read, because it returns all of them in one call without a pause."""

MAX_VALUES: Final = 10_000
"""Maximum number of values in one property that a model describes; pydantic validates all of them in one call."""

_UNKNOWN: Final = "extra_forbidden"
"""Type of pydantic's error about an unknown property."""

_UNPARSED = object()
"""Placeholder for a query or body that cannot be parsed; its error is already collected."""


async def build_call_from_request(
    operation: Operation,
    principal: Principal,
    path_parameters: Mapping[str, str] | None,
    request: Request,
    runtime: Runtime,
) -> Call[Any, Any]:
    """Validate a request and build the call for the operation's handler.

    The operation declares whether unknown parameters and properties are rejected. An empty body counts as an empty JSON
    object.

    Args:
        operation: operation of the request.
        principal: the caller.
        path_parameters: decoded path parameters by name; None if a parameter is not UTF-8.
        request: the request.
        runtime: runs slow work in threads.

    Raises:
        WorkspaceError: LENGTH_REQUIRED if the host has not passed on a chunked body; TOO_LARGE ``BODY_TOO_LARGE``;
            UNKNOWN_ENCODING if the operation does not accept the body's encoding; INVALID ``BODY_NOT_DECODABLE``; or
            INVALID with a list of all invalid parameters and properties. The code of the error with this list is
            ``VERSION_UNKNOWN`` for an unknown API version, ``BODY_NOT_JSON`` for a body that is not JSON,
            ``INVALID_REQUEST`` if a model rejects the request, or a code of the operation's own check.
    """
    if operation.takes_body:
        reject_missing_chunked_body(request)
    limit = dict(operation.form_limits).get(request.media_type, operation.body_limit)
    if len(request.body) > limit:
        raise build_body_too_large_error(limit)
    request = await _decode_request_body(operation, request, limit, runtime)
    if path_parameters is None:
        raise build_invalid_field_error("path", "percent-encoded characters must be UTF-8")
    faults = ValidationErrors()
    if operation.is_versioned:
        with faults.collect_raised_error():
            check_api_version(request)
    sent = await _parse_json_body(operation, request, faults, runtime)
    request.deprecations.extend(iterate_used_deprecations(operation.body, sent))
    values, unknown = _read_known_and_unknown_parameters(operation, request, faults)
    rejects, reports = (operation.unknown is policy for policy in (UnknownNames.REJECT, UnknownNames.REPORT))
    if unknown and rejects:
        faults.add(build_unknown_parameters_error(unknown, _map_accepted_to_documented_parameter_names(operation)))
    query = NoQuery() if operation.query is NoQuery else _validate_value_and_add_errors(operation.query, values, faults)
    sent = await _copy_without_server_managed_properties(operation, path_parameters, sent, request, faults)
    # Some models check large fields by serialising them in canonical form, which takes time.
    body = await runtime.run_in_thread_if_large(
        len(request.body),
        _validate_value_and_add_errors,
        operation.body,
        sent,
        faults,
        parameters=map_accepted_names_to_documented_names(operation.query),
        reject_unknown=rejects,
    )
    reported = (*unknown, *_find_unknown_properties(operation.body, sent)) if reports else ()
    call = Call(principal, path_parameters, query, body, request, unknown=reported)
    if operation.check is not None:
        await operation.check(call, faults)
    faults.raise_all()
    return call


def validate_with_model[M: BaseModel](model: type[M], value: Any) -> M:
    """Validate a JSON value with a model.

    Raises:
        WorkspaceError: INVALID with a list of all invalid properties.
    """
    faults = ValidationErrors()
    validated: M = _validate_value_and_add_errors(model, value, faults)
    faults.raise_all()
    return validated


async def _decode_request_body(operation: Operation, request: Request, max_bytes: int, runtime: Runtime) -> Request:
    """Return the request with its body decoded; reject an encoding that the operation does not accept."""
    encodings = read_content_encodings(request) if request.body else []
    if not encodings:
        return request
    if len(encodings) > 1 or encodings[0] not in operation.content_encodings:
        raise build_unsupported_encoding_error(list(operation.content_encodings))
    body = await runtime.run_in_thread(decode_body, request.body, encodings[0], max_bytes)
    return replace(request, body=body)


async def _parse_json_body(operation: Operation, request: Request, faults: ValidationErrors, runtime: Runtime) -> Any:
    """Return the JSON value of a request's body.

    Return an empty object if the operation takes no body or parses the body itself (``RawBody``), or if the body is
    empty and the operation declares its properties. If the body is not JSON, add the error to ``faults`` and return
    ``_UNPARSED``.
    """
    if operation.body is RawBody or not operation.takes_body or (is_body_model(operation.body) and not request.body):
        return {}
    try:
        return await parse_json_body(request.body, runtime)
    except ValueError as error:
        faults.add(build_invalid_field_error("body", str(error), code="BODY_NOT_JSON"))
        return _UNPARSED


def _read_known_and_unknown_parameters(
    operation: Operation, request: Request, faults: ValidationErrors
) -> tuple[Any, list[str]]:
    """Return the known query parameters of a request by name, and the names of the unknown parameters."""
    if operation.query is NoQuery and operation.unknown is UnknownNames.IGNORE:
        if request.has_too_many_parameters():
            rule = f"more than {MAX_PARAMETERS} parameters are not allowed"
            faults.add(build_invalid_field_error("query", f"the query string is invalid: {rule}"))
        return {}, []
    try:
        pairs = request.query_pairs
    except ValueError as error:
        faults.add(build_invalid_field_error("query", f"the query string is invalid: {error}"))
        return _UNPARSED, []
    return _separate_known_and_unknown_parameters(operation, pairs, faults)


def _map_accepted_to_documented_parameter_names(operation: Operation) -> Mapping[str, str]:
    return {
        **map_accepted_names_to_documented_names(operation.query),
        **{name: name for name in operation.extra_parameters},
    }


def _separate_known_and_unknown_parameters(
    operation: Operation, pairs: Iterable[tuple[str, str]], faults: ValidationErrors
) -> tuple[dict[str, str], list[str]]:
    """Return the values of known query parameters by name, and the unknown names; collect an error for each repetition.

    A name that matches one of the operation's prefixes (``p.*``) is in neither result.
    """
    accepted = _map_accepted_to_documented_parameter_names(operation)
    prefixes = tuple(name.removesuffix("*") for name in operation.extra_parameters if name.endswith("*"))
    values: dict[str, str] = {}
    present: set[str] = set()
    unknown: dict[str, None] = {}
    for name, value in pairs:
        if name not in accepted:
            if not (prefixes and name.startswith(prefixes)):
                unknown[name] = None
        elif accepted[name] in present:
            faults.add(build_invalid_field_error(name, "is repeated; send it once"))
        else:
            present.add(accepted[name])
            values[name] = value
    return values, list(unknown)


def _find_unknown_properties(model: Any, request_value: Any) -> list[str]:
    """Return the names of unknown properties at the top level of a request body."""
    known = map_accepted_names_to_documented_names(model)
    return [name for name in request_value if name not in known] if isinstance(request_value, dict) else []


async def _copy_without_server_managed_properties(
    operation: Operation,
    path_parameters: Mapping[str, str],
    request_value: Any,
    request: Request,
    faults: ValidationErrors,
) -> Any:
    """Return a body without the properties that the service sets, such as ``etag``.

    A client may send these properties back with their stored values; each other value adds an error to ``faults``. The
    values are not compared if the request has an If-Match header, and the item does not exist or has another ETag:
    they then belong to an older version, and the reply is 412.
    """
    owned = operation.server_set
    if owned is None or not isinstance(request_value, dict) or owned.names.isdisjoint(request_value):
        return request_value
    current = await owned.read_current(path_parameters)
    is_outdated = "etag" in owned.names and _has_outdated_condition(request, current.get("etag"))
    errors = [
        FieldError(name, "is read-only; omit it or send the stored value")
        for name in request_value
        if name in owned.names - owned.volatile
        and not is_outdated
        and not (request_value[name] is None and name in owned.nullable)
        and not _is_equal_json(request_value[name], current.get(name))
    ]
    if errors:
        faults.add(build_invalid_fields_error(errors))
    return {name: value for name, value in request_value.items() if name not in owned.names}


def _has_outdated_condition(request: Request, etag: Any) -> bool:
    """Return whether the stored item does not meet the If-Match header of a request; False for an invalid header.

    Args:
        request: the request.
        etag: ETag of the stored item; None if the item does not exist.
    """
    try:
        condition = condition_from_headers(request.headers.get("if-match"), None)
    except WorkspaceError:
        return False
    return not condition.is_satisfied_by(etag)


def _is_equal_json(request_value: Any, current: Any) -> bool:
    """Return whether two JSON values are equal; RFC 3339 texts of one instant are equal, and so are 60 and 60.0."""
    if isinstance(request_value, dict) and isinstance(current, dict):
        return request_value.keys() == current.keys() and all(
            _is_equal_json(request_value[name], current[name]) for name in request_value
        )
    if isinstance(request_value, str) and isinstance(current, str) and request_value != current:
        try:
            return parse_rfc3339(request_value) == parse_rfc3339(current)
        except ValueError:
            return False
    # In Python, True equals 1, but JSON distinguishes them.
    numbers = [type(value) in (int, float) for value in (request_value, current)]
    return (all(numbers) or type(request_value) is type(current)) and bool(request_value == current)


@cache
def _get_type_adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _validate_value_and_add_errors(
    model: Any,
    value: Any,
    faults: ValidationErrors,
    *,
    parameters: Collection[str] = (),
    reject_unknown: bool = False,
) -> Any:
    """Return a query or body as an instance of its model, and collect the errors of invalid fields in ``faults``.

    If there are errors, return an instance that has only the valid fields. If the type of the body declares no
    properties, return None instead.
    """
    if value is not _UNPARSED:
        if is_body_model(model):
            _reject_too_many_values(model, value, faults)
        # Passed here, because models ignore unknown fields by default.
        extra: Literal["forbid"] | None = "forbid" if reject_unknown else None
        try:
            if is_body_model(model):
                return _validate_body(model, value, extra)
            return _get_type_adapter(model).validate_python(value)
        except ValidationError as failure:
            _add_pydantic_errors(failure, model, value, parameters, faults)
    return _build_model_of_valid_fields(model, value, faults) if is_body_model(model) else None


def _reject_too_many_values(model: type[BaseModel], value: Any, faults: ValidationErrors) -> None:
    """Reject a body with so many values that their validation would delay other requests.

    Properties that accept any JSON object are not limited, because pydantic does not validate their values. In strict
    models, such properties are limited, too, because pydantic parses their values.
    """
    if not isinstance(value, dict):
        return
    errors = [
        FieldError(name, _describe_broken_size_rule(info, value[name]))
        for name, info in _map_limited_properties(model).items()
        if count_json_values(value.get(name), MAX_VALUES) > MAX_VALUES
    ]
    if len(value) > MAX_VALUES:
        errors.append(FieldError("body", f"must have at most {MAX_VALUES} properties"))
    if errors:
        faults.add(build_invalid_fields_error(errors))
        # No further rule can be checked, because the body cannot be validated.
        faults.raise_all()


def _describe_broken_size_rule(info: FieldInfo, value: Any) -> str:
    """Return the rule that a property with too many values breaks.

    The rule is the maximum number of items if the property has one and exceeds it, else the maximum number of values.
    """
    most = next((each.max_length for each in info.metadata if hasattr(each, "max_length")), None)
    if most is not None and isinstance(value, list) and len(value) > most:
        return f"must have at most {most} items"
    return f"must have at most {MAX_VALUES} values, including those in nested arrays and objects"


@cache
def _map_limited_properties(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return the properties whose number of values is limited, by their accepted names."""
    is_strict = issubclass(model, StrictBody)
    return {
        name: info
        for field, info in model.model_fields.items()
        if is_strict or not _can_be_any_object(info.annotation)
        for name in list_accepted_names_of_field(field, info)
    }


def _can_be_any_object(annotation: Any) -> bool:
    return annotation == dict[str, Any] or any(map(_can_be_any_object, get_args(annotation)))


def _validate_body(model: type[BaseModel], value: Any, extra: Literal["forbid"] | None) -> BaseModel:
    if not issubclass(model, StrictBody):
        return model.model_validate(value, extra=extra)
    # Only the JSON parser of pydantic accepts enums and times as texts in strict mode.
    context = model.validation_context
    return model.model_validate_json(
        json.dumps(_replace_unknown_values_by_null(model, value)),
        strict=True,
        extra=extra,
        context=context,
        by_alias=True,
        by_name=False,
    )


def _replace_unknown_values_by_null(model: type[BaseModel], value: Any) -> Any:
    """Return a body in which the values of unknown properties are null; they can be large and have no effect.

    Return None if the body is not an object.
    """
    if not isinstance(value, dict):
        return None
    known = map_accepted_names_to_documented_names(model)
    return {name: each if name in known else None for name, each in value.items()}


def _add_pydantic_errors(
    failure: ValidationError, model: Any, value: Any, parameters: Collection[str], faults: ValidationErrors
) -> None:
    """Add pydantic's errors to the collector ``faults``.

    Unknown properties are listed first, because a misspelt name explains why a required property is missing.
    """
    total = failure.error_count()
    if total > _MAX_READ:
        faults.add(
            build_invalid_field_error("body", f"has {total} errors; more than {_MAX_READ} are not listed individually")
        )
        faults.raise_all()
    # Pydantic would copy the whole object into each error about a property that it lacks.
    details = failure.errors(include_url=False, include_context=False, include_input=False)
    found = remove_redundant_errors(details[:MAX_LISTED])
    unknown = [error["loc"] for error in found if error["type"] == _UNKNOWN]
    if unknown:
        faults.add(build_unknown_properties_error(model, value, unknown, parameters))
    errors = [
        FieldError(
            format_location(location),
            reword_pydantic_error(
                error["type"],
                error["msg"],
                find_value_at_location(value, location),
                searches_suggestion=index < MAX_HINTS,
            ),
        )
        for index, error in enumerate(found)
        if error["type"] != _UNKNOWN
        for location in [remove_union_tags(get_field_location(error), value)]
    ]
    if errors:
        faults.add(build_invalid_fields_error(errors))
    if total > MAX_LISTED:
        faults.add(build_invalid_fields_error([build_entry_about_omitted_errors(total)]))
        # No further rule can be checked, because not all invalid fields of the body are listed.
        faults.raise_all()


def _build_model_of_valid_fields(model: type[BaseModel], value: Any, faults: ValidationErrors) -> BaseModel:
    """Build a model instance from the valid fields only, so that rules about these fields can still be checked."""
    partial_model, known = _build_model_with_optional_fields(model), map_accepted_names_to_documented_names(model)
    try:
        valid = {name: value[name] for name in known.keys() & value.keys() if faults.has_valid_fields(name)}
        return partial_model.model_validate(valid, extra="ignore")
    except (AttributeError, ValidationError):
        # The value is not an object, or its fields contradict each other.
        faults.mark_invalid(known)
        return partial_model.model_construct()


@cache
def _build_model_with_optional_fields(model: type[BaseModel]) -> type[BaseModel]:
    """Build a subclass of a model whose required fields are optional, with the default None."""
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if info.is_required():
            optional = copy(info)
            optional.default = None
            fields[name] = (info.annotation, optional)
    return create_model(model.__name__, __base__=model, **fields)
