"""Tests of revocations in Cosmos DB while new tokens are added."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from shared.auth.access_events import AccessEvent
from shared.auth.ports import IssuedToken
from shared.backends.azure.cosmos_credentials import ATTEMPTS, CosmosCredentialStore
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now
from tests.adapters.cosmos import KINDS, open_accounts

EVENT = AccessEvent("token-revoked-token0", "ann", "Token.Revoked", "Token", "token0")


class StoreWithBusyClient(CosmosCredentialStore):
    """Store in which a client requests the next token with its newest one before each step of a revocation."""

    turns = 0

    async def _revoke_key_and_tokens(
        self, key: str, tokens: Sequence[IssuedToken], at: datetime, event: AccessEvent | None
    ) -> AccessEvent | None:
        await self.add_token(build_token(self.turns + 1, f"token{self.turns}"))
        self.turns += 1
        return await super()._revoke_key_and_tokens(key, tokens, at, event)


def build_token(number: int, parent: str = "") -> IssuedToken:
    """Return a token that expires in an hour."""
    return IssuedToken(f"token{number}", "ann", now() + timedelta(hours=1), parent)


async def test_a_revocation_ends_although_new_tokens_are_added_all_the_time() -> None:
    """A revocation searches a limited number of times, revokes all tokens that it has found, and stays pending."""
    async with open_accounts(KINDS[0]) as account:
        store = StoreWithBusyClient(account())
        await store.add_token(build_token(0))
        with pytest.raises(WorkspaceError) as caught:
            await store.revoke_token("token0", now(), EVENT)
        assert await store.list_pending_events() == [EVENT]
        assert (caught.value.kind, store.turns) == (Kind.UNAVAILABLE, ATTEMPTS)
        assert (await store.load()).revoked_tokens == {f"token{number}" for number in range(ATTEMPTS)}
