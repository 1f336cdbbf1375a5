"""When the public keys that tokens are verified with are fetched."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.auth import tokens
from shared.auth.tokens import Claims, TokenCodec
from shared.backends.embedded.key_files import FileSigningKey
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now


class SlowKey(FileSigningKey):
    """A key whose public half comes when the test lets it, or not at all."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.let_go, self.waited_for = asyncio.Event(), asyncio.Event()
        self.asked = 0
        self.down = False

    async def public_keys(self) -> Sequence[Mapping[str, Any]]:
        """Wait, and give the keys or fail."""
        self.asked += 1
        self.waited_for.set()
        await self.let_go.wait()
        if self.down:
            raise WorkspaceError(Kind.UNAVAILABLE, "SIGNING_KEY_UNAVAILABLE", "down")
        return await super().public_keys()


@pytest.fixture
async def key(tmp_path: Path) -> SlowKey:
    """A key of the test's own."""
    return SlowKey(tmp_path / "key.pem")


async def _token(key: SlowKey) -> tuple[TokenCodec, str]:
    at = now()
    claims = Claims("id", "editor", "editor", "plant-a", frozenset(), at + timedelta(hours=1))
    return TokenCodec(key, "issuer", "audience"), await TokenCodec(key, "issuer", "audience").sign(claims, at)


async def test_all_who_come_while_the_keys_are_fetched_are_verified(key: SlowKey) -> None:
    """After a start, tokens that arrive together wait for one fetch, and none of them is called invalid."""
    codec, token = await _token(key)
    verified = [asyncio.create_task(codec.verify(token)) for _ in range(8)]
    await key.waited_for.wait()
    key.let_go.set()
    assert {claims.token_id for claims in await asyncio.gather(*verified)} == {"id"}
    assert key.asked == 1


async def test_keys_that_cannot_be_had_are_no_bad_token(key: SlowKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the public keys are not to be had, every caller is told so, and the key's store is not asked by each."""
    codec, token = await _token(key)
    key.down = True
    key.let_go.set()
    refused = await asyncio.gather(*(codec.verify(token) for _ in range(8)), return_exceptions=True)
    assert [getattr(error, "code", None) for error in refused] == ["SIGNING_KEY_UNAVAILABLE"] * 8
    assert key.asked == 1
    key.down = False
    monkeypatch.setattr(tokens, "FETCH_SECONDS", -1.0)
    assert (await codec.verify(token)).token_id == "id"


async def test_unknown_keys_are_looked_for_once_a_second(key: SlowKey) -> None:
    """However many tokens name keys that are not published, the key's store is asked once."""
    codec, token = await _token(key)
    key.let_go.set()
    await codec.verify(token)
    other = SlowKey(key._path.with_name("other.pem"))
    _, foreign = await _token(other)
    for _ in range(5):
        with pytest.raises(WorkspaceError) as caught:
            await codec.verify(foreign)
        assert caught.value.kind is Kind.UNAUTHENTICATED
    assert key.asked == 1
