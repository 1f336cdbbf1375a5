"""Electronic signatures of decisions (approvals, rejections) that callers send over HTTP."""

from collections.abc import Callable
from typing import Any

from shared.auth.principals import build_unauthenticated_error
from shared.auth.rights import AccessRight
from shared.catalog.models import Policies
from shared.catalog.signature_models import SignatureRequirement
from shared.errors import Kind, WorkspaceError
from shared.http.operations import Call
from shared.provenance.signatures import DecisionSigner
from shared.signatures.signing import SigningRequest
from shared.wiring import services


async def build_signer_if_needed(
    call: Call[Any, Any],
    sent_signature: Any,
    right: AccessRight,
    get_requirement: Callable[[Policies], SignatureRequirement],
    *,
    is_rejection: bool,
) -> DecisionSigner | None:
    """Return the signer that creates the signature of a decision; None if no signature is required and none is sent.

    Args:
        call: request that approves or rejects.
        sent_signature: body property ``signature``; None if it is missing.
        right: access right that the decision needs.
        get_requirement: returns the requirement of the stored policies for this kind of decision, or raises an error.
        is_rejection: whether the decision is a rejection.

    Raises:
        WorkspaceError: UNAUTHENTICATED if the member is now disabled or removed; FORBIDDEN ``ACCESS_RIGHT_MISSING`` if
            the member no longer has the right; UNAVAILABLE ``CATALOG_UNAVAILABLE`` if the stored policy cannot be read;
            errors of ``get_requirement``.
            The stored team is read for these checks, because the request was authorized with a cached copy of the team.
    """
    # The cached catalog can be some seconds old: the policy, the member's name and rights may have changed since.
    catalog = await services().catalog.reader.load_stored_catalog()
    requirement = get_requirement(catalog.policies)
    if sent_signature is None and requirement is SignatureRequirement.OFF:
        return None
    member = catalog.members.get(call.principal.member_id)
    if member is None or not member.enabled or member.service:
        raise build_unauthenticated_error("The member who owns this credential is unknown or disabled.")
    if right not in member.access_rights:
        detail = f"This operation requires the access right {right}."
        raise WorkspaceError(Kind.FORBIDDEN, "ACCESS_RIGHT_MISSING", detail, accessRight=right)
    request = SigningRequest(call.principal, member.name, catalog.policies.signatures, sent_signature, is_rejection)
    return services().signatures.signing.build_signer(request)
