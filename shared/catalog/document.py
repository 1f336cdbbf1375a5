"""Parser of workspace documents that reports every problem with its line and column."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from shared.catalog.checks import check_sections
from shared.catalog.fields import DECLARED
from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import DocumentError, Path, Problem
from shared.catalog.sections import Sections
from shared.catalog.yaml_document import LocatedValues, parse_yaml
from shared.validation.names import find_nearest_name
from shared.validation.validation_messages import reword_pydantic_error


def load_document(text: str, source: str) -> WorkspaceDocument:
    """Return the workspace that a YAML text declares.

    Args:
        text: the YAML document.
        source: file name for the problems.

    Raises:
        DocumentError: with every problem of syntax, fields, values and references. A text that is not YAML or that
            exceeds a limit has one problem only.
    """
    located = LocatedValues(parse_yaml(text, source), source)
    data = located.read()
    problems = dict.fromkeys(located.problems)
    reported = {problem.field for problem in problems}
    try:
        document = WorkspaceDocument.model_validate_json(
            json.dumps(data), strict=True, context=DECLARED, by_alias=True, by_name=False
        )
        sections = Sections.from_document(document)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        problems |= dict.fromkeys(problem for problem in _to_problems(errors, located) if problem.field not in reported)
        document, sections = None, Sections.from_valid_items(data, [detail["loc"] for detail in errors])
    problems |= dict.fromkeys(located.build_problem(path, message) for path, message in check_sections(sections))
    if document is None or problems:
        raise DocumentError(problems)
    return document


def locate_findings(text: str, source: str, findings: Iterable[tuple[Path, str]]) -> DocumentError:
    """Return the error for violations that were found after the document was loaded.

    Args:
        text: the YAML document.
        source: file name for the problems.
        findings: paths and messages, at least one.
    """
    values = LocatedValues(parse_yaml(text, source), source)
    return DocumentError([values.build_problem(path, rule) for path, rule in findings])


def _to_problems(errors: list[ErrorDetails], located: LocatedValues) -> Iterator[Problem]:
    """Yield one problem per path, because each branch of a union reports the same value."""
    messages: dict[Path, list[str]] = {}
    unknown = {located.resolve(detail["loc"]) for detail in errors if detail["type"] == "extra_forbidden"}
    for detail in _drop_redundant(errors):
        field = ("kind",) if detail["type"].startswith("union_tag") else ()
        names_missing = bool(field) or detail["type"] == "missing"
        texts = messages.setdefault(located.resolve((*detail["loc"], *field), names_missing=names_missing), [])
        if (message := _format_message(detail)) not in texts:
            texts.append(message)
    for path, texts in messages.items():
        yield located.build_problem(path, "; ".join(texts), of_name=path in unknown)


def _drop_redundant(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Drop "too short" errors of lists in which an item is itself invalid."""
    parents = {detail["loc"][:length] for detail in errors for length in range(len(detail["loc"]))}
    return [detail for detail in errors if detail["type"] != "too_short" or detail["loc"] not in parents]


def _format_message(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "union_tag_not_found":
            return "is required"
        case "extra_forbidden":
            suggestion = suggest_field(detail["loc"])
            return f"is not a known field; did you mean {suggestion}?" if suggestion else "is not a known field"
        case "model_type" | "dict_type":
            return "must be a mapping of fields"
        case "union_tag_invalid":
            return f"should be {_context(detail)['expected_tags']}"
        case "value_error":
            return str(_context(detail)["error"])
    return reword_pydantic_error(detail["type"], detail["msg"])


def _context(detail: ErrorDetails) -> Mapping[str, Any]:
    return detail.get("ctx", {})


def suggest_field(location: Path) -> str | None:
    """Return the known field that resembles an unknown field most; None if no field does.

    Args:
        location: pydantic's location of the unknown field, including union tags.
    """
    return find_nearest_name(str(location[-1]), _list_fields(location[:-1]))


def _list_fields(location: Path) -> list[str]:
    schema: dict[str, Any] = _schema()
    for step in location:
        schema = _descend(_dereference(schema), step)
    return list(_dereference(schema).get("properties", {}))


def _descend(schema: dict[str, Any], step: str | int) -> dict[str, Any]:
    """Return the schema of one step of a location; empty if the schema does not have it."""
    found: dict[str, Any] = {}
    if isinstance(step, int):
        found = schema.get("items", {})
    elif "discriminator" in schema:
        found = {"$ref": schema["discriminator"]["mapping"].get(step, "")}
    else:
        found = schema.get("properties", {}).get(step, {})
    return found


def _dereference(schema: dict[str, Any]) -> dict[str, Any]:
    optional = [branch for branch in schema.get("anyOf", ()) if "$ref" in branch]
    reference = str((optional[0] if optional else schema).get("$ref", ""))
    found: dict[str, Any] = _schema()["$defs"].get(reference.rpartition("/")[2], schema)
    return found


@cache
def _schema() -> dict[str, Any]:
    return WorkspaceDocument.model_json_schema()
