"""HTTP operations on the whole audit log: list of all chains, and list of all pending amendments."""

import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field

from functions.provenance_queries import TargetName
from functions.reply_docs import audit_overview as replies
from shared.auth.rights import AccessRight
from shared.errors import ValidationErrors, build_invalid_field_error
from shared.http.messages import JSON, Reply, build_json_reply
from shared.http.operations import Call, Group
from shared.provenance.cursors import ListCursor, decode_cursor, encode_cursor
from shared.provenance.hash_rule import format_record_id
from shared.provenance.overview import DEFAULT_LIMIT, MAX_LIMIT, PendingPage, chain_summary_to_json
from shared.provenance.overview_ports import PendingPlace
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import record_to_json
from shared.text_formats.serialisation import serialise_json
from shared.validation.whole_numbers import parse_whole_number
from shared.wiring import services
from shared.wiring.features import PROVENANCE

GROUP = Group("audit-overview")

PENDING_CURSOR: Final = "pending"


def _build_chain_key(target: str, scope_key: str) -> ChainKey:
    return ChainKey(Target(target), scope_key)


_SCOPES_CURSOR: Final = ListCursor("scopes", (str, str), _build_chain_key, ("target", "verdict"))


def _parse_limit(text: Any) -> int:
    return parse_whole_number(text, MAX_LIMIT)


class PageQuery(BaseModel):
    """Query parameters that select a page of a list."""

    limit: Annotated[int, BeforeValidator(_parse_limit)] = Field(
        DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Maximum number of items."
    )
    cursor: str | None = Field(None, description="`cursor` of the previous page; the first page without it.")


class ScopesQuery(PageQuery):
    """Query parameters of the list of all audit chains."""

    target: TargetName = Field(None, description="Only chains of this container.")
    verdict: Literal["broken"] | None = Field(
        None, description="`broken`: only chains whose last verification in the background found a fault."
    )

    @property
    def cursor_filter_text(self) -> str:
        """Values of all filters as one text, such as ``DomainEvents broken``.

        The paging cursor contains this text, so that a cursor of a list with other filters is rejected.
        """
        return f"{self.target or ''} {self.verdict or ''}"


async def _check_scopes_query(call: Call[ScopesQuery], faults: ValidationErrors) -> None:
    target = call.query.target
    if target is not None and faults.has_valid_fields("target") and target not in set(Target):
        faults.add(build_invalid_field_error("target", f"must be one of {', '.join(Target)}", code="TARGET_UNKNOWN"))
    _SCOPES_CURSOR.add_cursor_error_if_invalid(faults, call.query.cursor, call.query.cursor_filter_text)


async def _check_pending_amendments_query(call: Call[PageQuery], faults: ValidationErrors) -> None:
    if faults.has_valid_fields("cursor"):
        with faults.collect_raised_error():
            parse_pending_amendments_cursor(call.query.cursor)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/scopes",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=ScopesQuery,
    check=_check_scopes_query,
    docs=replies.SCOPES_LISTED,
)
async def list_scopes(call: Call[ScopesQuery]) -> Reply:
    """Return the chains of the audit log with record counts and last verifications, sorted by target and scope."""
    query = call.query
    target = None if query.target is None else Target(query.target)
    after = _SCOPES_CURSOR.decode(query.cursor, query.cursor_filter_text)
    page = await services().provenance.overview.list_chains(
        target, after, query.limit, broken_only=query.verdict is not None
    )
    cursor = None
    if page.has_more:
        last = page.summaries[-1].chain
        cursor = _SCOPES_CURSOR.encode(query.cursor_filter_text, (str(last.target), last.scope_key))
    return build_json_reply(
        {"scopes": [chain_summary_to_json(summary) for summary in page.summaries], "cursor": cursor}
    )


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/pending",
    right=AccessRight.AMENDMENT_READ,
    feature=PROVENANCE,
    query=PageQuery,
    check=_check_pending_amendments_query,
    docs=replies.PENDING_LISTED,
)
async def list_pending_amendments(call: Call[PageQuery]) -> Reply:
    """Return the pending amendments of all audit chains, oldest first."""
    page = await services().provenance.overview.list_pending_amendments(
        parse_pending_amendments_cursor(call.query.cursor), call.query.limit
    )
    return Reply(
        200, await services().runtime.run_in_thread(_build_pending_amendments_json_body, page), {"Content-Type": JSON}
    )


def find_next_pending_amendments_cursor(page: PendingPage) -> str | None:
    """Return the cursor for the next page of pending amendments; None if there is no next page."""
    return encode_cursor(PENDING_CURSOR, page.places[-1]) if page.has_more else None


def serialise_pending_amendments_as_json(page: PendingPage) -> bytes:
    """Return a JSON array of the amendments of a page.

    A damaged amendment is represented by a placeholder object. This function adds the property ``ScopeKey`` to the
    object, because the placeholder does not contain the scope of the amendment's audit chain.
    """
    damaged = set(page.result.damaged)
    texts = []
    for record, place in zip(page.result.records, page.places, strict=True):
        text = record_to_json(record)
        if format_record_id(record.sequence) in damaged:
            # The placeholder of a damaged record does not contain the scope.
            text = serialise_json({**json.loads(text), "ScopeKey": place.scope_key})
        texts.append(text)
    return b"[%b]" % b",".join(texts)


def _build_pending_amendments_json_body(page: PendingPage) -> bytes:
    cursor = serialise_json(find_next_pending_amendments_cursor(page))
    return b'{"amendments":%b,"cursor":%b}' % (serialise_pending_amendments_as_json(page), cursor)


def parse_pending_amendments_cursor(cursor: str | None) -> PendingPlace | None:
    """Return the position of the previous page's last pending amendment, read from a cursor; None for the first page.

    Raises:
        WorkspaceError: INVALID if the cursor does not belong to this list.
    """
    if cursor is None:
        return None
    try:
        timestamp, scope_key, sequence = decode_cursor(PENDING_CURSOR, cursor, (str, str, int))
    except ValueError as error:
        raise build_invalid_field_error("cursor", str(error)) from error
    return PendingPlace(str(timestamp), str(scope_key), min(max(int(sequence), 0), 2**53))
