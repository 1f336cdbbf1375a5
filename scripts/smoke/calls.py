"""HTTP calls of the smoke test with the tokens of members, in the standard library alone."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PATIENCE_SECONDS = 150
"""Maximum wait for a result: Data Explorer ingests events in batches, checkpoints take up to a minute."""
CALL_SECONDS = 240
OK = 200


class CheckFailedError(Exception):
    """A check failed; the text describes the unexpected result."""


class FeatureMissingError(Exception):
    """The checked feature is not available on this host."""


@dataclass(frozen=True)
class ServiceReply:
    """A reply of the service.

    Attributes:
        status: HTTP status.
        body: bytes of the body.
    """

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise CheckFailedError(f"{self.status}, and the body is not JSON: {self.body[:200]!r}") from None

    def expect(self, *statuses: int) -> "ServiceReply":
        """Return this reply if it has one of the statuses."""
        if self.status not in statuses:
            raise CheckFailedError(
                f"{self.status} instead of {statuses[0]}: {self.body[:300].decode(errors='replace')}"
            )
        return self


@dataclass(frozen=True)
class TokenHolder:
    """A caller with a token.

    Attributes:
        base: address of the service.
        token: the token, empty for an anonymous caller.
        name: name of the member.
        rights: access rights of the token.
    """

    base: str
    token: str = ""
    name: str = ""
    rights: frozenset[str] = frozenset()

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> ServiceReply:
        """Send a request and return the reply."""
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
            raise CheckFailedError(f"no reply: {error}") from None

    def get(self, path: str, **query: object) -> ServiceReply:
        """Send a GET request and return the reply."""
        return self.call("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path)


@dataclass
class SmokeContext:
    """State that the checks share.

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
        raise FeatureMissingError(f"no key belongs to a member with {', '.join(rights)}")

    def pair(self, first: str, second: str) -> tuple[TokenHolder, TokenHolder]:
        """Return two different members, one with each right."""
        self.member(first)
        for one in self._holders(first):
            for other in self._holders(second):
                if other.name != one.name:
                    return one, other
        raise FeatureMissingError(f"no keys belong to two members with {first} and {second}")

    def _holders(self, *rights: str) -> list[TokenHolder]:
        wanted = {f"Workspace.{right}" for right in rights}
        return [member for member in self.members if wanted <= member.rights]


def wait_until(probe: Callable[[], object], wanted: object) -> None:
    """Wait until a probe returns the expected value; fail after the time limit."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (seen := probe()) != wanted:
        if time.monotonic() > deadline:
            raise CheckFailedError(f"still {seen!r} after {PATIENCE_SECONDS} s")
        time.sleep(0.5)
