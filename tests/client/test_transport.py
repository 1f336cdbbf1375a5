"""Tests of the client's requests: tokens, repeated attempts and errors, with a fake service."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from oi import ApiError, OverloadedError, SignInError, TooManyRequestsError, UnreachableError
from oi._sync import transport as module
from oi._sync.transport import Transport

type Answer = httpx.Response | Exception


class Wire:
    """Fake service: issues tokens and answers from a list."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.tokens = 0
        self.expires = datetime.now(UTC) + timedelta(hours=1)

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Reply to one request."""
        if request.url.path == "/workspace/api/keys/jwt":
            self.tokens += 1
            return httpx.Response(200, json={"Token": f"token-{self.tokens}", "ExpiresAt": self.expires.isoformat()})
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record pauses instead of waiting."""
    recorded: list[float] = []
    monkeypatch.setattr(module, "sleep", recorded.append)
    return recorded


@contextmanager
def connect(wire: Wire, **options: Any) -> Iterator[Transport]:
    """Yield the client's transport, whose requests the fake service answers."""
    transport = Transport("http://service.example", **(options or {"key": "oik_1"}))
    transport.client = httpx.Client(base_url=transport.url, transport=httpx.MockTransport(wire.handle))
    yield transport
    transport.close()


def refuse(status: int, **headers: str) -> httpx.Response:
    """Build an error reply."""
    problem = {"code": "CODE", "detail": "Reason.", "traceId": "t", "errors": [{"field": "f", "message": "m"}]}
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=problem, headers={"content-type": "application/problem+json", **headers})


def test_one_attempt_if_the_caller_repeats(pauses: list[float]) -> None:
    """With a maximum of one attempt, the first failure is reported at once."""
    wire = Wire(refuse(503))
    with connect(wire, key="oik_1", max_attempts=1) as transport, pytest.raises(OverloadedError):
        transport.request("GET", "/a")
    assert pauses == []


def test_one_token_serves_many_requests(pauses: list[float]) -> None:
    """A token is requested once and renewed when it is about to expire or was refused."""
    wire = Wire(*(httpx.Response(200) for _ in range(2)), refuse(401), httpx.Response(200), httpx.Response(200))
    with connect(wire) as transport:
        for _ in range(3):
            transport.request("GET", "/a")
        assert [each.headers["authorization"][-1] for each in wire.requests] == ["1", "1", "1", "2"]
        wire.expires = datetime.now(UTC) + timedelta(seconds=59)
        transport.get_token(renew=True)
        transport.request("GET", "/a")
    assert wire.tokens == 4
    assert pauses == []


def test_a_given_token_is_not_renewed(pauses: list[float]) -> None:
    """A client with a fixed token reports that the token was refused, and does not renew it."""
    wire = Wire(refuse(401))
    with connect(wire, token="jwt") as transport, pytest.raises(SignInError) as refused:
        transport.request("GET", "/a")
    assert (refused.value.code, refused.value.trace_id, refused.value.errors[0]["field"]) == ("CODE", "t", "f")
    assert wire.tokens == len(pauses) == 0


def test_busy_replies_are_repeated_as_the_service_asks(pauses: list[float]) -> None:
    """A 429 or 503 reply is repeated after Retry-After, also for POST, because the service did nothing."""
    wire = Wire(refuse(429, retry_after="7"), refuse(503, retry_after="2"), httpx.Response(202))
    with connect(wire) as transport:
        assert transport.request("POST", "/a", json={}).status_code == 202
    assert pauses == [7.0, 2.0]


@pytest.mark.parametrize(
    ("answer", "attempts", "kind"),
    [
        (lambda: refuse(503), 5, OverloadedError),
        (lambda: refuse(429, retry_after="3600"), 1, TooManyRequestsError),
        (lambda: refuse(400), 1, ApiError),
        (lambda: httpx.Response(502, text="<html>"), 1, ApiError),
        (lambda: httpx.ReadTimeout("late"), 1, UnreachableError),
        (lambda: httpx.ConnectError("refused"), 5, UnreachableError),
    ],
)
def test_attempts_end(pauses: list[float], answer: Callable[[], Answer], attempts: int, kind: type[ApiError]) -> None:
    """A request is not repeated after four attempts, after a long Retry-After, or if a POST may have been executed."""
    wire = Wire(*(answer() for _ in range(attempts)))
    with connect(wire) as transport, pytest.raises(kind):
        transport.request("POST", "/a")
    assert len(wire.requests) == attempts
    assert len(pauses) == attempts - 1


def test_an_append_is_repeated_under_one_key(pauses: list[float]) -> None:
    """An append with a lost reply is repeated under the same Idempotency-Key; another append has another key."""
    wire = Wire(httpx.ReadError("lost"), httpx.Response(201), httpx.Response(201))
    with connect(wire) as transport:
        transport.request("POST", "/a", appends=True)
        transport.request("POST", "/a", appends=True)
    first, second, third = (each.headers["idempotency-key"] for each in wire.requests)
    assert first == second != third
    assert len(pauses) == 1


def test_a_client_needs_exactly_one_credential() -> None:
    """Creating a client without a credential, or with two, is an error."""
    for key, token in ((None, None), ("k", "t")):
        with pytest.raises(ValueError, match="exactly one of the arguments"):
            Transport("http://service.example", key=key, token=token)


@pytest.mark.parametrize("credential", ["oik_secret\n", "oik_secr\u00e9t", "oik_secret x", "oik_secret\0"])
def test_a_malformed_credential_is_not_printed(credential: str) -> None:
    """A credential that no HTTP header can contain is refused before a request, and the error does not contain it."""
    for key, token in ((credential, None), (None, credential)):
        with pytest.raises(ValueError, match="line break") as refused:
            Transport("https://service.example", key=key, token=token)
        assert "secr" not in str(refused.value)


def test_an_invalid_address_is_named() -> None:
    """An address that is no URL is an error that names it."""
    with pytest.raises(ValueError, match="is not an address"):
        Transport("https://service.example:port", key="oik_1")


def test_a_redirect_is_not_followed(pauses: list[float]) -> None:
    """A redirect is an error that names its target, because the credential must not be sent there."""
    wire = Wire(httpx.Response(301, headers={"Location": "https://other.example/a"}))
    with connect(wire) as transport, pytest.raises(ApiError, match="redirects to https://other") as refused:
        transport.get_json("/a")
    assert refused.value.status == 301
    assert len(wire.requests) == 1
    assert pauses == []


def test_a_reply_of_another_server_is_explained(pauses: list[float]) -> None:
    """A successful reply that is not JSON is an error that names the address."""
    wire = Wire(httpx.Response(200, text="<html>"))
    with (
        connect(wire) as transport,
        pytest.raises(ApiError, match=r"http://service\.example/a did not reply with JSON"),
    ):
        transport.get_json("/a", {"secret": "1"})
    assert pauses == []


def test_a_damaged_reply_is_a_lost_reply(pauses: list[float]) -> None:
    """A reply whose compression is damaged counts as a lost reply."""
    wire = Wire(*(httpx.DecodingError("damaged") for _ in range(5)))
    with connect(wire) as transport, pytest.raises(UnreachableError):
        transport.request("GET", "/a")
    assert len(pauses) == 4


@pytest.mark.parametrize("errors", ["text", [None, 1], {"field": "f"}, None])
def test_malformed_errors_are_left_out(pauses: list[float], errors: object) -> None:
    """An error reply whose list of fields has another form is still an error with its code."""
    wire = Wire(httpx.Response(400, json={"code": "CODE", "detail": "Reason.", "errors": errors}))
    with connect(wire) as transport, pytest.raises(ApiError) as refused:
        transport.request("GET", "/a")
    assert (refused.value.code, list(refused.value.errors)) == ("CODE", [])
    assert pauses == []


@pytest.mark.parametrize("reply", ["[]", "null", "{}", '{"Token": "t", "ExpiresAt": "soon"}', "[" * 100_000])
def test_a_reply_without_a_token_is_explained(reply: str) -> None:
    """A server that is no workspace may reply with any JSON; the error says that the address may be wrong."""
    transport = Transport("http://service.example", key="oik_1")
    headers = {"Content-Type": "application/json"}
    transport.client = httpx.Client(
        base_url=transport.url,
        transport=httpx.MockTransport(lambda _: httpx.Response(200, text=reply, headers=headers)),
    )
    with pytest.raises(ApiError, match="Is it the address of a workspace"):
        transport.get_token()
    transport.close()
