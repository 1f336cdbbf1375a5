"""Tests of the selection of stores for credentials and grants, and of the end of grants with their clients."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from shared.auth.older_keys import OlderKeyCreators
from shared.auth.ports import ApiKey
from shared.catalog.document import load_document
from shared.catalog.items import ItemKind
from shared.oauth.grants import CodeProof, Grant
from shared.provenance.ports import Target
from shared.timestamps import now
from shared.wiring import Services
from tests.unit.shared.wiring.conftest import Choice

DOCUMENT = """\
workspace: {id: plant-a, name: Plant A}
team: [{id: ann@t, name: Ann, role: Admin}]
"""
CLIENT = '{id: tool, name: Tool, redirectUris: ["https://tool.example/"]}'
GRANT = Grant("g", "ann@t", "tool", "Tool", frozenset(), now(), CodeProof("d", "c", "https://tool.example/", now()))


def test_the_setting_stores_selects_credential_and_grant_stores(find_store_classes: Choice) -> None:
    """The setting STORES selects the stores; credentials and grants are in stores of the same kind."""
    assert find_store_classes(lambda services: services.access.credential_store) == (
        "SqliteCredentialStore",
        "CosmosCredentialStore",
    )
    assert find_store_classes(lambda services: services.access.grant_store) == ("SqliteGrantStore", "CosmosGrantStore")


async def test_the_local_signing_key_is_a_file(local_services: Services, tmp_path: Path) -> None:
    """The local signing key is a file, created at its first use and read again after a restart."""
    assert not (tmp_path / "signing-key.pem").exists()
    key_id = await local_services.access.signing_key.get_key_id()
    [public] = await local_services.access.signing_key.load_public_keys()
    assert (public["kid"], (tmp_path / "signing-key.pem").exists()) == (key_id, True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET canonical = CAST(replace(canonical, 'ann@t', 'bob@t') AS BLOB)",
        """UPDATE records SET append_id = 'other' WHERE append_id = 'key-created-AAAAAAAA';
        UPDATE records SET append_id = 'key-created-AAAAAAAA' WHERE append_id = 'key-created-BBBBBBBB';
        UPDATE records SET append_id = 'key-created-BBBBBBBB' WHERE append_id = 'other'""",
    ],
    ids=["altered", "append ids swapped"],
)
async def test_a_forged_event_names_no_creator_of_an_earlier_key(
    local_services: Services, tmp_path: Path, statement: str
) -> None:
    """The creator of an earlier API key is unknown if its audit event was altered or replaced by that of another."""
    await local_services.provenance.catalog_service.apply(load_document(DOCUMENT, "test"), "apply")
    for key_id, user in (("AAAAAAAA", "ann@t"), ("BBBBBBBB", "bob@t")):
        await local_services.provenance.audit_log.append(
            Target.ACCESS_CONTROL,
            user,
            {"ActionType": "ApiKey.Created", "EntityType": "ApiKey", "EntityID": key_id},
            append_id=f"key-created-{key_id}",
        )
    key = ApiKey("AAAAAAAA", b"salt", b"digest", "bob@t", "earlier", None, now(), None, creators=None)
    assert await OlderKeyCreators(local_services.access.find_access_event).find_creator_ids(key) == ("ann@t",)
    with closing(sqlite3.connect(tmp_path / "provenance.sqlite")) as database, database:
        database.executescript(statement)
    assert await OlderKeyCreators(local_services.access.find_access_event).find_creator_ids(key) is None


async def test_the_grants_of_a_client_end_with_its_declaration(local_services: Services) -> None:
    """A grant outlives a change of its client in the workspace document, but not a removal and a new declaration."""

    async def is_orphaned_after_apply(clients: str, consented_at: datetime) -> bool:
        document = load_document(f"{DOCUMENT}oauthClients: [{clients}]\n", "test")
        await local_services.provenance.catalog_service.apply(document, "apply")
        grant = replace(GRANT, created_at=consented_at)
        return await local_services.access.grant_ender.try_end_if_orphaned(grant)

    before = now()
    assert await is_orphaned_after_apply(CLIENT, before)
    after = now()
    assert not await is_orphaned_after_apply(CLIENT.replace("Tool", "Renamed tool"), after)
    assert await is_orphaned_after_apply("", after)
    assert await is_orphaned_after_apply(CLIENT, after)


async def test_a_grant_outlives_items_of_a_newer_version(local_services: Services) -> None:
    """A grant does not end while this version of the service cannot parse its member and its client."""
    document = load_document(f"{DOCUMENT}oauthClients: [{CLIENT}]\n", "test")
    await local_services.provenance.catalog_service.apply(document, "apply")
    stored = await local_services.catalog.store.load()
    newer = [
        replace(item, definition={**item.definition, "newer": True})
        for item in stored.items
        if item.kind in (ItemKind.MEMBER, ItemKind.OAUTH_CLIENT)
    ]
    await local_services.catalog.store.save(newer, [], [], stored.version)
    local_services.catalog.reader.invalidate()
    catalog = await local_services.catalog.get_current_catalog()
    assert (catalog.members, catalog.oauth_clients) == ({}, {})
    grant = replace(GRANT, created_at=now())
    assert not await local_services.access.grant_ender.try_end_if_orphaned(grant)
