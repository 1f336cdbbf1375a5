"""Tests of the download of an audit chain, with a fake service whose chain grows and whose replies fail."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import ProxyHandler

import pytest
from oi.verification.fetch import (
    MAX_ATTEMPTS,
    MAX_WAIT_SECONDS,
    PAGE,
    FetchError,
    _get_opener,
    download_chain_and_checkpoint,
)

from shared.provenance.hash_rule import LAST_SEQUENCE, format_record_id
from tests.client.untrusted_service import serve_with_untrusted_certificate


def get_jwt(_is_rejected: bool) -> str:  # noqa: FBT001  the type GetToken
    """Return the same token for each request."""
    return "jwt"


class GrowingChain:
    """Fake service with an audit chain, to which records are appended after each reply.

    Attributes:
        growth: number of records that are appended after each reply, until the chain has `end` records.
        missing: sequence numbers of records that were removed from the chain.
        page: maximum number of records in a reply.
        failures: status and ``Retry-After`` of the next replies; the status 0 cuts the body of a reply.
        tokens: tokens of the requests.
        ended: tokens that the service rejects.
        redirect: address to which all requests are redirected; empty for none.
        redirect_status: HTTP status of the redirects.
    """

    def __init__(self, count: int) -> None:
        self.count = self.end = count
        self.growth = 0
        self.missing = set[int]()
        self.page = PAGE
        self.address = self.redirect = ""
        self.redirect_status = 302
        self.failures: list[tuple[int, str]] = []
        self.tokens: list[str] = []
        self.ended = set[str]()

    def reply(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Return the status, the headers and the body of a reply."""
        if self.redirect:
            return self.redirect_status, {"Location": self.redirect}, b""
        if self.failures:
            status, retry_after = self.failures.pop(0)
            headers = {"Retry-After": retry_after} if retry_after else {}
            return (status, headers, b"{}") if status else (200, {"Content-Length": "9"}, b"[")
        url = urlsplit(path)
        if url.path.endswith("/checkpoint"):
            return 404, {}, b"{}"
        query = {name: int(values[0]) for name, values in parse_qs(url.query).items() if name != "target"}
        last = min(self.count, query.get("toSequence", LAST_SEQUENCE))
        found = [place for place in range(last, query["fromSequence"] - 1, -1) if place not in self.missing]
        shown = found[: min(self.page, query["limit"])]
        self.count = min(self.end, self.count + self.growth)
        headers = {"x-provenance-has-more": "true" if len(found) > len(shown) else "false"}
        return 200, headers, json.dumps([{"RecordID": format_record_id(place)} for place in shown]).encode()


@pytest.fixture
def chain() -> Iterator[GrowingChain]:
    """Start a fake service with a chain of 997 records."""
    chain = GrowingChain(PAGE - 3)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            chain.tokens.append(self.headers["Authorization"].removeprefix("Bearer "))
            status, headers, body = (401, {}, b"{}") if chain.tokens[-1] in chain.ended else chain.reply(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write no server log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        chain.address = f"http://127.0.0.1:{server.server_port}"
        yield chain
        server.shutdown()
        thread.join()


def fetch_sequences(chain: GrowingChain, output: Path) -> list[int]:
    """Download the chain; return the sequence numbers of the records in the export."""
    download_chain_and_checkpoint(chain.address, get_jwt, "AccessControl", "", output)
    return [int(record["RecordID"]) for record in json.loads(output.read_text())]


@pytest.mark.parametrize("page", [PAGE, 300])
@pytest.mark.parametrize("growth", [1, 3, 4, 250, PAGE])
def test_a_chain_that_grows_during_its_download_has_no_gap(
    chain: GrowingChain, tmp_path: Path, growth: int, page: int
) -> None:
    """Records that are appended during the download leave no gap in the export."""
    chain.growth, chain.end, chain.page = growth, 3 * PAGE + 5, page
    fetched = fetch_sequences(chain, tmp_path / "export.json")
    assert len(fetched) >= PAGE - 3
    assert fetched == list(range(1, len(fetched) + 1))


def test_a_gap_in_a_chain_that_grows_is_the_only_gap_of_the_export(chain: GrowingChain, tmp_path: Path) -> None:
    """The export contains every other record once if a record is missing, so that the verifier finds the gap."""
    chain.growth, chain.end, chain.missing = 5, PAGE + 100, {4, PAGE - 1}
    fetched = fetch_sequences(chain, tmp_path / "export.json")
    assert set(range(1, fetched[-1] + 1)) - set(fetched) == chain.missing
    assert fetched == sorted(set(fetched))
    assert fetched[-1] > PAGE


def test_a_chain_that_fills_whole_pages_is_downloaded(chain: GrowingChain, tmp_path: Path) -> None:
    """A chain whose last record is the last of a page is downloaded completely."""
    chain.count = chain.end = 2 * PAGE
    assert fetch_sequences(chain, tmp_path / "export.json") == list(range(1, 2 * PAGE + 1))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses of the download, which do not take time in a test."""
    pauses: list[float] = []
    monkeypatch.setattr("oi.verification.fetch.sleep", pauses.append)
    return pauses


def test_requests_are_repeated_after_temporary_failures(
    chain: GrowingChain, tmp_path: Path, pauses: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """A request is repeated after `Retry-After` after 429, 502 or 503, and if the connection is lost.

    Standard error announces each repetition.
    """
    chain.failures = [(429, "17"), (503, ""), (0, ""), (503, "60")]
    assert len(fetch_sequences(chain, tmp_path / "export.json")) == PAGE - 3
    assert pauses == [17, 2, 4, 60]
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "note: the service returned status 429; next attempt in 17 s"
    assert last == "note: the service returned status 503; next attempt in 60 s"


def test_retry_after_can_be_a_date(chain: GrowingChain, tmp_path: Path, pauses: list[float]) -> None:
    """A date in Retry-After that has passed is ignored, and a distant one ends the attempts."""
    passed = "Mon, 05 Jan 2026 08:00:00 GMT"
    chain.failures = [(503, passed), (503, passed), (503, "Fri, 31 Dec 9999 23:59:59 GMT")]
    with pytest.raises(FetchError, match="503"):
        fetch_sequences(chain, tmp_path / "export.json")
    assert pauses == [1, 2]


@pytest.mark.parametrize(
    ("failures", "attempts", "exit_status"),
    [
        ([(503, "1")] * MAX_ATTEMPTS, MAX_ATTEMPTS, 3),
        ([(502, "1")] * MAX_ATTEMPTS, MAX_ATTEMPTS, 3),
        ([(504, "1")], 1, 3),
        ([(429, "9" * 5_000)], 1, 1),
        ([(0, "")] * MAX_ATTEMPTS, MAX_ATTEMPTS, 3),
        ([(429, str(MAX_WAIT_SECONDS + 1))], 1, 1),
        ([(403, "1")], 1, 1),
        ([(500, "1")], 1, 1),
    ],
)
def test_a_permanent_failure_ends_the_download(
    chain: GrowingChain,
    tmp_path: Path,
    pauses: list[float],
    failures: list[tuple[int, str]],
    attempts: int,
    exit_status: int,
) -> None:
    """The download ends after five attempts of a request, after a long `Retry-After`, and after every other error."""
    chain.failures = list(failures)
    with pytest.raises(FetchError) as failed:
        download_chain_and_checkpoint(chain.address, get_jwt, "AccessControl", "", tmp_path / "export.json")
    assert (failed.value.exit_status, len(pauses), chain.failures) == (exit_status, attempts - 1, [])
    assert not (tmp_path / "export.json").exists()


def test_each_request_of_a_download_gets_a_valid_token(chain: GrowingChain, tmp_path: Path) -> None:
    """Each request has its own token; after 401 it is repeated with a new one, but not if the token is the same."""
    chain.count = chain.end = 2 * PAGE
    chain.ended = {"3"}
    issued: list[bool] = []

    def issue_token(is_rejected: bool) -> str:  # noqa: FBT001  the type GetToken
        issued.append(is_rejected)
        return str(len(issued))

    download_chain_and_checkpoint(chain.address, issue_token, "AccessControl", "", tmp_path / "export.json")
    assert chain.tokens == [str(number) for number in range(1, len(issued) + 1)]
    assert [number for number, is_rejected in enumerate(issued, 1) if is_rejected] == [4]
    chain.ended = {"jwt"}
    chain.tokens.clear()
    with pytest.raises(FetchError, match="401"):
        download_chain_and_checkpoint(chain.address, get_jwt, "AccessControl", "", tmp_path / "other.json")
    assert chain.tokens == ["jwt"]


@pytest.mark.parametrize("url", ["http://plant.example", "https://user:secret@plant.example"])
def test_the_token_is_sent_only_to_a_protected_address(tmp_path: Path, pauses: list[float], url: str) -> None:
    """The download ends as wrong usage for http to another computer and for a password in the address."""
    with pytest.raises(FetchError, match=r"must begin with https|user name or a password") as failed:
        download_chain_and_checkpoint(url, get_jwt, "AccessControl", "", tmp_path / "export.json")
    assert (failed.value.exit_status, "secret" in str(failed.value), pauses) == (2, False, [])


def test_a_download_from_this_computer_uses_no_proxy(
    chain: GrowingChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """A request to this computer does not go to the proxy of the environment, which would get the token."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert len(fetch_sequences(chain, tmp_path / "export.json")) == PAGE - 3
    assert pauses == []


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_a_download_uses_the_http_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float], variable: str
) -> None:
    """A download uses the HTTP proxy in HTTPS_PROXY or ALL_PROXY, and ends at once if it is a SOCKS proxy."""
    for name in ("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv(variable, "http://proxy.example:3128")
    handlers = vars(_get_opener("https://plant.example"))["handlers"]
    proxies = [vars(each)["proxies"] for each in handlers if isinstance(each, ProxyHandler)]
    assert proxies == [{"https": "http://proxy.example:3128"}]
    monkeypatch.setenv(variable, "socks5://user:secret@proxy.example")
    with pytest.raises(FetchError, match="cannot use a SOCKS proxy") as failed:
        download_chain_and_checkpoint(
            "https://plant.example", lambda _: "jwt", "AccessControl", "", tmp_path / "export.json"
        )
    assert (failed.value.exit_status, "secret" in str(failed.value), pauses) == (3, False, [])


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/other?sig=secret", "/other"),
        ("file:///other?sig=secret", "file:///other"),
        ("http://[other?sig=secret", "another address"),
    ],
)
@pytest.mark.parametrize("status", [302, 308])
def test_the_download_follows_no_redirect(
    chain: GrowingChain, tmp_path: Path, pauses: list[float], status: int, location: str, target: str
) -> None:
    """A redirect ends the download with both addresses, but no query, and no request goes to the target."""
    chain.redirect, chain.redirect_status = location, status
    with pytest.raises(FetchError) as failed:
        fetch_sequences(chain, tmp_path / "export.json")
    source = f"{chain.address}/oi-api/provenance/checkpoint"
    assert str(failed.value) == f"{source} redirects to {target}; use the address of the service."
    assert (failed.value.exit_status, len(chain.tokens), pauses) == (1, 1, [])


def test_a_request_is_not_repeated_after_an_invalid_certificate(tmp_path: Path, pauses: list[float]) -> None:
    """The download ends at once if the certificate of the service is not trusted."""
    with (
        serve_with_untrusted_certificate(tmp_path) as url,
        pytest.raises(FetchError, match="certificate verify failed") as failed,
    ):
        download_chain_and_checkpoint(url, get_jwt, "AccessControl", "", tmp_path / "export.json")
    assert (failed.value.exit_status, pauses) == (3, [])


def test_two_downloads_to_one_file_do_not_mix(chain: GrowingChain, tmp_path: Path) -> None:
    """If a second download to the same file starts and fails during the first, the first export is complete."""
    output, reply = tmp_path / "export.json", chain.reply
    is_second_started = False

    def start_second_download_then_reply(path: str) -> tuple[int, dict[str, str], bytes]:
        nonlocal is_second_started
        if "fromSequence=1001" in path and not is_second_started:
            is_second_started = True
            chain.failures = [(404, ""), (403, "")]
            with pytest.raises(FetchError):
                download_chain_and_checkpoint(chain.address, get_jwt, "AccessControl", "", output)
        return reply(path)

    chain.count = chain.end = 2 * PAGE
    chain.reply = start_second_download_then_reply  # type: ignore[method-assign]
    assert fetch_sequences(chain, output) == list(range(1, 2 * PAGE + 1))
    assert is_second_started
    assert [file.name for file in tmp_path.iterdir()] == ["export.json"]
