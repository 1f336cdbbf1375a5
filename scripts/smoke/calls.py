"""HTTP calls of the smoke test with tokens of team members; needs only the standard library."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PATIENCE_SECONDS = 420
"""Maximum wait for a result: without streaming ingestion, Data Explorer collects rows for five minutes by default."""
POLL_SECONDS = 2
"""Time between two looks at a result; a workspace of the tier Free allows 60 requests a minute."""
CALL_SECONDS = 240
OK = 200
CheckSummary = str
"""Text that a successful check prints."""


class CheckFailedError(Exception):
    """A check of the smoke test failed; the message describes the unexpected result."""


class FeatureMissingError(Exception):
    """The service does not offer the feature that a check tests."""


@dataclass(frozen=True)
class ServiceReply:
    """HTTP reply of the service to a request.

    Attributes:
        status: HTTP status of the reply.
        body: body of the reply as bytes.
    """

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """Body of the reply, parsed as JSON; reading it raises CheckFailedError if the body is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise CheckFailedError(
                f"the body of a reply with status {self.status} is not JSON: {self.body[:200]!r}"
            ) from None

    def require_status(self, *expected_statuses: int) -> "ServiceReply":
        """Return this reply if it has one of the expected statuses; otherwise raise CheckFailedError."""
        if self.status not in expected_statuses:
            raise CheckFailedError(
                f"the reply has status {self.status} instead of {expected_statuses[0]}: "
                f"{self.body[:300].decode(errors='replace')}"
            )
        return self


@dataclass(frozen=True)
class TokenHolder:
    """Team member or anonymous caller that sends requests with an access token.

    Attributes:
        base: base URL of the service.
        token: credential of the caller, an access token or an API key; empty for an anonymous caller.
        name: name of the team member.
        rights: access rights of the token.
    """

    base: str
    token: str = ""
    name: str = ""
    rights: frozenset[str] = frozenset()

    def send_request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> ServiceReply:
        """Send a request to the service and return the reply."""
        address = path if path.startswith("http") else self.base + path
        request = urllib.request.Request(address, method=method, headers=dict(headers or {}))  # noqa: S310  the caller's
        if self.token and address.startswith(self.base):
            request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with _build_opener(address).open(request, timeout=CALL_SECONDS) as answer:
                return ServiceReply(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            return ServiceReply(error.code, error.read())
        except OSError as error:
            raise CheckFailedError(f"the service did not reply: {error}") from None

    def get(self, path: str, **query: object) -> ServiceReply:
        """Send a GET request to the service and return the reply."""
        return self.send_request("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path)


@dataclass
class SmokeContext:
    """State that the checks share. The first checks fill ``members`` and ``workspace``, which later checks read.

    Attributes:
        base: base URL of the service.
        keys: API keys by name of the team member.
        connection: lookup (id in URLs) of the connection to which telemetry is sent; empty for the first connection
            that accepts a message.
    """

    base: str
    keys: Mapping[str, str]
    connection: str = ""
    members: list[TokenHolder] = field(default_factory=list)
    workspace: str = ""

    def require_member(self, *rights: str) -> TokenHolder:
        """Return a team member who has all of these rights; raise FeatureMissingError if there is none."""
        for member in self._find_members(*rights):
            return member
        raise FeatureMissingError(f"no API key belongs to a member with the rights {', '.join(rights)}")

    def require_two_members(self, first_right: str, second_right: str) -> tuple[TokenHolder, TokenHolder]:
        """Return two different team members: one with the access right ``first_right``, one with ``second_right``.

        Raise FeatureMissingError if there are no such members.
        """
        self.require_member(first_right)
        for one in self._find_members(first_right):
            for other in self._find_members(second_right):
                if other.name != one.name:
                    return one, other
        raise FeatureMissingError(
            f"API keys of two members are required: one with the right {first_right}, one with {second_right}"
        )

    def _find_members(self, *rights: str) -> list[TokenHolder]:
        wanted = {f"Workspace.{right}" for right in rights}
        return [member for member in self.members if wanted <= member.rights]


def _build_opener(address: str) -> urllib.request.OpenerDirector:
    # A proxy would get the credential in clear text over http.
    is_http = urllib.parse.urlsplit(address).scheme == "http"
    return urllib.request.build_opener(urllib.request.ProxyHandler({} if is_http else None))


def wait_until(get_result: Callable[[], object], expected_result: object) -> None:
    """Call ``get_result`` until it returns ``expected_result``; raise CheckFailedError after ``PATIENCE_SECONDS``."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (seen := get_result()) != expected_result:
        if time.monotonic() > deadline:
            raise CheckFailedError(
                f"the result is still {seen!r} after {PATIENCE_SECONDS} s; expected {expected_result!r}"
            )
        time.sleep(POLL_SECONDS)
