"""Creation, approval and rejection of amendments (corrections of entities); each step appends an audit record."""

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from shared.errors import Kind, ValidationErrors, WorkspaceError, build_invalid_field_error
from shared.provenance.appender import AppendResult, Check
from shared.provenance.chain_log import ChainLog
from shared.provenance.decisions import (
    FoundDecisions,
    find_decisions,
    has_metadata_matching_content,
    parse_content_if_verified,
)
from shared.provenance.hash_rule import format_record_id, sequence_from_record_id
from shared.provenance.models import AmendmentBody
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, LookupField
from shared.provenance.records import RecordDraft, build_damaged_record_error, build_record_draft
from shared.provenance.signatures import MEMBER, DecisionSigner, find_signature_in_content
from shared.runtime import SYSTEM_RUNTIME, Runtime


class AmendmentState(StrEnum):
    """State of an amendment."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class AmendmentPolicy:
    """The workspace's rules for amendments.

    Attributes:
        approval_required: True if new amendments are pending until another user approves or rejects them.
        reason_text_required: True if an empty ReasonText is rejected.
        reason_categories: allowed values of ReasonCategory.
    """

    approval_required: bool
    reason_text_required: bool
    reason_categories: tuple[str, ...]


_DECISIONS: Final = {
    AmendmentState.APPROVED: ("ApprovedBy", "ApprovedAt", "approval"),
    AmendmentState.REJECTED: ("RejectedBy", "RejectedAt", "rejection"),
}


_INVISIBLE: Final = frozenset(("Cf", "Zs"))
_REQUIRED_MEMBERS: Final = frozenset(("AmendedBy", "Status", "EntityType", "EntityID"))


class Amendments:
    """Creates, approves and rejects amendments.

    Args:
        log: log to which the records are appended.
        store: store of the chains.
        runtime: clock, randomness and threads.
    """

    def __init__(self, log: ChainLog, store: ChainStore, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._log = log
        self._store = store
        self._runtime = runtime

    async def create(
        self,
        chain: ChainKey,
        author: str,
        body: AmendmentBody,
        policy: AmendmentPolicy,
        *,
        append_id: str = "",
        body_bytes: int = 0,
        confirm: Check | None = None,
    ) -> AppendResult:
        """Create an amendment: append its record to the audit chain.

        A repeated call with an append id returns the stored record, although the policy may have changed since.

        Args:
            chain: key of the audit chain with the amendments of one scope, such as a production line.
            author: principal who amends the entity.
            body: request body with the amendment.
            policy: the workspace's rules for amendments.
            append_id: see :meth:`ChainLog.append`.
            body_bytes: size of the request body in bytes; a large body is encoded outside the event loop.
            confirm: called directly before the amendment is appended; raises an error to reject it.

        Raises:
            WorkspaceError: INVALID if the reason category is unknown (``REASON_CATEGORY_UNKNOWN`` with ``sent`` and
                ``allowed``), a required ReasonText is empty, or a value has no canonical form; and the errors of
                :meth:`ChainLog.append`, including those of ``confirm``.
        """
        if stored := await self._find_result_of_earlier_append(chain, append_id):
            return stored
        faults = ValidationErrors()
        check_amendment_reason(faults, body, policy)
        faults.raise_all()
        status = AmendmentState.PENDING if policy.approval_required else AmendmentState.APPROVED
        server_members = {"ScopeKey": chain.scope_key, "AmendedBy": author, "Status": str(status)}

        def build_draft() -> RecordDraft:
            return build_record_draft({**body.model_dump(by_alias=True), **server_members}, "AmendedAt")

        return await self._log.append(
            chain,
            await self._runtime.run_in_thread_if_large(body_bytes, build_draft),
            append_id=append_id,
            confirm=confirm,
        )

    async def approve(
        self,
        chain: ChainKey,
        amendment_id: str,
        approver: str,
        *,
        credential_creators: Collection[str] = (),
        append_id: str = "",
        signer: DecisionSigner | None = None,
        confirm_unsigned: Check | None = None,
    ) -> AppendResult:
        """Approve a pending amendment: append the approval to the audit chain.

        Args:
            chain: key of the audit chain with the amendments of one scope, such as a production line.
            amendment_id: RecordID of the amendment.
            approver: principal who approves; must not be the author of the amendment.
            credential_creators: members who created the approver's credential; they must not be the author either.
            append_id: see :meth:`ChainLog.append`.
            signer: signs the decision; None for a decision without a signature.
            confirm_unsigned: called directly before a decision without a signature is appended; raises an error to
                reject it.

        Raises:
            WorkspaceError: NOT_FOUND ``AMENDMENT_NOT_FOUND`` if the chain has no amendment with this RecordID;
                CONFLICT ``RECORD_DAMAGED`` if the stored amendment, or a decision about it, was changed; CONFLICT
                ``AMENDMENT_NOT_PENDING`` with ``currentStatus`` if it is approved or rejected already; FORBIDDEN
                ``MAKER_CHECKER_VIOLATION`` if its author is the approver or a creator of the approver's credential; the
                errors of :meth:`DecisionSigner.sign`; and the errors of :meth:`ChainLog.append`.
        """
        decision = _Decision(chain, amendment_id, approver, credential_creators, AmendmentState.APPROVED)
        return await self._store_decision(decision, append_id, signer, confirm_unsigned)

    async def reject(
        self,
        chain: ChainKey,
        amendment_id: str,
        rejector: str,
        reason: str | None,
        *,
        credential_creators: Collection[str] = (),
        append_id: str = "",
        signer: DecisionSigner | None = None,
        confirm_unsigned: Check | None = None,
    ) -> AppendResult:
        """Reject a pending amendment: append the rejection to the audit chain.

        Args:
            chain: key of the audit chain with the amendments of one scope, such as a production line.
            amendment_id: RecordID of the amendment.
            rejector: principal who rejects; must not be the author of the amendment.
            reason: reason of the rejection, which the record contains; None for a rejection without a reason.
            credential_creators: members who created the rejector's credential; they must not be the author either.
            append_id: see :meth:`ChainLog.append`.
            signer: signs the decision; None for a decision without a signature.
            confirm_unsigned: called directly before a decision without a signature is appended; raises an error to
                reject it.

        Raises:
            WorkspaceError: the same errors as :meth:`approve`.
        """
        members = {} if reason is None else {"RejectionReason": reason}
        decision = _Decision(chain, amendment_id, rejector, credential_creators, AmendmentState.REJECTED, members)
        return await self._store_decision(decision, append_id, signer, confirm_unsigned)

    async def _store_decision(
        self, decision: "_Decision", append_id: str, signer: DecisionSigner | None, confirm_unsigned: Check | None
    ) -> AppendResult:
        if stored := await self._find_result_of_earlier_append(decision.chain, append_id):
            # A repeated request gets the first reply, although its sign-in may be too old by now.
            return stored
        record = await self._read_amendment(decision.chain, decision.amendment)
        original = _parse_undamaged_amendment(record)
        # Most records are read now, because other appends to the chain wait while the check below runs.
        known = await find_decisions(self._store, decision.chain, [decision.amendment], runtime=self._runtime)

        async def check() -> None:
            """Check that the amendment is still pending, and that its author takes no part in the decision."""
            await self._require_pending_amendment(decision.chain, original, known)
            if str(original["AmendedBy"]).casefold() in decision.participant_ids:
                detail = "Authors cannot approve or reject their own amendments, even with API keys that they created."
                raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", detail)

        if signer is None:
            properties = decision.build_record_properties(original)
            return await self._append_decision(decision, properties, append_id, check, confirm_unsigned)
        # Each other reason to reject the decision comes first, so that it costs the caller no sign-in.
        try:
            await check()
        except WorkspaceError:
            # The first of two requests with the same Idempotency-Key may have appended the decision meanwhile.
            if stored := await self._find_result_of_earlier_append(decision.chain, append_id):
                return stored
            raise
        append_id = append_id or self._runtime.new_id()
        async with signer.sign(append_id, decision.chain) as session:
            transition = decision.build_record_properties(original) | {
                MEMBER: session.signature.to_record_properties(record.hash)
            }
            result = await self._append_decision(decision, transition, append_id, check, session.confirm)
            session.is_decided = not result.repeated or _is_signed_at(result.record, transition[MEMBER]["AuthTime"])
            return result

    async def _append_decision(
        self,
        decision: "_Decision",
        record_properties: dict[str, Any],
        append_id: str,
        check: Check,
        confirm: Check | None,
    ) -> AppendResult:
        _, at, _ = _DECISIONS[decision.status]
        draft, exclusive_key = build_record_draft(record_properties, at), f"decision {decision.amendment}"
        return await self._log.append(
            decision.chain, draft, append_id=append_id, check=check, confirm=confirm, exclusive_key=exclusive_key
        )

    async def _find_result_of_earlier_append(self, chain: ChainKey, append_id: str) -> AppendResult | None:
        """Return the record that an earlier request with the same append id has appended; None if there is none."""
        found = await self._store.find(chain, LookupField.APPEND_ID, [append_id]) if append_id else ()
        return AppendResult(found[0], repeated=True) if found else None

    async def _read_amendment(self, chain: ChainKey, amendment_id: str) -> ChainRecord:
        sequence = sequence_from_record_id(amendment_id)
        record = None if sequence is None else await self._find_record(chain, sequence)
        if record is None or is_undamaged_decision(record):
            detail = f"Amendment {amendment_id!r} does not exist in this scope."
            raise WorkspaceError(Kind.NOT_FOUND, "AMENDMENT_NOT_FOUND", detail)
        return record

    async def _find_record(self, chain: ChainKey, sequence: int) -> ChainRecord | None:
        page = await self._store.read(chain, sequence - 1, limit=1, max_bytes=1)
        return next((record for record in page.records if record.sequence == sequence), None)

    async def _require_pending_amendment(
        self, chain: ChainKey, original: dict[str, Any], known_decisions: FoundDecisions
    ) -> None:
        """Check that an amendment is pending: it was stored as pending, and no decision about it exists.

        Args:
            chain: key of the chain that contains the amendment.
            original: content of the amendment.
            known_decisions: result of an earlier search for decisions about the amendment. If that search found none,
                search again, but read only the content of records after ``known_decisions.seen_to``.

        Raises:
            WorkspaceError: CONFLICT ``AMENDMENT_NOT_PENDING`` if it is not pending; CONFLICT ``RECORD_DAMAGED`` if the
                stored decision was changed.
        """
        amendment = original["RecordID"]
        found = (
            known_decisions
            if known_decisions.by_amendment
            else await find_decisions(self._store, chain, [amendment], known_decisions.seen_to, runtime=self._runtime)
        )
        record = found.by_amendment.get(amendment)
        current = original["Status"] if record is None else _parse_decided_state(record, amendment)
        if current != AmendmentState.PENDING:
            detail = f"Amendment {amendment} is {current}; only pending amendments can be approved or rejected."
            raise WorkspaceError(Kind.CONFLICT, "AMENDMENT_NOT_PENDING", detail, currentStatus=str(current))


@dataclass(frozen=True, slots=True)
class _Decision:
    """Approval or rejection of an amendment.

    Attributes:
        chain: key of the chain with the amendments of one scope.
        amendment: RecordID of the amendment.
        actor: principal who decides.
        creators: members who created the actor's credential.
        status: state that the decision gives to the amendment.
        members: further properties of the decision's record.
    """

    chain: ChainKey
    amendment: str
    actor: str
    creators: Collection[str]
    status: AmendmentState
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def participant_ids(self) -> set[str]:
        """Ids of the members who take part in the decision (the actor and the creators), case-folded for comparison."""
        return {each.casefold() for each in (self.actor, *self.creators)}

    def build_record_properties(self, original_amendment: Mapping[str, Any]) -> dict[str, Any]:
        """Build the record of this decision about the amendment ``original_amendment``, without its signature.

        The append adds RecordID, time and hashes.
        """
        by, _, meaning = _DECISIONS[self.status]
        return {
            "ScopeKey": self.chain.scope_key,
            "EntityType": original_amendment["EntityType"],
            "EntityID": original_amendment["EntityID"],
            "AmendmentID": self.amendment,
            "Status": str(self.status),
            by: self.actor,
            "Meaning": meaning,
            **self.members,
        }


def is_undamaged_decision(record: ChainRecord) -> bool:
    """Return whether a record in a chain of amendments is undamaged and decides about an amendment."""
    content = parse_content_if_verified(record)
    return content is not None and "AmendmentID" in content


def is_amendment_record(record: ChainRecord) -> bool:
    """Return whether a record in a chain of amendments is an amendment; the other records are decisions.

    Only the filter fields (copies of the content for queries) are read.
    """
    return "AmendmentID" not in record.projection


def get_amendment_id(record: ChainRecord) -> str:
    """Return the RecordID of an amendment; its decisions contain this id as ``AmendmentID``."""
    return format_record_id(record.sequence)


def _is_signed_at(decision_record: ChainRecord, auth_time: str) -> bool:
    """Return whether a decision was signed with a sign-in at ``auth_time``; True if the record was changed."""
    content = parse_content_if_verified(decision_record)
    signature = None if content is None else find_signature_in_content(content)
    return content is None or (signature is not None and signature.get("AuthTime") == auth_time)


def _parse_undamaged_amendment(record: ChainRecord) -> dict[str, Any]:
    """Parse the content of a stored amendment.

    Raises:
        WorkspaceError: CONFLICT ``RECORD_DAMAGED`` if the record or its filter fields (copies for queries) were
            changed.
    """
    original = parse_content_if_verified(record)
    if original is None or not has_metadata_matching_content(record) or not original.keys() >= _REQUIRED_MEMBERS:
        raise build_damaged_record_error(record.sequence)
    return original


def _parse_decided_state(decision_record: ChainRecord, amendment_id: str) -> str:
    """Return the state that a decision gives to an amendment: approved or rejected.

    Raises:
        WorkspaceError: CONFLICT ``RECORD_DAMAGED`` if the record was changed.
    """
    content = parse_content_if_verified(decision_record)
    if content is None or content.get("AmendmentID") != amendment_id or content.get("Status") not in _DECISIONS:
        raise build_damaged_record_error(decision_record.sequence)
    return str(content["Status"])


def check_amendment_reason(faults: ValidationErrors, body: AmendmentBody, policy: AmendmentPolicy) -> None:
    """Check the reason of an amendment by the workspace's policy, and add each error to ``faults``."""
    if faults.has_valid_fields("ReasonCategory") and body.reason_category not in policy.reason_categories:
        allowed = list(policy.reason_categories)
        unknown = build_invalid_field_error(
            "ReasonCategory", f"must be one of {', '.join(allowed)}", code="REASON_CATEGORY_UNKNOWN"
        )
        unknown.members.update(sent=body.reason_category, allowed=allowed)
        faults.add(unknown)
    if faults.has_valid_fields("ReasonText") and policy.reason_text_required and _is_blank_text(body.reason_text):
        faults.add(build_invalid_field_error("ReasonText", "must not be empty in this workspace"))


def _is_blank_text(text: str) -> bool:
    """Return whether a text contains only white space and invisible formatting characters."""
    return all(character.isspace() or unicodedata.category(character) in _INVISIBLE for character in text)
