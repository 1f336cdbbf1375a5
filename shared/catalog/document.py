"""Parser and validation of workspace documents; reports every problem with its line and column.

pydantic holds the interpreter lock while it validates. One call for a large document would delay other requests, so
each call of pydantic validates a limited number of items.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from shared.catalog.checks import check_sections
from shared.catalog.document_nodes import LineIndex, LocatedValues
from shared.catalog.document_parsers import parse_json_document, parse_yaml
from shared.catalog.fields import DECLARED
from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import MAX_PROBLEMS, DocumentError, DocumentPath, Problem, Violation
from shared.catalog.sections import Sections
from shared.validation.names import find_nearest_name
from shared.validation.validation_messages import (
    get_field_location,
    remove_redundant_errors,
    reword_pydantic_error,
)
from shared.validation.value_counts import count_json_values

ITEMS_AT_ONCE: Final = 100
MAX_ITEM_VALUES: Final = 20_000
"""Maximum number of values in one item or section of a document, because pydantic validates it in one call."""


def validate_document(data: Any) -> tuple[WorkspaceDocument | None, list[ErrorDetails]]:
    """Validate the JSON values of a workspace document.

    Return the document and an empty list, or None and pydantic's errors.
    """
    fields = data if isinstance(data, dict) else {}
    errors: list[ErrorDetails] = []
    lists: dict[str, tuple[Any, ...]] = {}
    for name, (attribute, adapter) in _build_list_validators().items():
        if isinstance(fields.get(name), list):
            lists[attribute] = _list_valid_items_and_add_errors(name, fields[name], adapter, errors)
    head = {
        name: [] if isinstance(value, list) and name in _build_list_validators() else value
        for name, value in _limit_unknown_fields(fields).items()
    }
    if too_large := [
        _build_too_many_values_error((name,)) for name, value in head.items() if _has_too_many_values(value)
    ]:
        return None, (too_large + errors)[:MAX_PROBLEMS]
    try:
        document = WorkspaceDocument.model_validate_json(
            json.dumps(head if isinstance(data, dict) else None),
            strict=True,
            context=DECLARED,
            by_alias=True,
            by_name=False,
        )
    except ValidationError as error:
        return None, (_list_error_details(error) + errors)[:MAX_PROBLEMS]
    return (None, errors) if errors else (document.model_copy(update=lists), [])


def _limit_unknown_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy the top-level fields, but at most ``MAX_PROBLEMS`` unknown ones, to limit the number of errors.

    The values of unknown fields are omitted, because they have no effect and can be large.
    """
    known = {field.alias or name for name, field in WorkspaceDocument.model_fields.items()}
    unknown = islice((name for name in fields if name not in known), MAX_PROBLEMS)
    return {name: fields[name] for name in fields if name in known} | dict.fromkeys(unknown)


def _has_too_many_values(value: Any) -> bool:
    return count_json_values(value, MAX_ITEM_VALUES) > MAX_ITEM_VALUES


def _build_too_many_values_error(location: DocumentPath) -> ErrorDetails:
    message = f"must have at most {MAX_ITEM_VALUES} values, including those in nested arrays and objects"
    return {"type": "too_many_values", "loc": location, "msg": message, "input": None}


def _list_valid_items_and_add_errors(
    list_name: str, items: list[Any], adapter: TypeAdapter[tuple[Any, ...]], errors: list[ErrorDetails]
) -> tuple[Any, ...]:
    """Return the valid items of a list; append the errors of the invalid items to ``errors``."""
    valid: list[Any] = []
    for start, batch in _iterate_batches_with_first_index(items):
        if len(errors) >= MAX_PROBLEMS:
            break
        if len(batch) == 1 and _has_too_many_values(batch[0]):
            errors.append(_build_too_many_values_error((list_name, start)))
            continue
        try:
            valid += adapter.validate_json(
                json.dumps(batch), strict=True, context=DECLARED, by_alias=True, by_name=False
            )
        except ValidationError as error:
            for detail in _list_error_details(error)[: MAX_PROBLEMS - len(errors)]:
                index, *rest = detail["loc"]
                errors.append({**detail, "loc": (list_name, start + int(index), *rest)})
    return tuple(valid)


def _iterate_batches_with_first_index(items: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield batches of items that one call of pydantic validates, each with the index of its first item.

    An item with very many values is alone in its batch.
    """
    batch: list[Any] = []
    values = start = 0
    for index, item in enumerate(items):
        count = count_json_values(item, MAX_ITEM_VALUES)
        if batch and (len(batch) == ITEMS_AT_ONCE or values + count > MAX_ITEM_VALUES):
            yield start, batch
            batch, values, start = [], 0, index
        batch.append(item)
        values += count
    if batch:
        yield start, batch


def _list_error_details(error: ValidationError) -> list[ErrorDetails]:
    found = error.errors(include_url=False, include_input=False)
    # Only messages about enums need the values, and converting large values takes time.
    return error.errors(include_url=False) if any(detail["type"] == "enum" for detail in found) else found


class _ListValidator(NamedTuple):
    """Validator of a list of the workspace document, and the list's attribute in the model."""

    attribute: str
    adapter: TypeAdapter[tuple[Any, ...]]


@cache
def _build_list_validators() -> Mapping[str, _ListValidator]:
    """Return the validator of each list of a workspace document, by the list's name in JSON.

    For example, ``warmQueries`` has the attribute ``warm_queries``.
    """
    adapters: dict[str, _ListValidator] = {}
    for attribute, field in WorkspaceDocument.model_fields.items():
        kind: Any = field.annotation
        if (
            get_origin(kind) is tuple
            and isinstance(get_args(kind)[0], type)
            and issubclass(get_args(kind)[0], BaseModel)
        ):
            adapters[field.alias or attribute] = _ListValidator(attribute, TypeAdapter(kind))
    return adapters


class DocumentFormat(StrEnum):
    """Text format of a workspace document."""

    YAML = "yaml"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    """Valid workspace document, with the line and column of each value.

    Attributes:
        document: the document as a pydantic model.
        values: finds the line and column of a value in the text.
    """

    document: WorkspaceDocument
    values: LocatedValues

    def build_error_with_positions(self, violations: Iterable[Violation], error_code: str = "") -> DocumentError:
        """Build an error, with positions in the text, from rule violations that were found after loading the document.

        Args:
            violations: at least one pair of a path in the document and an error message.
            error_code: error code of the reply over HTTPS; empty for the usual code of an invalid document.
        """
        return DocumentError([self.values.build_problem(path, rule) for path, rule in violations], error_code)


def decode_document(content: bytes, source_name: str) -> str:
    """Decode the UTF-8 text of a workspace document.

    Raises:
        DocumentError: if the content is not UTF-8.
    """
    encoded = content.removeprefix(BOM_UTF8)
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        text = encoded[: error.start].decode()
        line, column = LineIndex(text).get_line_and_column(len(text))
        raise DocumentError([Problem(source_name, line, column, "", "the text is not UTF-8")]) from None


def load_document(text: str, source_name: str) -> WorkspaceDocument:
    """Parse and validate a workspace document in YAML.

    Raises:
        DocumentError: the same errors as :func:`load_document_with_positions`.
    """
    return load_document_with_positions(text, source_name).document


def load_document_with_positions(
    text: str,
    source_name: str,
    text_format: DocumentFormat = DocumentFormat.YAML,
    *,
    checks_new_items: bool = True,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> LoadedDocument:
    """Parse and validate a workspace document.

    Args:
        text: text of the document.
        source_name: file name in the error messages.
        text_format: format of the text.
        checks_new_items: True to check also the rules for new items; every item is then treated as a new item.
        defaults: top-level properties. All are added if the document has none of them; otherwise none is added.

    Raises:
        DocumentError: with every problem of syntax, fields, values and references, but at most ``MAX_PROBLEMS``. A text
            that has a syntax error or that exceeds a limit has one problem only.
    """
    parse = parse_yaml if text_format is DocumentFormat.YAML else parse_json_document
    located = LocatedValues(parse(text, source_name), source_name, text)
    try:
        return LoadedDocument(_validate_document_values(located, defaults, checks_new_items=checks_new_items), located)
    except DocumentError:
        located.release()
        raise


def _validate_document_values(
    located: LocatedValues, defaults: Mapping[str, Any], *, checks_new_items: bool
) -> WorkspaceDocument:
    data = located.to_json_values()
    if isinstance(data, dict) and defaults.keys().isdisjoint(data):
        data = {**defaults, **data}
    problems = dict.fromkeys(located.problems)
    reported = {problem.field for problem in problems}
    document, errors = validate_document(data)
    problems |= dict.fromkeys(
        problem for problem in _problems_from_pydantic_errors(errors, located) if problem.field not in reported
    )
    if len(errors) >= MAX_PROBLEMS or len(problems) >= MAX_PROBLEMS:
        # Not all items were validated, so the rules between them cannot be checked.
        raise DocumentError(islice(problems, MAX_PROBLEMS))
    if document is None:
        sections = Sections.from_invalid_document(data, [detail["loc"] for detail in errors])
    else:
        sections = Sections.from_document(document)
    findings = check_sections(sections, checks_new_items=checks_new_items)
    for path, message in islice(findings, MAX_PROBLEMS - len(problems)):
        problems[located.build_problem(path, message)] = None
    if document is None or problems:
        raise DocumentError(problems)
    return document


def _problems_from_pydantic_errors(errors: list[ErrorDetails], located: LocatedValues) -> Iterator[Problem]:
    """Convert pydantic's errors to problems with positions.

    All errors at one path become one problem, because pydantic reports a value once for each type of a union.
    """
    messages: dict[DocumentPath, list[str]] = {}
    unknown = {
        located.drop_missing_path_steps(detail["loc"]) for detail in errors if detail["type"] == "extra_forbidden"
    }
    for detail in remove_redundant_errors(errors):
        field = get_field_location(detail)
        keep_missing_field = field != detail["loc"] or detail["type"] == "missing"
        texts = messages.setdefault(located.drop_missing_path_steps(field, keep_missing_field=keep_missing_field), [])
        if (message := _format_pydantic_error(detail)) not in texts:
            texts.append(message)
    for path, texts in messages.items():
        yield located.build_problem(path, "; ".join(texts), at_field_name=path in unknown)


def _format_pydantic_error(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "extra_forbidden":
            suggestion = find_similar_field(detail["loc"])
            return f"is not a known field; did you mean {suggestion}?" if suggestion else "is not a known field"
        case "model_type" | "dict_type":
            return "must be a mapping of fields"
        case "value_error":
            return str(_get_error_context(detail)["error"])
    return reword_pydantic_error(detail["type"], detail["msg"], detail.get("input"))


def _get_error_context(detail: ErrorDetails) -> Mapping[str, Any]:
    return detail.get("ctx", {})


def find_similar_field(unknown_field_path: DocumentPath) -> str | None:
    """Return the known field whose name is most similar to an unknown field's name; None if no name is similar.

    Args:
        unknown_field_path: pydantic's location of the unknown field, including union tags.
    """
    return find_nearest_name(str(unknown_field_path[-1]), _list_known_fields(unknown_field_path[:-1]))


def _list_known_fields(location: DocumentPath) -> list[str]:
    schema: dict[str, Any] = _load_document_schema()
    for step in location:
        schema = _get_subschema_or_empty(_resolve_schema_reference(schema), step)
    return list(_resolve_schema_reference(schema).get("properties", {}))


def _get_subschema_or_empty(schema: dict[str, Any], step: str | int) -> dict[str, Any]:
    """Return the JSON schema of a property, list item or union branch within a schema; empty if there is none."""
    found: dict[str, Any] = {}
    if isinstance(step, int):
        found = schema.get("items", {})
    elif "discriminator" in schema:
        found = {"$ref": schema["discriminator"]["mapping"].get(step, "")}
    else:
        found = schema.get("properties", {}).get(step, {})
    return found


def _resolve_schema_reference(schema: dict[str, Any]) -> dict[str, Any]:
    optional = [branch for branch in schema.get("anyOf", ()) if "$ref" in branch]
    reference = str((optional[0] if optional else schema).get("$ref", ""))
    found: dict[str, Any] = _load_document_schema()["$defs"].get(reference.rpartition("/")[2], schema)
    return found


@cache
def _load_document_schema() -> dict[str, Any]:
    return WorkspaceDocument.model_json_schema()
