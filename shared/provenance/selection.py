"""Selection of the chain that a request reads or writes, by target (kind of chain) and scope."""

from collections.abc import Mapping
from typing import Any, Final

from shared.errors import Kind, ValidationErrors, WorkspaceError, build_invalid_field_error
from shared.provenance.hash_rule import sequence_from_record_id
from shared.provenance.ports import ChainKey, Target

MAX_SCOPE_CHARACTERS: Final = 1_024
QUERY_SCOPE_FIELD: Final = "scopeKey"
BODY_SCOPE_FIELD: Final = "ScopeKey"
WORKSPACE_TARGETS: Final = frozenset({Target.PLATFORM_CONFIG, Target.ACCESS_CONTROL})


def resolve_chain_to_read(target: str | None, scope_key: str | None) -> ChainKey:
    """Return the chain of a read request that :func:`check_target_and_scope` has accepted.

    Args:
        target: requested kind of chain; None selects DomainEvents with a scope, and PlatformConfig without a scope.
        scope_key: requested scope; None for a chain of the workspace.
    """
    if target is None:
        return ChainKey(Target.PLATFORM_CONFIG) if scope_key is None else ChainKey(Target.DOMAIN_EVENTS, scope_key)
    return ChainKey(Target(target), scope_key or "")


def resolve_chain_to_write(target: str | None, scope_key: str | None) -> ChainKey:
    """Return the chain to which a request appends an event; see :func:`resolve_chain_to_read`.

    Raises:
        WorkspaceError: INVALID ``TARGET_READ_ONLY`` for amendments, which have their own routes.
    """
    chain = resolve_chain_to_read(target, scope_key)
    if chain.target is Target.DOMAIN_AMENDMENTS:
        raise build_invalid_field_error(
            "target",
            "must not be DomainAmendments; create amendments through their own routes",
            code="TARGET_READ_ONLY",
        )
    return chain


def resolve_amendments_chain(scope_key: str | None) -> ChainKey:
    """Return the chain of a scope's amendments.

    Raises:
        WorkspaceError: INVALID ``SCOPE_KEY_REQUIRED`` if the scope is missing or empty.
    """
    _require_valid_scope(scope_key or "", QUERY_SCOPE_FIELD)
    return ChainKey(Target.DOMAIN_AMENDMENTS, scope_key or "")


def check_target_and_scope(
    faults: ValidationErrors, target: str | None, scope_key: str | None, scope_field: str = QUERY_SCOPE_FIELD
) -> None:
    """Check that a request's target (kind of chain) and scope are valid and match; add an error to ``faults`` if not.

    The error codes are ``TARGET_UNKNOWN``, ``SCOPE_KEY_REQUIRED`` for an empty scope, and ``TARGET_SCOPE_MISMATCH`` if
    the target requires a scope and the request has none, or the target has no scopes and the request has one.

    Args:
        faults: collected errors of the request.
        target: requested kind of chain; None if the request states none.
        scope_key: requested scope; None if the request states none.
        scope_field: name of the field or parameter that contains the scope, for the error.
    """
    if scope_key is not None:
        check_scope(faults, scope_key, scope_field)
    if target is None or not faults.has_valid_fields("target"):
        return
    with faults.collect_raised_error():
        if target not in set(Target):
            raise build_invalid_field_error("target", f"must be one of {', '.join(Target)}", code="TARGET_UNKNOWN")
        takes_none = Target(target) in WORKSPACE_TARGETS
        if faults.has_valid_fields(scope_field) and takes_none != (scope_key is None):
            rule = "must not have a scope" if takes_none else f"requires a scope (`{scope_field}`)"
            raise build_invalid_field_error("target", f"{target} {rule}", code="TARGET_SCOPE_MISMATCH")


def check_scope(faults: ValidationErrors, scope_key: str | None, scope_field: str = QUERY_SCOPE_FIELD) -> None:
    """Add an error to ``faults`` if the scope is missing (None), empty or too long."""
    if faults.has_valid_fields(scope_field):
        with faults.collect_raised_error():
            _require_valid_scope(scope_key or "", scope_field)


def build_not_provisioned_error() -> WorkspaceError:
    """Build the error that every provenance operation raises in a workspace without the provenance policy."""
    detail = "Provenance is not provisioned for this workspace."
    # No Retry-After, because a retry cannot help until an operator enables the policy.
    return WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_NOT_PROVISIONED", detail, retryAfter=None)


def _require_valid_scope(scope_key: str, field_name: str) -> None:
    if not scope_key:
        raise build_invalid_field_error(field_name, "is required and must not be empty", code="SCOPE_KEY_REQUIRED")
    if len(scope_key) > MAX_SCOPE_CHARACTERS:
        # A longer scope could be written but would not fit in a query string.
        raise build_invalid_field_error(field_name, f"must have at most {MAX_SCOPE_CHARACTERS} characters")


def parse_requested_sequence(body: Mapping[str, Any]) -> int | None:
    """Return the sequence number of the RecordID in a verification request; None if the request has no RecordID.

    Raises:
        WorkspaceError: INVALID if the RecordID is malformed or null.
    """
    if "RecordID" not in body:
        return None
    sequence = sequence_from_record_id(body["RecordID"])
    if sequence is None:
        raise build_invalid_field_error(
            "RecordID", "must be a sequence number of 12 digits; omit it to verify the chain only"
        )
    return sequence
