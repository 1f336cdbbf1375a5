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

_COMPLETED_SECONDS: Final = 640
"""Seconds in which the background job completes an end of a family that a dead process began.

The job runs every 300 seconds; if the clocks were set back, it runs up to 300 seconds later.
"""

_CERTAIN_LIFE: Final = 1_800 * MICROSECONDS
"""Time for which an access token works; it is half of its lifetime."""


@dataclass
class _Token:
    """Access token with the time of its issue, and the shift of the simulated clocks at that time.

    Attributes:
        text: the token.
        made_at: time before its issue.
        clock_shift: shift of the simulated clocks at that time.
        may_be_revoked: whether a request to revoke the token was sent.
        revoked_at: time at which the client knew that the token is revoked; None if it is not known.
    """

    text: str
    made_at: int
    clock_shift: timedelta
    may_be_revoked: bool = False
    revoked_at: int | None = None

    @property
    def token_id(self) -> str:
        """Id of the token."""
        content = self.text.split(".")[1]
        return str(json.loads(urlsafe_b64decode(content + "=" * (-len(content) % 4)))["jti"])


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
        consent_token: token with which the member consented; None for the member's usual token.
    """

    newest: str
    old: list[str] = field(default_factory=list)
    access: list[_Token] = field(default_factory=list)
    may_end: bool = False
    is_refused: bool = False
    ended_at: int | None = None
    consent_token: _Token | None = None

    @property
    def is_revocation_uncertain(self) -> bool:
        """Whether the member sent a revocation of the consent's token, and got no reply that it is revoked."""
        token = self.consent_token
        return token is not None and token.may_be_revoked and token.revoked_at is None

    @property
    def grant(self) -> str:
        """Id of the family's grant."""
        return self.newest.split("_")[1]


class OAuthComponent(Component):
    """Members consent to a client that refreshes and uses tokens; thieves use old tokens; clients revoke tokens.

    Other clients use API keys. Members list and end their grants.

    Invariants: a refresh token has one successor; an old one is rejected, and ends its family; a family that nothing
    may have ended can be refreshed; its access tokens work; no refresh succeeds after a rejected one; the access tokens
    of an ended family and revoked tokens are rejected after the documented delay; each acknowledged token has one
    event, and a family has one event of its end exactly if it has ended; a list of grants has every active family once,
    and no ended one; a code gives one family; a family ends if the token of its consent is revoked, also if the member
    consented during the revocation.
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
    settle_seconds: ClassVar[int] = 2_000
    weight: ClassVar[int] = 10
    cosmos_weight: ClassVar[int] = 8

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._families: list[_Family] = []
        self._tokens_of_keys: list[_Token] = []

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients of several token families, and thieves."""
        choices = self.world.random
        for member in choices.sample(("ann@t", "bob@t", "eve@t"), choices.randint(1, 3)):
            yield self._use_family_often(member, choices.randint(1, 8))
        for _ in range(choices.randint(0, 2)):
            yield self._attack_families(choices.randint(1, 4))
        if choices.random() < 0.3:
            yield self._use_api_key(choices.randint(1, 3))

    async def _use_family_often(self, member: str, count: int) -> None:
        """Start a token family, then refresh and use its tokens repeatedly."""
        choices = self.world.random
        consent_token = await self._mint_token(member) if choices.random() < 0.2 else None
        family = await self._sign_in(member, consent_token)
        for _ in range(count if family is not None else 0):
            assert family is not None
            await self.world.sleep(choices.random() * 10)
            if choices.random() < 0.5:
                await self._refresh_family(family)
            await self._use_access_token(family, choices.choice(family.access))
            action = choices.random()
            if action < 0.1:
                await self._list_grants(member)
            elif action < 0.15:
                await self._revoke_access_token(family, choices.choice(family.access))
        if family is not None and consent_token is not None and choices.random() < 0.5:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._revoke_consent_token(member, family, consent_token))
                if choices.random() < 0.5:
                    group.create_task(self._sign_in(member, consent_token))
            # A process that does not know the revocation yet accepts the token.
            await self._sign_in(member, consent_token)

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
            elif action < 0.9:
                await self._end_grant(family)

    async def _mint_token(self, member: str) -> _Token | None:
        """Issue a token of a member for a consent."""
        made_at, shift = self.world.scheduler.now, self.world.clock_shift
        reply = await send_until_final(self.world, member, "GET", "workspace/api/keys/jwt")
        if reply is None:
            return None
        self.world.require(reply.status == 200, f"a new token got {reply.status} {reply.reply.body!r}")
        return _Token(reply.json["Token"], made_at, shift)

    async def _sign_in(self, member: str, consent_token: _Token | None) -> _Family | None:
        """Consent to the client, and redeem the authorization code; sometimes redeem it twice."""
        choices = self.world.random
        request = {
            "response_type": "code",
            "client_id": _CLIENT,
            "redirect_uri": _CALLBACK,
            "scope": _SCOPE,
            "code_challenge": _CHALLENGE,
            "code_challenge_method": "S256",
        }
        if choices.random() < 0.2:
            await self._ask_for_consent(member, request)
        body = {**request, "approve": True, "scopes": [_SCOPE]}
        headers = _HOST if consent_token is None else {**_HOST, "authorization": f"Bearer {consent_token.text}"}
        consent = await send_until_final(self.world, member, "POST", "oauth2/authorize", body, headers=headers)
        if consent is None:
            return None
        if consent_token is not None and consent.status == 401:
            is_possible = consent_token.may_be_revoked or self.world.clock_shift != consent_token.clock_shift
            self.world.require(is_possible, "the consent with a new token is rejected")
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
        if choices.random() < 0.1:
            async with asyncio.TaskGroup() as group:
                sent = [group.create_task(self._send_form("oauth2/token", form)) for _ in range(2)]
            replies = [task.result() for task in sent]
        else:
            replies = [await self._send_form("oauth2/token", form)]
        accepted = [reply for reply in replies if reply is not None and reply.status == 200]
        self.world.require(len(accepted) <= 1, "an authorization code was accepted twice")
        if not accepted:
            return None
        family = _Family(accepted[0].json["refresh_token"], consent_token=consent_token)
        family.access.append(_Token(accepted[0].json["access_token"], made_at, shift))
        family.may_end = len(replies) > 1 or (consent_token is not None and consent_token.may_be_revoked)
        self._families.append(family)
        if choices.random() < 0.1:
            await self._reuse_code(family, form)
        return family

    async def _ask_for_consent(self, member: str, request: Mapping[str, str]) -> None:
        """Open the client's link to the service, and read the content of the consent page."""
        started = await send_until_final(self.world, "", "GET", f"oauth2/authorize?{urlencode(request)}", headers=_HOST)
        if started is not None:
            is_right = started.status == 302 and f"client_id={_CLIENT}" in started.get_header("location")
            self.world.require(is_right, f"an authorization request got {started.status} {started.reply.headers}")
        asked = await send_until_final(self.world, member, "POST", "oauth2/authorize/preview", request, headers=_HOST)
        if asked is not None:
            is_right = asked.status == 200 and asked.json["accessRights"] == [_SCOPE]
            self.world.require(is_right, f"a preview got {asked.status} {asked.reply.body!r}")

    async def _reuse_code(self, family: _Family, form: Mapping[str, str]) -> None:
        family.may_end = True
        reply = await self._send_form("oauth2/token", form)
        if reply is not None:
            self._check_refusal(reply)
            self._record_family_end(family)

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
        if self.world.random.random() < 0.1:
            reply = await self._send_form("oauth2/revoke", {"client_id": _CLIENT})
            is_refused = reply is None or (reply.status == 400 and reply.json.get("error") == "invalid_request")
            self.world.require(is_refused, f"a revocation without a token got {reply and reply.reply.body!r}")
        family.may_end = True
        reply = await self._send_form("oauth2/revoke", {"token": family.newest, "client_id": _CLIENT})
        if reply is not None:
            self.world.require(reply.status == 200, f"a revocation got {reply.status} {reply.reply.body!r}")
            self._record_family_end(family)

    async def _end_grant(self, family: _Family) -> None:
        family.may_end = True
        member = self.world.random.choice(("ann@t", "bob@t"))
        reply = await send_until_final(self.world, member, "DELETE", f"oauth2/grants/{family.grant}")
        if reply is not None:
            self.world.require(reply.status == 204, f"the end of a grant got {reply.status} {reply.reply.body!r}")
            self._record_family_end(family)

    async def _revoke_consent_token(self, member: str, family: _Family, token: _Token) -> None:
        """Revoke the token with which a member consented; this ends the family."""
        family.may_end = token.may_be_revoked = True
        reply = await send_until_final(self.world, member, "DELETE", f"workspace/api/keys/jwt/{token.token_id}")
        if reply is not None:
            self.world.require(reply.status == 204, f"a revocation got {reply.status} {reply.reply.body!r}")
            token.revoked_at = self.world.scheduler.now
            self._record_family_end(family)

    async def _list_grants(self, member: str) -> None:
        """List the grants of all members, which an administrator may do."""
        known = list(self._families)
        ended = {family.grant for family in known if family.ended_at is not None}
        reply = await send_until_final(self.world, member, "GET", "oauth2/grants")
        if reply is None:
            return
        self.world.require(reply.status == 200, f"a list of grants got {reply.status} {reply.reply.body!r}")
        found = Counter(grant["id"] for grant in reply.json["grants"])
        self.world.require(all(count == 1 for count in found.values()), f"a list has grants twice: {found}")
        missing = {family.grant for family in known if not family.may_end} - found.keys()
        self.world.require(not missing, f"a list lacks active grants: {missing}")
        self.world.require(ended.isdisjoint(found), f"a list has ended grants: {ended & found.keys()}")

    async def _use_api_key(self, count: int) -> None:
        """Create an API key, and use it as a client that requests, uses and revokes tokens."""
        name = "client"
        made = await send_until_final(self.world, "bob@t", "POST", "workspace/api/keys", {"name": name}, key=name)
        if made is None:
            return
        self.world.require(made.status == 201, f"a new API key got {made.status} {made.reply.body!r}")
        client = {"client_id": made.json["keyId"], "client_secret": made.json["apiKey"]}
        # All processes know the key after this time.
        await self.world.sleep(_IN_FORCE / MICROSECONDS)
        for _ in range(count):
            made_at, shift = self.world.scheduler.now, self.world.clock_shift
            form = {"grant_type": "client_credentials", **client}
            if self.world.random.random() < 0.2:
                reply = await self._send_form("oauth2/token", {**form, "scope": "Unknown"})
                is_refused = reply is None or (reply.status == 400 and reply.json.get("error") == "invalid_scope")
                self.world.require(is_refused, f"an unknown scope got {reply and reply.reply.body!r}")
            reply = await self._send_form("oauth2/token", form)
            if reply is None:
                continue
            self.world.require(reply.status == 200, f"client credentials got {reply.status} {reply.reply.body!r}")
            token = _Token(reply.json["access_token"], made_at, shift)
            self._tokens_of_keys.append(token)
            if self.world.random.random() < 0.5:
                await self._revoke_access_token(None, token, client)
            await self._use_access_token(None, token)

    async def _revoke_access_token(
        self, family: _Family | None, token: _Token, client: Mapping[str, str] | None = None
    ) -> None:
        """Revoke an access token as its client."""
        was_attempted, token.may_be_revoked = token.may_be_revoked, True
        form = {"token": token.text, **(client or {"client_id": _CLIENT})}
        reply = await self._send_form("oauth2/revoke", form)
        if reply is None:
            return
        self.world.require(reply.status == 200, f"a revocation got {reply.status} {reply.reply.body!r}")
        # The service ignores a token that has expired or that an end of its family has revoked.
        may_be_ignored = was_attempted or (family is not None and family.may_end)
        if self._is_certainly_alive(token) and not may_be_ignored:
            token.revoked_at = self.world.scheduler.now

    def _is_certainly_alive(self, token: _Token) -> bool:
        is_young = self.world.scheduler.now < token.made_at + _CERTAIN_LIFE
        return is_young and self.world.clock_shift == token.clock_shift

    def _record_family_end(self, family: _Family) -> None:
        family.is_refused = True
        if family.ended_at is None:
            family.ended_at = self.world.scheduler.now

    async def _use_access_token(self, family: _Family | None, token: _Token) -> bool | None:
        """Use an access token; return whether it is accepted, or None if no final reply arrives."""
        sent_at, is_alive = self.world.scheduler.now, self._is_certainly_alive(token)
        ends = [at for at in (token.revoked_at, None if family is None else family.ended_at) if at is not None]
        headers = {"authorization": f"Bearer {token.text}"}
        try:
            reply = await self.world.send("", "GET", "oi-api/workspace", headers=headers)
        except ConnectionLostError:
            return None
        if reply.status == 200:
            is_late = any(sent_at > at + _IN_FORCE for at in ends)
            self.world.require(not is_late, "an access token works although it was revoked, or its family has ended")
        elif reply.status == 401:
            may_fail = token.may_be_revoked or (family is not None and family.may_end)
            is_certain = is_alive and self.world.clock_shift == token.clock_shift
            self.world.require(may_fail or not is_certain, "an access token of an active family is rejected")
        return None if reply.status in TRANSIENT else reply.status == 200

    async def complete_work(self) -> None:
        """Refresh each token family once more; after all documented delays, use each access token."""
        if any(family.is_revocation_uncertain for family in self._families):
            # A process with older credentials accepts the refresh, and then the background job ends the family.
            await self.world.sleep(_COMPLETED_SECONDS)
        for family in self._families:
            while (reply := await self._send_refresh(family.newest)) is None:
                await self.world.sleep(1)
            if reply.status == 200:
                is_revoked = family.consent_token is not None and family.consent_token.revoked_at is not None
                self.world.require(not is_revoked, "a family outlives the revoked token of its consent")
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
        for token in self._tokens_of_keys:
            while await self._use_access_token(None, token) is None:
                await self.world.sleep(1)

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
                self._check_events_of_token(events, token)
        for token in self._tokens_of_keys:
            self._check_events_of_token(events, token)

    def _check_events_of_token(self, events: Mapping[tuple[str, str], int], token: _Token) -> None:
        issued = events["Token.Issued", token.token_id]
        self.world.require(issued == 1, f"an access token has {issued} events of its issue")
        revoked = events["Token.Revoked", token.token_id]
        is_possible = revoked == 1 if token.revoked_at is not None else revoked <= token.may_be_revoked
        self.world.require(is_possible, f"an access token has {revoked} events of its revocation")
