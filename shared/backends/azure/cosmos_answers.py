"""IdempotentReplies of requests with an idempotency key, in Cosmos DB; they expire by themselves."""

import base64
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import REQUESTS
from shared.backends.azure.cosmos_idempotency import UNAVAILABLE, WHAT, claim_item, claim_of, is_free
from shared.backends.azure.cosmos_state import CosmosState, Item
from shared.idempotency.keys import Claim
from shared.idempotency.replies import Begun
from shared.timestamps import rfc3339

_FREE: Final = {"lease": "", "leasedUntil": ""}


class CosmosAnswerStore:
    """The IdempotentReplyStore port over Cosmos DB.

    Args:
        account: where the container is.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._state = CosmosState(account, REQUESTS, UNAVAILABLE, WHAT)

    async def begin(
        self, name: str, wanted: Claim, lease: str, at: datetime, until: datetime, forget_before: datetime
    ) -> Begun:
        """Claim a name, or find it claimed."""

        def begun(before: Item | None) -> Item | None:
            free = before is None or is_free(before, forget_before)
            item: Item = claim_item(_id(name), wanted, at) | _FREE if free or before is None else before
            held = "answer" in item or item["leasedUntil"] >= rfc3339(at)
            if held or item["fingerprint"] != wanted.fingerprint:
                return None
            return item | {"lease": lease, "leasedUntil": rfc3339(until)}

        item = await self._state.change(_id(name), _id(name), begun)
        if item is None:
            # A name without an item is always claimed: somebody forgot it in between.
            return Begun(wanted, None, mine=False)
        answer = base64.b64decode(item["answer"]) if "answer" in item else None
        return Begun(claim_of(item), answer, mine=answer is None and item["lease"] == lease)

    async def renew(self, name: str, lease: str, until: datetime) -> None:
        """Make a lease last longer."""
        await self._held(name, lease, lambda item: item | {"leasedUntil": rfc3339(until)})

    async def finish(self, name: str, lease: str, answer: bytes) -> bool:
        """Keep the answer."""
        kept = {"answer": base64.b64encode(answer).decode()}
        return await self._held(name, lease, lambda item: item | kept)

    async def release(self, name: str, lease: str, *, forget: bool) -> None:
        """Give the lease up."""
        if not forget:
            await self._held(name, lease, lambda item: item | _FREE)
            return
        item = await self._state.read(_id(name), _id(name))
        if item is not None and item["lease"] == lease and "answer" not in item:
            await self._state.forget(_id(name), _id(name), etag=item["_etag"])

    async def _held(self, name: str, lease: str, change: Callable[[dict[str, Any]], Item]) -> bool:
        """Change an item while a lease on it is held; return whether it was."""
        held = False

        def changed(before: Item | None) -> Item | None:
            nonlocal held
            held = before is not None and before["lease"] == lease
            return change(before) if before is not None and held else None

        await self._state.change(_id(name), _id(name), changed)
        return held


def _id(name: str) -> str:
    return f"answer-{name}"
