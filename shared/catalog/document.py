"""From YAML text to the workspace document, with every problem at its line and column."""

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
        source: name of the file, for the problems.

    Raises:
        DocumentError: with every problem: form, fields, values and references between items. Text that is not YAML, or
            is beyond a limit, is one problem alone.
    """
    located = LocatedValues(parse_yaml(text, source), source)
    data = located.read()
    problems = dict.fromkeys(located.problems)
    unread = {problem.field for problem in problems}
    try:
        document = WorkspaceDocument.model_validate_json(
            json.dumps(data), strict=True, context=DECLARED, by_alias=True, by_name=False
        )
        sections = Sections.from_document(document)
    except ValidationError as error:
        refused = error.errors(include_url=False, include_input=False)
        problems |= dict.fromkeys(problem for problem in _shape(refused, located) if problem.field not in unread)
        document, sections = None, Sections.from_valid_items(data, [detail["loc"] for detail in refused])
    problems |= dict.fromkeys(located.problem(path, message) for path, message in check_sections(sections))
    if document is None or problems:
        raise DocumentError(problems)
    return document


def locate_findings(text: str, source: str, findings: Iterable[tuple[Path, str]]) -> DocumentError:
    """Return the error of a document that was loaded, for rules that are known to others.

    Args:
        text: the YAML document.
        source: name of the file.
        findings: paths and the rules that are broken there, at least one.
    """
    values = LocatedValues(parse_yaml(text, source), source)
    return DocumentError([values.problem(path, rule) for path, rule in findings])


def _shape(refused: list[ErrorDetails], located: LocatedValues) -> Iterator[Problem]:
    """Give one problem a place: the branches of a union each report the same value."""
    messages: dict[Path, list[str]] = {}
    unknown = {located.resolve(detail["loc"]) for detail in refused if detail["type"] == "extra_forbidden"}
    for detail in _telling(refused):
        field = ("kind",) if detail["type"].startswith("union_tag") else ()
        names_missing = bool(field) or detail["type"] == "missing"
        told = messages.setdefault(located.resolve((*detail["loc"], *field), names_missing=names_missing), [])
        if (message := _message(detail)) not in told:
            told.append(message)
    for path, told in messages.items():
        yield located.problem(path, "; ".join(told), of_name=path in unknown)


def _telling(refused: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out the lists that count as too short only because an item of theirs is refused."""
    parents = {detail["loc"][:length] for detail in refused for length in range(len(detail["loc"]))}
    return [detail for detail in refused if detail["type"] != "too_short" or detail["loc"] not in parents]


def _message(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "union_tag_not_found":
            return "is required"
        case "extra_forbidden":
            meant = suggest_field(detail["loc"])
            return f"is not a known field; did you mean {meant}?" if meant else "is not a known field"
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
    """Return the known field that an unknown one most resembles, None when none does.

    Args:
        location: pydantic's location of the unknown field, union tags included.
    """
    return find_nearest_name(str(location[-1]), _fields(location[:-1]))


def _fields(location: Path) -> list[str]:
    schema: dict[str, Any] = _schema()
    for step in location:
        schema = _down(_deref(schema), step)
    return list(_deref(schema).get("properties", {}))


def _down(schema: dict[str, Any], step: str | int) -> dict[str, Any]:
    """Return the schema one step of a location further down; empty where the location leaves the schema."""
    found: dict[str, Any] = {}
    if isinstance(step, int):
        found = schema.get("items", {})
    elif "discriminator" in schema:
        found = {"$ref": schema["discriminator"]["mapping"].get(step, "")}
    else:
        found = schema.get("properties", {}).get(step, {})
    return found


def _deref(schema: dict[str, Any]) -> dict[str, Any]:
    optional = [branch for branch in schema.get("anyOf", ()) if "$ref" in branch]
    reference = str((optional[0] if optional else schema).get("$ref", ""))
    found: dict[str, Any] = _schema()["$defs"].get(reference.rpartition("/")[2], schema)
    return found


@cache
def _schema() -> dict[str, Any]:
    return WorkspaceDocument.model_json_schema()
