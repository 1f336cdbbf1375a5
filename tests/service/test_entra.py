"""Tests of Entra ID tokens with an OpenID provider that the test runs."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.service.local_service import Service, check_problem
from tests.unit.shared.auth.targets import encode_part, sign_pkcs1

TENANT = "11111111-2222-3333-4444-555555555555"
AUDIENCE = "api://workspace"


class Provider:
    """OpenID provider that serves discovery and keys, and signs tokens."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.kid = "first"
        self.requests: list[str] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests.append(self.path)
                body = json.dumps(provider.get_document(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.issuer = f"{self.url}/{TENANT}/v2.0"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def get_document(self, path: str) -> dict[str, Any]:
        """Return the provider's JSON document for a path."""
        if path.endswith("/.well-known/openid-configuration"):
            return {"issuer": self.issuer, "jwks_uri": f"{self.url}/keys"}
        jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**jwk, "kid": self.kid, "use": "sig"}]}

    def create_token(self, **claims: Any) -> str:
        """Return a signed token; given claims replace those of the example, None removes a claim."""
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + 3600, "tid": TENANT}
        payload = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode(payload, self.key, "RS256", headers={"kid": self.kid})

    def close(self) -> None:
        """Stop the server."""
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """Return a running provider."""
    running = Provider()
    yield running
    running.close()


@pytest.fixture(scope="module")
def entra_service(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that trusts the provider's tenant."""
    folder = tmp_path_factory.mktemp("entra")
    (folder / "workspace.yaml").write_text(
        """
workspace: {id: plant-e, name: Plant E}
policies: {provenance: {requireApproval: true}, signatures: {amendments: required}}
team:
  - {id: ann@plant.example, name: Ann, role: Editor}
  - {id: bob@plant.example, name: Bob, role: Viewer, oid: aaaaaaaa-0000-0000-0000-000000000001}
  - {id: off@plant.example, name: Off, role: Viewer, enabled: false}
"""
    )
    environment = {"ENTRA_TENANT_ID": TENANT, "ENTRA_AUDIENCE": AUDIENCE, "ENTRA_AUTHORITY": provider.url}
    running = Service(folder / "data", folder / "workspace.yaml", environment).start()
    yield running
    running.stop()


def request_whoami(service: Service, token: str) -> Any:
    """Request whoami with the given token and return the reply."""
    return service.create_anonymous_client(token).get("/workspace/api/keys/whoami")


@pytest.mark.parametrize(
    ("claims", "member"),
    [
        ({"oid": "AAAAAAAA-0000-0000-0000-000000000001"}, "bob@plant.example"),
        ({"email": "Ann@Plant.example", "xms_edov": True}, "ann@plant.example"),
        ({"email": "ann@plant.example", "email_verified": True, "oid": "other"}, "ann@plant.example"),
    ],
)
def test_an_account_is_found_by_object_id_or_verified_mail(
    entra_service: Service, provider: Provider, claims: dict[str, Any], member: str
) -> None:
    """An Entra ID account is matched to a member by its object id, or else by a verified email address."""
    reply = request_whoami(entra_service, provider.create_token(**claims))
    assert (reply.status_code, reply.json()["principal"], reply.json()["via"]) == (200, member, "entra")


def test_an_entra_token_is_exchanged_for_a_token_of_the_service(entra_service: Service, provider: Provider) -> None:
    """An Entra ID token can be exchanged for a token of the service that is valid for longer."""
    client = entra_service.create_anonymous_client(provider.create_token(email="ann@plant.example", xms_edov=True))
    reply = client.get("/workspace/api/keys/jwt?minutes=120")
    assert reply.status_code == 200, reply.text
    assert request_whoami(entra_service, reply.json()["Token"]).json()["via"] == "jwt"


@pytest.mark.parametrize(
    ("claims", "credential"), [({"uti": "t1"}, "t1"), ({}, "aaaaaaaa-0000-0000-0000-000000000001")]
)
def test_the_audit_event_of_a_token_names_the_account(
    entra_service: Service, provider: Provider, claims: dict[str, str], credential: str
) -> None:
    """The audit event of an issued token has the id of the Entra ID token.

    If this has no id, the event has the account.
    """
    account = {"oid": "aaaaaaaa-0000-0000-0000-000000000001", **claims}
    issued = (
        entra_service.create_anonymous_client(provider.create_token(**account))
        .get("/workspace/api/keys/jwt")
        .json()["Token"]
    )
    expected = {"target": "AccessControl", "actionType": "Token.Issued", "limit": "1"}
    [event] = (
        entra_service.create_anonymous_client(issued).get("/oi-api/provenance/events/query", params=expected).json()
    )
    assert event["AfterState"]["madeWith"] == {"via": "entra", "credentialId": credential}


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "ann@plant.example"},
        {"email": "ann@plant.example", "xms_edov": False},
        {"preferred_username": "ann@plant.example"},
        {"email": "bob@plant.example", "xms_edov": True},
        {"email": "stranger@plant.example", "xms_edov": True},
        {"email": "off@plant.example", "xms_edov": True},
        {"oid": ""},
        {},
    ],
)
def test_unverified_and_unknown_entra_accounts_are_rejected(
    entra_service: Service, provider: Provider, claims: dict[str, Any]
) -> None:
    """An unverified email address matches no member; a member with an object id is matched only by this object id."""
    check_problem(request_whoami(entra_service, provider.create_token(**claims)), 401, "UNAUTHENTICATED")


@pytest.mark.parametrize(
    "claims",
    [
        {"tid": "99999999-0000-0000-0000-000000000000"},
        {"aud": "api://other"},
        {"iss": "https://login.example/other"},
        {"exp": 1},
        {"nbf": 32503680000},
        {"exp": None},
        {"tid": None},
    ],
)
def test_entra_tokens_of_other_tenants_and_audiences_are_rejected(
    entra_service: Service, provider: Provider, claims: dict[str, Any]
) -> None:
    """A token with another tenant, audience or issuer, or outside its time of validity, is rejected."""
    token = provider.create_token(**{"oid": "aaaaaaaa-0000-0000-0000-000000000001", **claims})
    check_problem(request_whoami(entra_service, token), 401, "UNAUTHENTICATED")


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ({"alg": "none"}, {}),
        ({"alg": "HS256"}, {}),
        ({"alg": "RS512"}, {}),
        ({"kid": "../first"}, {}),
        ({"kid": ["first"]}, {}),
        ({"kid": None}, {}),
        ({"crit": ["b64"], "b64": False}, {}),
        ({"jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}, "kid": "brought"}, {}),
        ({}, {"exp": "9999999999"}),
        ({}, {"exp": float("nan")}),
        ({}, {"exp": 10**18}),
        ({}, {"nbf": True}),
        ({}, {"aud": [AUDIENCE]}),
        ({}, {"iss": None}),
    ],
    ids=str,
)
def test_forged_entra_tokens_are_rejected(
    entra_service: Service, provider: Provider, header: dict[str, Any], claims: dict[str, Any]
) -> None:
    """A token with invalid headers or claims is rejected with 401, even if it has a valid signature of the provider."""
    good = provider.create_token(oid="aaaaaaaa-0000-0000-0000-000000000001")
    assert request_whoami(entra_service, good).status_code == 200
    payload = jwt.decode(good, options={"verify_signature": False}) | claims
    message = f"{encode_part({'alg': 'RS256', 'kid': provider.kid, 'typ': 'JWT'} | header)}.{encode_part(payload)}"
    check_problem(
        request_whoami(entra_service, f"{message}.{encode_part(sign_pkcs1(message.encode(), provider.key))}"),
        401,
        "UNAUTHENTICATED",
    )


def test_entra_tokens_are_rejected_by_data_routes(entra_service: Service, provider: Provider) -> None:
    """Data routes reject Entra ID tokens; a client must first exchange them for a token of the service."""
    token = provider.create_token(oid="aaaaaaaa-0000-0000-0000-000000000001")
    check_problem(entra_service.create_anonymous_client(token).get("/oi-api/warm-queries/x"), 401, "UNAUTHENTICATED")


def test_entra_tokens_with_an_unknown_key_id_are_rejected(entra_service: Service, provider: Provider) -> None:
    """A token with an unknown key id is rejected; the service fetches the provider's keys at most every ten seconds."""
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    payload = jwt.decode(
        provider.create_token(oid="aaaaaaaa-0000-0000-0000-000000000001"), options={"verify_signature": False}
    )
    before = len(provider.requests)
    for kid in (provider.kid, *(f"unknown-{number}" for number in range(20))):
        token = jwt.encode(payload, other, "RS256", headers={"kid": kid})
        check_problem(request_whoami(entra_service, token), 401, "UNAUTHENTICATED")
    assert len(provider.requests) <= before + 2


OID = "aaaaaaaa-0000-0000-0000-000000000001"


def read_sign_in(service: Service, token: str) -> dict[str, Any]:
    """Exchange an Entra ID token, and return the sign-in claims of the token that the service issues."""
    issued = service.create_anonymous_client(token).get("/workspace/api/keys/jwt")
    assert issued.status_code == 200, issued.text
    claims = jwt.decode(issued.json()["Token"], options={"verify_signature": False})
    return {name: claims[name] for name in ("auth_time", "amr", "sid") if name in claims}


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"auth_time": 1_767_600_000, "amr": ["pwd", "mfa"]}, {"auth_time": 1_767_600_000, "amr": ["pwd", "mfa"]}),
        ({"auth_time": 4_000_000_000}, {"auth_time": 4_000_000_000, "amr": []}),
        ({"auth_time": "1767600000", "amr": "pwd"}, {"amr": []}),
        ({"auth_time": True, "amr": ["pwd", 5]}, {"amr": []}),
        ({"auth_time": -5}, {"amr": []}),
        ({}, {"amr": []}),
    ],
    ids=str,
)
def test_tokens_have_the_sign_in_of_the_account(
    entra_service: Service, provider: Provider, claims: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A token has the time and methods of the Entra ID sign-in; a missing or invalid time is left out."""
    first = read_sign_in(entra_service, provider.create_token(oid=OID, uti="1", **claims))
    second = read_sign_in(entra_service, provider.create_token(oid=OID, uti="2", **claims))
    assert first == second
    assert bool(first.pop("sid", "")) is ("auth_time" in expected)
    assert first == expected


def test_a_personal_key_needs_a_recent_sign_in(entra_service: Service, provider: Provider) -> None:
    """If signatures are required, members need a recent sign-in to create API keys for themselves."""

    def create_key(bearer: str, **headers: str) -> Any:
        return entra_service.create_anonymous_client(bearer).post(
            "/workspace/api/keys", json={"name": "mine"}, headers=headers
        )

    at = int(time.time())
    old, unknown = provider.create_token(oid=OID, auth_time=at - 400), provider.create_token(oid=OID)
    inherited = entra_service.create_anonymous_client(old).get("/workspace/api/keys/jwt").json()["Token"]
    for bearer in (old, unknown, inherited, provider.create_token(oid=OID, auth_time=at + 300)):
        refused = create_key(bearer)
        assert check_problem(refused, 401, "REAUTHENTICATION_REQUIRED")["maxAge"] == 300
        assert refused.headers["www-authenticate"] == 'Bearer error="insufficient_user_authentication", max_age=300'
    new, once = provider.create_token(oid=OID, auth_time=at), {"Idempotency-Key": "key-of-bob-1"}
    assert create_key(old, **once).status_code == 401
    made = create_key(new, **once)
    assert made.status_code == 201
    assert create_key(old, **once).json() == made.json()
    assert create_key(made.json()["apiKey"]).status_code == 201
    assert (
        create_key(
            entra_service.create_anonymous_client(new).get("/workspace/api/keys/jwt").json()["Token"]
        ).status_code
        == 201
    )


def test_readiness_warns_of_missing_sign_in_times(entra_service: Service, provider: Provider) -> None:
    """If signatures are required, `/readyz` warns when the newest Entra ID token contains no sign-in time."""

    def list_warnings() -> list[str]:
        reply = entra_service.create_anonymous_client().get("/readyz")
        assert reply.status_code == 200
        return [each for each in reply.json().get("warnings", []) if each.startswith("ENTRA")]

    request_whoami(entra_service, provider.create_token(oid=OID))
    assert list_warnings() == ["ENTRA_AUTH_TIME_MISSING"]
    request_whoami(entra_service, provider.create_token(oid=OID, auth_time=int(time.time())))
    assert list_warnings() == []
