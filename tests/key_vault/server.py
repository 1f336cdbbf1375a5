"""HTTPS server of the Key Vault emulator, in a thread."""

import json
import ssl
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from azure.core.credentials import AccessToken
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.key_vault.keys import Keys, Version, decode_base64url, to_base64url

TOKEN = "a-token-of-the-test-double"
_RESOURCE = "https://vault.azure.net"
_FOREVER = 4_000_000_000


class Tokens:
    """Fake credential that returns the emulator's token."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """Return the token and record the requested scopes."""
        self.scopes += scopes
        return AccessToken(TOKEN, _FOREVER)

    async def close(self) -> None:
        """Do nothing: this fake credential has no connections."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class KeyVaultDouble:
    """Key Vault emulator on the loopback interface; a context manager.

    Attributes:
        keys: keys of the vault.
        requests: method and path of each request with a valid token, in order.
        down: while True, every request gets 503.
    """

    def __init__(self) -> None:
        self.keys = Keys()
        self.requests: list[str] = []
        self.down = False
        self._folder = tempfile.TemporaryDirectory(prefix="key-vault-double-")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _build_handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def uri(self) -> str:
        """Address of the vault."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    @property
    def options(self) -> dict[str, Any]:
        """Client options: trust in the emulator's certificate, and no check of the domain in the challenge."""
        waits = {"retry_backoff_factor": 0.01}
        return {"connection_verify": str(self._certificate), "verify_challenge_resource": False, **waits}

    @property
    def _certificate(self) -> Path:
        return Path(self._folder.name) / "certificate.pem"

    def __enter__(self) -> Self:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        private = Path(self._folder.name) / "key.pem"
        _write_certificate(self._certificate, private)
        context.load_cert_chain(self._certificate, private)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._folder.cleanup()

    def reply_to_request(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and body of the reply to a request with a valid token."""
        self.requests.append(f"{method} {path}")
        if self.down:
            return 503, _build_error_reply("Unavailable")
        _, _, name, *rest = path.rstrip("/").split("/")
        if (method, rest) in (("POST", ["create"]), ("POST", ["rotate"])):
            made = self.keys.create_version(name)
            return 200, made.bundle(self._build_key_id(name, made.name))
        if name not in self.keys.versions:
            return 404, _build_error_reply("KeyNotFound")
        if (method, rest) == ("GET", ["versions"]):
            return 200, {"value": self._list_versions(name), "nextLink": None}
        version = self.keys.find(name, rest[0] if rest else "")
        return (
            (404, _build_error_reply("KeyNotFound"))
            if version is None
            else self._build_operation_reply(version, name, (method, *rest[1:]), body)
        )

    def _build_operation_reply(
        self, version: Version, name: str, operation: tuple[str, ...], body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        key_id = self._build_key_id(name, version.name)
        if operation == ("POST", "sign") and version.enabled:
            return 200, {"kid": key_id, "value": to_base64url(version.sign(decode_base64url(body["value"])))}
        if operation == ("POST", "sign"):
            return 403, _build_error_reply("Forbidden")
        return (
            (200, version.bundle(key_id))
            if operation == ("GET",)
            else (400, _build_error_reply(f"the Key Vault emulator does not implement the operation {operation}"))
        )

    def _list_versions(self, name: str) -> list[dict[str, Any]]:
        versions = self.keys.versions[name]
        return [{"kid": self._build_key_id(name, each.name), "attributes": each.attributes()} for each in versions]

    def _build_key_id(self, name: str, version: str) -> str:
        return f"{self.uri}/keys/{name}/{version}"


def _build_handler(double: KeyVaultDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                challenge = f'Bearer authorization="{double.uri}/a-tenant", resource="{_RESOURCE}"'
                self._reply(401, _build_error_reply("Unauthorized"), {"WWW-Authenticate": challenge})
                return
            path = urlsplit(self.path).path
            self._reply(*double.reply_to_request(self.command, path, json.loads(body) if body else {}), {})

        def _reply(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(content)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815  http.server calls them so

        def log_message(self, *_: object) -> None:
            """Write no server log."""

    return Handler


def _build_error_reply(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": code}}


def _write_certificate(public: Path, private: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    at = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(at - timedelta(days=1)).not_valid_after(at + timedelta(days=1))
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(addresses, critical=False).sign(key, hashes.SHA256())
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    encoding, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, encoding, plain))
