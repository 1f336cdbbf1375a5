"""Tests of revocations in Cosmos DB while new tokens are added, and after interruptions."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.auth.access_events import AccessEvent
from shared.auth.ports import ApiKey, IssuedToken
from shared.backends.azure import cosmos_credentials
from shared.backends.azure.cosmos_credentials import ATTEMPTS, CosmosCredentialStore
from shared.backends.azure.cosmos_item_store import Item
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now
from tests.adapters.cosmos import KINDS, open_accounts

EVENT = AccessEvent("token-revoked-token0", "ann", "Token.Revoked", "Token", "token0")
KEY_EVENT = AccessEvent("key-revoked-AAAAAAAA", "ann", "ApiKey.Revoked", "ApiKey", "AAAAAAAA")


class StoreWithBusyClient(CosmosCredentialStore):
    """Store in which a client requests the next token with its newest one before each step of a revocation."""

    turns = 0

    async def _revoke_in_batches_and_find_event(
        self, key: str, tokens: Sequence[IssuedToken], at: datetime, event: AccessEvent | None
    ) -> AccessEvent | None:
        await self.add_token(build_token(self.turns + 1, f"token{self.turns}"))
        self.turns += 1
        return await super()._revoke_in_batches_and_find_event(key, tokens, at, event)


def build_token(number: int, parent: str = "") -> IssuedToken:
    """Return a token that expires in an hour."""
    return IssuedToken(f"token{number}", "ann", now() + timedelta(hours=1), parent)


async def test_a_revocation_ends_although_new_tokens_are_added_all_the_time() -> None:
    """A revocation searches a limited number of times, revokes all tokens that it has found, and stays pending."""
    async with open_accounts(KINDS[0]) as account:
        store = StoreWithBusyClient(account())
        await store.add_token(build_token(0))
        with pytest.raises(WorkspaceError) as caught:
            await store.revoke_token_and_find_pending_event("token0", now(), EVENT)
        assert await store.list_pending_events() == [EVENT]
        assert (caught.value.kind, store.turns) == (Kind.UNAVAILABLE, ATTEMPTS)
        assert (await store.load()).revoked_tokens == {f"token{number}" for number in range(ATTEMPTS)}


async def test_a_repeated_revocation_revokes_the_tokens_that_an_interrupted_one_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a process dies between the batches of a key's revocation, a repetition revokes the remaining tokens."""
    monkeypatch.setattr(cosmos_credentials, "MAX_OPERATIONS", 3)
    async with open_accounts(KINDS[0]) as account:
        store, other_process = CosmosCredentialStore(account()), CosmosCredentialStore(account())
        await store.add_or_get_key(ApiKey("AAAAAAAA", b"salt", b"digest", "ann", "", None, now(), None))
        for number, parent in enumerate(("AAAAAAAA", "token0", "AAAAAAAA")):
            await store.add_token(build_token(number, parent))
        put, batches = store._items.put_if_unchanged, 0

        async def die_before_third_batch(*batch: Any) -> Item | None:
            nonlocal batches
            batches += 1
            if batches == 3:
                raise asyncio.CancelledError
            return await put(*batch)

        monkeypatch.setattr(store._items, "put_if_unchanged", die_before_third_batch)
        with pytest.raises(asyncio.CancelledError):
            await store.revoke_key_and_find_pending_event("AAAAAAAA", now(), KEY_EVENT)
        assert len((await other_process.load()).revoked_tokens) == 2
        await other_process.revoke_key_and_find_pending_event("AAAAAAAA", now())
        assert (await other_process.load()).revoked_tokens == {"token0", "token1", "token2"}
        assert await other_process.list_pending_events() == [KEY_EVENT]
