"""Ports of electronic signatures: refused attempts to sign, sign-ins that have signed, and the index of signatures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from shared.provenance.ports import ChainKey

type AttemptsJson = dict[str, Any]
"""JSON object of a member's refused attempts to sign (``MemberAttempts``)."""

type SignInUseJson = dict[str, Any]
"""JSON object of the use of a sign-in (``SignInUse``)."""

type Change[J] = Callable[[J | None], J | None]
"""Function from the stored JSON object (None if there is none) to the new object, or to None for no change.

It can be called several times. Its exceptions are raised to the caller, and nothing is changed.
"""


class SignatureStore(Protocol):
    """Store of the refused attempts of members to sign, and of the uses of sign-ins.

    The stored values are the JSON objects of ``MemberAttempts`` and ``SignInUse``. No concurrent change is lost.
    Methods raise ``WorkspaceError`` UNAVAILABLE, code ``SIGNATURES_UNAVAILABLE``, if the store does not respond.
    """

    async def find_refused_attempts(self, member_id: str) -> AttemptsJson | None:
        """Read the refused attempts of a member to sign; None if there are none."""
        ...

    async def change_refused_attempts(self, member_id: str, change: Change[AttemptsJson]) -> AttemptsJson | None:
        """Replace the stored refused attempts of a member by the result of ``change``, atomically.

        Return the stored attempts after the change; None if there are none. Their property ``pending`` is a list of
        lock-outs that are not reported yet.
        """
        ...

    async def list_attempts_with_unreported_lock_outs(self) -> Sequence[AttemptsJson]:
        """Return the refused attempts of each member who has a lock-out that is not reported yet.

        The property ``pending`` of the attempts lists these lock-outs. They must be reported to the audit log and to
        webhooks.
        """
        ...

    async def change_sign_in_use(
        self, sign_in_name: str, change: Change[SignInUseJson], at: datetime
    ) -> SignInUseJson | None:
        """Replace the stored use of a sign-in by the result of ``change``; return the stored use, or None without one.

        Args:
            sign_in_name: hash that identifies the sign-in.
            change: receives the stored use (None if there is none) and returns the new use, or None for no change. It
                can be called again after a concurrent change; its exceptions are raised to the caller.
            at: current time; uses that were last changed more than a day before may be deleted.
        """
        ...


@dataclass(frozen=True, slots=True)
class IndexedSignature:
    """Signature of a decision in the index of all signatures.

    Attributes:
        place: text by which the index is sorted; it begins with the time of the signature, and is unique.
        user_id: id of the member who signed.
        content: JSON object of the signature in replies.
    """

    place: str
    user_id: str
    content: Mapping[str, Any]


class IndexProgress(NamedTuple):
    """Last record up to which the signatures of a chain are indexed.

    Attributes:
        sequence: sequence number of the record; 0 if nothing is indexed.
        hash: ``Hash`` of the record. If the record with this number in the chain has another hash, the end of the chain
            was replaced.
    """

    sequence: int = 0
    hash: str = ""


@dataclass(frozen=True, slots=True)
class SignatureFilter:
    """Filter of the list of signatures.

    Attributes:
        user_id: id of the member who signed; None for all members.
        start: earliest time, inclusive, in the format of records; empty for no limit.
        end: latest time, exclusive; empty for no limit.
    """

    user_id: str | None = None
    start: str = ""
    end: str = ""


type RecordTime = str
"""Time in the format of records: RFC 3339 in UTC."""


class SignatureIndex(Protocol):
    """Index of all signatures of the workspace, derived from the audit chains.

    Methods raise ``WorkspaceError`` UNAVAILABLE, code ``SIGNATURES_UNAVAILABLE``, if the store does not respond.
    """

    async def read_index_end_time(self) -> RecordTime:
        """Return the time up to which the signatures of all chains are indexed; empty before the first complete run."""
        ...

    async def save_time_indexed_until(self, time: RecordTime) -> None:
        """Store the time up to which the signatures of all chains are indexed; do nothing if a later time is stored."""
        ...

    async def read_progress(self, chain: ChainKey) -> IndexProgress:
        """Return the record up to which a chain's signatures are indexed."""
        ...

    async def add_signatures(
        self, chain: ChainKey, signatures: Sequence[IndexedSignature], progress: IndexProgress
    ) -> None:
        """Add signatures of a chain, and then store ``progress``: the record up to which the chain is indexed.

        Adding the same signatures again changes nothing. Stored progress with a higher sequence number is not replaced.
        """
        ...

    async def remove_signatures(self, chain: ChainKey, progress: IndexProgress) -> None:
        """Remove all signatures of a chain and its progress from the index.

        Do nothing if the stored progress differs from ``progress``, because another process has changed it.
        """
        ...

    async def list_signatures(
        self, signature_filter: SignatureFilter, after_place: str, limit: int
    ) -> Sequence[IndexedSignature]:
        """Return the indexed signatures that match a filter, newest first.

        Args:
            signature_filter: conditions on the signatures.
            after_place: ``place`` of the last signature on the previous page; empty for the first page.
            limit: maximum number of signatures.
        """
        ...
