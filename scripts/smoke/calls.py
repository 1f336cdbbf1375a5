"""Calls of a service, and who makes them; the standard library alone."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PATIENCE_SECONDS = 150
"""How long something may take to be seen: Data Explorer takes events in batches, checkpoints take up to a minute."""
CALL_SECONDS = 240
OK = 200


class CheckFailedError(Exception):
    """A check failed; the text says what came instead."""


class FeatureMissingError(Exception):
    """What a check is about is not there on this host."""


@dataclass(frozen=True)
class ServiceReply:
    """An answer.

    Attributes:
        status: HTTP status.
        body: its bytes.
    """

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise CheckFailedError(f"{self.status}, and no JSON: {self.body[:200]!r}") from None

    def expect(self, *statuses: int) -> "ServiceReply":
        """Return this answer if it has one of the statuses."""
        if self.status not in statuses:
            raise CheckFailedError(
                f"{self.status} instead of {statuses[0]}: {self.body[:300].decode(errors='replace')}"
            )
        return self


@dataclass(frozen=True)
class TokenHolder:
    """Somebody who holds a token.

    Attributes:
        base: address of the service.
        token: the token, empty for nobody.
        name: who it is.
        rights: what the token opens.
    """

    base: str
    token: str = ""
    name: str = ""
    rights: frozenset[str] = frozenset()

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> ServiceReply:
        """Return the answer to a request."""
        address = path if path.startswith("http") else self.base + path
        request = urllib.request.Request(address, method=method, headers=dict(headers or {}))  # noqa: S310  the caller's
        if self.token and address.startswith(self.base):
            request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:  # noqa: S310  as above
                return ServiceReply(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            return ServiceReply(error.code, error.read())
        except OSError as error:
            raise CheckFailedError(f"no answer: {error}") from None

    def get(self, path: str, **query: object) -> ServiceReply:
        """Return the answer to a GET."""
        return self.call("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path)


@dataclass
class SmokeContext:
    """What checks hand on to each other.

    Attributes:
        base: address of the service.
        keys: API keys by member.
    """

    base: str
    keys: Mapping[str, str]
    members: list[TokenHolder] = field(default_factory=list)
    workspace: str = ""

    def member(self, *rights: str) -> TokenHolder:
        """Return a member with rights."""
        for member in self._holders(*rights):
            return member
        raise FeatureMissingError(f"no key of a member with {', '.join(rights)}")

    def pair(self, first: str, second: str) -> tuple[TokenHolder, TokenHolder]:
        """Return two members, one with each right."""
        self.member(first)
        for one in self._holders(first):
            for other in self._holders(second):
                if other.name != one.name:
                    return one, other
        raise FeatureMissingError(f"no keys of two members, one with {first}, the other with {second}")

    def _holders(self, *rights: str) -> list[TokenHolder]:
        wanted = {f"Workspace.{right}" for right in rights}
        return [member for member in self.members if wanted <= member.rights]


def wait_until(probe: Callable[[], object], wanted: object) -> None:
    """Return once a probe gives what is wanted; fail when it does not in time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (seen := probe()) != wanted:
        if time.monotonic() > deadline:
            raise CheckFailedError(f"still {seen!r} after {PATIENCE_SECONDS} s")
        time.sleep(0.5)
