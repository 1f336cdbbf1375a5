"""Use of sign-ins for signatures. If the policy has ``maxAgeSeconds`` 0, a sign-in can sign only one decision.

The use of a sign-in is stored before the decision, with the id under which the decision is appended. If the process
ends in between, this id shows whether the decision was appended.

The process may also just be slow, or the clocks of two hosts differ, and its decision can still be appended. So another
decision never takes over an abandoned sign-in: the person must sign in again. Waiting until no append of the first
decision can be running would not help, because the sign-in would then be too old.
"""

import hashlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from shared.auth.reauthentication import build_reauthentication_error
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ChainKey, Target
from shared.runtime import Runtime
from shared.signatures.ports import SignatureStore
from shared.timestamps import format_rfc3339, parse_rfc3339

SIGNATURE_TOKEN_USED: Final = "SIGNATURE_TOKEN_USED"  # noqa: S105  an error code
LEASE: Final = timedelta(seconds=30)
"""Time after which an unfinished use of a sign-in counts as abandoned, because its process has died."""


@dataclass(frozen=True, slots=True)
class SignInUse:
    """Record that a sign-in was used to sign a decision.

    Attributes:
        append_id: id under which the decision is appended; empty if the sign-in may sign another decision.
        chain: key of the audit chain of the decision.
        leased_until: time until which the decision may still be appended.
        is_decided: True if the decision was appended.
    """

    append_id: str
    chain: ChainKey
    leased_until: datetime
    is_decided: bool = False

    def to_json(self) -> dict[str, Any]:
        """Convert this use of a sign-in to JSON values, as the store contains them."""
        return {
            "appendId": self.append_id,
            "target": str(self.chain.target),
            "scopeKey": self.chain.scope_key,
            "leasedUntil": format_rfc3339(self.leased_until),
            "isDecided": self.is_decided,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Parse the record that a sign-in was used to sign a decision, from the JSON values in the store."""
        chain = ChainKey(Target(value["target"]), value["scopeKey"])
        return cls(value["appendId"], chain, parse_rfc3339(value["leasedUntil"]), value["isDecided"])


class SignInBusyError(WorkspaceError):
    """Error CONFLICT ``SIGNATURE_TOKEN_USED``: another decision is possibly being signed with the sign-in.

    The error has ``retryAfter``. After a crash, the outcome of the other decision is known when its lease has ended.
    The error does not count as a refused attempt, because the caller is possibly repeating an interrupted request.

    Args:
        remaining: time until the lease of the other decision ends.
    """

    def __init__(self, remaining: timedelta) -> None:
        seconds = math.ceil(remaining.total_seconds())
        detail = (
            f"Another decision is being signed with this sign-in, or was interrupted; retry in {seconds} seconds, "
            "or sign in again."
        )
        super().__init__(Kind.CONFLICT, SIGNATURE_TOKEN_USED, detail, retryAfter=seconds)


type IsDecisionAppended = Callable[[ChainKey, str], Awaitable[bool]]
"""Function that returns whether a decision with this append id was appended to a chain."""


class SignInRegistry:
    """Records the uses of sign-ins for signatures, so that a sign-in signs only one decision.

    Args:
        store: storage of the uses.
        is_appended: returns whether a decision was appended.
        runtime: clock.
    """

    def __init__(self, store: SignatureStore, is_appended: IsDecisionAppended, *, runtime: Runtime) -> None:
        self._store = store
        self._is_appended = is_appended
        self._runtime = runtime

    async def reserve_sign_in(self, sign_in_name: str, append_id: str, chain: ChainKey) -> None:
        """Reserve a sign-in for one decision, before this decision is appended.

        Args:
            sign_in_name: name of the sign-in, from :func:`build_sign_in_name`.
            append_id: id under which the decision is appended.
            chain: key of the audit chain of the decision.

        Raises:
            SignInBusyError: another decision is possibly being signed with the sign-in.
            WorkspaceError: CONFLICT ``SIGNATURE_TOKEN_USED`` if another decision has used the sign-in; UNAUTHENTICATED
                ``REAUTHENTICATION_REQUIRED`` if the sign-in is reserved for an abandoned decision.
        """
        at = self._runtime.now()
        use = SignInUse(append_id, chain, at + LEASE)
        stored = await self._change_sign_in_use(sign_in_name, _build_reservation_function(use))
        if stored is None or stored.append_id == append_id:
            return
        await self._reject_use_of_decision(sign_in_name, stored)
        if stored.leased_until > at:
            raise SignInBusyError(stored.leased_until - at)
        raise build_reauthentication_error(0, "After an interrupted decision, another one")

    async def _reject_use_of_decision(self, sign_in_name: str, stored: SignInUse) -> None:
        """Raise an error if the decision of a stored use of a sign-in was appended."""
        if stored.is_decided:
            raise build_sign_in_used_error()
        if await self._is_appended(stored.chain, stored.append_id):
            await self.mark_sign_in_used(sign_in_name, stored.append_id, stored.chain)
            raise build_sign_in_used_error()

    async def confirm_and_extend_reservation(self, sign_in_name: str, append_id: str) -> None:
        """Check that a sign-in is still reserved for the decision, and extend the reservation.

        Call this directly before the decision is appended.

        Raises:
            WorkspaceError: CONFLICT ``SIGNATURE_TOKEN_USED`` if another decision has used the sign-in meanwhile.
        """
        until = self._runtime.now() + LEASE

        def extend_reservation(known: SignInUse | None) -> SignInUse:
            if known is None or known.append_id != append_id:
                raise build_sign_in_used_error()
            return replace(known, leased_until=until)

        await self._change_sign_in_use(sign_in_name, extend_reservation)

    async def mark_sign_in_used(self, sign_in_name: str, append_id: str, chain: ChainKey) -> None:
        """Mark a sign-in as used, because the decision that it signed was appended."""
        use = SignInUse(append_id, chain, self._runtime.now(), is_decided=True)
        await self._change_sign_in_use(sign_in_name, lambda _: use)

    async def release_reservation_unless_appended(self, sign_in_name: str, append_id: str, chain: ChainKey) -> None:
        """Allow a sign-in to sign again after an error, unless an earlier attempt has appended its decision."""
        if not await self._is_appended(chain, append_id):
            await self.release_reservation(sign_in_name, append_id)

    async def release_reservation(self, sign_in_name: str, append_id: str) -> None:
        """Allow a sign-in to sign again, because the decision for which it was reserved was not appended."""

        def clear_reservation(known: SignInUse | None) -> SignInUse | None:
            is_own = known is not None and known.append_id == append_id and not known.is_decided
            return replace(known, append_id="") if known is not None and is_own else None

        await self._change_sign_in_use(sign_in_name, clear_reservation)

    async def _change_sign_in_use(
        self, sign_in_name: str, change: Callable[[SignInUse | None], SignInUse | None]
    ) -> SignInUse | None:
        """Change the stored use of a sign-in; return the stored use after the change, or None if there is none."""

        def change_use_json(value: dict[str, Any] | None) -> dict[str, Any] | None:
            after = change(None if value is None else SignInUse.from_json(value))
            return None if after is None else after.to_json()

        stored = await self._store.change_sign_in_use(sign_in_name, change_use_json, self._runtime.now())
        return None if stored is None else SignInUse.from_json(stored)


def _build_reservation_function(use: SignInUse) -> Callable[[SignInUse | None], SignInUse | None]:
    """Build the function that reserves a sign-in for a decision: it maps the stored use of the sign-in to ``use``.

    The built function returns None, so that the stored use does not change, if another decision has the reservation.
    """
    return lambda known: use if known is None or known.append_id in ("", use.append_id) else None


def build_sign_in_name(member_id: str, sign_in_id: str, at: datetime) -> str:
    """Return the name (a hash) under which the use of a member's sign-in is stored.

    Args:
        member_id: id of the member.
        sign_in_id: id of the sign-in; empty if it has none.
        at: time of the sign-in, which identifies a sign-in without an id.
    """
    return hashlib.sha256(f"{member_id}\n{sign_in_id or format_rfc3339(at)}".encode()).hexdigest()


def build_sign_in_used_error() -> WorkspaceError:
    """Build the error for a sign-in that was already used to sign another decision."""
    detail = "This sign-in has signed another decision already; sign in again for each signature."
    return WorkspaceError(Kind.CONFLICT, SIGNATURE_TOKEN_USED, detail)
