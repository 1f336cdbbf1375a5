"""Tests of loading the public keys that verify tokens."""

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
    """Fake signing key; the test decides when its public keys are loaded, and whether this fails."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.let_go, self.waited_for = asyncio.Event(), asyncio.Event()
        self.fetch_count = 0
        self.down = False

    async def load_public_keys(self, *, reload: bool = False) -> Sequence[Mapping[str, Any]]:
        """Wait until the test continues, then return the public keys, or raise an error if the test has set it."""
        self.fetch_count += 1
        self.waited_for.set()
        await self.let_go.wait()
        if self.down:
            raise WorkspaceError(Kind.UNAVAILABLE, "SIGNING_KEY_UNAVAILABLE", "down")
        return await super().load_public_keys(reload=reload)


@pytest.fixture
async def slow_key(tmp_path: Path) -> SlowKey:
    """Return a signing key; the test decides when its public keys are loaded."""
    return SlowKey(tmp_path / "key.pem")


async def _build_token(slow_key: SlowKey) -> tuple[TokenCodec, str]:
    at = now()
    claims = Claims("id", "editor", "editor", "plant-a", frozenset(), at + timedelta(hours=1))
    return TokenCodec(slow_key, "issuer", "audience"), await TokenCodec(slow_key, "issuer", "audience").sign(claims, at)


async def test_concurrent_token_checks_share_one_load_of_the_keys(slow_key: SlowKey) -> None:
    """After the start, concurrent checks of tokens share one load of the public keys, and each token is verified."""
    codec, token = await _build_token(slow_key)
    verified = [asyncio.create_task(codec.verify(token)) for _ in range(8)]
    await slow_key.waited_for.wait()
    slow_key.let_go.set()
    assert {claims.token_id for claims in await asyncio.gather(*verified)} == {"id"}
    assert slow_key.fetch_count == 1


async def test_a_cancelled_load_of_the_keys_rejects_no_token(slow_key: SlowKey) -> None:
    """If the caller who loads the public keys is cancelled, a waiting caller loads them, and its token is verified."""
    codec, token = await _build_token(slow_key)
    cancelled, waiting = (asyncio.create_task(codec.verify(token)) for _ in range(2))
    await slow_key.waited_for.wait()
    cancelled.cancel()
    await asyncio.wait({cancelled})
    slow_key.let_go.set()
    assert (await waiting).token_id == "id"
    assert slow_key.fetch_count == 2


async def test_unavailable_keys_are_reported_as_unavailable(slow_key: SlowKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the public keys cannot be loaded, each caller gets UNAVAILABLE, and the number of attempts is limited."""
    codec, token = await _build_token(slow_key)
    slow_key.down = True
    slow_key.let_go.set()
    refused = await asyncio.gather(*(codec.verify(token) for _ in range(8)), return_exceptions=True)
    assert [getattr(error, "code", None) for error in refused] == ["SIGNING_KEY_UNAVAILABLE"] * 8
    assert slow_key.fetch_count == 1
    slow_key.down = False
    monkeypatch.setattr(tokens, "FETCH_SECONDS", -1.0)
    assert (await codec.verify(token)).token_id == "id"


async def test_unknown_key_ids_cause_one_load_of_the_keys_a_second(slow_key: SlowKey) -> None:
    """However many tokens have unknown key ids, the public keys are loaded at most once a second."""
    codec, token = await _build_token(slow_key)
    slow_key.let_go.set()
    await codec.verify(token)
    other = SlowKey(slow_key._path.with_name("other.pem"))
    _, foreign = await _build_token(other)
    for _ in range(5):
        with pytest.raises(WorkspaceError) as caught:
            await codec.verify(foreign)
        assert caught.value.kind is Kind.UNAUTHENTICATED
    assert slow_key.fetch_count == 1


async def _sign_token(slow_key: SlowKey, clock_lead: timedelta, lifetime: timedelta) -> str:
    """Return a token that a service instance signs whose clock is ahead by ``clock_lead``."""
    slow_key.let_go.set()
    claims = Claims("id", "editor", "editor", "plant-a", frozenset(), now() + lifetime)
    return await TokenCodec(slow_key, "issuer", "audience").sign(claims, now() + clock_lead)


async def test_a_token_of_an_instance_with_a_faster_clock_is_accepted(slow_key: SlowKey) -> None:
    """A service instance accepts a new token at once, even if the clock of the token's issuer is ahead."""
    token = await _sign_token(slow_key, timedelta(seconds=60), timedelta(hours=1))
    assert (await TokenCodec(slow_key, "issuer", "audience").verify(token)).token_id == "id"


@pytest.mark.parametrize(("lead", "left"), [(600, 3600), (0, -2), (0, -60)])
async def test_expired_and_future_tokens_are_rejected(slow_key: SlowKey, lead: int, left: int) -> None:
    """Expired tokens and tokens from ten minutes in the future are rejected in spite of the clock tolerance."""
    token = await _sign_token(slow_key, timedelta(seconds=lead), timedelta(seconds=left))
    with pytest.raises(WorkspaceError) as caught:
        await TokenCodec(slow_key, "issuer", "audience").verify(token)
    assert caught.value.kind is Kind.UNAUTHENTICATED
    assert ("expired" in caught.value.detail) == (left < 0)
