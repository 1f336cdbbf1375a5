"""Records the data that a version of the service stores, for the upgrade tests of later versions.

Run it inside a checkout of that version, with its virtual environment and its test servers installed:

    cd CHECKOUT && .venv/bin/python PATH/TO/tests/upgrades/record.py OUTPUT_FOLDER

It writes ``embedded.tar.gz`` (a data directory) and ``azure.json.gz`` (Cosmos DB items, blobs and the test vault's
keys). Everything in them was made for this purpose: the keys open nothing else.
"""

import asyncio
import base64
import contextlib
import gzip
import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))

SCOPE = "line-1"
EVENTS, AMENDMENTS = "/oi-api/provenance/events", "/oi-api/provenance/amendments"
TABLE = "/oi-api/data-stores/mes/databases/orders/tables/workorders"
MESSAGES = [
    {"ts": f"2026-02-01T08:00:0{n}Z", "messageId": f"m-{n}", "deviceId": "rig-1", "Pressure": 4 + n / 10}
    for n in range(5)
]
EVENT = {"ScopeKey": SCOPE, "ActionType": "Batch.Released", "EntityType": "Batch"}
AMENDMENT = {
    "ScopeKey": SCOPE,
    "EntityType": "Batch",
    "OriginalRecord": {"kg": 10},
    "AmendedRecord": {"kg": 11},
    "ChangedFields": ["kg"],
    "ReasonCategory": "other",
    "ReasonText": "typo",
}
RANGE = {"start": "2026-01-01T00:00:00Z", "end": "2026-12-31T00:00:00Z"}


def record_embedded(target: Path) -> None:
    """Use a local host over HTTP, stop it, and pack its data directory."""
    from tests.service.local_service import Service, wait_until  # noqa: PLC0415  of the checkout in the working directory

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        workspace = Path("tests/service/workspace.yaml").absolute()
        service = Service(data, workspace, {"CHECKPOINT_SCHEDULE": "*/1 * * * * *"}).start()
        admin, editor = service.create_client("admin@t"), service.create_client("editor@t")
        for n in range(12):
            assert editor.post(EVENTS, json=EVENT | {"EntityID": f"B-{n}"}).status_code == 201
        first = editor.post(AMENDMENTS, json=AMENDMENT | {"EntityID": "B-1"}).json()["RecordID"]
        assert editor.post(AMENDMENTS, json=AMENDMENT | {"EntityID": "B-2"}).status_code == 201
        assert admin.post(f"{AMENDMENTS}/{first}/approve", params={"scopeKey": SCOPE}).status_code == 200
        draft = {"name": "Mine", "surface": "hall", "kql": "Telemetry | count"}
        assert editor.put("/oi-api/warm-queries/mine", json=draft).status_code == 201
        assert admin.post("/oi-api/warm-queries/mine/approve").status_code == 200
        assert editor.post(TABLE, json={"id": "w-1", "line": "A", "kg": 5}).status_code == 201
        for message in MESSAGES:
            assert editor.post("/oi-api/telemetry/press", json=message).status_code == 202
        rows = {"query": 'Telemetry | where ConnectionLookup == "press" | count'}
        wait_until(
            lambda: editor.post("/oi-api/warm-queries", json=rows).json()["results"],
            lambda results: results == [{"Count": len(MESSAGES)}],
        )
        checkpoint = {"target": "DomainAmendments", "scopeKey": SCOPE}
        wait_until(
            lambda: editor.get("/oi-api/provenance/checkpoint", params=checkpoint).json().get("size"),
            lambda size: size == 3,
        )
        wait_until(lambda: [*(data / "blobs").rglob("*.parquet")], bool, 60)
        service.stop()
        with tarfile.open(target, "w:gz") as archive:
            archive.add(data, "data", filter=_exclude_runtime_files)


def _exclude_runtime_files(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return a directory entry if it is stored data, or None if only a running host needs the file."""
    running_only = (".lock", "-shm", "kusto-uri", "address", "rate-limits.sqlite", "sign-in")
    return None if entry.name.endswith(running_only) else entry


async def record_azure() -> dict[str, Any]:
    """Use an instance with STORES=azure and emulators, and return the data that the emulators store."""
    from tests.emulators.kusto.endpoints import end_process  # noqa: PLC0415
    from tests.unit.functions.azure_plant import Plant  # noqa: PLC0415  of the checkout in the working directory
    from tests.unit.shared.wiring.azure import deployment  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        async with deployment(Path(folder) / "blobs") as deployed:
            plant = Plant(deployed, Path(folder))
            await plant.start()
            keys = await _send_requests(plant)
            await asyncio.to_thread(end_process, plant.kusto.process)
            items, blobs = await _export_items(deployed), await _export_blobs(deployed)
            return {"apiKeys": keys, "items": items, "blobs": blobs, "vault": _export_vault_keys(deployed)}


async def _send_requests(plant: Any) -> dict[str, str]:
    """Send write requests to an instance, and return the API keys of its members."""
    import pytest  # noqa: PLC0415  of the checkout's environment

    from shared.telemetry.models import TELEMETRY_HUB, HubEvent  # noqa: PLC0415
    from shared.timestamps import now  # noqa: PLC0415
    from tests.unit.functions.azure_plant import ADMIN, EDITOR, QUALITY, Instance  # noqa: PLC0415

    keys = {
        member: await asyncio.to_thread(_apply_document, plant.deployment, member)
        for member in (ADMIN, EDITOR, QUALITY)
    }
    with pytest.MonkeyPatch.context() as monkeypatch:
        app = Instance(plant.services(), monkeypatch)
        editor, approver = await app.issue_token(keys[EDITOR]), await app.issue_token(keys[QUALITY])
        for n in range(12):
            assert (await app.request("POST", EVENTS, editor, EVENT | {"EntityID": f"B-{n}"})).status == 201
        first = await app.request("POST", AMENDMENTS, editor, AMENDMENT | {"EntityID": "B-1"})
        assert (await app.request("POST", AMENDMENTS, editor, AMENDMENT | {"EntityID": "B-2"})).status == 201
        approve = f"{AMENDMENTS}/{first.body['RecordID']}/approve?scopeKey={SCOPE}"
        assert (await app.request("POST", approve, approver)).status == 200
        draft = {"name": "Mine", "surface": "cooling", "kql": "Telemetry | count"}
        assert (await app.request("PUT", "/oi-api/warm-queries/mine", editor, draft)).status == 201
        assert (await app.request("POST", "/oi-api/warm-queries/mine/approve", approver)).status == 200
        body = json.dumps(MESSAGES[0]).encode()
        await app.services.telemetry.ingestor.run(TELEMETRY_HUB, [HubEvent(body, "0", 1, now(), {}, "rig-1")])
        await app.services.provenance.checkpoints.create_all_and_count_them()
        await app.services.close()
    return keys


async def _export_items(deployed: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the items of every Cosmos DB container, without system properties."""
    from azure.cosmos.aio import CosmosClient  # noqa: PLC0415

    from tests.unit.shared.wiring.azure import DATABASE  # noqa: PLC0415

    found: dict[str, list[dict[str, Any]]] = {}
    async with CosmosClient(deployed.cosmos.endpoint, deployed.cosmos.key) as client:
        database = client.get_database_client(DATABASE)
        async for container in database.list_containers():
            items = database.get_container_client(container["id"]).read_all_items()
            found[container["id"]] = [
                {name: value for name, value in item.items() if name[0] != "_"} async for item in items
            ]
    return found


async def _export_blobs(deployed: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the name, content (base64) and metadata of each blob of each container."""
    from azure.storage.blob.aio import BlobServiceClient  # noqa: PLC0415

    found: dict[str, list[dict[str, Any]]] = {}
    async with BlobServiceClient.from_connection_string(deployed.blobs.connection_string) as account:
        async for container in account.list_containers():
            store = account.get_container_client(container["name"])
            granted = found[container["name"]] = []
            async for blob in store.list_blobs(include=["metadata"]):
                content = base64.b64encode(await (await store.download_blob(blob.name)).readall()).decode()
                granted.append({"name": blob.name, "content": content, "metadata": blob.metadata or {}})
    return found


def _export_vault_keys(deployed: Any) -> dict[str, list[dict[str, Any]]]:
    """Return each version of the keys in the Key Vault emulator."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        name: [
            {"version": each.name, "created": each.created, "private": each.private.private_bytes(*form).decode()}
            for each in versions
        ]
        for name, versions in deployed.vault.keys.versions.items()
    }


def _apply_document(deployed: Any, member: str) -> str:
    """Apply the sample document with the workspace command, and return the API key that it creates."""
    from shared.commands import workspace  # noqa: PLC0415
    from tests.unit.functions.azure_plant import ADMIN, SAMPLE  # noqa: PLC0415

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        arguments = ["apply", str(SAMPLE), "--as", ADMIN, "--issue-key", member]
        assert workspace.main(arguments, deployed.services) == workspace.DONE
    return printed.getvalue().strip()


if __name__ == "__main__":
    output = Path(sys.argv[1]).absolute()
    output.mkdir(parents=True, exist_ok=True)
    record_embedded(output / "embedded.tar.gz")
    text = json.dumps(asyncio.run(record_azure()), sort_keys=True)
    (output / "azure.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
