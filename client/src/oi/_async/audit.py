"""Audit log: append, query, export and verify its records, and get proofs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

import httpx

from oi._async.transport import AsyncTransport
from oi.instants import format_instant
from oi.requests import get_audit_header, parse_json_reply, require_no_ignored_parameters

if TYPE_CHECKING:
    from oi.models import AuditEvent, AuditScope, Checkpoint, InclusionProof, ListedSignature, Verdict

_ROUTE = "/oi-api/provenance"
_OPTIONAL_PROPERTIES = ("NodeID", "BeforeState", "AfterState", "Name", "Description")


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of the audit records that match a query.

    Attributes:
        records: records, newest first.
        has_more: True if further records match the query; this page does not contain them.
        target: name of the container whose audit chain was read.
        damaged: RecordIDs of damaged records of the page, at most 100; placeholders replace these records.
    """

    records: Sequence[dict[str, Any]]
    has_more: bool
    target: str
    damaged: Sequence[str] = ()

    @classmethod
    def from_response(cls, response: httpx.Response) -> Self:
        """Build a page from the reply of the service.

        Raises:
            InvalidRequestError: the service ignored a parameter of the request.
        """
        require_no_ignored_parameters(response)
        return cls(
            records=parse_json_reply(response),
            has_more=get_audit_header(response, "x-provenance-has-more") == "true",
            target=get_audit_header(response, "x-provenance-target"),
            damaged=_list_damaged_record_ids(response),
        )


@dataclass(frozen=True, slots=True)
class AuditExport:
    """Export file with the oldest audit records that match filters.

    Attributes:
        content: bytes of the file.
        has_more: True if further records match the filters; the file does not contain them.
        damaged: RecordIDs of damaged records of the file, at most 100; placeholders replace these records.
    """

    content: bytes
    has_more: bool
    damaged: Sequence[str] = ()


class AsyncAudit:
    """Audit log of the workspace: chains of records, in which each record contains the hash of the previous record."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def append(
        self,
        action_type: str,
        entity_type: str,
        entity_id: str,
        *,
        target: str | None = None,
        scope: str | None = None,
        **members: Any,
    ) -> "AuditEvent":
        """Append an audit event and return the stored record.

        The request has an ``Idempotency-Key``, so that a retry does not append the event a second time.

        Args:
            action_type: kind of the action, property ``ActionType``.
            entity_type: kind of the entity that the action concerns, property ``EntityType``.
            entity_id: id of this entity, property ``EntityID``.
            target: name of the container with the chain; if omitted, the service chooses it by `scope`.
            scope: part of the plant to which the event belongs, for instance ``line-1``; None for an event of the
                workspace.
            members: optional properties of the event: ``NodeID``, ``BeforeState``, ``AfterState``, ``Name``,
                ``Description``.

        Raises:
            SignInError: the API key belongs to a member that is a service and has no user identity.
            ValueError: `members` contains another property, which the service would not store.
        """
        for name in members:
            if name not in _OPTIONAL_PROPERTIES:
                known = ", ".join(_OPTIONAL_PROPERTIES)
                raise ValueError(f"{name!r} is not an optional property of an audit event; use one of: {known}")
        body = {"ActionType": action_type, "EntityType": entity_type, "EntityID": entity_id, **members}
        if scope is not None:
            body["ScopeKey"] = scope
        reply = await self._transport.request(
            "POST", f"{_ROUTE}/events", params={"target": target}, json=body, appends=True
        )
        record: AuditEvent = parse_json_reply(reply)
        return record

    async def query(
        self,
        *,
        target: str | None = None,
        scope: str | None = None,
        entity_type: str | None = None,
        action_type: str | None = None,
        user_id: str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> AuditPage:
        """Return the records that match all filters, newest first.

        Args:
            target: name of the container with the chain; if omitted, the service chooses it by `scope`.
            scope: scope whose events are returned; None for the events of the workspace.
            entity_type: return only records with this EntityType.
            action_type: return only records with this ActionType.
            user_id: return only records of this user.
            start: earliest time, inclusive.
            end: latest time, inclusive.
            from_sequence: lowest number of a record in its chain, inclusive.
            to_sequence: highest number of a record in its chain, inclusive.
            limit: maximum number of records, at most 1,000; 100 if omitted.
            offset: number of records to skip. Records that are appended meanwhile shift such pages, but not the
                content of a range from `from_sequence` to `to_sequence`.

        Raises:
            InvalidRequestError: a value is invalid, for instance a date that does not exist.
        """
        parameters = {
            **_build_filter_parameters(target, scope, entity_type, action_type, user_id, start, end),
            "fromSequence": from_sequence,
            "toSequence": to_sequence,
            "limit": limit,
            "offset": offset,
        }
        return AuditPage.from_response(
            await self._transport.request("GET", f"{_ROUTE}/events/query", params=parameters)
        )

    async def export(
        self,
        *,
        format: str = "json",  # noqa: A002  the name of the parameter of the service
        target: str | None = None,
        scope: str | None = None,
        entity_type: str | None = None,
        action_type: str | None = None,
        user_id: str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        limit: int | None = None,
    ) -> AuditExport:
        """Return an export file with the oldest matching records.

        Args:
            format: ``json`` or ``csv``.
            target: as in :meth:`query`.
            scope: as in :meth:`query`.
            entity_type: return only records with this EntityType.
            action_type: return only records with this ActionType.
            user_id: return only records of this user.
            start: earliest time, inclusive.
            end: latest time, inclusive.
            limit: maximum number of records, at most 100,000; 10,000 if omitted.

        Raises:
            InvalidRequestError: a value is invalid, for instance a date that does not exist.
        """
        parameters = {
            **_build_filter_parameters(target, scope, entity_type, action_type, user_id, start, end),
            "format": format,
            "limit": limit,
        }
        response = await self._transport.request("GET", f"{_ROUTE}/events/export", params=parameters, is_slow=True)
        require_no_ignored_parameters(response)
        return AuditExport(
            content=response.content,
            has_more=get_audit_header(response, "x-provenance-has-more") == "true",
            damaged=_list_damaged_record_ids(response),
        )

    async def verify(
        self, *, target: str | None = None, scope: str | None = None, record_id: str | None = None
    ) -> "Verdict":
        """Let the service verify a whole audit chain and, if requested, one record; return the service's result.

        Args:
            target: name of the container with the chain; if omitted, the service chooses it by `scope`.
            scope: scope of the chain; None for a chain of the workspace.
            record_id: RecordID (12 digits) of a record whose hash is computed again; None for no record.
        """
        body = {"ScopeKey": scope, "RecordID": record_id}
        reply = await self._transport.request(
            "POST",
            f"{_ROUTE}/events/verify",
            params={"target": target},
            json={name: value for name, value in body.items() if value is not None},
            reads=True,
            is_slow=True,
        )
        verdict: Verdict = parse_json_reply(reply)
        return verdict

    async def checkpoint(self, *, target: str | None = None, scope: str | None = None) -> "Checkpoint":
        """Return the newest signed checkpoint of an audit chain.

        Raises:
            NotFoundError: the chain has no checkpoint yet.
        """
        parameters = {"target": target, "scopeKey": scope}
        checkpoint: Checkpoint = await self._transport.get_json(f"{_ROUTE}/checkpoint", parameters)
        return checkpoint

    async def prove(
        self, sequence: int, *, size: int | None = None, target: str | None = None, scope: str | None = None
    ) -> "InclusionProof":
        """Return a Merkle proof that an audit chain contains a record.

        Args:
            sequence: number of the record in the chain, from 1.
            size: size of the checkpoint for which the record is proved; if omitted, that of the newest checkpoint.
            target: name of the container with the chain; if omitted, the service chooses it by `scope`.
            scope: scope of the chain; None for a chain of the workspace.

        Raises:
            InvalidRequestError: the chain has fewer records than `size`, or the record is newer than the checkpoint of
                this size.
            NotFoundError: `size` is omitted, and the chain has no checkpoint yet.
        """
        if size is None:
            checkpoint = await self.checkpoint(target=target, scope=scope)
            size = checkpoint["size"]
        parameters = {"target": target, "scopeKey": scope, "sequence": sequence, "size": size}
        proof: InclusionProof = await self._transport.get_json(f"{_ROUTE}/proof", parameters)
        return proof

    async def scopes(self, *, target: str | None = None) -> Sequence["AuditScope"]:
        """Return all audit chains, each with the number of its records and the result of its last verification.

        Args:
            target: name of the container whose chains are returned; all containers if omitted.
        """
        found: list[AuditScope] = []
        cursor: str | None = None
        while True:
            page = await self._transport.get_json(f"{_ROUTE}/scopes", {"target": target, "cursor": cursor})
            found += page["scopes"]
            cursor = page["cursor"]
            if cursor is None:
                return found

    async def signatures(
        self,
        *,
        user_id: str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
    ) -> Sequence["ListedSignature"]:
        """Return the electronic signatures of the workspace, newest first, for a periodic review.

        Args:
            user_id: return only signatures of this member.
            start: earliest time, inclusive.
            end: latest time, exclusive.
        """
        parameters = {"userId": user_id, "from": format_instant(start), "to": format_instant(end)}
        found: list[ListedSignature] = []
        cursor: str | None = None
        while True:
            page = await self._transport.get_json(f"{_ROUTE}/signatures", {**parameters, "cursor": cursor})
            found += page["signatures"]
            cursor = page["cursor"]
            if cursor is None:
                return found


def _list_damaged_record_ids(response: httpx.Response) -> list[str]:
    damaged = response.headers.get("x-provenance-damaged")
    return damaged.split(", ") if damaged else []


def _build_filter_parameters(
    target: str | None,
    scope: str | None,
    entity_type: str | None,
    action_type: str | None,
    user_id: str | None,
    start: datetime | str | None,
    end: datetime | str | None,
) -> dict[str, Any]:
    return {
        "target": target,
        "scopeKey": scope,
        "entityType": entity_type,
        "actionType": action_type,
        "userId": user_id,
        "startDate": format_instant(start),
        "endDate": format_instant(end),
    }
