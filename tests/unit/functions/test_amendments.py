"""Tests of amendments that depend on changes by another process."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from functions.http_blueprint import get_pipeline
from shared import wiring
from shared.catalog.document import load_document
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ChainKey, Target
from shared.settings import Settings
from shared.wiring import Services
from tests.unit.functions.azure_plant import AMENDMENTS, Instance

DOCUMENT = """\
workspace: {id: plant-a, name: Plant A}
team: [{id: ann@t, name: Ann, role: Admin}]
policies: {provenance: {requireApproval: false}}
"""
REQUIRED = "{provenance: {requireApproval: true}, signatures: {amendments: required}}"
STRICT = f"""\
workspace: {{id: plant-a, name: Plant A}}
team: [{{id: ann@t, name: Ann, role: Admin}}, {{id: bob@t, name: Bob, role: Admin}}]
policies: {REQUIRED}
"""
AMENDMENT = {
    "ScopeKey": "line-1",
    "EntityType": "Batch",
    "EntityID": "B-1",
    "ReasonCategory": "other",
    "OriginalRecord": {"kg": 10},
    "AmendedRecord": {"kg": 11},
    "ChangedFields": ["kg"],
    "ReasonText": "typo",
}


@pytest.fixture
async def services_of_two_processes(tmp_path: Path) -> AsyncIterator[tuple[Services, Services]]:
    """Yield the services of two processes with the same embedded stores and with caches that get old."""
    settings = Settings.read({"DATA_DIR": str(tmp_path), "REFRESH_SECONDS": "15"})
    both = Services(settings), Services(settings)
    yield both
    for each in both:
        await each.close()
    wiring.services.cache_clear()
    get_pipeline.cache_clear()


async def test_amendments_are_pending_from_the_moment_of_the_policy(
    services_of_two_processes: tuple[Services, Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An amendment is pending as soon as another process has stored a policy that requires approval."""
    own, other = services_of_two_processes
    await other.provenance.catalog_service.apply(load_document(DOCUMENT, "test"), "apply")
    key = await other.access.api_keys.issue_without_rights_check("apply", "ann@t", "test")
    app = Instance(own, monkeypatch)
    token = await app.issue_token(key.api_key)
    first = await app.request("POST", AMENDMENTS, token, AMENDMENT)
    required = load_document(DOCUMENT.replace("false", "true"), "test")
    await other.provenance.catalog_service.apply(required, "apply")
    second = await app.request("POST", AMENDMENTS, token, AMENDMENT)
    assert (first.body["Status"], second.body["Status"]) == ("approved", "pending")


async def test_the_policy_at_the_time_of_the_append_decides(
    services_of_two_processes: tuple[Services, Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the policy changes before an append, the amendment is pending, and a decision without a signature refused."""
    own, other = services_of_two_processes
    service, store = other.provenance.catalog_service, own.provenance.chain_store
    await service.apply(load_document(STRICT, "test"), "apply")
    issue, app = other.access.api_keys.issue_without_rights_check, Instance(own, monkeypatch)
    ann, bob = [await app.issue_token((await issue("apply", each, "test")).api_key) for each in ("ann@t", "bob@t")]
    pending = await app.request("POST", AMENDMENTS, ann, AMENDMENT)
    decision = f"{AMENDMENTS}/{pending.body['RecordID']}/approve?scopeKey=line-1"
    find, policies = store.find, [STRICT]

    async def change_policy_and_find(chain: ChainKey, *fields: Any) -> Any:
        # The appender looks for the append id after the policy was read first, and before the append.
        if policies and chain.scope_key:
            await service.apply(load_document(policies.pop(), "test"), "apply")
        return await find(chain, *fields)

    monkeypatch.setattr(store, "find", change_policy_and_find)
    replies = list[Any]()
    for address, token, body in ((AMENDMENTS, ann, AMENDMENT), (decision, bob, {})):
        await service.apply(load_document(STRICT.replace(REQUIRED, "{provenance: {}}"), "test"), "apply")
        await own.catalog.reader.load_stored_catalog()
        policies[:] = [STRICT]
        replies.append(await app.request("POST", address, token, body, idempotency_key=address))
        assert not policies
    created, decided = replies
    assert (created.body["Status"], decided.body["code"]) == ("pending", "SIGNATURE_REQUIRED")


async def test_a_policy_that_cannot_be_read_decides_nothing(
    services_of_two_processes: tuple[Services, Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the stored policy cannot be read, amendments and decisions are refused, although a recent copy allows them."""
    own, other = services_of_two_processes
    service = other.provenance.catalog_service
    await service.apply(load_document(DOCUMENT.replace("false", "true"), "test"), "apply")
    key = await other.access.api_keys.issue_without_rights_check("apply", "ann@t", "test")
    app = Instance(own, monkeypatch)
    token = await app.issue_token(key.api_key)
    pending = await app.request("POST", AMENDMENTS, token, AMENDMENT)
    await service.apply(load_document(DOCUMENT, "test"), "apply")
    await own.catalog.reader.load_stored_catalog()

    async def raise_unavailable() -> Any:
        raise WorkspaceError(Kind.UNAVAILABLE, "STORE_UNAVAILABLE", "The store does not respond.")

    monkeypatch.setattr(own.catalog.reader._snapshot, "_version", raise_unavailable)
    decision = f"{AMENDMENTS}/{pending.body['RecordID']}/approve?scopeKey=line-1"
    for address, body in ((AMENDMENTS, AMENDMENT), (decision, {})):
        reply = await app.request("POST", address, token, body)
        assert (reply.status, reply.body["code"]) == (503, "CATALOG_UNAVAILABLE"), address


async def test_nothing_is_appended_after_another_process_has_removed_provenance(
    services_of_two_processes: tuple[Services, Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another process has removed the policy `provenance`, amendments and decisions get 503 at once."""
    own, other = services_of_two_processes
    service, chain = other.provenance.catalog_service, ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
    await service.apply(load_document(STRICT.replace(REQUIRED, "{provenance: {}}"), "test"), "apply")
    issue, app = other.access.api_keys.issue_without_rights_check, Instance(own, monkeypatch)
    ann, bob = [await app.issue_token((await issue("apply", each, "test")).api_key) for each in ("ann@t", "bob@t")]
    await service.apply(load_document(STRICT, "test"), "apply")
    await own.catalog.reader.load_stored_catalog()
    pending = await app.request("POST", AMENDMENTS, ann, AMENDMENT)
    decision = f"{AMENDMENTS}/{pending.body['RecordID']}/approve?scopeKey=line-1"
    signed = {"signature": {"meaning": "approval"}}
    for cached, address, token, body in (
        ("{provenance: {}}", AMENDMENTS, ann, AMENDMENT),
        ("{provenance: {}}", decision, bob, {}),
        (REQUIRED, AMENDMENTS, ann, AMENDMENT),
        (REQUIRED, decision, bob, signed),
    ):
        for policies in (cached, "{}"):
            await own.catalog.reader.load_stored_catalog()
            await service.apply(load_document(STRICT.replace(REQUIRED, policies), "test"), "apply")
        reply = await app.request("POST", address, token, body)
        assert (reply.status, reply.body["code"]) == (503, "PROVENANCE_NOT_PROVISIONED"), (cached, address)
    assert (await own.provenance.chain_store.read_tip(chain)).sequence == 1
