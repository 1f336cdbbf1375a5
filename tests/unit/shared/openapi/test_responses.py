"""Tests of the replies in the OpenAPI document."""

import pytest

from functions import GROUPS
from shared.http.operations import Operation
from shared.http.versions import HEADER
from shared.openapi.responses import HEADERS, build_problem_response, build_responses
from shared.openapi.schemas import SchemaRegistry

OPERATIONS = [operation for group in GROUPS for operation in group.operations]


@pytest.mark.parametrize("operation", OPERATIONS, ids=[f"{one.method} /{one.route}" for one in OPERATIONS])
def test_replies_of_versioned_operations_have_a_version(operation: Operation) -> None:
    """If an operation has versions, each of its replies declares the version header."""
    responses = build_responses(operation, SchemaRegistry())
    own = [responses[str(reply.status)] for reply in operation.docs.replies]
    assert [HEADER in reply["headers"] for reply in own] == [operation.is_versioned] * len(own)


def test_problem_documents_declare_the_version_header() -> None:
    """Problem documents declare the version header, and with status 507 also Retry-After."""
    assert HEADER in build_problem_response(404, ())["headers"]
    assert {HEADER, "Retry-After"} <= build_problem_response(507, ())["headers"].keys()
    assert HEADERS[HEADER]["schema"]["enum"]
