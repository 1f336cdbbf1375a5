"""Validation of the body property ``signature`` of a request that decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.signature_models import REJECTION
from shared.errors import FieldError, ValidationErrors, WorkspaceError, invalid, invalid_fields
from shared.provenance.canonical import encode_canonical_value
from shared.provenance.models import MAX_STATEMENT

FIELD: Final = "signature"
_MEMBERS: Final = ("meaning", "statement")


@dataclass(frozen=True, slots=True)
class SignatureRequest:
    """Meaning and statement that a person gives to a signature."""

    meaning: str
    statement: str | None


def list_allowed_meanings(meanings: Sequence[str], *, is_rejection: bool) -> list[str]:
    """Return the meanings that a signature of an approval or of a rejection may have."""
    return [meaning for meaning in meanings if (meaning == REJECTION) is is_rejection]


def parse_signature(sent: Any, meanings: Sequence[str], *, is_rejection: bool) -> SignatureRequest:
    """Validate the body property ``signature``.

    Args:
        sent: JSON value of the property; None if it is missing.
        meanings: meanings of the workspace's policy.
        is_rejection: whether the decision is a rejection.

    Raises:
        WorkspaceError: INVALID ``SIGNATURE_REQUIRED``; ``SIGNATURE_MEANING_INVALID`` with ``allowed``; or naming other
            invalid properties.
    """
    if sent is None:
        raise invalid(FIELD, "is required for this decision", code="SIGNATURE_REQUIRED")
    if not isinstance(sent, dict):
        raise invalid(FIELD, "must be an object")
    faults = ValidationErrors()
    allowed = list_allowed_meanings(meanings, is_rejection=is_rejection)
    if sent.get("meaning") not in allowed:
        faults.add(_build_meaning_error(allowed))
    if unknown := [name for name in sent if name not in _MEMBERS]:
        faults.add(
            invalid_fields([FieldError(f"{FIELD}.{name}", "is not a member of a signature") for name in unknown])
        )
    statement = sent.get("statement")
    with faults.collect():
        _check_statement(statement)
    faults.raise_all()
    return SignatureRequest(sent["meaning"], statement)


def _build_meaning_error(allowed: list[str]) -> WorkspaceError:
    message = f"must be {' or '.join(f'`{meaning}`' for meaning in allowed)}"
    error = invalid(f"{FIELD}.meaning", message, code="SIGNATURE_MEANING_INVALID")
    error.members["allowed"] = allowed
    return error


def _check_statement(statement: Any) -> None:
    if statement is None:
        return
    if not isinstance(statement, str):
        raise invalid(f"{FIELD}.statement", "must be text")
    if len(statement) > MAX_STATEMENT:
        raise invalid(f"{FIELD}.statement", f"must have at most {MAX_STATEMENT} characters")
    encode_canonical_value(statement, f"{FIELD}.statement")
