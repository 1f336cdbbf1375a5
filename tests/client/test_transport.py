"""Tests of the client's requests: tokens, repeated attempts and errors, with a fake service."""

import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from oi import (
    ApiError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PreconditionFailedError,
    ServerError,
    SignInError,
    TooManyRequestsError,
    UnreachableError,
    Workspace,
)
from oi._sync import transport as module
from oi._sync.transport import Transport
from oi.oauth import open_http_client
from oi.requests import find_error

from tests.client.untrusted_service import serve_with_untrusted_certificate

type Answer = httpx.Response | Exception


class FakeService:
    """Fake service that issues tokens and then sends the replies of a list."""

    def __init__(self, *replies: Answer) -> None:
        self.answers = list(replies)
        self.requests: list[httpx.Request] = []
        self.tokens = 0
        self.token_parameters = httpx.QueryParams()
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.expires = self.now + timedelta(hours=1)

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Return the reply to one request."""
        if request.url.path == "/workspace/api/keys/jwt":
            self.tokens += 1
            self.token_parameters = request.url.params
            headers = {"Date": format_datetime(self.now, usegmt=True)}
            token = {"Token": f"token-{self.tokens}", "ExpiresAt": self.expires.isoformat()}
            return httpx.Response(200, json=token, headers=headers)
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def recorded_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the client's pauses with a list that records their lengths."""
    recorded: list[float] = []
    monkeypatch.setattr(module, "sleep", recorded.append)
    return recorded


@contextmanager
def open_transport(fake_service: FakeService, **options: Any) -> Iterator[Transport]:
    """Yield a client transport that is connected to the fake service."""
    transport = Transport("http://service.example", **(options or {"key": "oik_1"}))
    transport.client = httpx.Client(
        base_url=transport.url, transport=httpx.MockTransport(fake_service.reply_to_request)
    )
    yield transport
    transport.close()


@contextmanager
def run_server() -> Iterator[tuple[str, list[str]]]:
    """Run an HTTP server that replies 200 to each GET; yield its address and the list of the requested paths."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_values: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()
        thread.join()


def raise_read_error(request: httpx.Request) -> httpx.Response:
    """Fail as if the reply to a request was lost."""
    raise httpx.ReadError("lost", request=request)


def build_error_reply(status: int, code: str = "CODE", **headers: str) -> httpx.Response:
    """Build an error reply of the service."""
    problem = {"code": code, "detail": "Reason.", "traceId": "t", "errors": [{"field": "f", "message": "m"}]}
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=problem, headers={"content-type": "application/problem+json", **headers})


def test_a_maximum_of_one_attempt_reports_the_first_failure(recorded_pauses: list[float]) -> None:
    """With a maximum of one attempt, the client reports the first failure without repeating the request."""
    fake_service = FakeService(build_error_reply(503))
    with open_transport(fake_service, key="oik_1", max_attempts=1) as transport, pytest.raises(OverloadedError):
        transport.request("GET", "/a")
    assert recorded_pauses == []


def test_parameters_that_are_too_long_for_a_url_are_an_invalid_request(recorded_pauses: list[float]) -> None:
    """Parameters that are too long for a URL raise an error of the client, which does not repeat the request."""
    with (
        open_transport(FakeService(), token="jwt") as transport,
        pytest.raises(InvalidRequestError, match=r"URL component 'query' too long\. Shorten names") as raised,
    ):
        transport.request("GET", "/a", params={"p": "x" * 70_000})
    assert raised.value.is_outcome_unknown is False
    assert recorded_pauses == []


def test_the_client_uses_one_token_for_many_requests(recorded_pauses: list[float]) -> None:
    """The client requests a token once, and requests a new token when it nearly expires or is rejected."""
    fake_service = FakeService(
        *(httpx.Response(200) for _ in range(2)), build_error_reply(401), httpx.Response(200), httpx.Response(200)
    )
    with open_transport(fake_service) as transport:
        for _ in range(3):
            transport.request("GET", "/a")
        assert [each.headers["authorization"][-1] for each in fake_service.requests] == ["1", "1", "1", "2"]
        fake_service.expires = fake_service.now + timedelta(seconds=59)
        transport.get_token(rejected_token=transport.newest_token)
        transport.request("GET", "/a")
    assert fake_service.tokens == 4
    assert recorded_pauses == []


def test_a_token_that_several_requests_report_is_renewed_once() -> None:
    """If the service rejects the token of several requests, only the first one requests a new token."""
    fake_service = FakeService()
    with open_transport(fake_service) as transport:
        rejected = transport.get_token()
        renewed = {transport.get_token(rejected_token=rejected) for _ in range(3)}
        assert (len(renewed - {rejected}), fake_service.tokens) == (1, 2)


def test_a_function_with_another_method_renew_is_not_renewed(recorded_pauses: list[float]) -> None:
    """The client renews only a token whose class derives from `RenewableToken`."""

    class Lease:
        def __call__(self) -> str:
            return "jwt"

        def renew(self) -> None:
            raise AssertionError("the method has another meaning")

    with open_transport(FakeService(build_error_reply(401)), token=Lease()) as transport, pytest.raises(SignInError):
        transport.request("GET", "/a")
    assert recorded_pauses == []


def test_a_token_is_requested_without_a_lifetime() -> None:
    """The client requests no lifetime of a token, because the service rejects one that exceeds that of the API key."""
    fake_service = FakeService()
    with open_transport(fake_service, key="oik_1", scopes=["A", "B"]) as transport:
        transport.get_token()
        assert dict(fake_service.token_parameters) == {"scopes": "A,B"}
    with open_transport(fake_service) as transport:
        transport.get_token()
        assert dict(fake_service.token_parameters) == {}


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_wrong_clock_of_this_computer_does_not_renew_tokens(recorded_pauses: list[float], hours: int) -> None:
    """The client requests one token for many requests, even if the clocks of client and service differ by hours."""
    fake_service = FakeService(*(httpx.Response(200) for _ in range(3)))
    fake_service.now += timedelta(hours=hours)
    fake_service.expires += timedelta(hours=hours)
    with open_transport(fake_service) as transport:
        for _ in range(3):
            transport.request("GET", "/a")
        assert fake_service.tokens == 1
        fake_service.expires = fake_service.now + timedelta(seconds=59)
        transport.get_token(rejected_token=transport.newest_token)
        transport.get_token()
    assert fake_service.tokens == 3
    assert recorded_pauses == []


@pytest.mark.parametrize(("timeout", "expected"), [(5.0, 240.0), (300.0, 300.0)])
def test_a_slow_request_waits_for_its_reply_as_long_as_the_service_works(
    recorded_pauses: list[float], timeout: float, expected: float
) -> None:
    """A slow request waits 240 seconds for its reply; other requests wait as long as the caller of the client says."""
    fake_service = FakeService(httpx.Response(200), httpx.Response(200))
    with open_transport(fake_service, token="jwt", timeout=timeout) as transport:
        transport.client.timeout = httpx.Timeout(timeout)
        transport.request("GET", "/a", is_slow=True)
        transport.request("GET", "/a")
    slow, other = (each.extensions["timeout"] for each in fake_service.requests)
    assert (slow["read"], slow["connect"], other["read"]) == (expected, timeout, timeout)
    assert recorded_pauses == []


def test_a_slow_request_without_a_reply_in_time_is_not_repeated(recorded_pauses: list[float]) -> None:
    """A slow request that gets no reply in time is not sent again, but it is after a lost connection."""
    fake_service = FakeService(httpx.ReadError("lost"), httpx.ReadTimeout("late"))
    with open_transport(fake_service) as transport, pytest.raises(UnreachableError, match="late"):
        transport.request("GET", "/a", is_slow=True)
    assert len(fake_service.requests) == 2
    assert len(recorded_pauses) == 1


def test_a_given_token_is_not_renewed(recorded_pauses: list[float]) -> None:
    """If the token with which a client was created is rejected, the client raises an error without a new token."""
    fake_service = FakeService(build_error_reply(401))
    with open_transport(fake_service, token="jwt") as transport, pytest.raises(SignInError) as refused:
        transport.request("GET", "/a")
    assert (refused.value.code, refused.value.trace_id, refused.value.errors[0]["field"]) == ("CODE", "t", "f")
    assert fake_service.tokens == len(recorded_pauses) == 0


def test_requests_are_repeated_after_the_delay_of_a_busy_reply(recorded_pauses: list[float]) -> None:
    """A request that got 429 or an error without effect is repeated after Retry-After, even a POST."""
    fake_service = FakeService(
        build_error_reply(429, retry_after="7"),
        build_error_reply(503, "OVERLOADED", retry_after="2"),
        httpx.Response(202),
    )
    with open_transport(fake_service) as transport:
        assert transport.request("POST", "/a", json={}).status_code == 202
    assert recorded_pauses == [7.0, 2.0]


@pytest.fixture
def _local_time_of_japan() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_local_time_of_japan")
@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [
        ("Mon, 05 Jan 2026 08:00:20 GMT", 20.0),
        ("Mon Jan  5 08:00:20 2026", 20.0),
        ("Mon, 05 Jan 2026 08:00:20 -0000", 20.0),
        ("Mon, 05 Jan 2026 08:00:00 GMT", 0.75),
        ("Mon, 05 Jan 2026 07:00:00 GMT", 0.75),
    ],
)
def test_retry_after_can_be_a_date(
    recorded_pauses: list[float], monkeypatch: pytest.MonkeyPatch, retry_after: str, pause: float
) -> None:
    """A date in Retry-After is compared with the clock of the service; one that is not in the future is ignored.

    A date without a time zone is in UTC, not in local time.
    """
    monkeypatch.setattr("oi.requests.random.uniform", lambda _low, _high: 0.75)
    busy = build_error_reply(429, retry_after=retry_after)
    busy.headers["Date"] = "Mon, 05 Jan 2026 08:00:00 GMT"
    fake_service = FakeService(busy, httpx.Response(202))
    with open_transport(fake_service) as transport:
        transport.request("GET", "/a")
    assert recorded_pauses == [pause]


@pytest.mark.parametrize(
    ("answer", "attempts", "kind"),
    [
        (lambda: build_error_reply(503, "OVERLOADED"), 5, OverloadedError),
        (lambda: build_error_reply(503), 1, OverloadedError),
        (lambda: build_error_reply(429, retry_after="3600"), 1, TooManyRequestsError),
        (lambda: build_error_reply(400), 1, ApiError),
        (lambda: httpx.Response(502, text="<html>"), 1, ApiError),
        (lambda: httpx.ReadTimeout("late"), 1, UnreachableError),
        (lambda: httpx.ConnectError("refused"), 5, UnreachableError),
    ],
)
def test_the_client_gives_up_after_four_attempts(
    recorded_pauses: list[float], answer: Callable[[], Answer], attempts: int, kind: type[ApiError]
) -> None:
    """The client stops repeating a request after four attempts.

    A POST that was possibly executed is not repeated.
    """
    fake_service = FakeService(*(answer() for _ in range(attempts)))
    with open_transport(fake_service) as transport, pytest.raises(kind):
        transport.request("POST", "/a")
    assert len(fake_service.requests) == attempts
    assert len(recorded_pauses) == attempts - 1


def test_an_append_is_repeated_with_the_same_idempotency_key(recorded_pauses: list[float]) -> None:
    """If the reply to an append is lost, the client repeats the append with the same Idempotency-Key."""
    fake_service = FakeService(httpx.ReadError("lost"), httpx.Response(201), httpx.Response(201))
    with open_transport(fake_service) as transport:
        transport.request("POST", "/a", appends=True)
        transport.request("POST", "/a", appends=True)
    first, second, third = (each.headers["idempotency-key"] for each in fake_service.requests)
    assert first == second != third
    assert len(recorded_pauses) == 1


def test_a_deletion_is_done_if_its_repetition_finds_no_item(recorded_pauses: list[float]) -> None:
    """If the reply to a DELETE is lost and the repetition gets 404, the deletion succeeded."""
    fake_service = FakeService(httpx.ReadError("lost"), build_error_reply(404))
    with open_transport(fake_service) as transport:
        reply = transport.request("DELETE", "/a")
    assert (reply.status_code, reply.content) == (204, b"")
    assert len(recorded_pauses) == 1


def test_a_lost_reply_is_remembered_when_the_token_is_renewed(recorded_pauses: list[float]) -> None:
    """A deletion whose reply was lost is also done if the repetition needs a new token and then gets 404."""
    fake_service = FakeService(httpx.ReadError("lost"), build_error_reply(401), build_error_reply(404))
    with open_transport(fake_service) as transport:
        assert transport.request("DELETE", "/a").status_code == 204
    assert fake_service.tokens == 2
    assert len(recorded_pauses) == 1


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("PUT", {"If-Match": '"e"'}, 412),
        ("PUT", {"If-None-Match": "*"}, 412),
        ("PUT", {}, 400),
        ("PUT", {}, 403),
        ("PUT", {}, 404),
        ("DELETE", {"If-Match": '"e"'}, 412),
        ("DELETE", {"if-match": '"e"'}, 404),
        ("DELETE", {}, 409),
    ],
)
def test_the_outcome_of_a_change_is_unknown_if_its_repetition_is_refused(
    recorded_pauses: list[float], method: str, headers: dict[str, str], status: int
) -> None:
    """If a PUT or DELETE may have succeeded and its repetition is refused, the client reports an unknown outcome."""
    for first in (httpx.ReadError("lost"), build_error_reply(503, "DOCUMENT_OUTCOME_UNKNOWN")):
        fake_service = FakeService(first, build_error_reply(status))
        with (
            open_transport(fake_service) as transport,
            pytest.raises(UnreachableError, match=r"may have been made.*Reason\. \(CODE\)") as raised,
        ):
            transport.request(method, "/a", headers=headers)
        assert raised.value.is_outcome_unknown
    assert len(recorded_pauses) == 2


@pytest.mark.parametrize(("method", "attempts"), [("POST", 1), ("PUT", 5), ("DELETE", 5), ("PATCH", 1), ("GET", 5)])
def test_a_503_that_does_not_rule_out_a_change_leaves_the_outcome_unknown(
    recorded_pauses: list[float], method: str, attempts: int
) -> None:
    """A 503 does not prove that nothing was changed: only requests that are safe to repeat are repeated."""
    fake_service = FakeService(*(build_error_reply(503, "DOCUMENT_OUTCOME_UNKNOWN") for _ in range(attempts)))
    with open_transport(fake_service) as transport, pytest.raises(OverloadedError) as raised:
        transport.request(method, "/a")
    assert (len(fake_service.requests), len(recorded_pauses)) == (attempts, attempts - 1)
    assert raised.value.code == "DOCUMENT_OUTCOME_UNKNOWN"
    assert raised.value.is_outcome_unknown == (method != "GET")
    assert any("may have been made" in each for each in getattr(raised.value, "__notes__", ())) == (method != "GET")


def test_a_503_to_an_append_is_repeated_with_the_same_key(recorded_pauses: list[float]) -> None:
    """An append whose outcome is unknown is repeated with the same Idempotency-Key."""
    fake_service = FakeService(build_error_reply(503, "PROVENANCE_OUTCOME_UNKNOWN"), httpx.Response(201))
    with open_transport(fake_service) as transport:
        transport.request("POST", "/a", appends=True)
    first, second = (each.headers["idempotency-key"] for each in fake_service.requests)
    assert first == second
    assert len(recorded_pauses) == 1


def test_a_post_that_only_reads_is_repeated_after_each_503(recorded_pauses: list[float]) -> None:
    """A POST that changes nothing is repeated after 503, and its outcome is never unknown."""
    fake_service = FakeService(build_error_reply(503), httpx.Response(200), httpx.ReadError("lost"))
    with open_transport(fake_service) as transport:
        assert transport.request("POST", "/a", reads=True).status_code == 200
        with pytest.raises(UnreachableError) as raised:
            transport.request("POST", "/a", reads=True)
    assert not raised.value.is_outcome_unknown
    assert len(recorded_pauses) == 1


def test_a_deletion_is_done_if_its_repetition_after_a_503_finds_no_item(recorded_pauses: list[float]) -> None:
    """If a DELETE gets 503 and the repetition gets 404, the deletion succeeded."""
    fake_service = FakeService(build_error_reply(503), build_error_reply(404))
    with open_transport(fake_service) as transport:
        assert transport.request("DELETE", "/a").status_code == 204
    assert len(recorded_pauses) == 1


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_the_outcome_of_a_change_is_unknown_if_all_replies_are_lost(recorded_pauses: list[float], method: str) -> None:
    """If the replies to all attempts of a PUT or DELETE are lost, the error says that the change may have been made."""
    fake_service = FakeService(*(httpx.ReadTimeout("late") for _ in range(5)))
    with open_transport(fake_service) as transport, pytest.raises(UnreachableError, match="may have been made"):
        transport.request(method, "/a")
    assert len(recorded_pauses) == 4


@pytest.mark.parametrize(
    ("method", "first", "second", "kind"),
    [
        ("DELETE", httpx.ConnectError("refused"), lambda: build_error_reply(404), NotFoundError),
        ("DELETE", httpx.ConnectTimeout("late"), lambda: build_error_reply(404), NotFoundError),
        ("PUT", httpx.PoolTimeout("late"), lambda: build_error_reply(412), PreconditionFailedError),
        ("PUT", httpx.ProxyError("refused"), lambda: build_error_reply(412), PreconditionFailedError),
        ("PUT", httpx.UnsupportedProtocol("no scheme"), lambda: build_error_reply(412), PreconditionFailedError),
        ("PUT", httpx.ReadError("lost"), lambda: build_error_reply(413), InvalidRequestError),
        ("PUT", httpx.ReadError("lost"), lambda: build_error_reply(415), InvalidRequestError),
        ("PUT", httpx.ReadError("lost"), lambda: build_error_reply(428), InvalidRequestError),
        ("DELETE", httpx.ReadError("lost"), lambda: build_error_reply(400), InvalidRequestError),
        ("GET", httpx.ReadError("lost"), lambda: build_error_reply(404), NotFoundError),
    ],
)
def test_a_refusal_that_the_first_attempt_cannot_cause_is_reported(
    recorded_pauses: list[float], method: str, first: Exception, second: Callable[[], Answer], kind: type[ApiError]
) -> None:
    """The refusal of a repetition is reported if the first attempt was not sent or made no change."""
    fake_service = FakeService(first, second())
    with open_transport(fake_service) as transport, pytest.raises(kind) as raised:
        transport.request(method, "/a")
    assert not raised.value.is_outcome_unknown
    assert len(recorded_pauses) == 1


def test_the_outcome_of_a_post_is_unknown_if_its_last_reply_is_lost(recorded_pauses: list[float]) -> None:
    """If the last reply to a POST is lost, the error says that a change may have been made; a GET changes nothing."""
    fake_service = FakeService(*(httpx.ReadError("lost") for _ in range(11)))
    with open_transport(fake_service) as transport:
        for appends in (False, True):
            with pytest.raises(UnreachableError, match=r"POST request is unknown\. If .* may have been made") as raised:
                transport.request("POST", "/a", appends=appends)
            assert raised.value.is_outcome_unknown
        with pytest.raises(UnreachableError, match=r"^http://service\.example does not respond: lost$") as raised:
            transport.request("GET", "/a")
    assert not raised.value.is_outcome_unknown
    assert len(recorded_pauses) == 8


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, InvalidRequestError), (404, NotFoundError), (403, UnreachableError), (500, ServerError)],
)
def test_the_reply_to_a_repeated_append_is_certain(
    recorded_pauses: list[float], status: int, kind: type[ApiError]
) -> None:
    """If the service recognises a repeated append, its reply to the repetition also holds for the first attempt."""
    fake_service = FakeService(httpx.ReadError("lost"), build_error_reply(status))
    with open_transport(fake_service) as transport, pytest.raises(kind) as raised:
        transport.request("POST", "/a", appends=True)
    assert raised.value.is_outcome_unknown == (status not in {400, 404})
    assert len(recorded_pauses) == 1


def test_an_append_is_repeated_while_its_first_attempt_is_in_progress(recorded_pauses: list[float]) -> None:
    """If the service still works on the first attempt of an append, the client repeats the append until it is done."""
    in_use = [build_error_reply(409, "IDEMPOTENCY_KEY_IN_USE") for _ in range(2)]
    fake_service = FakeService(httpx.ReadError("lost"), *in_use, httpx.Response(201))
    with open_transport(fake_service) as transport:
        assert transport.request("POST", "/a", appends=True).status_code == 201
    assert len({each.headers["idempotency-key"] for each in fake_service.requests}) == 1
    assert len(recorded_pauses) == 3


@pytest.mark.parametrize(
    ("status", "code", "attempts"), [(409, "IDEMPOTENCY_KEY_IN_USE", 5), (422, "IDEMPOTENCY_KEY_REUSED", 2)]
)
def test_a_refused_idempotency_key_does_not_tell_the_outcome(
    recorded_pauses: list[float], status: int, code: str, attempts: int
) -> None:
    """If a reply was lost and the service then refuses the Idempotency-Key, the outcome is unknown."""
    fake_service = FakeService(httpx.ReadError("lost"), *(build_error_reply(status, code) for _ in range(attempts - 1)))
    with open_transport(fake_service) as transport, pytest.raises(UnreachableError, match=code) as raised:
        transport.request("POST", "/a", appends=True)
    assert raised.value.is_outcome_unknown
    assert (len(fake_service.requests), len(recorded_pauses)) == (attempts, attempts - 1)


def test_a_key_that_was_used_for_another_request_is_a_refusal(recorded_pauses: list[float]) -> None:
    """If no reply was lost, an Idempotency-Key that was used for another request is an invalid request."""
    fake_service = FakeService(build_error_reply(422, "IDEMPOTENCY_KEY_REUSED"))
    with open_transport(fake_service) as transport, pytest.raises(InvalidRequestError) as raised:
        transport.request("POST", "/a", headers={"Idempotency-Key": "k"})
    assert not raised.value.is_outcome_unknown
    assert recorded_pauses == []


def test_a_token_that_cannot_be_requested_does_not_hide_a_change(recorded_pauses: list[float]) -> None:
    """A lost reply to a request for a token is no lost change; a change that was lost before stays unknown."""
    fake_service = FakeService()
    with open_transport(fake_service) as transport:
        transport.client = httpx.Client(base_url=transport.url, transport=httpx.MockTransport(raise_read_error))
        with pytest.raises(UnreachableError) as raised:
            transport.request("PUT", "/a")
        assert not raised.value.is_outcome_unknown
    fake_service = FakeService(httpx.ReadError("lost"), build_error_reply(401), build_error_reply(403))
    with open_transport(fake_service) as transport, pytest.raises(UnreachableError) as raised:
        transport.request("PUT", "/a")
    assert raised.value.is_outcome_unknown
    assert len(recorded_pauses) == 5


@pytest.mark.parametrize(
    "reply",
    [
        lambda: httpx.Response(404, text="<html>"),
        lambda: httpx.Response(404, json={"code": "ROUTE_NOT_FOUND", "detail": "Route not found."}),
    ],
)
def test_a_404_that_names_no_item_does_not_confirm_a_deletion(
    recorded_pauses: list[float], reply: Callable[[], Answer]
) -> None:
    """A 404 of another server, or for an unknown path, does not prove that a deletion was done."""
    fake_service = FakeService(httpx.ReadError("lost"), reply())
    with open_transport(fake_service) as transport, pytest.raises(UnreachableError, match="may have been made"):
        transport.request("DELETE", "/a")
    assert len(recorded_pauses) == 1


def test_a_client_needs_exactly_one_credential() -> None:
    """A client cannot be created without a credential or with two credentials."""
    for key, token in ((None, None), ("k", "t")):
        with pytest.raises(ValueError, match="exactly one of the arguments"):
            Transport("http://service.example", key=key, token=token)


@pytest.mark.parametrize("credential", ["oik_secret\n", "oik_secr\u00e9t", "oik_secret x", "oik_secret\0"])
def test_the_error_about_a_malformed_credential_does_not_contain_it(credential: str) -> None:
    """A credential that cannot be an HTTP header is rejected with an error that does not contain it."""
    for key, token in ((credential, None), (None, credential)):
        with pytest.raises(ValueError, match="line break") as refused:
            Transport("https://service.example", key=key, token=token)
        assert "secr" not in str(refused.value)


def test_the_error_about_a_malformed_token_of_a_function_does_not_contain_it(recorded_pauses: list[float]) -> None:
    """A function that returns a token with a line break gets an error without the token, before any request."""
    fake_service = FakeService()
    with (
        open_transport(fake_service, token=lambda: "jwt-secret\n") as transport,
        pytest.raises(ValueError, match="line break") as refused,
    ):
        transport.request("GET", "/a")
    assert "secret" not in str(refused.value)
    assert recorded_pauses == []


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_requests_to_this_computer_use_no_proxy(
    monkeypatch: pytest.MonkeyPatch, recorded_pauses: list[float], variable: str
) -> None:
    """A request to this computer does not go to the proxy of the environment, which would get the credential."""
    with run_server() as (service, service_paths), run_server() as (proxy, proxy_paths):
        for name in (variable, variable.lower()):
            monkeypatch.setenv(name, proxy)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        transport = Transport(service, token="jwt", max_attempts=1)
        assert transport.request("GET", "/a").status_code == 200
        transport.close()
    assert (service_paths, proxy_paths) == (["/a"], [])
    assert recorded_pauses == []


@pytest.mark.parametrize(
    ("proxy", "message"),
    [("socks5://user:secret@proxy.example", r"oi-client\[socks\]"), ("ftp://user:secret@proxy.example", "is invalid")],
)
def test_a_proxy_that_cannot_be_used_is_explained(monkeypatch: pytest.MonkeyPatch, proxy: str, message: str) -> None:
    """A SOCKS proxy without its package, and an invalid proxy, get an error that does not contain the password."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    for open_client in (lambda url: Transport(url, key="oik_1"), open_http_client):
        with pytest.raises(UnreachableError, match=message) as failed:
            open_client("https://plant.example")
        assert "secret" not in str(failed.value)


@pytest.mark.parametrize(("status", "attempts"), [(502, 5), (504, 1)])
def test_a_request_is_repeated_if_a_proxy_does_not_reach_the_service(
    recorded_pauses: list[float], status: int, attempts: int
) -> None:
    """A 502 of a proxy is repeated if a repetition is safe; after a 504, the service may still work on the request."""
    fake_service = FakeService(*(httpx.Response(status, text="<html>") for _ in range(attempts)))
    with open_transport(fake_service) as transport, pytest.raises(ServerError) as failed:
        transport.request("GET", "/a")
    assert (len(fake_service.requests), len(recorded_pauses)) == (attempts, attempts - 1)
    assert not failed.value.is_outcome_unknown


def test_a_request_is_not_repeated_after_an_invalid_certificate(
    recorded_pauses: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request ends at once if the TLS certificate of the service is not trusted."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with (
        serve_with_untrusted_certificate(tmp_path) as url,
        Workspace(url, token="jwt") as workspace,
        pytest.raises(UnreachableError, match="certificate verify failed"),
    ):
        workspace.whoami()
    assert recorded_pauses == []


def test_a_request_is_repeated_while_the_caller_handles_an_invalid_certificate(recorded_pauses: list[float]) -> None:
    """A temporary failure is repeated although another server, whose error the caller handles, is not trusted."""
    failure = httpx.ConnectError("refused")
    failure.__context__ = ssl.SSLCertVerificationError(1, "certificate verify failed")
    fake_service = FakeService(failure, httpx.Response(200))
    with open_transport(fake_service) as transport:
        transport.request("GET", "/a")
    assert len(recorded_pauses) == 1


def test_the_error_about_an_invalid_address_contains_the_address() -> None:
    """An invalid URL is rejected, and the error contains the URL."""
    with pytest.raises(ValueError, match="is not an address"):
        Transport("https://service.example:port", key="oik_1")


def test_an_address_with_a_user_name_is_rejected() -> None:
    """The address must not contain a password, because errors contain the address; this error does not."""
    with pytest.raises(ValueError, match="user name or a password") as refused:
        Transport("https://user:secret@plant.example", key="oik_1")
    assert "secret" not in str(refused.value)


def test_a_redirect_is_not_followed(recorded_pauses: list[float]) -> None:
    """A redirect raises an error with both addresses but no secrets; the target gets no credential."""
    fake_service = FakeService(
        httpx.Response(301, headers={"Location": "https://user:secret@other.example/b?sig=secret#secret"})
    )
    with open_transport(fake_service) as transport, pytest.raises(ApiError) as refused:
        transport.get_json("/a", {"sig": "secret"})
    assert refused.value.detail == (
        "http://service.example/a redirects to https://other.example/b; use the address of the service."
    )
    assert refused.value.status == 301
    assert len(fake_service.requests) == 1
    assert recorded_pauses == []


@pytest.mark.parametrize("target", ["https://other.example:secret/", "/\x01?sig=secret", "?sig=secret", "", None])
def test_the_error_about_an_invalid_redirect_does_not_contain_the_target(target: str | None) -> None:
    """A redirect without a target, or with an invalid one, raises an error that does not contain the target."""
    response = httpx.Response(
        302,
        headers={} if target is None else {"Location": target},
        request=httpx.Request("GET", "http://service.example/a?sig=secret"),
    )
    assert (error := find_error(response)) is not None
    assert error.detail == "http://service.example/a redirects to another address; use the address of the service."


def test_the_error_about_a_reply_that_is_not_json_names_the_address(recorded_pauses: list[float]) -> None:
    """A successful reply that is not JSON raises an error that names the address."""
    fake_service = FakeService(httpx.Response(200, text="<html>"))
    with (
        open_transport(fake_service) as transport,
        pytest.raises(ApiError, match=r"http://service\.example/a did not reply with JSON"),
    ):
        transport.get_json("/a", {"secret": "1"})
    assert recorded_pauses == []


def test_a_damaged_reply_is_treated_as_a_lost_reply(recorded_pauses: list[float]) -> None:
    """A reply that cannot be decompressed is treated as a lost reply."""
    fake_service = FakeService(*(httpx.DecodingError("damaged") for _ in range(5)))
    with open_transport(fake_service) as transport, pytest.raises(UnreachableError):
        transport.request("GET", "/a")
    assert len(recorded_pauses) == 4


@pytest.mark.parametrize("errors", ["text", [None, 1], {"field": "f"}, None])
def test_malformed_field_errors_are_ignored(recorded_pauses: list[float], errors: object) -> None:
    """If the list of field errors is malformed, it is ignored, and the error still has its code."""
    fake_service = FakeService(httpx.Response(400, json={"code": "CODE", "detail": "Reason.", "errors": errors}))
    with open_transport(fake_service) as transport, pytest.raises(ApiError) as refused:
        transport.request("GET", "/a")
    assert (refused.value.code, list(refused.value.errors)) == ("CODE", [])
    assert recorded_pauses == []


@pytest.mark.parametrize(
    "reply",
    [
        '{"Token": "a b", "ExpiresAt": "2026-01-01T00:00:00Z"}',
        "[]",
        "null",
        "{}",
        '{"Token": "t", "ExpiresAt": "soon"}',
        "[" * 100_000,
    ],
)
def test_the_error_about_a_reply_without_a_token_is_explained(reply: str) -> None:
    """If a token request gets JSON without a token, the error says that the address is possibly wrong."""
    transport = Transport("http://service.example", key="oik_1")
    headers = {"Content-Type": "application/json"}
    transport.client = httpx.Client(
        base_url=transport.url,
        transport=httpx.MockTransport(lambda _: httpx.Response(200, text=reply, headers=headers)),
    )
    with pytest.raises(ApiError, match="of a workspace"):
        transport.get_token()
    transport.close()
