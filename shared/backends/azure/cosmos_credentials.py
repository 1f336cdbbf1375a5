"""API keys, issued tokens and OAuth grants (rights that a member delegated to an OAuth client) in Cosmos DB.

One logical partition contains the version, all keys, all revocations and the pending audit events of revocations. Each
change is a transactional batch that also replaces the version under If-Match. The batch that revokes a credential also
stores its event. Each issued token is an item in a separate partition. The revocation of a token is another item, in
the common partition. The token and its revocation are deleted some time after the token has expired
(``RETENTION_AFTER_EXPIRY``). Each grant is one item in a separate partition. The item expires with the grant.

A token and the revocation of its parent are in separate partitions, so no transaction contains both:

- ``add_token`` stores the token (S) and then checks whether the parent is revoked (C). It deletes a rejected token.
- A revocation stores the revocation of the parent (R) and then searches for tokens of the parent (F).

If R precedes C, ``add_token`` rejects the token. Otherwise C precedes R, so that S precedes F, and the revocation finds
the token. The search is repeated until it finds no new token, so the same holds for the tokens of each descendant.

Before a key is stored, its parent and the number of the principal's keys are checked. The batch that stores the key
also replaces the version, so it fails if a revocation or another new key has changed the version since these checks.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import batched
from typing import Any, Final

from shared.auth.access_events import AccessEvent, parse_stored_event
from shared.auth.api_keys import build_too_many_keys_error
from shared.auth.ports import RETENTION_AFTER_EXPIRY, ApiKey, Credentials, IssuedToken
from shared.auth.principals import build_revoked_credential_error
from shared.auth.rights import select_known_rights
from shared.auth.telemetry_binding import binding_from_json
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CREDENTIALS
from shared.backends.azure.cosmos_item_store import MAX_OPERATIONS, CosmosItemStore, Item
from shared.backends.azure.cosmos_requests import Operation
from shared.oauth.grants import Grant, StoredGrant, grant_from_json, grant_to_json
from shared.timestamps import format_rfc3339, parse_rfc3339

SCOPE: Final = "credentials"
VERSION: Final = "version"
ATTEMPTS: Final = 20
_TOKEN: Final = "token"  # noqa: S105  an item's id
_KEY, _REVOKED, _EVENT = "key-", "revoked-", "event-"
_ALL: Final = "SELECT * FROM c WHERE c.scope = @scope"
_PENDING: Final = "SELECT * FROM c WHERE c.scope = @scope AND c.isPending = true"
_UNREVOKED: Final = "SELECT c.id FROM c WHERE c.scope = @scope AND c.principal = @principal AND c.revokedAt = null"
_PER_QUERY: Final = 50


class CosmosCredentialStore:
    """Implementation of CredentialStore: stores API keys, issued tokens and revocations in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._runtime = account.runtime
        self._items = CosmosItemStore(account, CREDENTIALS, "CREDENTIALS_UNAVAILABLE", "the credential store")

    async def read_version(self) -> int:
        return _version_from_item(await self._items.read(VERSION, SCOPE))

    async def load(self) -> Credentials:
        for _ in range(ATTEMPTS):
            before = await self.read_version()
            items = await self._items.query_items(_ALL, SCOPE, scope=SCOPE)
            if (
                max((_version_from_item(item) for item in items if item["id"] == VERSION), default=0)
                == before
                == await self.read_version()
            ):
                earliest_expiry = self._runtime.now() - RETENTION_AFTER_EXPIRY
                # Parsing thousands of keys would block the event loop.
                return await self._runtime.run_in_thread(_parse_credentials, before, items, earliest_expiry)
        raise self._items.build_unavailable_error()

    async def add_or_get_key(
        self, key: ApiKey, parent_id: str = "", *, max_unrevoked_keys: int | None = None
    ) -> ApiKey:
        item = _key_to_item(key)
        for _ in range(ATTEMPTS):
            version = await self._items.read(VERSION, SCOPE)
            before = await self._items.read(item["id"], SCOPE)
            if before is not None:
                stored = _key_from_item(before)
                if stored.digest != key.digest:
                    break
                return stored
            await self._require_not_revoked(parent_id)
            await self._require_below_key_limit(key.principal, max_unrevoked_keys)
            if (
                await self._items.put_if_unchanged(
                    version, _build_next_version_item(version), [("create", (item,), {})]
                )
                is not None
            ):
                return key
        raise self._items.build_unavailable_error()

    async def find_key(self, key_id: str) -> ApiKey | None:
        item = await self._items.read(f"{_KEY}{key_id}", SCOPE)
        return None if item is None else _key_from_item(item)

    async def is_revoked(self, credential_id: str) -> bool:
        if await self._items.read(f"{_REVOKED}{credential_id}", SCOPE) is not None:
            return True
        key = await self._items.read(f"{_KEY}{credential_id}", SCOPE)
        return key is not None and key["revokedAt"] is not None

    async def revoke_key_and_find_pending_event(
        self, key_id: str, at: datetime, event: AccessEvent | None = None
    ) -> AccessEvent | None:
        return await self._revoke_with_descendants_and_find_event(f"{_KEY}{key_id}", key_id, [], at, event)

    async def store_last_use(self, key_id: str, at: datetime) -> None:
        await self._items.commit_batch(
            SCOPE, [_build_property_patch_operation(f"{_KEY}{key_id}", "/lastUsedAt", format_rfc3339(at))]
        )

    async def add_token(self, token: IssuedToken) -> None:
        if await self._items.put_if_unchanged(None, _token_to_item(token, self._runtime.now())) is None:
            raise self._items.build_unavailable_error()
        if token.parent and await self.is_revoked(token.parent):
            # A revocation would search again each time that it finds a new token, also a rejected one.
            await self._items.delete(_TOKEN, _build_token_partition_key(token.token_id))
            raise build_revoked_credential_error()

    async def find_token(self, token_id: str) -> IssuedToken | None:
        item = await self._items.read(_TOKEN, _build_token_partition_key(token_id))
        return None if item is None else _token_from_item(item)

    async def revoke_token_and_find_pending_event(
        self, token_id: str, at: datetime, event: AccessEvent | None = None
    ) -> AccessEvent | None:
        item = await self._items.read(_TOKEN, _build_token_partition_key(token_id))
        own = [] if item is None else [_token_from_item(item)]
        return await self._revoke_with_descendants_and_find_event("", token_id, own, at, event)

    async def list_pending_events(self) -> Sequence[AccessEvent]:
        items = await self._items.query_items(_PENDING, SCOPE, scope=SCOPE)
        items.sort(key=lambda item: (str(item.get("storedAt")), str(item["id"])))
        return [event for item in items if (event := parse_stored_event(item.get("event"))) is not None]

    async def delete_pending_event(self, append_id: str) -> None:
        await self._items.delete(f"{_EVENT}{append_id}", SCOPE)

    async def _require_not_revoked(self, credential_id: str) -> None:
        if credential_id and await self.is_revoked(credential_id):
            raise build_revoked_credential_error()

    async def _require_below_key_limit(self, principal: str, max_unrevoked_keys: int | None) -> None:
        if max_unrevoked_keys is None:
            return
        unrevoked = await self._items.query_items(_UNREVOKED, SCOPE, scope=SCOPE, principal=principal)
        if len(unrevoked) >= max_unrevoked_keys:
            raise build_too_many_keys_error(max_unrevoked_keys)

    async def _revoke_with_descendants_and_find_event(
        self,
        key_item_id: str,
        credential_id: str,
        own_tokens: Sequence[IssuedToken],
        at: datetime,
        event: AccessEvent | None,
    ) -> AccessEvent | None:
        """Revoke a credential and its descendants, until a search after the last revocation finds no new descendant.

        Args:
            key_item_id: id of the item of the API key to revoke; empty to revoke a token.
            credential_id: id of the API key or token; its descendants are revoked, too.
            own_tokens: the token to revoke; empty to revoke an API key, or if the token is not stored.
            at: time of the revocation.
            event: audit event of the revocation; None to store no event.

        Returns:
            The pending event, as for :meth:`CredentialStore.revoke_key_and_find_pending_event`.

        Raises:
            WorkspaceError: UNAVAILABLE if new descendants were added during each of the searches; those that were found
                are revoked.
        """
        revoked: set[str] | None = None
        pending: AccessEvent | None = None
        for _ in range(ATTEMPTS):
            tokens = [*own_tokens, *await self._find_descendant_tokens([credential_id])]
            found = {token.token_id for token in tokens}
            if revoked is not None and found <= revoked:
                return pending
            stored = await self._revoke_in_batches_and_find_event(
                key_item_id, tokens, at, event if revoked is None else None
            )
            pending = pending or stored
            revoked = found
        raise self._items.build_unavailable_error()

    async def _find_descendant_tokens(self, parent_ids: Sequence[str]) -> list[IssuedToken]:
        """Return the stored tokens that descend from these tokens or keys, directly or through other tokens.

        Tokens that expired more than ``RETENTION_AFTER_EXPIRY`` ago are omitted.
        """
        found: dict[str, IssuedToken] = {}
        unread = list(parent_ids)
        while unread:
            children: list[Item] = []
            for batch in batched(unread, _PER_QUERY, strict=False):
                names = [f"p{number}" for number in range(len(batch))]
                text = f"SELECT * FROM c WHERE c.parent IN ({', '.join(f'@{name}' for name in names)})"  # noqa: S608  names
                children += await self._items.query_items(text, **dict(zip(names, batch, strict=True)))
            new = {token.token_id: token for token in map(_token_from_item, children) if token.token_id not in found}
            found |= new
            unread = list(new)
        since = self._runtime.now() - RETENTION_AFTER_EXPIRY
        return [token for token in found.values() if token.expires_at >= since]

    async def _revoke_in_batches_and_find_event(
        self, key_item_id: str, tokens: Sequence[IssuedToken], at: datetime, event: AccessEvent | None
    ) -> AccessEvent | None:
        """Revoke a key and tokens in batches, and return the pending audit event.

        Each batch also increases the version of the credentials. Earlier revocations stay unchanged. The event is
        stored with the key, or else with the first token. If an earlier call stored the event, the stored one is
        returned.

        Args:
            key_item_id: id of the API key's item; empty to revoke only tokens.
            tokens: tokens to revoke.
            at: time of the revocation.
            event: audit event of the revocation; None to store and return no event.
        """
        for _ in range(ATTEMPTS):
            version = await self._items.read(VERSION, SCOPE)
            stored = {item["id"]: item for item in await self._items.query_items(_ALL, SCOPE, scope=SCOPE)}
            changes: list[Operation] = []
            if event is not None and f"{_EVENT}{event.append_id}" not in stored:
                changes.append(("create", (_event_to_item(event, at),), {}))
            if key_item_id in stored and stored[key_item_id]["revokedAt"] is None:
                changes.append(_build_property_patch_operation(key_item_id, "/revokedAt", format_rfc3339(at)))
            revocations = [_build_revocation_item(token, at) for token in tokens]
            changes += [("create", (item,), {}) for item in revocations if item["id"] not in stored]
            for batch in batched(changes, MAX_OPERATIONS - 1, strict=False):
                version = await self._items.put_if_unchanged(version, _build_next_version_item(version), batch)
                if version is None:
                    break
            else:
                return event and _get_stored_or_given_event(stored, event)
        raise self._items.build_unavailable_error()


def _version_from_item(item: Item | None) -> int:
    return int(item["version"]) if item else 0


def _build_next_version_item(item: Item | None) -> Item:
    return {"id": VERSION, "scope": SCOPE, "version": _version_from_item(item) + 1}


def _build_property_patch_operation(item_id: str, json_pointer: str, value: str) -> Operation:
    return ("patch", (item_id, [{"op": "set", "path": json_pointer, "value": value}]), {})


def _build_token_partition_key(token_id: str) -> str:
    return f"{_TOKEN}-{token_id}"


def _key_to_item(key: ApiKey) -> Item:
    secret = {"salt": base64.b64encode(key.salt).decode(), "digest": base64.b64encode(key.digest).decode()}
    instants = {
        "createdAt": key.created_at,
        "expiresAt": key.expires_at,
        "lastUsedAt": key.last_used_at,
        "revokedAt": key.revoked_at,
    }
    times = {name: None if instant is None else format_rfc3339(instant) for name, instant in instants.items()}
    rights = None if key.rights is None else sorted(key.rights)
    named = {"principal": key.principal, "name": key.name, "rights": rights}
    creators = {} if key.creators is None else {"creators": list(key.creators)}
    binding = {} if key.binding is None else {"binding": key.binding.to_json()}
    return {"id": f"{_KEY}{key.key_id}", "scope": SCOPE, **secret, **named, **creators, **times, **binding}


def _key_from_item(item: Item) -> ApiKey:
    def parse_optional_time(property_name: str) -> datetime | None:
        return None if item[property_name] is None else parse_rfc3339(item[property_name])

    return ApiKey(
        key_id=item["id"].removeprefix(_KEY),
        salt=base64.b64decode(item["salt"]),
        digest=base64.b64decode(item["digest"]),
        principal=item["principal"],
        name=item["name"],
        rights=None if item["rights"] is None else select_known_rights(item["rights"]),
        created_at=parse_rfc3339(item["createdAt"]),
        expires_at=parse_optional_time("expiresAt"),
        last_used_at=parse_optional_time("lastUsedAt"),
        revoked_at=parse_optional_time("revokedAt"),
        creators=tuple(item["creators"]) if "creators" in item else None,
        binding=binding_from_json(item.get("binding")),
    )


def _token_to_item(token: IssuedToken, at: datetime) -> Item:
    place = {
        "id": _TOKEN,
        "scope": _build_token_partition_key(token.token_id),
        "ttl": _compute_time_to_live_seconds(token, at),
    }
    named = {"token": token.token_id, "principal": token.principal, "parent": token.parent}
    return {**place, **named, "expiresAt": format_rfc3339(token.expires_at)}


def _build_revocation_item(token: IssuedToken, at: datetime) -> Item:
    place = {"id": f"{_REVOKED}{token.token_id}", "scope": SCOPE, "ttl": _compute_time_to_live_seconds(token, at)}
    return {**place, "expiresAt": format_rfc3339(token.expires_at), "revokedAt": format_rfc3339(at)}


def _event_to_item(event: AccessEvent, at: datetime) -> Item:
    place = {"id": f"{_EVENT}{event.append_id}", "scope": SCOPE, "isPending": True}
    return {**place, "storedAt": format_rfc3339(at), "event": event.to_json_text()}


def _get_stored_or_given_event(items_by_id: Mapping[str, Item], given_event: AccessEvent) -> AccessEvent:
    """Return the pending event that is stored with the append id of ``given_event``.

    Return ``given_event`` itself if no event with this id is stored, or if the stored one is damaged.
    """
    item = items_by_id.get(f"{_EVENT}{given_event.append_id}")
    return given_event if item is None else parse_stored_event(item.get("event")) or given_event


def _compute_time_to_live_seconds(token: IssuedToken, at: datetime) -> int:
    """Return the seconds for which Cosmos DB stores an item about a token.

    The result is at least the retention time, because the clock of ``at`` can be ahead of that of Cosmos DB.
    """
    return int((max(token.expires_at - at, timedelta(0)) + RETENTION_AFTER_EXPIRY).total_seconds())


def _token_from_item(item: Item) -> IssuedToken:
    return IssuedToken(item["token"], item["principal"], parse_rfc3339(item["expiresAt"]), item["parent"])


def _parse_credentials(version: int, items: Sequence[Item], earliest_expiry: datetime) -> Credentials:
    keys = (_key_from_item(item) for item in items if item["id"].startswith(_KEY))
    earliest = format_rfc3339(earliest_expiry)
    revoked = (item for item in items if item["id"].startswith(_REVOKED) and item["expiresAt"] >= earliest)
    ids: frozenset[Any] = frozenset(item["id"].removeprefix(_REVOKED) for item in revoked)
    return Credentials(version, {key.key_id: key for key in keys}, ids)


_ID: Final = "grant"
_RETAINED_SECONDS: Final = 86_400
"""Time for which an expired grant is stored, so that a late use of its authorization code is still recognised."""

_FOR_MEMBER: Final = "SELECT * FROM c WHERE c.member = @member"
_FOR_ALL: Final = "SELECT * FROM c WHERE c.id = 'grant'"
_UNRECORDED: Final = "SELECT * FROM c WHERE c.id = 'grant' AND c.grant['end'].isRecorded = false"
_FOR_ANCESTOR: Final = (
    "SELECT * FROM c WHERE c.id = 'grant' AND "
    "(c.token = @credential OR c.apiKey = @credential OR ARRAY_CONTAINS(c.ancestors, @credential))"
)

type _Query = tuple[str, Mapping[str, str]]
"""SQL text of a query, and the values of its parameters by name."""


class CosmosGrantStore:
    """Implementation of GrantStore: stores OAuth grants in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._runtime = account.runtime
        self._items = CosmosItemStore(account, CREDENTIALS, "CREDENTIALS_UNAVAILABLE", "the credential store")

    async def add_grant(self, grant: Grant) -> None:
        if await self._items.put_if_unchanged(None, self._grant_to_item(grant)) is None:
            raise self._items.build_unavailable_error()

    async def find_grant(self, grant_id: str) -> StoredGrant | None:
        item = await self._items.read(_ID, _build_grant_partition_key(grant_id))
        return None if item is None else _stored_grant_from_item(item)

    async def try_replace_grant(self, before: StoredGrant, after: Grant) -> bool:
        etag, writes = json.loads(before.version)
        known = {**self._grant_to_item(before.grant), "_etag": etag, "writes": writes}
        return await self._items.put_if_unchanged(known, self._grant_to_item(after)) is not None

    async def list_active_grants(self, member_id: str | None = None) -> Sequence[Grant]:
        query: _Query = (_FOR_ALL, {}) if member_id is None else (_FOR_MEMBER, {"member": member_id})
        at = self._runtime.now()
        return await self._list_grants(query, lambda grant: grant.is_active(at))

    async def list_grants_of_credential(self, credential_id: str) -> Sequence[Grant]:
        at = self._runtime.now()
        query = (_FOR_ANCESTOR, {"credential": credential_id})
        return await self._list_grants(query, lambda grant: grant.end is None and grant.expires_at > at)

    async def list_grants_with_unrecorded_end(self) -> Sequence[StoredGrant]:
        items = sorted(await self._items.query_items(_UNRECORDED), key=lambda item: str(item["scope"]))
        return [_stored_grant_from_item(item) for item in items]

    async def _list_grants(self, query: _Query, is_wanted: Callable[[Grant], bool]) -> Sequence[Grant]:
        """Return the grants that a query finds and for which ``is_wanted`` returns True, oldest first."""
        sql, parameter_values = query
        items = await self._items.query_items(sql, **parameter_values)
        # Parsing thousands of grants would block the event loop.
        return await self._runtime.run_in_thread(_parse_grants, items, is_wanted)

    def _grant_to_item(self, grant: Grant) -> Item:
        left = int((grant.expires_at - self._runtime.now()).total_seconds())
        place = {
            "id": _ID,
            "scope": _build_grant_partition_key(grant.grant_id),
            "ttl": max(1, left + _RETAINED_SECONDS),
        }
        indexed = {"member": grant.member_id, "token": grant.token_id, "apiKey": grant.api_key_id}
        ancestors = {"ancestors": list(grant.ancestor_ids)} if grant.ancestor_ids else {}
        return {**place, **indexed, **ancestors, "grant": grant_to_json(grant)}


def _build_grant_partition_key(grant_id: str) -> str:
    return f"{_ID}-{grant_id}"


def _stored_grant_from_item(item: Item) -> StoredGrant:
    # The ids of earlier writes show whether a write whose reply was lost was stored.
    return StoredGrant(_grant_from_item(item), json.dumps([item["_etag"], item.get("writes", [])]))


def _parse_grants(items: Iterable[Item], is_wanted: Callable[[Grant], bool]) -> Sequence[Grant]:
    return sorted(filter(is_wanted, map(_grant_from_item, items)), key=lambda grant: grant.grant_id)


def _grant_from_item(item: Item) -> Grant:
    return grant_from_json(item["grant"])
