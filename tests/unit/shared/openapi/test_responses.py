"""Tests of the replies in the OpenAPI document."""

import pytest

from functions import GROUPS
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request
from shared.http.operations import Operation
from shared.http.unknown_names import IGNORED, UnknownNames
from shared.http.versions import HEADER
from shared.openapi.responses import HEADERS, build_error_components, build_problem_response, build_responses
from shared.openapi.schemas import SchemaRegistry

OPERATIONS = [operation for group in GROUPS for operation in group.operations]


@pytest.mark.parametrize("operation", OPERATIONS, ids=[f"{one.method} /{one.route}" for one in OPERATIONS])
def test_replies_of_versioned_operations_have_a_version(operation: Operation) -> None:
    """If an operation has versions, each of its replies declares the version header."""
    responses = build_responses(operation, SchemaRegistry())
    own = [responses[str(reply.status)] for reply in operation.docs.replies]
    assert [HEADER in reply["headers"] for reply in own] == [operation.is_versioned] * len(own)


@pytest.mark.parametrize("operation", OPERATIONS, ids=[f"{one.method} /{one.route}" for one in OPERATIONS])
def test_replies_declare_the_header_of_ignored_names(operation: Operation) -> None:
    """If an operation reports unknown names, its replies declare the header with their names, and no others do."""
    responses = build_responses(operation, SchemaRegistry())
    own = [responses[str(reply.status)] for reply in operation.docs.replies]
    reports = operation.unknown is UnknownNames.REPORT
    assert [IGNORED in reply["headers"] for reply in own] == [reports] * len(own)


@pytest.mark.parametrize(("name", "status"), [("issue_receipt", "404"), ("approve_amendment", "409")])
def test_replies_about_temporary_errors_declare_when_to_retry(name: str, status: str) -> None:
    """The replies about a receipt that is not ready, and about a sign-in that is in use, declare Retry-After."""
    [operation] = [one for one in OPERATIONS if one.name == name]
    schemas = SchemaRegistry()
    name = build_responses(operation, schemas)[status]["$ref"].rpartition("/")[2]
    replies, _ = build_error_components(schemas)
    assert "Retry-After" in replies[name]["headers"]


OWN_FORMS = [operation for operation in OPERATIONS if operation.docs.errors is not None]


@pytest.mark.parametrize("operation", OWN_FORMS, ids=[f"{one.method} /{one.route}" for one in OWN_FORMS])
def test_replies_500_have_the_documented_form(operation: Operation) -> None:
    """If an operation has its own form of errors, its reply to an unexpected error is documented in this form."""
    error = WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", "Internal error.")
    reply = operation.build_error_reply(error, "t", Request(operation.method, f"/{operation.route}", "", {}, b""))
    media_type = reply.headers["Content-Type"].partition(";")[0]
    assert media_type in build_responses(operation, SchemaRegistry())["500"]["content"]


def test_problem_documents_declare_the_version_header() -> None:
    """Problem documents declare the version header, and with status 507 also Retry-After."""
    assert HEADER in build_problem_response(404, ())["headers"]
    assert {HEADER, "Retry-After"} <= build_problem_response(507, ())["headers"].keys()
    assert "Retry-After" not in build_problem_response(404, ("RECORD_NOT_FOUND",))["headers"]
    assert HEADERS[HEADER]["schema"]["enum"]
