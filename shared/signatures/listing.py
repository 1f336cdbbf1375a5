"""List of all signatures of the workspace, and its index, which is derived from the audit chains.

A run of :meth:`SignatureList.try_index_new_signatures` adds the signatures of new records to the index. It also adds
signatures that interrupted runs have missed, and signatures that were stored before the index existed. Signatures of
records whose content does not match the stored hash are not added. If the end of a chain was replaced, for instance
after a repair, the signatures of the chain are indexed again.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from shared.catalog.query_hash import compute_query_hash
from shared.errors import Kind, WorkspaceError
from shared.provenance.decisions import parse_content_if_verified
from shared.provenance.hash_rule import format_record_id, is_record_time
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, Target, Tip
from shared.provenance.signatures import SIGNED_AT, SIGNED_EVENT, find_signature_in_content
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.signatures.ports import IndexedSignature, IndexProgress, SignatureFilter, SignatureIndex
from shared.timestamps import LONGEST_SETBACK, format_rfc3339, parse_rfc3339

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
INDEX_SECONDS: Final = 20.0
"""Seconds for which a request for the list may add signatures to the index."""
OVERLAP: Final = timedelta(minutes=2)
"""Time before the last run whose chains are read again, because the clocks of instances differ."""

_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000
_DECISIONS: Final[Mapping[Target, tuple[Mapping[str, str], ...]]] = {
    Target.DOMAIN_AMENDMENTS: ({"Status": "approved"}, {"Status": "rejected"}),
    Target.PLATFORM_CONFIG: (
        {"ActionType": "Catalog.WarmQuery.Approved"},
        {"ActionType": "Catalog.WarmQuery.Rejected"},
    ),
}
"""Filter fields of the records that can contain a signature, by the container of their chain."""

_MEMBERS: Final = {
    "userId": "UserID",
    "printedName": "PrintedName",
    "meaning": "Meaning",
    "statement": "Statement",
    "signedAt": "SignedAt",
    "authTime": "AuthTime",
    "authMethods": "AuthMethods",
    "recordHash": "RecordHash",
}
"""Properties of a query's signature, with the names that they have in records of amendments."""


@dataclass(frozen=True, slots=True)
class SignaturePage:
    """Page of signatures, newest first, and whether more signatures follow."""

    signatures: Sequence[IndexedSignature]
    has_more: bool


class SignatureList:
    """Lists the signatures of all decisions.

    Args:
        index: index of the signatures.
        chains: store of the audit chains.
        runtime: clock and threads.
    """

    def __init__(self, index: SignatureIndex, chains: ChainStore, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._index = index
        self._chains = chains
        self._runtime = runtime
        self._progress: dict[ChainKey, IndexProgress] = {}
        self._indexing = asyncio.Lock()

    async def list_signatures(self, signature_filter: SignatureFilter, after_place: str, limit: int) -> SignaturePage:
        """Add the signatures of new records to the index; return a page of the signatures, newest first.

        Args:
            signature_filter: conditions on the signatures.
            after_place: ``place`` of the last signature on the previous page; empty for the first page.
            limit: maximum number of signatures.

        Raises:
            WorkspaceError: UNAVAILABLE ``SIGNATURES_UNAVAILABLE`` while many existing records are added to the index;
                UNAVAILABLE if a store does not respond.
        """
        if not await self.try_index_new_signatures(INDEX_SECONDS):
            detail = "Signatures of existing records are being indexed; retry after the stated time."
            raise WorkspaceError(Kind.UNAVAILABLE, "SIGNATURES_UNAVAILABLE", detail, retryAfter=10)
        found = await self._index.list_signatures(signature_filter, after_place, limit + 1)
        return SignaturePage(found[:limit], len(found) > limit)

    async def try_index_new_signatures(self, max_seconds: float) -> bool:
        """Add the signatures of new records to the index; return False if the time limit was reached.

        Args:
            max_seconds: time limit in seconds.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond; the next run continues.
        """
        deadline = self._runtime.monotonic() + max_seconds
        try:
            async with asyncio.timeout(max_seconds):
                await self._indexing.acquire()
        except TimeoutError:
            return False
        try:
            return await self._try_index_until(deadline)
        finally:
            self._indexing.release()

    async def _try_index_until(self, deadline_seconds: float) -> bool:
        """Add the signatures of new records to the index; return False if the deadline was reached."""
        started = self._runtime.now()
        complete_to = await self._index.read_index_end_time()
        since = ""
        if complete_to:
            # The clocks may have been set back and forward since then, so a new record can have an earlier time.
            since = format_rfc3339(min(parse_rfc3339(complete_to), started) - LONGEST_SETBACK - OVERLAP)
        async for chain, tip in self._chains.iterate_tips(since, tuple(_DECISIONS)):
            if not await self._try_index_chain(chain, tip, deadline_seconds):
                return False
        if not complete_to or abs(started - parse_rfc3339(complete_to)) > OVERLAP / 4:
            # A write in each run would cost more than comparing a few chains again.
            await self._index.save_time_indexed_until(format_rfc3339(started))
        return True

    async def _try_index_chain(self, chain: ChainKey, tip: Tip, deadline_seconds: float) -> bool:
        """Add the signatures of a chain, up to its last record (tip), to the index.

        Return False if the deadline was reached before the last record. The deadline is a time of the monotonic clock.
        """
        last = IndexProgress(tip.sequence, tip.hash)
        if self._progress.get(chain) == last:
            return True
        progress = await self._index.read_progress(chain)
        if not await self._is_indexed_record_in_chain(chain, progress, last):
            await self._index.remove_signatures(chain, progress)
            progress = IndexProgress()
        while progress.sequence < last.sequence:
            if self._runtime.monotonic() > deadline_seconds:
                return False
            progress, found = await self._read_progress_and_signatures(chain, progress.sequence, last)
            await self._index.add_signatures(chain, found, progress)
        self._progress[chain] = last
        return True

    async def _is_indexed_record_in_chain(self, chain: ChainKey, progress: IndexProgress, last: IndexProgress) -> bool:
        """Return whether the last indexed record of a chain is unchanged; False if the chain's end was replaced.

        The result is also True if no record is indexed.

        Args:
            chain: key of the chain.
            progress: number and hash of the last indexed record.
            last: number and hash of the chain's last record.
        """
        if progress.sequence == 0 or progress == last:
            return True
        return list(await self._chains.read_hashes(chain, progress.sequence - 1, limit=1)) == [progress.hash]

    async def _read_progress_and_signatures(
        self, chain: ChainKey, after_sequence: int, last: IndexProgress
    ) -> tuple[IndexProgress, list[IndexedSignature]]:
        """Find the signatures in the next records of a chain, at most in as many as fit on one page.

        Args:
            chain: chain to search.
            after_sequence: sequence number of the record after which the search begins.
            last: last record to search.

        Returns:
            The last record that was searched, and the signatures that were found.
        """
        end = last
        records: list[ChainRecord] = []
        for equal in _DECISIONS[chain.target]:
            filters = Filters(equal=equal, from_sequence=after_sequence + 1, to_sequence=end.sequence)
            page = await self._chains.scan(
                chain, filters, newest_first=False, limit=_PAGE_RECORDS, max_bytes=_PAGE_BYTES
            )
            records += page.records
            if page.more:
                end = IndexProgress(page.records[-1].sequence, page.records[-1].hash)
        found = await self._runtime.run_in_thread(_parse_signatures, chain, records)
        return end, found


def _parse_signatures(chain: ChainKey, records: Sequence[ChainRecord]) -> list[IndexedSignature]:
    return list(_iterate_signatures(chain, records))


def _iterate_signatures(chain: ChainKey, records: Sequence[ChainRecord]) -> Iterator[IndexedSignature]:
    digest = hashlib.sha256(f"{chain.target}\n{chain.scope_key}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    for record in records:
        if chain.target is Target.PLATFORM_CONFIG and not record.append_id.startswith(SIGNED_EVENT):
            # A member can write an event that looks like a signed decision.
            continue
        content = parse_content_if_verified(record)
        signature = None if content is None else find_signature(chain.target, content)
        if signature is None:
            continue
        record_id = format_record_id(record.sequence)
        place = f"{signature[SIGNED_AT]} {digest} {record_id}"
        row = {
            **signature,
            "target": str(chain.target),
            "scopeKey": chain.scope_key or None,
            "recordID": record_id,
        }
        yield IndexedSignature(place, str(signature["UserID"]), row)


def find_signature(target: Target, content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the signature in a decision's record; None if the record has no signature, or an incomplete one.

    The properties of the returned signature have the names that records of amendments use, for example ``UserID``. The
    properties of a signed decision about a query are renamed to these names.

    Args:
        target: target (kind) of the decision's chain.
        content: content of the decision's record.
    """
    if target is Target.DOMAIN_AMENDMENTS:
        signed = find_signature_in_content(content) if "AmendmentID" in content else None
        return signed if signed is not None and _is_complete_signature(signed) else None
    state = content.get("AfterState")
    if content.get("EntityType") != "WarmQuery" or not isinstance(state, dict):
        return None
    name = "approval" if str(content.get("ActionType")).endswith(".Approved") else "rejection"
    decision = state.get(name)
    signature = decision.get("signature") if isinstance(decision, dict) else None
    if not isinstance(signature, dict) or signature.keys() != _MEMBERS.keys():
        return None
    renamed = {_MEMBERS[each]: value for each, value in signature.items()}
    is_own = renamed["UserID"] == content.get("UserID") and _is_hash_of_query_state(renamed["RecordHash"], state)
    return renamed if is_own and _is_complete_signature(renamed) else None


def _is_complete_signature(signature: Mapping[str, Any]) -> bool:
    """Return whether a signature has all properties, and a time in the format of records."""
    is_named = signature.keys() == set(_MEMBERS.values()) and isinstance(signature["UserID"], str)
    return is_named and isinstance(signature[SIGNED_AT], str) and is_record_time(signature[SIGNED_AT])


def _is_hash_of_query_state(record_hash: object, state: Mapping[str, Any]) -> bool:
    """Return whether ``record_hash`` is the hash of the query definition ``state``; False for a damaged definition."""
    try:
        return record_hash == compute_query_hash(state)
    except (LookupError, WorkspaceError):
        return False
