"""OAuth grants (rights that a team member delegated to an OAuth client) in Cosmos DB.

Each grant is one item in a separate partition. The item expires with the grant.
"""

import json
from collections.abc import Sequence
from typing import Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CREDENTIALS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.oauth.grants import Grant, StoredGrant, grant_from_json, grant_to_json

_ID: Final = "grant"
_RETAINED_SECONDS: Final = 86_400
"""Time for which an expired grant is stored, so that a late use of its authorization code is still recognised."""

_FOR_MEMBER: Final = "SELECT * FROM c WHERE c.member = @member"
_FOR_ALL: Final = "SELECT * FROM c WHERE c.id = 'grant'"
_UNRECORDED: Final = "SELECT * FROM c WHERE c.id = 'grant' AND c.grant['end'].isRecorded = false"
_FOR_ANCESTOR: Final = "SELECT * FROM c WHERE c.id = 'grant' AND (c.token = @credential OR c.apiKey = @credential)"


class CosmosGrantStore:
    """Implementation of GrantStore: stores OAuth grants in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._runtime = account.runtime
        self._items = CosmosItemStore(account, CREDENTIALS, "CREDENTIALS_UNAVAILABLE", "the credential store")

    async def add(self, grant: Grant) -> None:
        if await self._items.put(None, self._grant_to_item(grant)) is None:
            raise self._items.unavailable_error()

    async def find(self, grant_id: str) -> StoredGrant | None:
        item = await self._items.read(_ID, _build_scope(grant_id))
        return None if item is None else _stored_grant_from_item(item)

    async def replace(self, before: StoredGrant, after: Grant) -> bool:
        etag, writes = json.loads(before.version)
        known = {**self._grant_to_item(before.grant), "_etag": etag, "writes": writes}
        return await self._items.put(known, self._grant_to_item(after)) is not None

    async def list_active(self, member_id: str | None = None) -> Sequence[Grant]:
        query = (_FOR_ALL, {}) if member_id is None else (_FOR_MEMBER, {"member": member_id})
        at = self._runtime.now()
        return [grant for grant in await self._list_grants(*query) if grant.is_active(at)]

    async def list_descendants(self, credential_id: str) -> Sequence[Grant]:
        at = self._runtime.now()
        found = await self._list_grants(_FOR_ANCESTOR, {"credential": credential_id})
        return [grant for grant in found if grant.end is None and grant.expires_at > at]

    async def list_unrecorded(self) -> Sequence[StoredGrant]:
        items = sorted(await self._items.find(_UNRECORDED), key=lambda item: str(item["scope"]))
        return [_stored_grant_from_item(item) for item in items]

    async def _list_grants(self, text: str, values: dict[str, str]) -> list[Grant]:
        return sorted(map(_grant_from_item, await self._items.find(text, **values)), key=lambda grant: grant.grant_id)

    def _grant_to_item(self, grant: Grant) -> Item:
        left = int((grant.expires_at - self._runtime.now()).total_seconds())
        place = {"id": _ID, "scope": _build_scope(grant.grant_id), "ttl": max(1, left + _RETAINED_SECONDS)}
        indexed = {"member": grant.member_id, "token": grant.token_id, "apiKey": grant.api_key_id}
        return {**place, **indexed, "grant": grant_to_json(grant)}


def _build_scope(grant_id: str) -> str:
    return f"{_ID}-{grant_id}"


def _stored_grant_from_item(item: Item) -> StoredGrant:
    # The ids of earlier writes show whether a write whose reply was lost was stored.
    return StoredGrant(_grant_from_item(item), json.dumps([item["_etag"], item.get("writes", [])]))


def _grant_from_item(item: Item) -> Grant:
    return grant_from_json(item["grant"])
