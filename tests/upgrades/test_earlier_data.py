"""Tests that this version can use data that earlier versions stored.

Each folder next to this file is named after the commit that wrote it; ``record.py`` describes how.
"""

import asyncio
import base64
import gzip
import json
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from azure.cosmos.aio import CosmosClient
from azure.storage.blob.aio import BlobServiceClient
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from functions.http_blueprint import get_pipeline
from shared import wiring
from tests.azurite.running import find_missing_requirement
from tests.emulators.kusto.endpoints import end_process
from tests.key_vault.keys import Version
from tests.receipts import verify_inclusion
from tests.service.local_service import Service, wait_until
from tests.unit.functions.azure_plant import ADMIN, EDITOR, QUALITY, Instance, Plant
from tests.unit.shared.wiring.azure import DATABASE, deployment
from tests.upgrades.record import AMENDMENTS, EVENT, EVENTS, MESSAGES, RANGE, SCOPE, TABLE

FOLDER = Path(__file__).parent
VERSIONS = sorted(path.parent.name for path in FOLDER.glob("*/azure.json.gz"))
SCOPES, PENDING = "/oi-api/provenance/scopes", "/oi-api/provenance/pending"
CHAINS: list[dict[str, str]] = [
    {"target": "PlatformConfig"},
    {"target": "AccessControl"},
    {"target": "DomainEvents", "ScopeKey": SCOPE},
    {"target": "DomainAmendments", "ScopeKey": SCOPE},
]


def test_data_of_an_earlier_version_exists() -> None:
    """The folder of the upgrade tests contains the data of at least one earlier version."""
    assert VERSIONS


@pytest.fixture(scope="module", params=VERSIONS)
def upgraded_service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service of this version with the data directory of an earlier version."""
    folder = tmp_path_factory.mktemp("upgraded")
    with tarfile.open(FOLDER / request.param / "embedded.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    service = Service(folder / "data", Path("unused.yaml"), {"WORKSPACE_FILE": ""}).start()
    yield service
    assert service.stop() == 0


def test_earlier_chains_are_listed_with_their_counts(upgraded_service: Service) -> None:
    """The list of chains contains those of an earlier version with their counts and pending amendments."""
    viewer = upgraded_service.create_client("viewer@t")
    check_listed_chains(viewer.get(f"{SCOPES}?target=DomainAmendments").json())
    check_pending_amendments(viewer.get(PENDING).json())
    check_listed_chains(viewer.get(f"{SCOPES}?target=DomainAmendments").json())


def check_listed_chains(body: dict[str, Any]) -> None:
    """Check that the list of scopes contains the chains of amendments that the earlier version recorded."""
    [row] = body["scopes"]
    assert (row["scopeKey"], row["records"], row["pendingAmendments"]) == (SCOPE, 3, 1)
    assert row["firstAt"] < row["lastAt"]


def check_pending_amendments(body: dict[str, Any]) -> None:
    """Check that the list of pending amendments contains those that the earlier version recorded."""
    [pending] = body["amendments"]
    assert (pending["ScopeKey"], pending["EntityID"], pending["Status"]) == (SCOPE, "B-2", "pending")


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain["target"])
def test_chains_of_an_earlier_version_are_valid_and_continue(upgraded_service: Service, chain: dict[str, str]) -> None:
    """Each chain of an earlier version is valid, also after this version appends a record."""
    admin = upgraded_service.create_client("admin@t")
    target, scope = {"target": chain["target"]}, {name: each for name, each in chain.items() if name == "ScopeKey"}

    def verify() -> dict[str, Any]:
        found: dict[str, Any] = admin.post(f"{EVENTS}/verify", params=target, json=scope).json()
        return found

    def find_newest() -> dict[str, Any]:
        scope_key = {"scopeKey": SCOPE} if scope else {}
        query = target | scope_key | {"limit": "1"}
        found: dict[str, Any] = admin.get(f"{EVENTS}/query", params=query).json()[0]
        return found

    assert (verify()["ChainValid"], verify()["Empty"]) == (True, False)
    before = find_newest()
    event = EVENT | {"EntityID": "after the upgrade"}
    if chain["target"] == "DomainEvents":
        assert admin.post(EVENTS, json=event).status_code == 201
    elif chain["target"] == "PlatformConfig":
        del event["ScopeKey"]
        assert admin.post(EVENTS, json=event).status_code == 201
    elif chain["target"] == "AccessControl":
        upgraded_service.create_client("viewer@t")
    else:
        [pending] = admin.get(AMENDMENTS, params={"scopeKey": SCOPE, "status": "pending"}).json()
        decided = admin.post(f"{AMENDMENTS}/{pending['RecordID']}/approve", params={"scopeKey": SCOPE})
        assert decided.status_code == 200, decided.text
    assert int(find_newest()["RecordID"]) > int(before["RecordID"])
    assert verify()["ChainValid"] is True


def test_earlier_checkpoints_cover_the_chain(upgraded_service: Service) -> None:
    """Checkpoints of an earlier version are returned, and the chain's newer checkpoints extend them."""
    viewer = upgraded_service.create_client("viewer@t")
    query = {"target": "DomainAmendments", "scopeKey": SCOPE}
    checkpoint = viewer.get("/oi-api/provenance/checkpoint", params=query).json()
    assert checkpoint["size"] >= 3
    proof = {**query, "sequence": "1", "size": "3"}
    assert viewer.get("/oi-api/provenance/proof", params=proof).status_code == 200


def test_earlier_checkpoints_have_receipts(upgraded_service: Service) -> None:
    """A checkpoint of an earlier version without a signature for receipts gets one when a receipt is requested."""
    viewer = upgraded_service.create_client("viewer@t")
    chain = {"target": "DomainAmendments", "scopeKey": SCOPE}
    record = viewer.get(f"{EVENTS}/query", params={**chain, "fromSequence": "1", "toSequence": "1"}).json()[0]
    key_set = viewer.get("/.well-known/oi-checkpoint-key", params={"format": "cose"}).content
    for size in ({"size": "3"}, {}):
        receipt = viewer.get("/oi-api/provenance/receipt", params={**chain, "recordId": "000000000001", **size})
        assert receipt.status_code == 200, receipt.text
        assert verify_inclusion(receipt.content, record["Hash"], key_set).ok


def test_earlier_keys_prove_a_personal_sign_in(upgraded_service: Service) -> None:
    """If the owner of an API key of an earlier version also created the key, tokens of this key can sign."""
    key = upgraded_service.read_api_key("editor@t")
    token = upgraded_service.create_anonymous_client(key).get("/workspace/api/keys/jwt").json()["Token"]
    check_personal_sign_in(token)


def check_personal_sign_in(token: str) -> None:
    """Check that a token has a sign-in time and is marked as personal."""
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["amr"], "Personal" in claims) == (["key"], False)
    assert claims["iat"] - 1 <= claims["auth_time"] <= claims["iat"]


def test_earlier_keys_can_be_revoked(upgraded_service: Service) -> None:
    """The revocation of an API key of an earlier version is in force and recorded."""
    admin = upgraded_service.create_client("admin@t")
    own = upgraded_service.create_anonymous_client(upgraded_service.read_api_key("historian"))
    [key] = own.get("/workspace/api/keys").json()["keys"]
    assert own.delete(f"/workspace/api/keys/{key['keyId']}").status_code == 204
    assert own.get("/workspace/api/keys").status_code == 401
    query = {"target": "AccessControl", "actionType": "ApiKey.Revoked"}
    [event] = admin.get(f"{EVENTS}/query", params=query).json()
    assert (event["EntityID"], event["UserID"]) == (key["keyId"], "historian")


def test_earlier_catalog_and_documents_are_served(upgraded_service: Service) -> None:
    """Queries and documents of an earlier version can be read and executed."""
    editor = upgraded_service.create_client("editor@t")
    assert editor.get("/oi-api/warm-queries/mine").status_code == 200
    assert editor.get("/oi-api/warm-queries/draft").json()["code"] == "QUERY_NOT_APPROVED"
    read = editor.get(f"{TABLE}/w-1", params={"partitionKey": "A"})
    assert (read.status_code, read.json()["kg"]) == (200, 5)
    changed = editor.put(f"{TABLE}/w-1", json={"id": "w-1", "line": "A", "kg": 6})
    assert changed.status_code == 200


def test_earlier_telemetry_is_queried_and_downloaded(upgraded_service: Service) -> None:
    """Rows and archive of an earlier version are returned together with new messages."""
    editor = upgraded_service.create_client("editor@t")
    rows = {"query": 'Telemetry | where ConnectionLookup == "press" | summarize n = dcount(MessageId)'}
    assert editor.post("/oi-api/warm-queries", json=rows).json()["results"] == [{"n": len(MESSAGES)}]
    sent = editor.post("/oi-api/telemetry/press", json={"messageId": "m-new", "Pressure": 9})
    assert sent.status_code == 202
    wait_until(
        lambda: editor.post("/oi-api/warm-queries", json=rows).json()["results"],
        lambda results: results == [{"n": len(MESSAGES) + 1}],
    )
    job = editor.post(
        "/oi-api/downloads/data-connections/press",
        json={"dateRange": RANGE | {"end": "2027-01-01T00:00:00Z"}},
        headers={"Prefer": "wait=60"},
    ).json()
    assert job["status"] == "completed"
    assert job["progress"]["rows"] >= len(MESSAGES)


@pytest.fixture(params=VERSIONS)
async def instance(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Instance, dict[str, str]]]:
    """Return an instance of this version with the Cosmos DB items, blobs and keys of an earlier version."""
    if find_missing_requirement():
        pytest.skip(find_missing_requirement())
    stored = json.loads(gzip.decompress((FOLDER / request.param / "azure.json.gz").read_bytes()))
    async with deployment(tmp_path / "blobs") as deployed:
        plant = Plant(deployed, tmp_path)
        await plant.start()
        await _restore_data(deployed, stored)
        app = Instance(plant.services(), monkeypatch)
        yield app, stored["apiKeys"]
        await app.services.close()
        await asyncio.to_thread(end_process, plant.kusto.process)
    monkeypatch.undo()
    wiring.services.cache_clear()
    get_pipeline.cache_clear()


async def _restore_data(deployed: Any, stored: dict[str, Any]) -> None:
    async with CosmosClient(deployed.cosmos.endpoint, deployed.cosmos.key) as client:
        database = client.get_database_client(DATABASE)
        for name, items in stored["items"].items():
            for item in items:
                await database.get_container_client(name).upsert_item(item)
    async with BlobServiceClient.from_connection_string(deployed.blobs.connection_string) as account:
        for name, blobs in stored["blobs"].items():
            for blob in blobs:
                content = base64.b64decode(blob["content"])
                await account.get_blob_client(name, blob["name"]).upload_blob(content, metadata=blob["metadata"])
    for name, versions in stored["vault"].items():
        deployed.vault.keys.versions[name] = [
            Version(each["created"], each["version"], private=_parse_private_key(each["private"])) for each in versions
        ]


def _parse_private_key(pem: str) -> Any:
    return load_pem_private_key(pem.encode(), None)


async def test_cosmos_items_of_an_earlier_version_are_usable(instance: tuple[Instance, dict[str, str]]) -> None:
    """Keys, chains, amendments, checkpoints and queries that an earlier version stored in Cosmos DB are usable."""
    app, keys = instance
    tokens = {member: await app.issue_token(key) for member, key in keys.items()}
    check_personal_sign_in(tokens[EDITOR])
    for chain in CHAINS:
        body = {name: each for name, each in chain.items() if name == "ScopeKey"}
        verdict = await app.request("POST", f"{EVENTS}/verify?target={chain['target']}", tokens[ADMIN], body)
        assert (verdict.body["ChainValid"], verdict.body["Empty"]) == (True, False), verdict.body
    appended = await app.request("POST", EVENTS, tokens[EDITOR], EVENT | {"EntityID": "after the upgrade"})
    assert (appended.status, appended.body["RecordID"]) == (201, "000000000013")
    check_listed_chains((await app.request("GET", f"{SCOPES}?target=DomainAmendments", tokens[QUALITY])).body)
    check_pending_amendments((await app.request("GET", PENDING, tokens[QUALITY])).body)
    check_listed_chains((await app.request("GET", f"{SCOPES}?target=DomainAmendments", tokens[QUALITY])).body)
    query = f"{AMENDMENTS}?scopeKey={SCOPE}&status=pending"
    [pending] = (await app.request("GET", query, tokens[QUALITY])).body
    approve = f"{AMENDMENTS}/{pending['RecordID']}/approve?scopeKey={SCOPE}"
    assert (await app.request("POST", approve, tokens[QUALITY])).status == 200
    assert (await app.request("GET", "/oi-api/warm-queries/mine", tokens[EDITOR])).status == 200
    before = await app.request("GET", f"/oi-api/provenance/checkpoint?scopeKey={SCOPE}", tokens[EDITOR])
    assert before.body["size"] == 12
    assert await app.services.provenance.checkpoints.create_all_and_count_them() >= 2
    after = await app.request("GET", f"/oi-api/provenance/checkpoint?scopeKey={SCOPE}", tokens[EDITOR])
    assert after.body["size"] == 13
    verdict = await app.request("POST", f"{EVENTS}/verify", tokens[ADMIN], {"ScopeKey": SCOPE})
    assert verdict.body["ChainValid"] is True
    await check_earlier_key_can_be_revoked(app, tokens[ADMIN], keys[QUALITY])


async def check_earlier_key_can_be_revoked(app: Instance, token: str, key: str) -> None:
    """Check that an API key that an earlier version stored in Cosmos DB can be revoked, with one event."""
    key_id = key.split("_")[1]
    assert (await app.request("DELETE", f"/workspace/api/keys/{key_id}", token)).status == 204
    assert (await app.request("GET", "/workspace/api/keys/whoami", key)).status == 401
    query = f"{EVENTS}/query?target=AccessControl&actionType=ApiKey.Revoked"
    assert [event["EntityID"] for event in (await app.request("GET", query, token)).body] == [key_id]
