"""Fixtures of OAuth tests: a server with embedded stores, and a clock and team that tests can change."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.auth.audit import AccessAudit
from shared.auth.authenticator import Authenticator
from shared.auth.credential_lineage import CredentialLineage
from shared.auth.credential_revocation import CredentialRevoker
from shared.auth.issuer import TokenIssuer
from shared.auth.key_service import ApiKeys
from shared.auth.ports import CredentialCutoff, Credentials, IssuedToken, Team
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import ROLE_RIGHTS, Role
from shared.auth.tokens import TokenCodec
from shared.backends.embedded import credentials as credential_tables
from shared.backends.embedded import grants as grant_tables
from shared.backends.embedded.credentials import SqliteCredentialStore
from shared.backends.embedded.grants import SqliteGrantStore
from shared.backends.embedded.key_files import FileSigningKey
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.models import Member
from shared.oauth.authorization import AuthorizationService
from shared.oauth.clients import Client
from shared.oauth.errors import OAuthError, OAuthErrorCode
from shared.oauth.grant_ending import GrantEnder
from shared.oauth.grant_service import GrantService
from shared.oauth.parameters import Parameters
from shared.oauth.redirects import Redirect
from shared.provenance.ports import Target
from shared.timestamps import now
from shared.versioned_cache import VersionedCache
from tests.service.oauth_client import SCOPE, compute_code_challenge, read_query
from tests.virtual_time import VirtualTime

BASE = "https://plant.example"
CLIENT = Client("tool", "Tool", ("https://tool.example/cb",))
MEMBER = "editor@x"
VERIFIER = "v" * 43


class OneClient:
    """Fake client directory that contains one OAuth client."""

    async def find_declared_client(self, _: str) -> Client | None:
        """Return the client."""
        return CLIENT

    async def get_client(self, _client_id: str, _member_id: str) -> Client:
        """Return the client."""
        return CLIENT


@dataclass
class Server:
    """OAuth services under test, with their stores, audit log and clock.

    Attributes:
        time: the clock. It starts at the real time, because the library of tokens reads the real clock.
        trail: audit events.
        failures: number of audit events that fail next.
    """

    database: SqliteDatabase
    key: FileSigningKey
    time: VirtualTime
    trail: list[dict[str, Any]] = field(default_factory=list)
    failures: int = 0
    audited: bool = True
    enabled: bool = True
    cutoffs: dict[str, CredentialCutoff] = field(default_factory=dict)
    role: Role = Role.EDITOR
    declared: dict[str, datetime] = field(default_factory=lambda: {CLIENT.client_id: datetime(2026, 1, 5, tzinfo=UTC)})

    def __post_init__(self) -> None:
        runtime = self.time.runtime
        self.credential_store = SqliteCredentialStore(self.database)
        self.store = SqliteGrantStore(self.database)

        async def load() -> tuple[int, Credentials]:
            loaded = await self.credential_store.load()
            return loaded.version, loaded

        credentials = VersionedCache(
            self.credential_store.read_version, load, max_age=0.001, max_stale=60, runtime=runtime
        )
        audit = AccessAudit(self, self)
        codec = TokenCodec(self.key, "issuer", "audience", runtime=runtime)
        stores = (self.store, self.credential_store, credentials)
        self.ender = GrantEnder(*stores, self, audit, self.find_client_creation_time, runtime=runtime)
        self.revoker = CredentialRevoker(*stores[1:], audit, grants=self.ender, runtime=runtime)
        self.issuer = TokenIssuer(self, self.credential_store, codec, audit, self.revoker, runtime=runtime)
        self.api_keys = ApiKeys(self, *stores[1:], audit, self.revoker, runtime=runtime)
        self.lineage = CredentialLineage(self.credential_store, self.ender.find_consent_credential_id)
        self.authorization = AuthorizationService(OneClient(), self.store, self.lineage, audit, runtime=runtime)  # type: ignore[arg-type]  # only two of its methods
        self.grants = GrantService(
            self.store, self.ender, self.issuer, self.credential_store, credentials, self, runtime=runtime
        )
        self.authenticator = Authenticator(self, credentials, self.credential_store, codec, None, runtime=runtime)

    async def find_client_creation_time(self, client_id: str) -> datetime | None:
        """Return the time at which a client was declared; None if it is not declared."""
        return self.declared.get(client_id)

    async def get_team(self) -> Team:
        """Return the team: one member."""
        member = {"id": MEMBER, "name": "Editor", "role": self.role, "enabled": self.enabled}
        return Team("plant-a", {MEMBER: Member.model_validate(member)}, audited=self.audited, cutoffs=self.cutoffs)

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Record an audit event, or do nothing if an event with the given append id was recorded."""
        if self.failures:
            self.failures -= 1
            raise ConnectionError(target, scope_key)
        if append_id not in [event["append_id"] for event in self.trail]:
            self.trail.append({"user": user_id, "append_id": append_id, **event})
        return event

    def build_caller(self, credential_id: str = "jti") -> Principal:
        """Return the member as a caller with a token."""
        return Principal(MEMBER, MEMBER, "Editor", ROLE_RIGHTS[Role.EDITOR], CredentialKind.JWT, credential_id, None)

    async def consent_as_member(self, credential_id: str = "jti") -> Parameters:
        """Consent on behalf of the member; return the parameters with which the client redeems the code."""
        parameters = Parameters(
            {
                "response_type": "code",
                "client_id": CLIENT.client_id,
                "scope": SCOPE,
                "code_challenge": compute_code_challenge(VERIFIER),
                "code_challenge_method": "S256",
            }
        )
        redirect = await self.authorization.record_consent_decision(
            self.build_caller(credential_id), parameters, BASE, SCOPE.split()
        )
        assert isinstance(redirect, Redirect)
        return Parameters({"code": read_query(redirect.address)["code"], "code_verifier": VERIFIER})

    async def redeem(self, parameters: Parameters) -> tuple[str, str]:
        """Redeem an authorization code with the given parameters; return the access token and the refresh token."""
        token, refresh = await self.grants.redeem_code(
            await self.grants.require_grant_by_code(CLIENT.client_id, parameters)
        )
        return token.token, refresh

    async def refresh(self, text: str) -> tuple[str, str]:
        """Redeem a refresh token; return the next access token and refresh token."""
        stored = await self.grants.require_grant_by_refresh_token(CLIENT.client_id, text)
        token, refresh = await self.grants.refresh_tokens(stored, text, None)
        return token.token, refresh

    async def authenticate(self, token: str) -> Principal:
        """Return the principal of an access token."""
        return await self.authenticator(f"Bearer {token}", frozenset({CredentialKind.JWT}))

    def list_end_reasons(self) -> list[str]:
        """Return the recorded reasons why grants ended."""
        return [event["AfterState"]["reason"] for event in self.trail if event["ActionType"] == "Grant.Ended"]


async def check_invalid_grant(awaitable: object) -> None:
    """Check that a call is rejected with the OAuth error code ``invalid_grant``."""
    with pytest.raises(OAuthError) as caught:
        await awaitable  # type: ignore[misc]
    assert caught.value.error is OAuthErrorCode.INVALID_GRANT


@pytest.fixture
async def oauth_server(tmp_path: Path) -> AsyncIterator[Server]:
    """Return the services; the only stored credential is the token of :meth:`Server.build_caller`."""
    time = VirtualTime(now())
    schema = credential_tables.SCHEMA + grant_tables.SCHEMA
    database = SqliteDatabase(tmp_path / "workspace.sqlite", schema, runtime=time.runtime)
    server = Server(database, FileSigningKey(tmp_path / "key.pem"), time)
    await server.credential_store.add_token(IssuedToken("jti", MEMBER, time.now + timedelta(days=365)))
    yield server
    await database.close()
