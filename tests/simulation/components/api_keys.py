"""API key component: creation with stored replies, use, issue of tokens, and revocation."""

import asyncio
import json
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.scheduler import MICROSECONDS
from tests.simulation.world import ConnectionLostError, World

_PATH = "workspace/api/keys"
_JWKS: Final = ".well-known/jwks.json"
_IN_FORCE_SECONDS: Final = 15
"""Seconds after which a revocation is in force everywhere, as the documentation says; a new key works by then, too."""

_RECORDED_SECONDS: Final = 640
"""Seconds in which the background job completes an interrupted revocation and appends its event.

The job runs every 300 seconds; if the clocks were set back, it runs up to 300 seconds later.
"""


class ApiKeysComponent(Component):
    """Members create API keys with Idempotency-Keys, use these API keys, issue tokens with them, and revoke both.

    Invariants: equal requests get equal replies, with the same secret; a created key works until its revocation; a
    revoked key is rejected after the documented delay, and so is each token that was issued with it or with its tokens,
    also during its revocation; if no request for a revocation was acknowledged, this holds after the background job;
    each key has one audit event about its creation and, if it is revoked, one about its revocation; a request creates
    one key; a revoked token is rejected after the documented delay, and has one event of its issue and one of its
    revocation; the key set never changes.
    """

    name: ClassVar[str] = "api-keys"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/auth/key_service.py",
        "shared/auth/credential_revocation.py",
        "shared/auth/authenticator.py",
        "shared/auth/audit.py",
        "shared/idempotency/replies.py",
        "shared/backends/embedded/credentials.py",
        "functions/idempotency.py",
        "functions/tokens.py",
    )
    background_jobs: ClassVar[tuple[str, ...]] = ("oauth-grants",)
    settle_seconds: ClassVar[int] = 1_200
    weight: ClassVar[int] = 8
    cosmos_weight: ClassVar[int] = 7

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._secrets: dict[str, tuple[str, str]] = {}
        self._made_at: dict[str, int] = {}
        self._revoked: dict[str, int] = {}
        self._attempted: set[str] = set()
        self._listed_as_revoked: set[str] = set()
        self._revoked_tokens: dict[str, tuple[str, int]] = {}
        self._tokens_of_keys: list[tuple[str, str]] = []
        self._key_set: object = None

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients that create, use and revoke API keys."""
        choices = self.world.random
        for number in range(choices.randint(1, 3)):
            yield self._create_keys(number, choices.randint(1, 4))
        yield self._use_keys(choices.randint(5, 20))
        yield self._revoke_keys(choices.randint(1, 5))

    async def _create_keys(self, client: int, count: int) -> None:
        for number in range(count):
            name = f"key {client}-{number}"
            for _ in range(self.world.random.choice((1, 1, 2))):
                await self._create_key(name, {"name": name})
            if self.world.random.random() < 0.1:
                name = f"bound {client}-{number}"
                await self._create_key(name, {"name": name, "connections": ["press"]})
            await self.world.sleep(self.world.random.random() * 5)

    async def _create_key(self, name: str, body: dict[str, Any]) -> None:
        reply = await send_until_final(self.world, "ann@t", "POST", _PATH, body, key=name)
        if reply is None or reply.code == "IDEMPOTENCY_KEY_IN_USE":
            return
        self.world.require(reply.status == 201, f"{name} was answered by {reply.status} {reply.reply.body!r}")
        made = (reply.json["keyId"], reply.json["apiKey"])
        known = self._secrets.setdefault(name, made)
        self._made_at.setdefault(name, self.world.scheduler.now)
        self.world.require(known == made, f"{name}: two equal requests got different keys")

    async def _use_keys(self, count: int) -> None:
        for _ in range(count):
            await self.world.sleep(self.world.random.random() * 6)
            action = self.world.random.random()
            if action < 0.03:
                await self._list_keys()
            elif action < 0.05:
                await self._read_key_set()
            elif self._secrets and action < 0.15:
                await self._issue_token(self.world.random.choice(list(self._secrets)))
            elif self._secrets:
                await self._use_key(self.world.random.choice(list(self._secrets)))

    async def _read_key_set(self) -> None:
        """Read the public keys with which anyone can verify the service's tokens."""
        reply = await send_until_final(self.world, "", "GET", _JWKS)
        if reply is not None:
            self.world.require(reply.status == 200 and reply.json["keys"] != [], f"the key set got {reply.status}")
            self._key_set = self._key_set or reply.json
            self.world.require(self._key_set == reply.json, "the key set has changed")

    async def _list_keys(self) -> None:
        """List all API keys; those that were acknowledged before are listed once."""
        known = {key_id for key_id, _ in self._secrets.values()}
        revoked = set(self._revoked)
        reply = await send_until_final(self.world, "ann@t", "GET", _PATH)
        if reply is not None:
            self.world.require(reply.status == 200, f"a list got {reply.status} {reply.reply.body!r}")
            listed = {each["keyId"]: each["revokedAt"] for each in reply.json["keys"]}
            self.world.require(len(listed) == len(reply.json["keys"]), f"a list has keys twice: {reply.json}")
            self.world.require(known <= listed.keys(), f"a list lacks the keys {known - listed.keys()}")
            active = [key_id for key_id in revoked if listed[key_id] is None]
            self.world.require(not active, f"a list has revoked keys as active: {active}")

    async def _issue_token(self, name: str) -> None:
        """Issue a token with an API key, use the token, and revoke it."""
        key_id, secret = self._secrets[name]
        headers = {"authorization": f"Bearer {secret}"}
        issued = await send_until_final(self.world, "", "GET", f"{_PATH}/jwt", headers=headers)
        if issued is None:
            return
        if issued.status != 200:
            is_new = self.world.scheduler.now < self._made_at[name] + _IN_FORCE_SECONDS * MICROSECONDS
            may_fail = issued.status == 401 and (is_new or key_id in self._attempted)
            self.world.require(may_fail, f"a token of {name} got {issued.status} {issued.reply.body!r}")
            return
        token = issued.json["Token"]
        await self._use_token(token)
        token_id = _read_token_id(token)
        revoked = await send_until_final(self.world, "bob@t", "DELETE", f"{_PATH}/jwt/{token_id}")
        if revoked is not None:
            self.world.require(revoked.status == 204, f"the revocation of a token was answered by {revoked.status}")
            self._revoked_tokens[token_id] = (token, self.world.scheduler.now)

    async def _use_token(self, token: str) -> None:
        """Use a token; after the documented delay of its revocation, it must be rejected."""
        sent_at = self.world.scheduler.now
        _, revoked_at = self._revoked_tokens.get(_read_token_id(token), ("", sent_at))
        reply = await send_until_final(
            self.world, "", "GET", f"{_PATH}/whoami", headers={"authorization": f"Bearer {token}"}
        )
        is_late = sent_at > revoked_at + _IN_FORCE_SECONDS * MICROSECONDS
        works = reply is not None and reply.status == 200
        self.world.require(not (works and is_late), "a token works although it was revoked")

    async def _use_key(self, name: str) -> None:
        key_id, secret = self._secrets[name]
        sent_at, was_attempted = self.world.scheduler.now, key_id in self._attempted
        headers = {"authorization": f"Bearer {secret}"}
        try:
            reply = await self.world.send("", "GET", f"{_PATH}/whoami", headers=headers)
        except ConnectionLostError:
            return
        if reply.status == 200:
            in_force = self._revoked.get(key_id, sent_at) + _IN_FORCE_SECONDS * MICROSECONDS
            self.world.require(sent_at <= in_force, f"{name} works although it was revoked")
        elif reply.status == 401:
            is_new = sent_at < self._made_at[name] + _IN_FORCE_SECONDS * MICROSECONDS
            may_fail = is_new or was_attempted or key_id in self._attempted
            self.world.require(may_fail, f"{name} is rejected, but was not revoked")

    async def _revoke_keys(self, count: int) -> None:
        for _ in range(count):
            await self.world.sleep(self.world.random.random() * 10)
            if self._secrets:
                await self._revoke_key(self.world.random.choice(list(self._secrets)))

    async def _revoke_key(self, name: str) -> None:
        """Revoke an API key; sometimes tokens are issued with the key at the same time."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.world.random.choice((0, 0, 1, 3))):
                group.create_task(self._issue_tokens(name))
            group.create_task(self._send_key_revocation(name))

    async def _issue_tokens(self, name: str) -> None:
        """Issue tokens with an API key, and with these tokens further ones, until one is refused."""
        key_id, credential = self._secrets[name]
        for _ in range(self.world.random.randint(1, 6)):
            await self.world.sleep(self.world.random.random())
            headers = {"authorization": f"Bearer {credential}"}
            issued = await send_until_final(self.world, "", "GET", f"{_PATH}/jwt", headers=headers)
            if issued is None or issued.status != 200:
                return
            self._tokens_of_keys.append((key_id, issued.json["Token"]))
            if self.world.random.random() < 0.3:
                credential = issued.json["Token"]

    async def _send_key_revocation(self, name: str) -> None:
        key_id, _ = self._secrets[name]
        self._attempted.add(key_id)
        reply = await send_until_final(self.world, "ann@t", "DELETE", f"{_PATH}/{key_id}")
        if reply is not None:
            self.world.require(reply.status == 204, f"the revocation of {name} was answered by {reply.status}")
            self._revoked.setdefault(key_id, self.world.scheduler.now)

    async def complete_work(self) -> None:
        """Use each API key after the documented delay of its revocation; those without a reply also after the job."""
        await self.world.sleep(_IN_FORCE_SECONDS + 1)
        listed = (await send_until_done(self.world, "ann@t", "GET", _PATH)).json["keys"]
        known = {each["keyId"]: each for each in listed}
        names = Counter(each["name"] for each in listed if each["name"].startswith(("key ", "bound ")))
        self.world.require(all(count == 1 for count in names.values()), f"a request created several keys: {names}")
        for name, (key_id, _) in self._secrets.items():
            self.world.require(key_id in known, f"{name} is missing in the list")
            if key_id in self._revoked:
                self.world.require(known[key_id]["revokedAt"] is not None, f"{name} is not listed as revoked")
            await self._use_key(name)
        for token, _ in self._revoked_tokens.values():
            await self._use_token(token)
        for key_id, token in self._tokens_of_keys:
            if key_id in self._revoked:
                await self._check_rejection(token)
        self._listed_as_revoked = {key_id for key_id, each in known.items() if each["revokedAt"] is not None}
        if unacknowledged := self._listed_as_revoked - self._revoked.keys():
            await self.world.sleep(_RECORDED_SECONDS + _IN_FORCE_SECONDS)
            for key_id, credential in (*self._secrets.values(), *self._tokens_of_keys):
                if key_id in unacknowledged:
                    await self._check_rejection(credential)

    async def _check_rejection(self, credential: str) -> None:
        """Use a key that was revoked at least as long ago as the documented delay, or a token of such a key."""
        reply = await send_until_final(
            self.world, "", "GET", f"{_PATH}/whoami", headers={"authorization": f"Bearer {credential}"}
        )
        works = reply is not None and reply.status == 200
        self.world.require(not works, "a key, or a token of it, works although the key was revoked")

    def check_invariants(self, folder: Path) -> None:
        """Check the audit events of API keys, and the number of API keys."""
        events = Counter(
            (record["ActionType"], record["EntityID"])
            for record in read_chains(self.world, folder)
            if record["Chain"] == "AccessControl/" and record.get("EntityType") in {"ApiKey", "Token"}
        )
        for name, (key_id, _) in self._secrets.items():
            self.world.require(
                events["ApiKey.Created", key_id] == 1, f"{name} has no event of its creation, or several"
            )
        for key_id in self._revoked.keys() | self._listed_as_revoked:
            count = events["ApiKey.Revoked", key_id]
            self.world.require(count == 1, f"key {key_id} has {count} events of its revocation")
        for token_id in self._revoked_tokens:
            counts = events["Token.Issued", token_id], events["Token.Revoked", token_id]
            self.world.require(counts == (1, 1), f"token {token_id} has {counts} events of its issue and revocation")


def _read_token_id(token: str) -> str:
    content = token.split(".")[1]
    return str(json.loads(urlsafe_b64decode(content + "=" * (-len(content) % 4)))["jti"])
