"""Creation, approval and rejection of amendments. Records are appended, never changed in place."""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from shared.errors import Kind, ValidationErrors, WorkspaceError, invalid
from shared.provenance.appender import AppendResult
from shared.provenance.chain_log import ChainLog
from shared.provenance.decisions import FoundDecisions, find_decisions, has_matching_filter_fields, parse_content
from shared.provenance.hash_rule import record_id, sequence_from_record_id
from shared.provenance.models import AmendmentBody
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore
from shared.provenance.records import RecordDraft, damaged_record_error, draft_record
from shared.worker_threads import run_in_worker


class AmendmentState(StrEnum):
    """State of an amendment."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class AmendmentPolicy:
    """The workspace's rules for amendments.

    Attributes:
        approval_required: new amendments are pending until another user approves or rejects them.
        reason_text_required: an empty ReasonText is rejected.
        reason_categories: allowed reason categories.
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
        log: log to append to.
        store: store of the chains.
    """

    def __init__(self, log: ChainLog, store: ChainStore) -> None:
        self._log = log
        self._store = store

    async def create(
        self,
        chain: ChainKey,
        author: str,
        body: AmendmentBody,
        policy: AmendmentPolicy,
        *,
        append_id: str = "",
        size: int = 0,
    ) -> AppendResult:
        """Append an amendment.

        Args:
            chain: the scope's chain of amendments.
            author: acting principal.
            body: body of the request.
            policy: policy of the workspace.
            append_id: see :meth:`ChainLog.append`.
            size: size of the body in bytes; a large one is encoded outside the event loop.

        Raises:
            WorkspaceError: INVALID if the reason category is unknown (``REASON_CATEGORY_UNKNOWN`` with ``sent`` and
                ``allowed``), a required ReasonText is empty, or a value has no canonical form; and the errors of
                :meth:`ChainLog.append`.
        """
        faults = ValidationErrors()
        check_reason(faults, body, policy)
        faults.raise_all()
        status = AmendmentState.PENDING if policy.approval_required else AmendmentState.APPROVED
        server_members = {"ScopeKey": chain.scope_key, "AmendedBy": author, "Status": str(status)}

        def build_draft() -> RecordDraft:
            return draft_record({**body.model_dump(by_alias=True), **server_members}, "AmendedAt")

        return await self._log.append(chain, await run_in_worker(size, build_draft), append_id=append_id)

    async def approve(self, chain: ChainKey, amendment: str, approver: str, *, append_id: str = "") -> AppendResult:
        """Append the approval of a pending amendment.

        Args:
            chain: the scope's chain of amendments.
            amendment: RecordID of the amendment.
            approver: acting principal; must not be the author of the amendment.
            append_id: see :meth:`ChainLog.append`.

        Raises:
            WorkspaceError: NOT_FOUND ``AMENDMENT_NOT_FOUND``; CONFLICT ``AMENDMENT_NOT_PENDING`` with
                ``currentStatus``, or ``RECORD_DAMAGED``; FORBIDDEN ``MAKER_CHECKER_VIOLATION``; and the errors of
                :meth:`ChainLog.append`.
        """
        return await self._decide(chain, amendment, approver, AmendmentState.APPROVED, {}, append_id)

    async def reject(
        self, chain: ChainKey, amendment: str, rejector: str, reason: str | None, *, append_id: str = ""
    ) -> AppendResult:
        """Append the rejection of a pending amendment; errors as of :meth:`approve`. The reason is optional."""
        members = {} if reason is None else {"RejectionReason": reason}
        return await self._decide(chain, amendment, rejector, AmendmentState.REJECTED, members, append_id)

    async def _decide(
        self,
        chain: ChainKey,
        amendment: str,
        actor: str,
        status: AmendmentState,
        members: dict[str, Any],
        append_id: str,
    ) -> AppendResult:
        original = await self._read_original(chain, amendment)
        # Most records are read now, because other appends to the chain wait while the check below runs.
        known = await find_decisions(self._store, chain, [amendment])
        by, at, meaning = _DECISIONS[status]
        transition = {
            "ScopeKey": chain.scope_key,
            "EntityType": original["EntityType"],
            "EntityID": original["EntityID"],
            "AmendmentID": amendment,
            "Status": str(status),
            by: actor,
            "Meaning": meaning,
            **members,
        }

        async def check() -> None:
            await self._require_pending(chain, original, known)
            if actor.casefold() == str(original["AmendedBy"]).casefold():
                detail = "Authors cannot approve or reject their own amendments."
                raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", detail)

        return await self._log.append(
            chain, draft_record(transition, at), append_id=append_id, check=check, exclusive=f"decision {amendment}"
        )

    async def _read_original(self, chain: ChainKey, amendment: str) -> dict[str, Any]:
        sequence = sequence_from_record_id(amendment)
        record = None if sequence is None else await self._read_record(chain, sequence)
        if record is None or is_decision(record):
            detail = f"Amendment {amendment!r} does not exist in this scope."
            raise WorkspaceError(Kind.NOT_FOUND, "AMENDMENT_NOT_FOUND", detail)
        return _parse_original(record)

    async def _read_record(self, chain: ChainKey, sequence: int) -> ChainRecord | None:
        page = await self._store.read(chain, sequence - 1, limit=1, max_bytes=1)
        return next((record for record in page.records if record.sequence == sequence), None)

    async def _require_pending(self, chain: ChainKey, original: dict[str, Any], known: FoundDecisions) -> None:
        """Reject a second decision about an amendment.

        An earlier decision is found by the content of records and by their filter fields.
        """
        amendment = original["RecordID"]
        found = known if known.by_amendment else await find_decisions(self._store, chain, [amendment], known.seen_to)
        record = found.by_amendment.get(amendment)
        current = original["Status"] if record is None else _parse_decided_state(record, amendment)
        if current != AmendmentState.PENDING:
            detail = f"Amendment {amendment} is {current}."
            raise WorkspaceError(Kind.CONFLICT, "AMENDMENT_NOT_PENDING", detail, currentStatus=str(current))


def is_decision(record: ChainRecord) -> bool:
    """Return whether a record of a chain of amendments is valid and a decision."""
    content = parse_content(record)
    return content is not None and "AmendmentID" in content


def is_original(record: ChainRecord) -> bool:
    """Return whether a record of a chain of amendments is an amendment, not a decision."""
    return "AmendmentID" not in record.projection


def amendment_id(record: ChainRecord) -> str:
    """Return the RecordID by which decisions refer to an amendment."""
    return record_id(record.sequence)


def _parse_original(record: ChainRecord) -> dict[str, Any]:
    """Parse the content of a stored amendment.

    Raises:
        WorkspaceError: CONFLICT ``RECORD_DAMAGED`` if the record or its filter fields were changed.
    """
    original = parse_content(record)
    if original is None or not has_matching_filter_fields(record) or not original.keys() >= _REQUIRED_MEMBERS:
        raise damaged_record_error(record.sequence)
    return original


def _parse_decided_state(record: ChainRecord, amendment: str) -> str:
    """Parse the state that a decision sets for an amendment: approved or rejected.

    Raises:
        WorkspaceError: CONFLICT ``RECORD_DAMAGED`` if the record was changed.
    """
    content = parse_content(record)
    if content is None or content.get("AmendmentID") != amendment or content.get("Status") not in _DECISIONS:
        raise damaged_record_error(record.sequence)
    return str(content["Status"])


def check_reason(faults: ValidationErrors, body: AmendmentBody, policy: AmendmentPolicy) -> None:
    """Validate an amendment's reason by the workspace's policy, and add each error to ``faults``."""
    if faults.has_valid("ReasonCategory") and body.reason_category not in policy.reason_categories:
        allowed = list(policy.reason_categories)
        unknown = invalid("ReasonCategory", f"must be one of {', '.join(allowed)}", code="REASON_CATEGORY_UNKNOWN")
        unknown.members.update(sent=body.reason_category, allowed=allowed)
        faults.add(unknown)
    if faults.has_valid("ReasonText") and policy.reason_text_required and _is_blank(body.reason_text):
        faults.add(invalid("ReasonText", "must not be empty in this workspace"))


def _is_blank(text: str) -> bool:
    """Return whether a text contains only white space and invisible formatting characters."""
    return all(character.isspace() or unicodedata.category(character) in _INVISIBLE for character in text)
