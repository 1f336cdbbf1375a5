"""Tests that the error codes of each operation are complete, documented and in the OpenAPI document."""

from dataclasses import replace

import pytest

from functions import GROUPS
from shared.http.messages import PROBLEM_JSON
from shared.http.operation_docs import IDEMPOTENCY_KEY
from shared.http.operations import Operation
from shared.openapi.error_codes import ERROR_CODES
from shared.openapi.operation_errors import OWN_CODES, list_error_codes, list_error_statuses
from shared.openapi.responses import build_error_components, build_responses
from shared.openapi.schemas import SchemaRegistry

OPERATIONS = {operation.name: operation for group in GROUPS for operation in group.operations}
OTHER_FORMS = {("mcp", 406)}
"""Errors that are no problem documents."""


def test_error_codes_of_operations_belong_to_existing_operations() -> None:
    """Each entry in the table of error codes by operation names an existing operation and an existing code."""
    assert set(OWN_CODES) - set(OPERATIONS) == set()
    assert {code for codes in OWN_CODES.values() for code in codes} - set(ERROR_CODES) == set()


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS.values() if one.docs.errors is None and one.group != "pages"],
    ids=lambda one: one.name,
)
def test_each_error_status_has_codes(operation: Operation) -> None:
    """Each error status of an operation has at least one error code, so that clients can distinguish errors."""
    statuses = [status for status in list_error_statuses(operation) if (operation.name, status) not in OTHER_FORMS]
    missing = [status for status in statuses if not list_error_codes(operation, status)]
    assert missing == [], f"add the codes of {operation.name} to OWN_CODES in shared/openapi/operation_errors.py"


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda one: one.name)
def test_each_operation_lists_the_error_about_large_headers(operation: Operation) -> None:
    """Each operation lists the status 431 with a problem document, because every request has headers."""
    reply = build_responses(operation, SchemaRegistry())["431"]
    assert "HEADERS_TOO_LARGE" in list_error_codes(operation, 431)
    assert "$ref" in reply or PROBLEM_JSON in reply["content"]


@pytest.mark.parametrize("name", ["plan_workspace_document", "apply_workspace_document"])
def test_workspace_documents_list_the_error_of_an_unavailable_data_store(name: str) -> None:
    """Planning and applying a document look up containers in their account, which can be unavailable."""
    assert "DATA_STORE_UNAVAILABLE" in list_error_codes(OPERATIONS[name], 503)


def test_telemetry_lists_no_errors_of_stored_idempotency_keys() -> None:
    """The Idempotency-Key of telemetry is not stored, so the operation has no errors about stored keys."""
    listed = {
        name: "IDEMPOTENCY_KEY_REUSED" in list_error_codes(OPERATIONS[name], 422)
        for name in ("accept_telemetry", "write_audit_event")
    }
    assert listed == {"accept_telemetry": False, "write_audit_event": True}


def test_the_description_of_an_idempotency_key_does_not_change_the_errors() -> None:
    """An operation that stores its Idempotency-Key has the errors about it, whatever the key's description is."""
    operation = OPERATIONS["write_audit_event"]
    docs = replace(operation.docs, headers={IDEMPOTENCY_KEY: {"description": "Key.", "schema": {"type": "string"}}})
    assert "IDEMPOTENCY_KEY_REUSED" in list_error_codes(replace(operation, docs=docs), 422)


def test_replies_with_the_same_codes_are_shared() -> None:
    """Operations with the same error codes refer to one documented reply, which has an example of each code."""
    schemas = SchemaRegistry()
    first = schemas.register_problem_and_get_reference(404, ["CONNECTION_NOT_FOUND", "ROUTE_NOT_FOUND"])
    assert schemas.register_problem_and_get_reference(404, ["CONNECTION_NOT_FOUND", "ROUTE_NOT_FOUND"]) == first
    assert schemas.register_problem_and_get_reference(404, ["SURFACE_NOT_FOUND"]) != first
    responses, examples = build_error_components(schemas)
    [form] = responses[first.rpartition("/")[2]]["content"].values()
    assert form["schema"]["properties"]["code"]["enum"] == ["CONNECTION_NOT_FOUND", "ROUTE_NOT_FOUND"]
    assert list(form["examples"]) == ["CONNECTION_NOT_FOUND", "ROUTE_NOT_FOUND"]
    assert examples["CONNECTION_NOT_FOUND"]["value"]["detail"] == "No connection has this lookup."
