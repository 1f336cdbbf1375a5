"""Corrections: appended, then approved or rejected by somebody else; nothing is ever changed in place."""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from shared.errors import Kind, ValidationErrors, WorkspaceError, invalid
from shared.provenance.appender import AppendResult
from shared.provenance.chain_log import ChainLog
from shared.provenance.decisions import FoundDecisions, find_decisions, has_matching_filter_fields, parse_content
from shared.provenance.hash_rule import record_id, sequence_of
from shared.provenance.models import AmendmentBody
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore
from shared.provenance.records import RecordDraft, damaged_record_error, draft_record
from shared.worker_threads import run_in_worker


class AmendmentState(StrEnum):
    """Where a correction stands."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class AmendmentPolicy:
    """The workspace's rules of corrections.

    Attributes:
        approval_required: new ones are pending until somebody else decides.
        reason_text_required: an empty ReasonText is refused.
        reason_categories: the allowed ones.
    """

    approval_required: bool
    reason_text_required: bool
    reason_categories: tuple[str, ...]


_DECISIONS: Final = {
    AmendmentState.APPROVED: ("ApprovedBy", "ApprovedAt", "approval"),
    AmendmentState.REJECTED: ("RejectedBy", "RejectedAt", "rejection"),
}


_INVISIBLE: Final = frozenset(("Cf", "Zs"))
_OF_CORRECTIONS: Final = frozenset(("AmendedBy", "Status", "EntityType", "EntityID"))


class Amendments:
    """Creates and decides corrections.

    Args:
        log: the engine.
        store: keeps the chains.
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
        """Append a correction.

        Args:
            chain: the scope's chain of corrections.
            author: the acting principal.
            body: what the client sent.
            policy: of the workspace.
            append_id: as for :meth:`ChainLog.append`.
            size: of the body, bytes; a large one is written outside the event loop.

        Raises:
            WorkspaceError: INVALID: ``REASON_CATEGORY_UNKNOWN`` with ``sent`` and ``allowed``, an empty ReasonText that
                is required, or a state without canonical form; and what the engine raises.
        """
        faults = ValidationErrors()
        check_reason(faults, body, policy)
        faults.raise_all()
        status = AmendmentState.PENDING if policy.approval_required else AmendmentState.APPROVED
        own = {"ScopeKey": chain.scope_key, "AmendedBy": author, "Status": str(status)}

        def made() -> RecordDraft:
            return draft_record({**body.model_dump(by_alias=True), **own}, "AmendedAt")

        return await self._log.append(chain, await run_in_worker(size, made), append_id=append_id)

    async def approve(self, chain: ChainKey, amendment: str, approver: str, *, append_id: str = "") -> AppendResult:
        """Append the approval of a pending correction.

        Args:
            chain: the scope's chain of corrections.
            amendment: RecordID of the correction.
            approver: the acting principal, not its author.
            append_id: as for :meth:`ChainLog.append`.

        Raises:
            WorkspaceError: NOT_FOUND ``AMENDMENT_NOT_FOUND``; CONFLICT ``AMENDMENT_NOT_PENDING`` with
                ``currentStatus``, ``RECORD_DAMAGED``; FORBIDDEN ``MAKER_CHECKER_VIOLATION``; what the engine
                raises.
        """
        return await self._decide(chain, amendment, approver, AmendmentState.APPROVED, {}, append_id)

    async def reject(
        self, chain: ChainKey, amendment: str, rejector: str, reason: str | None, *, append_id: str = ""
    ) -> AppendResult:
        """Append the rejection of a pending correction, as :meth:`approve`; the reason is kept when given."""
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
        original = await self._original(chain, amendment)
        # What takes long is read before the chain's other appends have to wait for it.
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
            await self._refuse_unless_pending(chain, original, known)
            if actor.casefold() == str(original["AmendedBy"]).casefold():
                detail = "A correction is approved or rejected by somebody else than its author."
                raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", detail)

        return await self._log.append(
            chain, draft_record(transition, at), append_id=append_id, check=check, exclusive=f"decision {amendment}"
        )

    async def _original(self, chain: ChainKey, amendment: str) -> dict[str, Any]:
        sequence = sequence_of(amendment)
        record = None if sequence is None else await self._record(chain, sequence)
        if record is None or is_decision(record):
            detail = f"This scope has no amendment {amendment!r}."
            raise WorkspaceError(Kind.NOT_FOUND, "AMENDMENT_NOT_FOUND", detail)
        return _parse_original(record)

    async def _record(self, chain: ChainKey, sequence: int) -> ChainRecord | None:
        page = await self._store.read(chain, sequence - 1, limit=1, max_bytes=1)
        return next((record for record in page.records if record.sequence == sequence), None)

    async def _refuse_unless_pending(self, chain: ChainKey, original: dict[str, Any], known: FoundDecisions) -> None:
        """Refuse a second decision: by what records say, and by their filter fields, whichever tells of a first one."""
        amendment = original["RecordID"]
        found = known if known.by_amendment else await find_decisions(self._store, chain, [amendment], known.seen_to)
        record = found.by_amendment.get(amendment)
        current = original["Status"] if record is None else _decided_state(record, amendment)
        if current != AmendmentState.PENDING:
            detail = f"Amendment {amendment} is {current}."
            raise WorkspaceError(Kind.CONFLICT, "AMENDMENT_NOT_PENDING", detail, currentStatus=str(current))


def is_decision(record: ChainRecord) -> bool:
    """Tell whether a sound record of a chain of corrections decides about one."""
    content = parse_content(record)
    return content is not None and "AmendmentID" in content


def is_original(record: ChainRecord) -> bool:
    """Tell whether a record of a chain of corrections is a correction, not a decision about one."""
    return "AmendmentID" not in record.projection


def amendment_id(record: ChainRecord) -> str:
    """Return the RecordID that approvals and rejections name a correction by."""
    return record_id(record.sequence)


def _parse_original(record: ChainRecord) -> dict[str, Any]:
    """Return a stored correction.

    Raises:
        WorkspaceError: CONFLICT ``RECORD_DAMAGED``; somebody left none in its place, or changed its filter fields.
    """
    original = parse_content(record)
    if original is None or not has_matching_filter_fields(record) or not original.keys() >= _OF_CORRECTIONS:
        raise damaged_record_error(record.sequence)
    return original


def _decided_state(record: ChainRecord, amendment: str) -> str:
    """Return what a record decided about a correction.

    Raises:
        WorkspaceError: CONFLICT ``RECORD_DAMAGED``; it is not what was stored as its decision.
    """
    content = parse_content(record)
    if content is None or content.get("AmendmentID") != amendment or content.get("Status") not in _DECISIONS:
        raise damaged_record_error(record.sequence)
    return str(content["Status"])


def check_reason(faults: ValidationErrors, body: AmendmentBody, policy: AmendmentPolicy) -> None:
    """Add that the workspace does not take the reason of a correction."""
    if faults.has_valid("ReasonCategory") and body.reason_category not in policy.reason_categories:
        allowed = list(policy.reason_categories)
        unknown = invalid("ReasonCategory", f"must be one of {', '.join(allowed)}", code="REASON_CATEGORY_UNKNOWN")
        unknown.members.update(sent=body.reason_category, allowed=allowed)
        faults.add(unknown)
    if faults.has_valid("ReasonText") and policy.reason_text_required and _is_blank(body.reason_text):
        faults.add(invalid("ReasonText", "must not be empty in this workspace"))


def _is_blank(text: str) -> bool:
    """Tell whether nothing of a text is to be seen: blanks, and characters that only format."""
    return all(character.isspace() or unicodedata.category(character) in _INVISIBLE for character in text)
