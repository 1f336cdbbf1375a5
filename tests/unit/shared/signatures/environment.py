"""Signature services over SQLite, with a clock that tests set."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from shared.auth.principals import CredentialKind, Principal
from shared.auth.sign_ins import SignIn
from shared.backends.embedded.signatures import SCHEMA, SqliteSignatureStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.signature_models import SignaturePolicy
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ChainKey, Target
from shared.provenance.signatures import skip_confirmation
from shared.runtime import Runtime
from shared.signatures.attempt_counter import AttemptCounter
from shared.signatures.attempts import LockOut
from shared.signatures.sign_ins import SignInRegistry
from shared.signatures.signing import Signing, SigningRequest

START = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
CHAIN = ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
APPROVAL = {"meaning": "approval"}
SIGNER = Principal("ann", "ann", "Ann", frozenset(), CredentialKind.JWT, "token-1", None)


@dataclass
class Environment:
    """Services that sign decisions, with a record of their events and of the appended decisions.

    Attributes:
        store: storage of attempts and sign-ins.
        at: current time.
        audited: audit events by their append ids.
        announced: announced lock-outs.
        appended: append ids of decisions that were appended.
        has_provenance: False if the workspace has no provenance.
        is_available: False if the audit log does not respond.
        can_announce: False if announcements fail.
    """

    store: SqliteSignatureStore
    at: datetime = START
    audited: dict[str, Any] = field(default_factory=dict)
    announced: list[tuple[str, LockOut]] = field(default_factory=list)
    appended: set[str] = field(default_factory=set)
    has_provenance: bool = True
    is_available: bool = True
    can_announce: bool = True

    @property
    def runtime(self) -> Runtime:
        """Runtime with the clock of the test; a sleep advances the clock and ends at once."""
        return Runtime(now=lambda: self.at, sleep=self._sleep)

    @property
    def attempts(self) -> AttemptCounter:
        """Service that counts rejected attempts to sign."""
        return AttemptCounter(self.store, self, self._is_audited, self._announce, runtime=self.runtime)

    @property
    def sign_ins(self) -> SignInRegistry:
        """Service that records which sign-ins were used."""
        return SignInRegistry(self.store, self._is_appended, runtime=self.runtime)

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Record an audit event by its append id."""
        if not self.is_available:
            raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The audit log does not respond.")
        assert (target, scope_key) == (Target.ACCESS_CONTROL, "")
        self.audited[append_id] = {"UserID": user_id, **event}
        return {}

    async def sign(self, signature: Any = APPROVAL, **changes: Any) -> str:
        """Sign a decision; return an empty text, or the error code of the rejection.

        Args:
            signature: body property ``signature``.
            changes: changed attributes of the caller; ``age`` of the sign-in in seconds, ``max_age`` of the policy;
                ``append_id`` of the decision; ``meanwhile``, a function to call after the checks and before the
                decision.
        """
        age, max_age = changes.pop("age", 10), changes.pop("max_age", 300)
        append_id = changes.pop("append_id", None) or self.runtime.new_id()
        sign_in, meanwhile = changes.pop("sign_in", "sign-in-1"), changes.pop("meanwhile", skip_confirmation)
        policy = SignaturePolicy.model_validate({"maxAgeSeconds": max_age})
        signed_in = SignIn(self.at - timedelta(seconds=age), ("key",), sign_in)
        caller = replace(SIGNER, **{"sign_in": signed_in, **changes})
        signing = Signing(self.attempts, self.sign_ins, runtime=self.runtime)
        signer = signing.build_signer(SigningRequest(caller, "Ann", policy, signature, False))
        try:
            async with signer.sign(append_id, CHAIN) as session:
                await meanwhile()
                await session.confirm()
                self.appended.add(append_id)
                session.is_decided = True
        except WorkspaceError as error:
            return error.code
        return ""

    async def _sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)

    async def _is_audited(self) -> bool:
        return self.has_provenance

    async def _announce(self, member: str, event: LockOut) -> None:
        if not self.can_announce:
            raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOKS_UNAVAILABLE", "The announcement fails.")
        self.announced.append((member, event))

    async def _is_appended(self, chain: ChainKey, append_id: str) -> bool:
        assert chain == CHAIN
        return append_id in self.appended


@asynccontextmanager
async def open_environment(folder: Path) -> AsyncIterator[Environment]:
    """Open the signature services with empty stores in a folder."""
    database = SqliteDatabase(folder / "signatures.sqlite", SCHEMA)
    try:
        yield Environment(SqliteSignatureStore(database))
    finally:
        await database.close()
