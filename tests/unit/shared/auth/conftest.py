"""Fixtures for authentication tests: a workspace with embedded stores, and tokens to attack."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.auth.audit import AccessAudit
from shared.auth.authenticator import Authenticator
from shared.auth.credential_revocation import CredentialRevoker
from shared.auth.issuer import TokenIssuer
from shared.auth.key_service import ApiKeys
from shared.auth.ports import Credentials, IssuedToken, Team
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import ROLE_RIGHTS, Role
from shared.auth.tokens import TokenCodec
from shared.backends.embedded.credentials import SCHEMA, SqliteCredentialStore
from shared.backends.embedded.key_files import FileSigningKey
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.models import Member
from shared.errors import WorkspaceError
from shared.provenance.ports import Target
from shared.timestamps import now
from shared.versioned_cache import VersionedCache
from tests.unit.shared.auth.targets import AttackTarget, build_entra_target, build_service_token_target

ADMIN = Member.model_validate({"id": "admin@x", "name": "Admin", "role": "Admin"})
EDITOR = Member.model_validate({"id": "editor@x", "name": "Editor", "role": "Editor"})
VIEWER = Member.model_validate({"id": "viewer@x", "name": "Viewer", "role": "Viewer"})
SERVICE = Member.model_validate({"id": "historian", "name": "Historian", "role": "Viewer", "service": True})


def build_caller(
    member: str,
    role: Role,
    credential_kind: CredentialKind = CredentialKind.API_KEY,
    minutes_until_expiry: int | None = None,
) -> Principal:
    """Return a caller with the rights of a role; by default the caller's credential does not expire."""
    expires_at = None if minutes_until_expiry is None else now() + timedelta(minutes=minutes_until_expiry)
    return Principal(member, member, member, ROLE_RIGHTS[role], credential_kind, "c", expires_at)


async def catch_error(awaitable: object) -> WorkspaceError:
    """Return the error that an awaitable raises."""
    with pytest.raises(WorkspaceError) as raised:
        await awaitable  # type: ignore[misc]
    return raised.value


@dataclass
class Workspace:
    """Authentication services under test, with a team and audit events."""

    team_now: Team
    store: SqliteCredentialStore
    key: FileSigningKey
    trail: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        async def load() -> tuple[int, Credentials]:
            loaded = await self.store.load()
            return loaded.version, loaded

        self.credentials = credentials = VersionedCache(self.store.read_version, load, max_age=3600, max_stale=3600)
        self.audit = audit = AccessAudit(self, self)
        self.codec = TokenCodec(self.key, "issuer", "audience")
        self.revoker = CredentialRevoker(self.store, credentials, audit)
        self.issuer = TokenIssuer(self, self.store, self.codec, audit, self.revoker)
        self.api_keys = ApiKeys(self, self.store, credentials, audit, self.revoker)
        self.authenticator = Authenticator(self, credentials, self.store, self.codec, None)

    async def get_team(self) -> Team:
        """Return the team, which tests can change."""
        return self.team_now

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Record an audit event once for each append id."""
        if append_id not in [event["append_id"] for event in self.trail]:
            self.trail.append({"target": target, "user": user_id, "append_id": append_id, "scope": scope_key, **event})
        return event


@pytest.fixture
async def auth_workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    """Return a workspace with four members, and a record of the credential of :func:`build_caller`."""
    database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA)
    members = {member.id: member for member in (ADMIN, EDITOR, VIEWER, SERVICE)}
    store = SqliteCredentialStore(database)
    await store.add_token(IssuedToken("c", EDITOR.id, now() + timedelta(days=1)))
    yield Workspace(Team("plant-a", members, audited=True), store, FileSigningKey(tmp_path / "key.pem"))
    await database.close()


@pytest.fixture(params=[build_service_token_target, build_entra_target], ids=["own", "entra"])
def target(request: pytest.FixtureRequest) -> AttackTarget:
    """Return the attack target for one kind of token: tokens of the service, then Entra ID tokens."""
    attack_target: AttackTarget = request.param()
    return attack_target
