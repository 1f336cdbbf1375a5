"""Tests of the service's error class."""

from typing import Any

import pytest

from shared.errors import (
    MAX_DETAIL,
    MAX_LISTED,
    FieldError,
    Kind,
    ValidationErrors,
    WorkspaceError,
    build_invalid_field_error,
    build_invalid_fields_error,
)


def _raise_invalid(field: str) -> None:
    raise build_invalid_field_error(field, "is wrong", code="SECOND")


UNAVAILABLE = WorkspaceError(Kind.UNAVAILABLE, "STORE_DOWN", "The store does not respond.")


def test_an_error_lists_all_invalid_fields() -> None:
    """An error lists all invalid fields, as text for people and as a list for programs."""
    error = build_invalid_fields_error([FieldError("a", "is missing"), FieldError("b[0]", "must be a number")])
    assert (error.kind, error.detail) == (Kind.INVALID, "a: is missing; b[0]: must be a number")
    assert error.members["errors"] == [
        {"field": "a", "message": "is missing"},
        {"field": "b[0]", "message": "must be a number"},
    ]


def test_an_error_lists_at_most_a_thousand_fields() -> None:
    """An error lists the first 1,000 invalid fields, and its detail is short; further errors are not even computed."""
    errors = (FieldError(f"a[{number}]", "is missing") for number in range(5_000))
    error = build_invalid_fields_error(errors)
    listed: Any = error.members["errors"]
    assert [each["field"] for each in listed] == [*(f"a[{number}]" for number in range(MAX_LISTED)), "..."]
    assert listed[-1]["message"] == "more than 1000 errors were found; at most 1000 of them are listed"
    assert len(error.detail) <= MAX_DETAIL + len("...")
    assert next(errors).field == f"a[{MAX_LISTED + 1}]"


def test_a_list_of_a_thousand_fields_is_complete() -> None:
    """If an error has exactly 1,000 invalid fields, all are listed."""
    listed: Any = build_invalid_fields_error([FieldError("a", "is missing")] * MAX_LISTED).members["errors"]
    assert listed == [{"field": "a", "message": "is missing"}] * MAX_LISTED


def test_a_long_field_name_is_shortened() -> None:
    """Names of fields that the caller chose, and messages that contain them, are shortened."""
    listed: Any = build_invalid_field_error("x" * 1_000_000, "y" * 1_000_000).members["errors"]
    assert listed == [{"field": f"{'x' * 509}...", "message": f"{'y' * (MAX_DETAIL - 3)}..."}]


def test_collected_errors_list_at_most_a_thousand_fields() -> None:
    """A reply for several collected errors lists the first 1,000 invalid fields of all errors."""
    faults = ValidationErrors()
    for name in ("a", "b"):
        faults.add(build_invalid_fields_error([FieldError(name, "is missing")] * 600))
    with pytest.raises(WorkspaceError) as raised:
        faults.raise_all()
    errors: Any = raised.value.members["errors"]
    assert [each["field"] for each in errors] == ["a"] * 600 + ["b"] * 400 + ["..."]
    assert errors[-1]["message"] == "1200 errors were found; at most 1000 of them are listed"
    assert len(raised.value.detail) <= MAX_DETAIL + len("...")


def test_collected_errors_are_raised_together() -> None:
    """If several errors are collected, one reply lists all invalid fields and has the code of the first error."""
    faults = ValidationErrors()
    faults.raise_all()
    faults.add(build_invalid_field_error("a", "is missing", code="FIRST"))
    with faults.collect_raised_error():
        _raise_invalid("b")
    with pytest.raises(WorkspaceError) as raised:
        faults.raise_all()
    errors: Any = raised.value.members["errors"]
    assert (raised.value.code, raised.value.detail) == ("FIRST", "a: is missing; b: is wrong")
    assert [each["field"] for each in errors] == ["a", "b"]


def test_codes_that_clients_check_have_priority() -> None:
    """Codes that clients check, such as the code for a body that is not JSON, have priority over other codes."""
    faults = ValidationErrors()
    faults.add(build_invalid_field_error("limit", "is wrong", code="LIMIT"))
    faults.add(build_invalid_field_error("body", "is not JSON", code="BODY_NOT_JSON"))
    with pytest.raises(WorkspaceError) as raised:
        faults.raise_all()
    assert raised.value.code == "BODY_NOT_JSON"


def test_further_rules_are_checked_only_on_valid_fields() -> None:
    """If any part of a field is invalid, rules about the whole field are not checked."""
    faults = ValidationErrors()
    faults.add(build_invalid_field_error("parameters[0].name", "is missing"))
    assert (faults.has_valid_fields("parameters"), faults.has_valid_fields("limit"), bool(faults)) == (
        False,
        True,
        True,
    )


def test_errors_of_the_caller_come_before_failures_of_the_service() -> None:
    """If caller and service both caused an error, the caller's error is reported, because a retry would fail."""
    faults = ValidationErrors()
    with pytest.raises(WorkspaceError) as alone, faults.collect_raised_error():
        raise UNAVAILABLE
    faults.add(build_invalid_field_error("a", "is missing"))
    with pytest.raises(WorkspaceError) as after, faults.collect_raised_error():
        raise UNAVAILABLE
    assert (alone.value.kind, after.value.kind) == (Kind.UNAVAILABLE, Kind.INVALID)


def test_errors_of_several_parts_have_one_last_entry() -> None:
    """If several parts of a request have more errors than are listed, the reply has only one last entry about it."""
    faults = ValidationErrors()
    for part in "ab":
        faults.add(build_invalid_fields_error([FieldError(part, "is missing")] * (MAX_LISTED + 1)))
    with pytest.raises(WorkspaceError) as caught:
        faults.raise_all()
    listed: Any = caught.value.members["errors"]
    assert [each["field"] for each in listed] == [*["a"] * MAX_LISTED, "..."]
    assert listed[-1]["message"].startswith(f"more than {MAX_LISTED} errors")
    assert len(caught.value.detail) <= MAX_DETAIL
