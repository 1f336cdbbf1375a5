"""Tests of the consent page, with the official MCP client and with a declared client."""

import asyncio
import json
import queue
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from oi.cli.main import execute
from oi.cli.stored_login import get_login_path, read_login_file
from playwright.sync_api import expect
from pydantic import AnyUrl

from local.sign_in.codes import build_sign_in_link, open_sign_in_codes
from tests.console.visits import Console, open_console
from tests.service.local_service import ROOT, Service
from tests.service.oauth_client import OAuthClient, read_query
from tests.unit.shared.backends.test_outbound_http import create_certificate

WORKSPACE = ROOT / "tests" / "service" / "workspace.yaml"


class OAuthClientServer:
    """HTTP server of a test OAuth client: serves its metadata and receives the browser's redirects.

    Attributes:
        documents: JSON documents by path.
        returned: addresses to which browsers returned.
    """

    def __init__(self, host: str, tls: ssl.SSLContext | None = None) -> None:
        self.documents: dict[str, Any] = {}
        self.returned: queue.Queue[str] = queue.Queue()
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                document = pages.documents.get(self.path)
                if "?" in self.path:
                    pages.returned.put(self.path)
                self.send_response(200 if document or "?" in self.path else 404)
                self.send_header("Content-Type", "application/json" if document else "text/plain")
                self.end_headers()
                self.wfile.write(json.dumps(document).encode() if document else b"signed in")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((host, 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://{host}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()


@dataclass
class Memory:
    """Token storage for the MCP client, in memory."""

    tokens: OAuthToken | None = None
    info: OAuthClientInformationFull | None = None
    saved: list[OAuthToken] = field(default_factory=list)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the tokens of the sign-in."""
        self.tokens = tokens
        self.saved.append(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the stored registration of the OAuth client."""
        return self.info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the registration of the OAuth client."""
        self.info = client_info


@pytest.fixture(scope="module")
def service_and_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, ssl.SSLContext]]:
    """Yield a service that trusts a local certificate, and the TLS settings with this certificate."""
    folder = tmp_path_factory.mktemp("consent")
    tls = create_certificate(folder, "client.test")
    environment = {"SSL_CERT_FILE": str(folder / "cert.pem")}
    running = Service(folder / "data", WORKSPACE, environment).start()
    yield running, tls
    assert running.stop() == 0


@pytest.fixture
def redirect_server() -> Iterator[OAuthClientServer]:
    """Yield the server to which the consent page redirects browsers."""
    pages = OAuthClientServer("127.0.0.1")
    yield pages
    pages.close()


def create_link(service: Service, member: str) -> str:
    """Return a sign-in link of a member."""
    codes = open_sign_in_codes(service.data_dir)
    with ThreadPoolExecutor(1) as thread:
        code = thread.submit(lambda: asyncio.run(codes.create(member))).result()
    return build_sign_in_link(service.url, code)


def test_the_mcp_client_signs_a_person_in_through_the_browser(
    service_and_tls: tuple[Service, ssl.SSLContext], redirect_server: OAuthClientServer
) -> None:
    """The official MCP client signs a person in through the browser, lists the tools, and refreshes its token.

    Its id is the address of a metadata document, and the person signs in with a link while the page waits.
    """
    service, tls = service_and_tls
    documents = OAuthClientServer("127.0.0.9", tls)
    client_id, redirect = f"{documents.url}/client.json", f"{redirect_server.url}/callback"
    documents.documents["/client.json"] = {
        "client_id": client_id,
        "client_name": "Assistant of the test",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    }
    opened: queue.Queue[str] = queue.Queue()
    memory = Memory()
    with ThreadPoolExecutor(1) as thread, open_console(service) as console:
        run = thread.submit(
            asyncio.run,
            list_tools_twice(f"{service.url}/oi-api/mcp", memory, client_id, redirect, opened, redirect_server),
        )
        allow_client(console, wait_for_opened_url(opened, run), service)
        names = run.result(60)
        console.check_no_errors(redirect_server.url)
    documents.close()
    assert "list_warm_queries" in names
    assert len(memory.saved) == 2
    assert memory.saved[0].refresh_token != memory.saved[1].refresh_token
    assert "Workspace.Document.Read" not in (memory.saved[0].scope or "").split()
    assert "Workspace.Mcp.Use" in (memory.saved[0].scope or "").split()


def wait_for_opened_url(opened: "queue.Queue[str]", run: "Future[Any]") -> str:
    """Wait for the URL that the client opens in the browser, and return it.

    Raise the client's error if it fails first.
    """
    while True:
        try:
            return opened.get(timeout=1)
        except queue.Empty:
            if run.done():
                run.result()


def allow_client(console: Console, address: str, service: Service) -> None:
    """Open the client's URL, sign in with a link, deselect one right, and allow the client."""
    page = console.page
    page.goto(address)
    page.get_by_role("heading", name="Workspace console").wait_for()
    page.goto(create_link(service, "viewer@t"))
    expect(page.get_by_text("This workspace does not know the application")).to_be_visible()
    expect(page.get_by_role("heading", name="Assistant of the test asks for access")).to_be_visible()
    expect(page.get_by_text("127.0.0.9")).to_be_visible()
    console.check_appearance("consent")
    page.get_by_role("treeitem", name="Documents").first.click()
    page.get_by_role("button", name="Allow").click()
    page.wait_for_url("**/callback?**")


async def list_tools_twice(
    url: str,
    memory: Memory,
    client_id: str,
    redirect: str,
    opened: "queue.Queue[str]",
    redirect_server: OAuthClientServer,
) -> set[str]:
    """List the tools of the MCP server, refresh the token, and list the tools again."""

    async def open_browser(address: str) -> None:
        opened.put(address)

    async def receive() -> AuthorizationCodeResult:
        path = await asyncio.to_thread(redirect_server.returned.get, timeout=60)
        query = read_query(path)
        return AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query["iss"])

    metadata = OAuthClientMetadata(
        client_name="Assistant of the test", redirect_uris=[AnyUrl(redirect)], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(url, metadata, memory, open_browser, receive, client_metadata_url=client_id)
    async with httpx2.AsyncClient(auth=auth, timeout=60, trust_env=False) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            await client.list_tools()
        auth.context.token_expiry_time = 1
        async with Client(streamable_http_client(url, http_client=http)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}


def test_a_person_can_decline_allow_and_end_access(
    service_and_tls: tuple[Service, ssl.SSLContext], redirect_server: OAuthClientServer
) -> None:
    """The consent page shows client and host; a person can decline, allow and later end the access."""
    service, _ = service_and_tls
    client = OAuthClient(service, redirect_uri=f"{redirect_server.url}/callback")
    with open_console(service) as console:
        page = console.page
        page.goto(client.request_authorization().headers["location"])
        page.get_by_label("API key or token").fill(service.read_api_key("viewer@t"))
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Grafana asks for access")).to_be_visible()
        expect(page.get_by_text("This workspace does not know the application")).to_have_count(0)
        page.get_by_role("button", name="Decline").click()
        page.wait_for_url("**/callback?**")
        declined = read_query(redirect_server.returned.get(timeout=30))
        assert (declined["error"], declined["state"]) == ("access_denied", "s1")
        page.goto(client.request_authorization().headers["location"])
        page.get_by_role("button", name="Allow").click()
        page.wait_for_url("**/callback?**")
        tokens = client.redeem_code(read_query(redirect_server.returned.get(timeout=30))["code"]).json()
        console.open("keys/applications", "Keys and tokens")
        page.get_by_role("row").filter(has_text="Grafana").click()
        console.check_appearance("applications")
        page.get_by_role("button", name="End access").click()
        expect(page.get_by_role("row").filter(has_text="Grafana")).to_have_count(0)
        assert not client.is_accepted(tokens["access_token"])
        console.check_no_errors(redirect_server.url)


def test_the_oi_command_signs_a_person_in_through_the_consent_page(
    service_and_tls: tuple[Service, ssl.SSLContext],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`oi login --browser` signs in through the consent page; `oi logout` ends the access."""
    service, _ = service_and_tls
    opened: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OI_URL", "OI_KEY", "OI_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with ThreadPoolExecutor(1) as thread, open_console(service) as console:
        run = thread.submit(execute, ["login", service.url, "--browser"])
        page = console.page
        page.goto(wait_for_opened_url(opened, run))
        page.get_by_label("API key or token").fill(service.read_api_key("viewer@t"))
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Command line oi asks for access")).to_be_visible()
        page.get_by_role("button", name="Allow").click()
        expect(page.get_by_role("heading", name="Signed in")).to_be_visible()
        assert run.result(60) == 0
        console.check_no_errors(page.url)
    first = read_login_file()
    get_login_path().write_text(json.dumps({**first, "expiresAt": 0}))
    assert execute(["whoami"]) == 0
    assert "(viewer@t) in plant-t" in capsys.readouterr().out
    refreshed = read_login_file()
    assert refreshed["accessToken"] != first["accessToken"]
    assert execute(["logout"]) == 0
    assert read_login_file() == {}
    reply = service.create_anonymous_client(bearer=refreshed["accessToken"]).get("/oi-api/workspace")
    assert reply.status_code == 401


def test_prompt_login_requires_a_new_sign_in(
    service_and_tls: tuple[Service, ssl.SSLContext], redirect_server: OAuthClientServer
) -> None:
    """With `prompt=login`, a person who is signed in must sign in again on the consent page."""
    service, _ = service_and_tls
    client = OAuthClient(service, redirect_uri=f"{redirect_server.url}/callback")
    with open_console(service) as console:
        # The service requires the new sign-in with a 401 reply.
        console.expected.append("401")
        console.sign_in("viewer@t")
        page = console.page
        page.goto(client.request_authorization(prompt="login").headers["location"])
        page.get_by_role("button", name="Allow").click()
        page.get_by_label("API key or token").fill(service.read_api_key("viewer@t"))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Allow").click()
        returned = read_query(redirect_server.returned.get(timeout=30))
        console.check_no_errors(redirect_server.url)
    assert client.redeem_code(returned["code"]).status_code == 200


def test_an_invalid_authorization_request_is_explained(
    service_and_tls: tuple[Service, ssl.SSLContext], redirect_server: OAuthClientServer
) -> None:
    """The page shows an error for an unknown client; for other errors it shows the reason and then redirects."""
    service, _ = service_and_tls
    client = OAuthClient(service, redirect_uri=f"{redirect_server.url}/callback")
    with open_console(service) as console:
        console.expected.append("400")
        console.sign_in("viewer@t")
        page = console.page
        page.goto(f"{service.url}/console/#/consent?client_id=unknown")
        expect(page.get_by_text("OAUTH_CLIENT_UNKNOWN")).to_be_visible()
        address = client.request_authorization().headers["location"].replace("Workspace.Mcp.Use", "Workspace.Nothing")
        page.goto(address)
        expect(page.get_by_text("The request of the application is not valid")).to_be_visible()
        page.get_by_role("button", name="Return to the application").click()
        assert read_query(redirect_server.returned.get(timeout=30))["error"] == "invalid_scope"
        console.check_no_errors(redirect_server.url)
