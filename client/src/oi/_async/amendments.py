"""Amendments: corrections of plant data with author and reason, which another person can approve or reject."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from oi._async.audit import AuditPage
from oi._async.transport import AsyncTransport
from oi.instants import format_instant
from oi.requests import build_signature_property, parse_json_reply, quote_path_segment

if TYPE_CHECKING:
    from oi.models import Amendment, DamagedRecord, Transition

_ROUTE = "/oi-api/provenance/amendments"


class AsyncAmendments:
    """Amendments (documented corrections) of the workspace; each belongs to a scope, such as a production line."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        scope: str,
        *,
        entity_type: str,
        entity_id: str,
        original: Mapping[str, Any],
        amended: Mapping[str, Any],
        reason_category: str,
        reason_text: str = "",
        changed_fields: Sequence[str] | None = None,
    ) -> "Amendment":
        """Create an amendment and return the stored record.

        Args:
            scope: part of the plant to which the corrected entity belongs, for instance ``line-1``.
            entity_type: kind of the amended entity.
            entity_id: id of the amended entity.
            original: values of the entity before the correction.
            amended: values of the entity after the correction.
            reason_category: one of the categories that :meth:`reason_categories` returns.
            reason_text: reason for the correction in words.
            changed_fields: names of the changed properties; if omitted, those that differ between `original` and
                `amended`.

        Raises:
            InvalidRequestError: the reason category is not allowed, or a required value is missing.
        """
        names = _list_changed_field_names(original, amended) if changed_fields is None else changed_fields
        body = {
            "ScopeKey": scope,
            "EntityType": entity_type,
            "EntityID": entity_id,
            "OriginalRecord": original,
            "AmendedRecord": amended,
            "ChangedFields": names,
            "ReasonCategory": reason_category,
            "ReasonText": reason_text,
        }
        record: Amendment = parse_json_reply(await self._transport.request("POST", _ROUTE, json=body, appends=True))
        return record

    async def list(
        self,
        scope: str,
        *,
        status: str | None = None,
        entity_id: str | None = None,
        entity_type: str | None = None,
        reason_category: str | None = None,
        amended_by: str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> AuditPage:
        """Return the amendments of a scope, newest first.

        Args:
            scope: scope whose amendments are returned.
            status: return only amendments with this status: ``pending``, ``approved`` or ``rejected``.
            entity_id: return only amendments of the entity with this id.
            entity_type: return only amendments of entities of this kind.
            reason_category: return only amendments with this reason category.
            amended_by: return only amendments of this author.
            start: earliest time of the amendment, inclusive.
            end: latest time of the amendment, inclusive.
            from_sequence: lowest number of a record in its chain, inclusive.
            to_sequence: highest number of a record in its chain, inclusive.
            limit: maximum number of amendments, at most 1,000; 100 if omitted.
            offset: number of amendments to skip. Records that are appended meanwhile shift such pages, but not the
                content of a range from `from_sequence` to `to_sequence`.

        Raises:
            InvalidRequestError: a value is invalid, for instance a date that does not exist.
        """
        parameters = {
            "scopeKey": scope,
            "status": status,
            "entityId": entity_id,
            "entityType": entity_type,
            "reasonCategory": reason_category,
            "amendedBy": amended_by,
            "startDate": format_instant(start),
            "endDate": format_instant(end),
            "fromSequence": from_sequence,
            "toSequence": to_sequence,
            "limit": limit,
            "offset": offset,
        }
        return AuditPage.from_response(await self._transport.request("GET", _ROUTE, params=parameters))

    async def pending(self) -> Sequence["Amendment | DamagedRecord"]:
        """Return the pending amendments of all scopes, oldest first; a placeholder replaces each damaged amendment."""
        found: list[Amendment | DamagedRecord] = []
        cursor: str | None = None
        while True:
            page = await self._transport.get_json("/oi-api/provenance/pending", {"cursor": cursor})
            found += page["amendments"]
            cursor = page["cursor"]
            if cursor is None:
                return found

    async def reason_categories(self) -> Sequence[str]:
        """Return the reason categories that an amendment may state."""
        categories: Sequence[str] = (await self._transport.get_json("/oi-api/provenance/reason-categories"))[
            "categories"
        ]
        return categories

    async def approve(
        self, scope: str, record_id: str, *, meaning: str | None = None, statement: str | None = None
    ) -> "Transition":
        """Approve a pending amendment; return the stored audit record of the approval.

        Args:
            scope: scope of the amendment.
            record_id: id of the amendment in the audit chain of its scope.
            meaning: meaning of the electronic signature, for instance ``approval``; None for an approval that is not
                signed.
            statement: text that is stored with the signature.

        Raises:
            ConflictError: the amendment is not pending.
            ForbiddenError: the caller is the author of the amendment.
            InvalidRequestError: the workspace requires a signature, or does not allow this meaning.
            SignInError: the sign-in is too old for a signature (code ``REAUTHENTICATION_REQUIRED``); open another
                `AsyncWorkspace` with the API key.
        """
        return await self._send_decision(scope, record_id, "approve", build_signature_property(meaning, statement))

    async def reject(
        self, scope: str, record_id: str, reason: str, *, meaning: str | None = None, statement: str | None = None
    ) -> "Transition":
        """Reject a pending amendment; return the stored audit record of the rejection.

        Args:
            scope: scope of the amendment.
            record_id: id of the amendment in the audit chain of its scope.
            reason: reason for the rejection.
            meaning: ``rejection`` to sign the rejection; None for a rejection that is not signed.
            statement: text that is stored with the signature.

        Raises:
            ConflictError: the amendment is not pending.
            ForbiddenError: the caller is the author of the amendment.
            InvalidRequestError: the workspace requires a signature, or does not allow this meaning.
            SignInError: as in :meth:`approve`.
        """
        body = {"RejectionReason": reason, **build_signature_property(meaning, statement)}
        return await self._send_decision(scope, record_id, "reject", body)

    async def _send_decision(
        self, scope: str, record_id: str, decision: Literal["approve", "reject"], body: Mapping[str, Any]
    ) -> "Transition":
        response = await self._transport.request(
            "POST",
            f"{_ROUTE}/{quote_path_segment(record_id)}/{decision}",
            params={"scopeKey": scope},
            json=body,
            appends=True,
        )
        record: Transition = parse_json_reply(response)
        return record


def _list_changed_field_names(original: Mapping[str, Any], amended: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the properties that were changed, added or removed."""
    before, after = _encode_values_as_json(original), _encode_values_as_json(amended)
    return [name for name in {**original, **amended} if before.get(name) != after.get(name)]


def _encode_values_as_json(record: Mapping[str, Any]) -> Mapping[str, str]:
    # Equality in Python would not distinguish 1 from true.
    return {name: json.dumps(value, sort_keys=True) for name, value in record.items()}
