"""Tests of the sign-in with Entra ID; a fake provides the OpenID endpoints."""

import base64
import hashlib
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from playwright.sync_api import Page, expect

from tests.console.test_typed_text import reply_with_expired_token
from tests.console.visits import Console, open_console
from tests.service.local_service import Service

TENANT = "11111111-2222-3333-4444-555555555555"
AUDIENCE = "99999999-8888-7777-6666-555555555555"
CLIENT = "22222222-3333-4444-5555-666666666666"
MEMBER = "aaaaaaaa-0000-0000-0000-000000000001"


class StandInEntra:
    """Fake Entra ID that signs in one account; each code works once, and only with its PKCE verifier.

    Attributes:
        asked: parameters of the requests for a code.
        changed: claims and parameters that replace the correct ones.
    """

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.asked: list[dict[str, str]] = []
        self.changed: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _build_handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def get_document(self, path: str) -> dict[str, Any]:
        """Return the OpenID discovery document, or the key set."""
        if path.endswith("/.well-known/openid-configuration"):
            return {"issuer": f"{self.url}/{TENANT}/v2.0", "jwks_uri": f"{self.url}/keys"}
        jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**jwk, "kid": "first", "use": "sig"}]}

    def build_redirect(self, query: str) -> str:
        """Return the redirect address to the console, with the authorization code in its fragment."""
        asked = dict(parse_qsl(query))
        self.asked.append(asked)
        assert (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) == (CLIENT, "code", "S256")
        code = secrets.token_urlsafe(32)
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "session_state": "s"} | self.changed.get("answer", {})
        return f"{asked['redirect_uri']}#{urlencode(answer)}"

    def exchange_code(self, body: str) -> tuple[int, dict[str, Any]]:
        """Reply to a token request: return tokens for a valid authorization code."""
        given = {name: values[0] for name, values in parse_qs(body).items()}
        asked = self.codes.pop(given["code"], {})
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked.get("code_challenge") != challenge or asked["redirect_uri"] != given["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": "the code is not good"}
        claims = {"aud": AUDIENCE, "oid": self.changed.get("oid", MEMBER), **self.changed.get("claims", {})}
        identity = self._sign_claims({"aud": CLIENT, "nonce": self.changed.get("nonce", asked["nonce"])})
        access = self._sign_claims(claims)
        return 200, {"token_type": "Bearer", "expires_in": 3600, "access_token": access, "id_token": identity}

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def _sign_claims(self, claims: dict[str, Any]) -> str:
        now = int(time.time())
        usual = {"iss": f"{self.url}/{TENANT}/v2.0", "tid": TENANT, "iat": now, "nbf": now, "exp": now + 3600}
        return jwt.encode({**usual, **claims}, self.key, "RS256", headers={"kid": "first"})


def _build_handler(entra: StandInEntra) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == f"/{TENANT}/oauth2/v2.0/authorize":
                self.send_response(302)
                self.send_header("Location", entra.build_redirect(query))
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._send_json(200, entra.get_document(path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send_json(*entra.exchange_code(body))

        def _send_json(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            # Entra ID sends this header for single-page applications.
            self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin", "null"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def entra() -> Iterator[StandInEntra]:
    """Yield a running fake of Entra ID."""
    running = StandInEntra()
    yield running
    running.close()


@pytest.fixture(scope="module")
def entra_service(entra: StandInEntra, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service whose console signs in with the fake Entra ID."""
    folder = tmp_path_factory.mktemp("console-entra")
    ann = {"id": "ann@plant.example", "name": "Ann", "role": "Viewer", "oid": MEMBER}
    document = {
        "workspace": {"id": "plant-e", "name": "Plant E"},
        "tier": "pro",
        "policies": {"provenance": {}},
        "team": [ann],
    }
    (folder / "workspace.yaml").write_text(json.dumps(document))
    environment = {
        "ENTRA_TENANT_ID": TENANT,
        "ENTRA_AUDIENCE": AUDIENCE,
        "ENTRA_AUTHORITY": entra.url,
        "ENTRA_CONSOLE_CLIENT_ID": CLIENT,
    }
    running = Service(folder / "data", folder / "workspace.yaml", environment).start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def entra_console(entra_service: Service, entra: StandInEntra) -> Iterator[Console]:
    """Yield a console browser that may call the service and the fake Entra ID."""
    entra.changed = {}
    with open_console(entra_service) as console:
        yield console
        console.check_no_errors(entra.url)


def open_sign_in_page(console: Console, hash_part: str = "") -> Page:
    """Open the console at a hash route, before which the console shows the sign-in page."""
    console.page.goto(f"{console.service.url}/console/{hash_part}")
    console.page.get_by_role("button", name="Sign in with Entra ID").wait_for()
    return console.page


def test_a_sign_in_stores_neither_code_nor_entra_id_token(entra_console: Console, entra: StandInEntra) -> None:
    """After the sign-in with Entra ID, the browser shows the first page and stores neither the code nor the token."""
    page = open_sign_in_page(entra_console, "#/keys")
    entra_console.check_appearance("sign-in-entra")
    page.get_by_role("button", name="Sign in with Entra ID").click()
    page.get_by_role("button", name="Sign out").wait_for()
    assert page.url == f"{entra_console.service.url}/console/#/keys"
    expect(page.get_by_role("banner")).to_contain_text("Ann")
    assert entra.asked[-1]["scope"] == f"openid {AUDIENCE}/.default"
    assert "fragment" in entra.asked[-1]["response_mode"]
    # While the page is open, Entra's token can issue tokens that outlive the session.
    expect(page.get_by_role("radio", name="30 days")).to_be_enabled()
    kept: dict[str, str] = page.evaluate("({...sessionStorage, ...localStorage})")
    assert set(kept) == {"workspace-console"}
    token = json.loads(kept["workspace-console"])["token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["iss"] == "oi-workspace"
    assert 7.9 < (claims["exp"] - time.time()) / 3600 <= 8
    page.go_back()
    assert "code=" not in page.url
    page.go_forward()
    page.reload()
    expect(page.get_by_role("radio", name="30 days")).to_be_disabled()


@pytest.mark.parametrize(
    ("changes", "expected_error"),
    [
        ({"answer": {"state": "another"}}, "does not belong to a sign-in"),
        ({"nonce": "another"}, "belongs to another sign-in"),
        ({"answer": {"code": "", "error": "access_denied", "error_description": "You said no."}}, "You said no."),
        ({"answer": {"code": "another"}}, "the code is not good"),
        ({"oid": "nobody"}, "UNAUTHENTICATED"),
    ],
    ids=str,
)
def test_failed_sign_in_shows_an_error(
    entra_console: Console, entra: StandInEntra, changes: dict[str, Any], expected_error: str
) -> None:
    """A redirect that does not match the sign-in request is rejected; errors of Entra ID or the service are shown."""
    entra_console.expected += ["400", "401"]
    entra.changed = changes
    page = open_sign_in_page(entra_console)
    page.get_by_role("button", name="Sign in with Entra ID").click()
    expect(page.get_by_role("alert")).to_contain_text(expected_error)
    assert "state=" not in page.url
    assert page.evaluate("sessionStorage.length") == 0


def test_a_form_survives_a_sign_in_in_another_tab(entra_console: Console, entra: StandInEntra) -> None:
    """After a session has ended, the Entra ID sign-in opens in a new tab, so that a form keeps its typed values.

    An earlier sign-in that the user left at Entra ID does not prevent this.
    """
    entra_console.expected.append("401")
    page = open_sign_in_page(entra_console, "#/keys/keys")
    page.get_by_role("button", name="Sign in with Entra ID").click()
    page.get_by_role("button", name="Create an API key").click()
    page.get_by_label("Name", exact=True).fill("dashboard in hall 3")
    page.route(re.compile(r"/workspace/api/keys$"), reply_with_expired_token)
    page.get_by_role("button", name="Create the key").click()
    again = page.get_by_role("dialog", name="Sign in again")
    left = json.dumps({"state": "left", "hash": "#/"})
    page.evaluate("left => sessionStorage.setItem('workspace-console-entra', left)", left)
    with page.context.expect_page() as opened:
        again.get_by_role("button", name="Sign in with Entra ID").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("dashboard in hall 3")
    if not opened.value.is_closed():
        opened.value.wait_for_event("close")


def test_a_code_that_the_console_did_not_request_is_rejected(entra_console: Console) -> None:
    """A code that the console did not request is rejected and removed from the address."""
    page = entra_console.page
    page.goto(f"{entra_console.service.url}/console/#code=stolen&state=guessed")
    expect(page.get_by_role("alert")).to_contain_text("does not belong to a sign-in")
    assert "stolen" not in page.url


def test_the_security_policy_allows_the_entra_login_host(entra_service: Service, entra: StandInEntra) -> None:
    """With Entra ID the page's security policy allows the login host, and the public configuration has no secrets."""
    caller = entra_service.create_anonymous_client()
    policy = caller.get("/console/").headers["content-security-policy"]
    [connect] = [part.split()[1:] for part in policy.split(";") if part.strip().startswith("connect-src")]
    assert connect[0] == "'self'"
    assert connect[-1] == entra.url
    assert len(connect) == 3
    assert caller.get("/console/config.json").json() == {
        "entra": {
            "authorizeUrl": f"{entra.url}/{TENANT}/oauth2/v2.0/authorize",
            "tokenUrl": f"{entra.url}/{TENANT}/oauth2/v2.0/token",
            "clientId": CLIENT,
            "scope": f"openid {AUDIENCE}/.default",
        }
    }
