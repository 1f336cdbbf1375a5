"""Search in audit events for the creators of old API keys; earlier versions did not store the creators with the key."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.auth.ports import ApiKey
from shared.errors import Kind, WorkspaceError, is_permanent
from shared.runtime import SYSTEM_RUNTIME, Runtime

MAX_EVENTS: Final = 50
"""Maximum number of credentials between a key and the first credential from which it descends."""

RETRY_SECONDS: Final = 15.0
"""Time without further searches after the audit log did not respond, so that its outage delays few requests."""

_COMMAND: Final = "command"
_KEYS: Final = frozenset({"apiKey", "clientCredentials"})

type FindEvent = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""Function from the append id of an event in the chain AccessControl to the event; None if it is missing or damaged."""


@dataclass(frozen=True, slots=True)
class _CreationEventKind:
    """Identifying values of the audit events that record the creation of one kind of credential, such as API keys.

    Attributes:
        append_id_prefix: start of an event's append id (unique id), such as ``key-created-``; the id of the created
            credential follows.
        action: ActionType of the events, such as ``ApiKey.Created``.
        entity_type: EntityType of the events, such as ``ApiKey``; the EntityID is the id of the credential.
    """

    append_id_prefix: str
    action: str
    entity_type: str

    def is_described_by(self, event: Mapping[str, Any], credential_id: str) -> bool:
        """Return whether an audit event records the creation of the credential with this id."""
        names = event.get("ActionType"), event.get("EntityType"), event.get("EntityID")
        return names == (self.action, self.entity_type, credential_id)


_KEY_CREATION: Final = _CreationEventKind("key-created-", "ApiKey.Created", "ApiKey")
_TOKEN_CREATION: Final = _CreationEventKind("token-issued-", "Token.Issued", "Token")


class OlderKeyCreators:
    """Finder of the creators of API keys that earlier versions of the service created.

    The audit event of a key names the member and the credential that created the key. The audit event of that
    credential names the credential before it, and so on.

    Args:
        find_event: finds an audit event about a credential.
        runtime: clock of the service.
    """

    def __init__(self, find_event: FindEvent, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._find_event = find_event
        self._runtime = runtime
        self._found: dict[str, tuple[str, ...] | None] = {}
        self._failure: WorkspaceError | None = None
        self._retry_at = float("-inf")

    async def find_creator_ids(self, key: ApiKey) -> tuple[str, ...] | None:
        """Return the members who created a key or a credential from which the key descends, without the key's owner.

        Returns:
            The members; empty if the owner or the deployment's own command created the key; None if the members are
            unknown, because an audit event is missing or damaged, or is about another credential.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the audit log does not respond, or its file is
                damaged.
        """
        if key.creators is not None:
            return key.creators
        if key.key_id not in self._found:
            if self._failure is not None and self._runtime.monotonic() < self._retry_at:
                raise self._failure
            try:
                self._found[key.key_id] = await self._search_audit_events_for_creator_ids(key)
            except WorkspaceError as error:
                self._failure = error if is_permanent(error) else _build_unavailable_error()
                self._retry_at = self._runtime.monotonic() + RETRY_SECONDS
                raise self._failure from (None if self._failure is error else error)
        return self._found[key.key_id]

    async def _search_audit_events_for_creator_ids(self, key: ApiKey) -> tuple[str, ...] | None:
        creators, creation, credential_id = set[str](), _KEY_CREATION, key.key_id
        for _ in range(MAX_EVENTS):
            event = await self._find_event(f"{creation.append_id_prefix}{credential_id}")
            # The Hash does not cover append ids, so a writer to the store can swap those of two undamaged events.
            if event is None or not creation.is_described_by(event, credential_id):
                return None
            via, credential_id = _read_kind_and_id_of_creating_credential(event)
            if via != _COMMAND:
                creators.add(str(event.get("UserID")))
            if via == _COMMAND or not credential_id:
                return tuple(sorted(creators - {key.principal}))
            creation = _KEY_CREATION if via in _KEYS else _TOKEN_CREATION
        return None


def _build_unavailable_error() -> WorkspaceError:
    detail = "The audit log, which names the creators of older API keys, does not respond; retry later."
    return WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail, retryAfter=int(RETRY_SECONDS))


def _read_kind_and_id_of_creating_credential(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind and the id of the credential with which an API key or token was created; both can be empty."""
    after = event.get("AfterState")
    made_with = after.get("madeWith") if isinstance(after, Mapping) else None
    if isinstance(made_with, str):
        via, _, credential_id = made_with.partition(" ")
    elif isinstance(made_with, Mapping):
        via, credential_id = str(made_with.get("via") or ""), str(made_with.get("credentialId") or "")
    else:
        return "", ""
    # An Entra ID token has no event of its own.
    return via, credential_id if via in {*_KEYS, "jwt"} else ""
