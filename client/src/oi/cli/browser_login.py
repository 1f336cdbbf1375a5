"""Sign-in with a browser: a local port receives the result from the browser (RFC 8252)."""

import queue
import threading
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import click

from oi.errors import NotFoundError, SignInError
from oi.oauth import (
    OAUTH_CLIENT_UNKNOWN,
    AuthorizationRequest,
    AuthorizationServer,
    Grant,
    check_oauth_client_exists,
    open_http_client,
    redeem_authorization_code,
    request_server_metadata,
)

CLIENT_ID = "oi"
WAIT_SECONDS = 300.0
_PATH = "/callback"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>oi</title>
<h1>{title}</h1><p>{text}</p>
"""


def sign_in_with_browser(
    url: str, client_id: str, scopes: Sequence[str], *, wait_seconds: float = WAIT_SECONDS
) -> Grant:
    """Open the sign-in page in a browser, wait until the user has allowed access, and return the tokens.

    Args:
        url: address of the service.
        client_id: id of the OAuth client, as the workspace document declares it.
        scopes: requested access rights.
        wait_seconds: maximum time in seconds to wait for the user's decision.

    Raises:
        SignInError: the user denied access, or did not decide in time.
        ApiError: the service does not know the OAuth client, or cannot be reached.
    """
    with open_http_client(url) as client, _run_redirect_receiver() as receiver:
        server = request_server_metadata(client, url)
        request = AuthorizationRequest(client_id, f"{receiver.url}{_PATH}", scopes)
        try:
            check_oauth_client_exists(client, server, request)
        except NotFoundError as error:
            # A proxy can reply 404, too.
            if error.code == OAUTH_CLIENT_UNKNOWN:
                error.add_note(_explain_missing_oauth_client(client_id))
            raise
        receiver.set_expected_request(request, server)
        address = request.build_url(server)
        click.echo(f"Sign in on this page; it opens in your browser:\n  {address}", err=True)
        webbrowser.open(address)
        return redeem_authorization_code(client, server, request, receiver.wait_for_authorization_code(wait_seconds))


def _explain_missing_oauth_client(client_id: str) -> str:
    return (
        "Sign in with an API key, or ask an administrator to add this to the workspace document:\n"
        f"  oauthClients:\n    - {{id: {client_id}, name: Command line oi, redirectUris: [http://127.0.0.1{_PATH}]}}"
    )


class _RedirectReceiver:
    """Web server on this computer that receives the result of the sign-in from the browser."""

    def __init__(self) -> None:
        receiver = self
        self._request: AuthorizationRequest | None = None
        self._issuer = ""
        self.replies: queue.Queue[Mapping[str, str]] = queue.Queue()

        class _RedirectRequestHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                members = receiver.find_authorization_reply(self.path)
                status, title, text = _build_result_page(members)
                body = _PAGE.format(title=escape(title), text=escape(text)).encode()
                self.send_response(status)
                for name, value in _build_result_page_headers(body):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                if members is not None:
                    # The command may end as soon as it has the reply, so the page is sent first.
                    receiver.replies.put(members)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
                """Write no log, because the URL of a request contains the authorization code."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _RedirectRequestHandler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def set_expected_request(self, request: AuthorizationRequest, server: AuthorizationServer) -> None:
        """Set the authorization request whose reply this server accepts; replies to other requests are ignored."""
        self._request, self._issuer = request, server.issuer

    def find_authorization_reply(self, request_url: str) -> Mapping[str, str] | None:
        """Parse the reply of the authorization server from the URL of a request; return its parameters by name.

        Return None if the request is not the expected reply: other web pages can send requests to this port, too, and
        must not end the sign-in.
        """
        parts = urlsplit(request_url)
        members = {name: values[0] for name, values in parse_qs(parts.query).items() if len(values) == 1}
        if parts.path != _PATH or self._request is None:
            return None
        is_reply = members.get("state") == self._request.state and members.get("iss") == self._issuer
        return members if is_reply else None

    def wait_for_authorization_code(self, max_seconds: float) -> str:
        """Wait for the reply of the authorization server, and return its authorization code.

        Raises:
            SignInError: the user denied access, or no reply arrived in time.
        """
        try:
            members = self.replies.get(timeout=max_seconds)
        except queue.Empty:
            detail = f"The sign-in was not completed within {max_seconds:.0f} s. Run the command again."
            raise SignInError(0, "", detail) from None
        if "code" not in members:
            error = members.get("error", "")
            detail = members.get("error_description") or error or "The service returned no code."
            raise SignInError(0, error, detail)
        return members["code"]


class _ResultPage(NamedTuple):
    """Page that shows the result of the sign-in in the browser, with its HTTP status."""

    status: int
    title: str
    text: str


def _build_result_page(authorization_reply: Mapping[str, str] | None) -> _ResultPage:
    """Build the page that tells the user in the browser whether the sign-in succeeded.

    ``authorization_reply`` has the parameters of the redirect that ends the sign-in. For any other request it is None,
    and the page is "Not found".
    """
    if authorization_reply is None:
        return _ResultPage(404, "Not found", "This address does not belong to a sign-in that is waiting.")
    if "code" in authorization_reply:
        return _ResultPage(200, "Signed in", "You can close this page and return to the terminal.")
    return _ResultPage(200, "Not signed in", "You can close this page. The terminal shows the reason.")


def _build_result_page_headers(body: bytes) -> Iterator[tuple[str, str]]:
    yield "Content-Type", "text/html; charset=utf-8"
    yield "Content-Length", str(len(body))
    yield "Content-Security-Policy", "default-src 'none'"
    yield "Referrer-Policy", "no-referrer"
    yield "Cache-Control", "no-store"


@contextmanager
def _run_redirect_receiver() -> Iterator[_RedirectReceiver]:
    receiver = _RedirectReceiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()
