"""Tests of the client's OAuth flow with a fake server: metadata, errors, stored tokens and the local callback page."""

import fcntl
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from oi import ApiError, NotFoundError, ServerError, SignInError, TooManyRequestsError, UnreachableError, Workspace
from oi.cli import browser_login, stored_grant
from oi.cli.browser_login import sign_in_with_browser
from oi.cli.main import execute
from oi.cli.stored_grant import StoredGrant, store_grant_and_describe_location
from oi.cli.stored_login import get_login_path, read_login_file, remove_login, require_login
from oi.oauth import (
    AuthorizationRequest,
    AuthorizationServer,
    Grant,
    refresh_grant,
    request_server_metadata,
    revoke_grant,
)

from tests.client.fake_keyring import build_keyring

URL = "https://plant.example"


class FakeServer:
    """Fake authorization server that rotates refresh tokens and rejects refresh tokens that were used before."""

    def __init__(self) -> None:
        self.issuer = URL
        self.refresh_token = "r0"
        self.refreshes = 0
        self.revoked: list[str] = []
        self.revocation_reply = httpx.Response(200)
        self.status = 200
        self.authorization_error: httpx.Response | None = None

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Reply to a request of the client."""
        path = request.url.path
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        if path == "/.well-known/oauth-authorization-server":
            endpoints = {f"{name}_endpoint": f"{URL}/{name}" for name in ("authorization", "token", "revocation")}
            return httpx.Response(200, json={"issuer": self.issuer, **endpoints})
        if path == "/authorization":
            return self.authorization_error or httpx.Response(302 if request.url.params["client_id"] == "oi" else 400)
        if path == "/revocation":
            self.revoked.append(form["token"])
            return self.revocation_reply
        return self._issue_tokens(form)

    def _issue_tokens(self, form: dict[str, str]) -> httpx.Response:
        if self.status != 200:
            return httpx.Response(self.status)
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] != self.refresh_token:
                return httpx.Response(400, json={"error": "invalid_grant", "error_description": "It was used."})
            self.refreshes += 1
            self.refresh_token = f"r{self.refreshes}"
        tokens = {"access_token": f"a{self.refreshes}", "refresh_token": self.refresh_token, "expires_in": 3600}
        return httpx.Response(200, json={**tokens, "scope": "Workspace.Catalog.Read"})


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """Return the fake authorization server, to which all clients of the test connect."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OI_URL", "OI_KEY", "OI_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    made = FakeServer()
    for module in (stored_grant, browser_login):
        monkeypatch.setattr(module, "open_http_client", lambda _url: open_oauth_client(made))
    return made


def open_oauth_client(server: FakeServer) -> httpx.Client:
    """Return an OAuth client of the fake server."""
    return httpx.Client(transport=httpx.MockTransport(server.reply_to_request), base_url=URL)


def store_tokens(expires_in: float) -> None:
    """Store tokens of the server, as a sign-in does."""
    get_login_path().parent.mkdir(parents=True, exist_ok=True)
    store_grant_and_describe_location(URL, Grant("oi", "a0", time.time() + expires_in, "r0"))


def log_in_with_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what `oi login` reads: a key on standard input, the tokens of a sign-in, and the caller's identity."""
    identity = {"name": "Ann", "principal": "ann@plant", "workspace": "plant"}
    monkeypatch.setattr(Workspace, "whoami", lambda _workspace: identity)
    monkeypatch.setattr("sys.stdin", io.StringIO("oik_1\n"))
    grant = Grant("oi", "b0", time.time() + 3600, "new")
    monkeypatch.setattr(browser_login, "sign_in_with_browser", lambda *_arguments: grant)


def forge_redirect(
    monkeypatch: pytest.MonkeyPatch, reply: Callable[[dict[str, str]], dict[str, Any]]
) -> list[httpx.Response]:
    """Replace the browser with a function that opens a forged callback address and then the correct one."""
    seen: list[httpx.Response] = []

    def open_page(address: str) -> bool:
        sent = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}

        returns = ({"code": "forged", "state": "x", "iss": URL}, reply(sent))
        addresses = (f"{sent['redirect_uri']}?{urlencode(members)}" for members in returns)
        seen.extend(httpx.get(address, trust_env=False) for address in addresses)
        return True

    monkeypatch.setattr("webbrowser.open", open_page)
    return seen


def test_only_a_callback_with_the_state_of_the_request_completes_a_sign_in(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A callback with the request's state completes the sign-in; a callback with another state is rejected."""
    pages = forge_redirect(monkeypatch, lambda sent: {"code": "c", "state": sent["state"], "iss": URL})
    grant = sign_in_with_browser(URL, "oi", ["Workspace.Catalog.Read"])
    assert (grant.access_token, grant.scopes) == (f"a{server.refreshes}", ["Workspace.Catalog.Read"])
    assert pages[0].status_code == 404
    assert "code=" not in pages[0].text


def test_the_error_about_a_declined_consent_contains_the_reason(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user declines, the error contains the reason that the authorization server returns."""
    forge_redirect(monkeypatch, lambda sent: {"error": "access_denied", "state": sent["state"], "iss": server.issuer})
    with pytest.raises(SignInError, match="access_denied"):
        sign_in_with_browser(URL, "oi", [])


def test_a_sign_in_without_a_callback_fails_after_the_timeout(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no valid callback arrives in time, the sign-in fails; callbacks from another issuer do not count."""
    forge_redirect(monkeypatch, lambda sent: {"code": "c", "state": sent["state"], "iss": f"{server.issuer}.evil"})
    with pytest.raises(SignInError, match=r"The sign-in was not completed"):
        sign_in_with_browser(URL, "oi", [], wait_seconds=0.2)


def test_the_error_about_an_unknown_oauth_client_is_explained(server: FakeServer) -> None:
    """The error about an unknown OAuth client states what an administrator must add to the workspace document."""
    assert server.issuer == URL
    with pytest.raises(NotFoundError, match=r"(?s)oauthClients:.*id: other"):
        sign_in_with_browser(URL, "other", [])


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        (httpx.Response(429, json={"code": "RATE_LIMITED", "detail": "Wait."}), TooManyRequestsError, "Wait"),
        (httpx.Response(404, text="<html>"), NotFoundError, "404 Not Found"),
        (httpx.Response(503, text="<html>"), ServerError, "503 Service Unavailable"),
    ],
    ids=["rate-limit", "proxy", "outage"],
)
def test_another_error_of_the_sign_in_page_is_no_unknown_client(
    server: FakeServer, reply: httpx.Response, kind: type[ApiError], message: str
) -> None:
    """If the sign-in page cannot be opened, the error states why, and does not ask for another OAuth client."""
    server.authorization_error = reply
    with pytest.raises(kind, match=message) as raised:
        sign_in_with_browser(URL, "oi", [], wait_seconds=0)
    assert not hasattr(raised.value, "__notes__")


def test_the_lines_that_add_an_unknown_client_are_printed(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below the error about an unknown client, `oi` prints the lines for the workspace document, one per line."""
    assert execute(["login", server.issuer, "--browser", "--client-id", "other"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[2:4] == [
        "  oauthClients:",
        "    - {id: other, name: Command line oi, redirectUris: [http://127.0.0.1/callback]}",
    ]


def test_metadata_of_another_issuer_is_rejected(server: FakeServer) -> None:
    """If the metadata names another issuer than the service, the client sends no credentials."""
    server.issuer = "https://evil.example"
    with open_oauth_client(server) as client, pytest.raises(SignInError, match=r"evil\.example"):
        request_server_metadata(client, URL)


NO_METADATA = ["<html>", "{}", "[]", "null", "7", "[" * 100_000]
ENDPOINTS = ("issuer", "authorization_endpoint", "token_endpoint", "revocation_endpoint")


@pytest.mark.parametrize(
    "text", [*NO_METADATA, *(json.dumps(dict.fromkeys(ENDPOINTS, value)) for value in (7, None, f"{URL}:port"))]
)
def test_a_reply_that_is_no_oauth_metadata_is_explained(text: str) -> None:
    """A reply that is no OAuth metadata raises an error that mentions the workspace's address."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    with (
        httpx.Client(transport=transport, base_url=URL) as client,
        pytest.raises(ApiError, match="Is it the address of a workspace"),
    ):
        request_server_metadata(client, URL)


@pytest.mark.parametrize(
    "text",
    [
        *NO_METADATA,
        '{"access_token": "a", "refresh_token": "r", "expires_in": "soon"}',
        '{"access_token": "a", "refresh_token": "r", "expires_in": 1' + "0" * 400 + "}",
    ],
)
def test_a_reply_without_tokens_is_explained(text: str) -> None:
    """A token reply without valid tokens is reported as an error of the server, not of the program."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    server = AuthorizationServer(URL, f"{URL}/authorization", f"{URL}/token", f"{URL}/revocation")
    with (
        httpx.Client(transport=transport, base_url=URL) as client,
        pytest.raises(ApiError, match="Is it the address of a workspace"),
    ):
        refresh_grant(client, server, Grant("oi", "a0", 0, "r0"))


def test_a_damaged_sign_in_reply_raises_the_error_for_an_outage() -> None:
    """A sign-in reply with damaged compression is reported as a service that does not respond."""
    reply = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"damaged"))
    with (
        httpx.Client(transport=httpx.MockTransport(lambda _: reply), base_url=URL) as client,
        pytest.raises(UnreachableError, match="does not respond"),
    ):
        request_server_metadata(client, URL)


def test_the_pkce_verifier_is_not_in_the_browser_url(server: FakeServer) -> None:
    """The URL for the browser contains the PKCE challenge but not the secret verifier."""
    with open_oauth_client(server) as client:
        request = AuthorizationRequest("oi", "http://127.0.0.1:1/callback")
        address = request.build_url(request_server_metadata(client, URL))
    assert request.verifier not in address
    assert "scope" not in parse_qs(urlsplit(address).query)


def test_an_outage_during_a_token_refresh_raises_server_error(server: FakeServer) -> None:
    """An outage of the service raises ServerError.

    Only a rejected token causes the error that requests a new sign-in.
    """
    server.status = 503
    with open_oauth_client(server) as client, pytest.raises(ServerError):
        refresh_grant(client, request_server_metadata(client, URL), Grant("oi", "a0", 0, "r0"))


def test_a_valid_token_is_not_refreshed(server: FakeServer) -> None:
    """A valid token is not refreshed; the file with the token is readable only by its owner."""
    store_tokens(3600)
    assert get_login_path().stat().st_mode & 0o777 == 0o600
    login = require_login()
    assert callable(login.token)
    assert (login.token(), server.refreshes) == ("a0", 0)


def test_several_processes_refresh_the_token_once(server: FakeServer) -> None:
    """If several processes run at once, only one refreshes the token, because a refresh token is valid only once."""
    store_tokens(30)
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda _: StoredGrant(URL)(), range(8)))
    assert (tokens, server.refreshes) == (["a1"] * 8, 1)
    assert read_login_file()["refreshToken"] == "r1"


def test_a_rejected_token_is_renewed_although_the_clock_says_that_it_is_valid(server: FakeServer) -> None:
    """If the service rejects the token of a sign-in, the client renews it once; another process uses the new token."""
    store_tokens(3600)
    tokens, sent = [StoredGrant(URL), StoredGrant(URL)], []

    def reject_old_token(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["authorization"])
        return httpx.Response(401 if sent[-1] == "Bearer a0" else 200)

    assert [token() for token in tokens] == ["a0", "a0"]
    with Workspace(URL, token=tokens[0]) as workspace:
        workspace._transport.client = httpx.Client(transport=httpx.MockTransport(reject_old_token), base_url=URL)
        workspace._transport.request("GET", "/a")
    assert sent == ["Bearer a0", "Bearer a1"]
    assert [each.renew("a0") for each in tokens] == ["a1", "a1"]
    assert server.refreshes == 1


def test_the_error_about_a_rejected_refresh_token_names_the_sign_in_command(server: FakeServer) -> None:
    """If the refresh token is rejected, the error names the command for a new sign-in."""
    store_tokens(0)
    server.refresh_token = "other"
    with pytest.raises(SignInError, match=r"It was used\. Run `oi login https://plant\.example --browser`"):
        StoredGrant(URL)()
    remove_login()
    with pytest.raises(SignInError, match="signed out"):
        StoredGrant(URL)()


@pytest.mark.parametrize("expires_in", [3600, 0])
def test_a_token_of_another_service_is_not_sent_to_this_one(server: FakeServer, expires_in: float) -> None:
    """If a login at another service replaces the sign-in, a running command gets no token, valid or renewed."""
    store_tokens(3600)
    login = require_login()
    assert callable(login.token)
    assert login.token() == "a0"
    store_grant_and_describe_location("https://other.example", Grant("oi", "b0", time.time() + expires_in, "r0"))
    with pytest.raises(SignInError, match=r"at another service\. Run `oi login https://plant\.example --browser`"):
        login.token()
    assert server.refreshes == 0


def test_a_token_of_a_login_that_another_command_stores_is_not_renewed(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a login at another service is stored while a command waits to renew its token, it gets no token."""
    store_tokens(0)

    @contextmanager
    def lock_after_other_login() -> Iterator[None]:
        store_grant_and_describe_location("https://other.example", Grant("oi", "b0", time.time() + 3600, "r0"))
        yield

    monkeypatch.setattr(stored_grant, "lock_login", lock_after_other_login)
    with pytest.raises(SignInError, match="at another service"):
        StoredGrant(URL)()
    assert server.refreshes == 0


def test_a_logout_revokes_the_refresh_token(server: FakeServer) -> None:
    """A logout revokes the refresh token, which ends the grant."""
    store_tokens(3600)
    assert execute(["logout"]) == 0
    assert server.revoked == ["r0"]


def test_a_stored_login_is_locked_until_it_is_replaced_or_removed(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other command changes the login while it is ended at its service and replaced, or ended and removed."""
    monkeypatch.setattr(Workspace, "whoami", lambda _workspace: {"name": "Ann", "principal": "a", "workspace": "p"})
    locked: list[bool] = []

    def check_lock_then[**P, R](call: Callable[P, R]) -> Callable[P, R]:
        def call_after_check(*arguments: P.args, **options: P.kwargs) -> R:
            with get_login_path().with_name("login.lock").open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    locked.append(False)
                except BlockingIOError:
                    locked.append(True)
            return call(*arguments, **options)

        return call_after_check

    store_tokens(3600)
    monkeypatch.setattr(stored_grant, "revoke_grant", check_lock_then(revoke_grant))
    for name in ("replace", "unlink"):
        monkeypatch.setattr(Path, name, check_lock_then(getattr(Path, name)))
    monkeypatch.setattr("sys.stdin", io.StringIO("oik_1\n"))
    assert execute(["login", "https://other.example"]) == 0
    assert execute(["logout"]) == 0
    assert server.revoked == ["r0"]
    assert set(locked) == {True}
    assert not get_login_path().exists()


def test_files_of_a_killed_login_are_removed(server: FakeServer) -> None:
    """A later command that changes the login removes the files that a killed one left, which contain a credential."""
    store_tokens(0)
    path = get_login_path()
    for suffix in ("0123456789abcdef.part", "new"):
        path.with_name(f"{path.name}.{suffix}").write_text("secret")
    StoredGrant(URL)()
    assert server.refreshes == 1
    assert {each.name for each in path.parent.iterdir()} == {"login.json", "login.lock"}


def test_a_page_of_a_proxy_does_not_confirm_a_logout(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """If a proxy replies to the revocation with a page of its own, the logout reports an error."""
    store_tokens(3600)
    server.revocation_reply = httpx.Response(200, html="<html>")
    assert execute(["logout"]) == 1
    assert "/revocation did not reply with a confirmation" in capsys.readouterr().err


@pytest.mark.parametrize("has_keyring", [False, True])
@pytest.mark.parametrize("options", [[], ["--browser"]])
@pytest.mark.parametrize("url", [URL, "https://other.example"])
def test_a_login_ends_the_earlier_sign_in(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, url: str, options: list[str], *, has_keyring: bool
) -> None:
    """A login with a key or the browser ends the stored sign-in with the browser, also one at the same service."""
    log_in_with_fakes(monkeypatch)
    if has_keyring:
        monkeypatch.setitem(sys.modules, "keyring", build_keyring({}))
    store_tokens(3600)
    assert execute(["login", url, *options]) == 0
    assert (server.revoked, read_login_file()["url"]) == (["r0"], url)


def test_a_login_prints_a_note_if_the_earlier_sign_in_does_not_end(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the service does not end the earlier sign-in, the new login is stored, and a note is printed."""
    log_in_with_fakes(monkeypatch)
    store_tokens(3600)
    server.issuer = "https://forged.example"
    assert execute(["login", "https://other.example"]) == 0
    assert (server.revoked, read_login_file()["url"]) == ([], "https://other.example")
    assert f"note: the earlier sign-in at {URL} was not ended" in capsys.readouterr().err
