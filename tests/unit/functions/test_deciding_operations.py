"""Tests that each operation by which a user decides about the work of others accepts a signature."""

from collections.abc import Iterable

from functions import GROUPS
from functions.lazy_groups import load_operations
from shared.auth.rights import AccessRight
from shared.http.operations import Operation
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.openapi.operation_errors import OWN_CODES

SIGNED = {
    "POST oi-api/provenance/amendments/{id}/approve",
    "POST oi-api/provenance/amendments/{id}/reject",
    "POST oi-api/warm-queries/{lookup}/approve",
    "POST oi-api/warm-queries/{lookup}/reject",
}
"""Operations whose signatures tests/service/test_signatures.py checks."""

VERBS = ("approve", "reject", "decide", "sign", "release", "confirm", "authorize")
NO_DECISIONS = {
    "POST oauth2/authorize": "delegates a person's own rights to a tool",
    "GET oauth2/authorize": "shows the page on which a person delegates rights",
}


def is_undamaged_decision(operation: Operation) -> bool:
    """Return whether an operation is a decision about the work of others, judged by its access right or route."""
    needs_approval = any(right.endswith(".Approve") for right in operation.rights)
    return needs_approval or operation.route.rpartition("/")[2] in VERBS


def describe_operations(operations: Iterable[Operation]) -> dict[str, Operation]:
    """Return a name of the form ``POST a/b`` for each operation."""
    return {f"{one.method} {one.route}": one for one in operations}


async def test_every_decision_can_be_signed() -> None:
    """Each operation for a decision accepts `signature`, documents the errors of signatures, and is listed here."""
    operations = describe_operations(await load_operations(GROUPS))
    found = {name for name, operation in operations.items() if is_undamaged_decision(operation)} - NO_DECISIONS.keys()
    assert found == SIGNED
    for name in SIGNED:
        operation = operations[name]
        assert "signature" in map_accepted_names_to_documented_names(operation.body), name
        assert operation.requires_user, name
        codes = {"SIGNATURE_REQUIRED", "REAUTHENTICATION_REQUIRED", "SIGNATURE_TOKEN_USED", "SIGNATURE_LOCKED"}
        assert codes <= set(OWN_CODES[operation.name]), name


def test_rights_of_decisions_end_with_approve() -> None:
    """Exactly the access rights by which ``is_undamaged_decision`` recognises an operation end with ``.Approve``."""
    assert {right for right in AccessRight if right.endswith(".Approve")} == {
        AccessRight.AMENDMENT_APPROVE,
        AccessRight.WARM_QUERY_APPROVE,
    }
