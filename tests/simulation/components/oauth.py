"""OAuth component: families of refresh tokens, clients that use tokens correctly, and thieves that reuse old tokens."""

import asyncio
import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.simulation.chains import read_chains
from tests.simulation.client import TRANSIENT, send_until_final
from tests.simulation.component import Component
from tests.simulation.scheduler import MICROSECONDS
from tests.simulation.world import ApiReply, ConnectionLostError, World

_CLIENT: Final = "dashboard"
_CALLBACK: Final = "http://127.0.0.1/callback"
_SCOPE: Final = "Workspace.Catalog.Read"
_VERIFIER: Final = "v" * 43
_CHALLENGE: Final = urlsafe_b64encode(hashlib.sha256(_VERIFIER.encode()).digest()).rstrip(b"=").decode()
_HOST: Final = {"host": "localhost:7071"}
_FORM: Final = {**_HOST, "content-type": "application/x-www-form-urlencoded"}
_IN_FORCE: Final = 15 * MICROSECONDS
"""Time after which a revocation is in force everywhere, as the documentation says."""

_COMPLETED_SECONDS: Final = 400
"""Seconds in which the background job completes an end of a family that a dead process began."""

_CERTAIN_LIFE: Final = 1_800 * MICROSECONDS
"""Time for which an access token works; it is half of its lifetime."""


@dataclass
class _Token:
    """Access token with the time of its issue, and the shift of the simulated clocks at that time."""

    text: str
    made_at: int
    clock_shift: timedelta


@dataclass
class _Family:
    """Tokens that descend from one consent of a member, as far as the client received them.

    Attributes:
        newest: newest refresh token that the client received.
        old: refresh tokens that a later received token replaces.
        access: access tokens that the client received.
        may_end: whether a request was sent that possibly ended the family.
        is_refused: whether a refresh was rejected, after which none may succeed.
        ended_at: time at which a request that ends the family was answered; None if there was none.
    """

    newest: str
    old: list[str] = field(default_factory=list)
    access: list[_Token] = field(default_factory=list)
    may_end: bool = False
    is_refused: bool = False
    ended_at: int | None = None

    @property
    def grant(self) -> str:
        """Id of the family's grant."""
        return self.newest.split("_")[1]


class OAuthComponent(Component):
    """Members consent to a client that refreshes and uses tokens; thieves use old tokens; clients revoke tokens.

    Invariants: a refresh token has one successor; an old one is rejected, and ends its family; a family that nothing
    may have ended can be refreshed; its access tokens work; no refresh succeeds after a rejected one; the access tokens
    of an ended family are rejected after the documented delay; each acknowledged token has one event, and a family has
    one event of its end exactly if it has ended.
    """

    name: ClassVar[str] = "oauth"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/oauth/authorization.py",
        "shared/oauth/grant_service.py",
        "shared/oauth/grant_ending.py",
        "shared/oauth/revocation.py",
        "shared/auth/issuer.py",
        "shared/backends/embedded/grants.py",
        "shared/backends/embedded/credentials.py",
        "functions/oauth.py",
        "functions/oauth_consent.py",
    )
    background_jobs: ClassVar[tuple[str, ...]] = ("oauth-grants",)
    settle_seconds: ClassVar[int] = 900
    weight: ClassVar[int] = 6
    cosmos_weight: ClassVar[int] = 6

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._families: list[_Family] = []

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients of several token families, and thieves."""
        choices = self.world.random
        for member in choices.sample(("ann@t", "bob@t", "eve@t"), choices.randint(1, 3)):
            yield self._use_family_often(member, choices.randint(1, 8))
        for _ in range(choices.randint(0, 2)):
            yield self._attack_families(choices.randint(1, 4))

    async def _use_family_often(self, member: str, count: int) -> None:
        """Start a token family, then refresh and use its tokens repeatedly."""
        family = await self._sign_in(member)
        for _ in range(count if family is not None else 0):
            assert family is not None
            await self.world.sleep(self.world.random.random() * 10)
            if self.world.random.random() < 0.5:
                await self._refresh_family(family)
            await self._use_access_token(family, self.world.random.choice(family.access))

    async def _attack_families(self, count: int) -> None:
        """Attack a token family: reuse an old refresh token, send the newest one twice at once, or revoke it."""
        for _ in range(count):
            await self.world.sleep(self.world.random.random() * 30)
            if not self._families:
                continue
            family = self.world.random.choice(self._families)
            action = self.world.random.random()
            if action < 0.4 and family.old:
                await self._reuse_token(family, self.world.random.choice(family.old))
            elif action < 0.6:
                family.may_end = True
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._refresh_family(family))
                    group.create_task(self._refresh_family(family))
            elif action < 0.8:
                await self._revoke_family(family)

    async def _sign_in(self, member: str) -> _Family | None:
        request = {
            "response_type": "code",
            "client_id": _CLIENT,
            "redirect_uri": _CALLBACK,
            "scope": _SCOPE,
            "code_challenge": _CHALLENGE,
            "code_challenge_method": "S256",
        }
        body = {**request, "approve": True, "scopes": [_SCOPE]}
        consent = await send_until_final(self.world, member, "POST", "oauth2/authorize", body, headers=_HOST)
        if consent is None:
            return None
        self.world.require(consent.status == 200, f"the consent got {consent.status} {consent.reply.body!r}")
        code = parse_qs(urlsplit(consent.json["redirectTo"]).query)["code"][0]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": _CLIENT,
            "redirect_uri": _CALLBACK,
            "code_verifier": _VERIFIER,
        }
        made_at, shift = self.world.scheduler.now, self.world.clock_shift
        reply = await self._send_form("oauth2/token", form)
        if reply is None or reply.status != 200:
            return None
        family = _Family(reply.json["refresh_token"])
        family.access.append(_Token(reply.json["access_token"], made_at, shift))
        self._families.append(family)
        return family

    async def _send_form(self, path: str, form: Mapping[str, str]) -> ApiReply | None:
        """Send a form once; return None if no final reply arrives."""
        try:
            reply = await self.world.send("", "POST", path, urlencode(form).encode(), _FORM)
        except ConnectionLostError:
            return None
        return None if reply.status in TRANSIENT else reply

    async def _send_refresh(self, token: str) -> ApiReply | None:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": _CLIENT}
        return await self._send_form("oauth2/token", form)

    async def _refresh_family(self, family: _Family) -> None:
        token, was_refused = family.newest, family.is_refused
        made_at, shift = self.world.scheduler.now, self.world.clock_shift
        reply = await self._send_refresh(token)
        if reply is None:
            # The token may be used, so that a repeat is a reuse.
            family.may_end = True
        elif reply.status == 200:
            self.world.require(not was_refused, "a refresh succeeds after a rejected one")
            self.world.require(token not in family.old, "a refresh token has two successors")
            family.old.append(token)
            family.newest = reply.json["refresh_token"]
            family.access.append(_Token(reply.json["access_token"], made_at, shift))
        else:
            self._check_refusal(reply)
            self.world.require(family.may_end, "a refresh was rejected, but nothing ended the family")
            family.is_refused = True

    def _check_refusal(self, reply: ApiReply) -> None:
        is_expected = reply.status == 400 and reply.json.get("error") == "invalid_grant"
        self.world.require(is_expected, f"a refresh was answered by {reply.status} {reply.reply.body!r}")

    async def _reuse_token(self, family: _Family, token: str) -> None:
        family.may_end = True
        reply = await self._send_refresh(token)
        if reply is not None:
            self.world.require(reply.status != 200, "an old refresh token was accepted")
            self._check_refusal(reply)
            self._record_family_end(family)

    async def _revoke_family(self, family: _Family) -> None:
        family.may_end = True
        reply = await self._send_form("oauth2/revoke", {"token": family.newest, "client_id": _CLIENT})
        if reply is not None:
            self.world.require(reply.status == 200, f"a revocation got {reply.status} {reply.reply.body!r}")
            self._record_family_end(family)

    def _record_family_end(self, family: _Family) -> None:
        family.is_refused = True
        if family.ended_at is None:
            family.ended_at = self.world.scheduler.now

    async def _use_access_token(self, family: _Family, token: _Token) -> bool | None:
        """Use an access token; return whether it is accepted, or None if no final reply arrives."""
        sent_at, ended_at = self.world.scheduler.now, family.ended_at
        headers = {"authorization": f"Bearer {token.text}"}
        try:
            reply = await self.world.send("", "GET", "oi-api/workspace", headers=headers)
        except ConnectionLostError:
            return None
        if reply.status == 200:
            is_late = ended_at is not None and sent_at > ended_at + _IN_FORCE
            self.world.require(not is_late, "an access token works although its family has ended")
        elif reply.status == 401:
            is_certain = sent_at < token.made_at + _CERTAIN_LIFE and self.world.clock_shift == token.clock_shift
            self.world.require(family.may_end or not is_certain, "an access token of an active family is rejected")
        return None if reply.status in TRANSIENT else reply.status == 200

    async def complete_work(self) -> None:
        """Refresh each token family once more; after all documented delays, use each access token."""
        for family in self._families:
            while (reply := await self._send_refresh(family.newest)) is None:
                await self.world.sleep(1)
            if reply.status == 200:
                self.world.require(not family.is_refused, "a refresh succeeds after a rejected one")
                self.world.require(family.newest not in family.old, "a refresh token has two successors")
                family.newest = reply.json["refresh_token"]
            else:
                self._check_refusal(reply)
                self.world.require(family.may_end, "a refresh was rejected, but nothing ended the family")
                family.is_refused = True
        await self.world.sleep(_COMPLETED_SECONDS)
        for family in self._families:
            for token in family.access:
                while (works := await self._use_access_token(family, token)) is None:
                    await self.world.sleep(1)
                is_wrong = works and family.is_refused
                self.world.require(not is_wrong, "an access token of a refused family still works")

    def check_invariants(self, folder: Path) -> None:
        """Check the audit events about issued tokens and ended grants."""
        events = Counter(
            (record["ActionType"], record["EntityID"])
            for record in read_chains(self.world, folder)
            if record["Chain"] == "AccessControl/"
        )
        for family in self._families:
            ends = events["Grant.Ended", family.grant]
            self.world.require(ends == family.is_refused, f"grant {family.grant} has {ends} events of its end")
            for token in family.access:
                issued = events["Token.Issued", _read_token_id(token.text)]
                self.world.require(issued == 1, f"an access token has {issued} events of its issue")


def _read_token_id(token: str) -> str:
    content = token.split(".")[1]
    return str(json.loads(urlsafe_b64decode(content + "=" * (-len(content) % 4)))["jti"])
