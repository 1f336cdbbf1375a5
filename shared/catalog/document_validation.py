"""Validation of a workspace document by the pydantic models, a limited number of items at a time.

pydantic holds the interpreter lock while it validates, so one call for a large document would delay other requests.
"""

import json
from collections.abc import Mapping
from functools import cache
from itertools import batched, islice
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from shared.catalog.fields import DECLARED
from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import MAX_PROBLEMS

ITEMS_AT_ONCE: Final = 100


def validate_document(data: Any) -> tuple[WorkspaceDocument | None, list[ErrorDetails]]:
    """Validate the JSON values of a document; return the document and no errors, or None and pydantic's errors."""
    fields = data if isinstance(data, dict) else {}
    errors: list[ErrorDetails] = []
    lists: dict[str, tuple[Any, ...]] = {}
    for name, (attribute, adapter) in _build_list_validators().items():
        if isinstance(fields.get(name), list):
            lists[attribute] = _validate_items(name, fields[name], adapter, errors)
    head = {
        name: [] if isinstance(value, list) and name in _build_list_validators() else value
        for name, value in _limit_unknown_fields(fields).items()
    }
    try:
        document = WorkspaceDocument.model_validate_json(
            json.dumps(head if isinstance(data, dict) else data),
            strict=True,
            context=DECLARED,
            by_alias=True,
            by_name=False,
        )
    except ValidationError as error:
        return None, (_list_error_details(error) + errors)[:MAX_PROBLEMS]
    return (None, errors) if errors else (document.model_copy(update=lists), [])


def _limit_unknown_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return all known fields and at most ``MAX_PROBLEMS`` unknown fields."""
    known = {field.alias or name for name, field in WorkspaceDocument.model_fields.items()}
    unknown = islice((name for name in fields if name not in known), MAX_PROBLEMS)
    kept = known | set(unknown)
    return {name: value for name, value in fields.items() if name in kept}


def _validate_items(
    name: str, items: list[Any], adapter: TypeAdapter[tuple[Any, ...]], errors: list[ErrorDetails]
) -> tuple[Any, ...]:
    """Return the valid items of a list; append the errors of the invalid items to ``errors``."""
    valid: list[Any] = []
    for start, batch in zip(
        range(0, len(items), ITEMS_AT_ONCE), batched(items, ITEMS_AT_ONCE, strict=False), strict=True
    ):
        if len(errors) >= MAX_PROBLEMS:
            break
        try:
            valid += adapter.validate_json(
                json.dumps(batch), strict=True, context=DECLARED, by_alias=True, by_name=False
            )
        except ValidationError as error:
            for detail in _list_error_details(error)[: MAX_PROBLEMS - len(errors)]:
                index, *rest = detail["loc"]
                errors.append({**detail, "loc": (name, start + int(index), *rest)})
    return tuple(valid)


def _list_error_details(error: ValidationError) -> list[ErrorDetails]:
    found = error.errors(include_url=False, include_input=False)
    # Only messages about enums need the values, and converting large values takes time.
    return error.errors(include_url=False) if any(detail["type"] == "enum" for detail in found) else found


@cache
def _build_list_validators() -> Mapping[str, tuple[str, TypeAdapter[tuple[Any, ...]]]]:
    """Return the model attribute and the validator of each list of a document, by the list's name in JSON."""
    adapters: dict[str, tuple[str, TypeAdapter[tuple[Any, ...]]]] = {}
    for attribute, field in WorkspaceDocument.model_fields.items():
        kind: Any = field.annotation
        if (
            get_origin(kind) is tuple
            and isinstance(get_args(kind)[0], type)
            and issubclass(get_args(kind)[0], BaseModel)
        ):
            adapters[field.alias or attribute] = attribute, TypeAdapter(kind)
    return adapters
