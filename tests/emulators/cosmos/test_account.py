"""Tests of the emulated Cosmos DB account: regions, keys, tokens and consistency."""

import base64
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ServiceRequestError
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from emulators.cosmos import AccountOptions, Consistency, CosmosServer, FaultKind, InjectedFault
from emulators.cosmos.account import ThroughputBudget
from emulators.cosmos.wire import CosmosError


class _Credential:
    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken("token", int(time.time()) + 3600)

    async def close(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return


async def _open_client(client: CosmosClient) -> None:
    """Yield an SDK client and close it after the block.

    `async with` on the client itself leaks connections if the start fails.
    """
    try:
        await client.__aenter__()
    finally:
        await client.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """Return a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    public, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    public.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    encoding, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, encoding, plain))
    return str(public), str(private)


async def test_reported_regions_have_the_url_of_the_emulator(server: CosmosServer, client: CosmosClient) -> None:
    """Each region that the account reports has the URL of the emulator."""
    account = await client._get_database_account()
    endpoints = {place["databaseAccountEndpoint"] for place in account.WritableLocations + account.ReadableLocations}
    assert endpoints == {server.endpoint}
    assert account.ConsistencyPolicy is not None
    assert account.ConsistencyPolicy["defaultConsistencyLevel"] == "BoundedStaleness"


async def test_an_account_reports_several_write_regions() -> None:
    """An account with two write regions reports both."""
    options = AccountOptions(write_regions=("North Europe", "West Europe"), multiple_write_locations=True)
    async with CosmosServer(options=options) as server, CosmosClient(server.endpoint, server.key) as client:
        account = await client._get_database_account()
        assert [place["name"] for place in account.WritableLocations] == ["North Europe", "West Europe"]
        assert account._EnableMultipleWritableLocations is True


async def test_an_account_reports_per_partition_failover() -> None:
    """An account with per-partition automatic failover reports it."""
    options = AccountOptions(per_partition_failover=True)
    async with CosmosServer(options=options) as server, CosmosClient(server.endpoint, server.key) as client:
        account = await client._get_database_account()
        assert account._EnablePerPartitionFailoverBehavior is True


async def test_a_wrong_key_is_rejected(server: CosmosServer) -> None:
    """A request that was signed with another key is rejected with 401."""
    with pytest.raises(CosmosHttpResponseError) as caught:
        await _open_client(CosmosClient(server.endpoint, base64.b64encode(b"another key").decode()))
    assert caught.value.status_code == 401


async def test_an_unsigned_request_is_rejected(server: CosmosServer) -> None:
    """A request without authorization is rejected with 401."""
    async with httpx.AsyncClient() as plain:
        assert (await plain.get(server.endpoint)).status_code == 401


async def test_a_signature_is_valid_for_one_resource_only(server: CosmosServer, client: CosmosClient) -> None:
    """A signature for one resource is rejected for another resource."""
    await client.create_database("plant")
    headers = dict(server.requests.list_by_operation("create_database")[0].request.headers)
    async with httpx.AsyncClient() as plain:
        kept = {name: headers[name] for name in ("authorization", "x-ms-date", "x-ms-version")}
        assert (
            await plain.post(f"{server.endpoint}dbs/plant/colls", json={"id": "x"}, headers=kept)
        ).status_code == 401
        assert (await plain.post(f"{server.endpoint}dbs", json={"id": "x"}, headers=kept)).status_code == 201


async def test_a_signature_older_than_15_minutes_is_rejected(server: CosmosServer, client: CosmosClient) -> None:
    """A signature that is more than 15 minutes old is rejected."""
    await client.create_database("plant")
    headers = dict(server.requests.list_by_operation("create_database")[0].request.headers)
    headers["x-ms-date"] = "Mon, 01 Jan 2024 00:00:00 GMT"
    kept = {name: headers[name] for name in ("authorization", "x-ms-date")}
    async with httpx.AsyncClient() as plain:
        assert (await plain.post(f"{server.endpoint}dbs", json={"id": "x"}, headers=kept)).status_code == 403


async def test_entra_id_tokens_cannot_manage_containers(certificate: tuple[str, str]) -> None:
    """With an Entra ID token, a client can read and write items, but not databases and containers (403/5300)."""
    async with CosmosServer(certificate=certificate) as server:
        async with CosmosClient(server.endpoint, server.key) as owner:
            database = await owner.create_database("plant")
            await database.create_container("records", PartitionKey("/pk"))
        async with CosmosClient(server.endpoint, _Credential()) as client:
            container = client.get_database_client("plant").get_container_client("records")
            await container.create_item({"id": "a", "pk": "p"})
            with pytest.raises(CosmosHttpResponseError) as caught:
                await client.create_database("other")
            assert (caught.value.status_code, caught.value.sub_status) == (403, 5300)


async def test_an_account_can_deny_entra_id_tokens(certificate: tuple[str, str]) -> None:
    """An account that denies Entra ID tokens rejects them with 403/5300."""
    async with CosmosServer(certificate=certificate, options=AccountOptions(bearer="deny")) as server:
        with pytest.raises(CosmosHttpResponseError) as caught:
            await _open_client(CosmosClient(server.endpoint, _Credential()))
        assert (caught.value.status_code, caught.value.sub_status) == (403, 5300)


async def test_the_sdk_sends_no_token_without_tls(server: CosmosServer) -> None:
    """Over plain HTTP, the SDK sends no token, so that tests with tokens need a certificate."""
    with pytest.raises(ServiceRequestError, match="non-https"):
        await _open_client(CosmosClient(server.endpoint, _Credential()))


async def test_a_stronger_consistency_is_rejected() -> None:
    """A request with a stronger consistency level than the account's is rejected."""
    options = AccountOptions(consistency=Consistency.EVENTUAL)
    async with CosmosServer(options=options) as server:
        with pytest.raises(CosmosHttpResponseError, match="is invalid when service is configured"):
            await _open_client(CosmosClient(server.endpoint, server.key, consistency_level="Strong"))


async def test_the_sdk_sends_the_session_token_of_its_last_write() -> None:
    """With session consistency, the SDK sends the session token of its last write with each read."""
    options = AccountOptions(consistency=Consistency.SESSION)
    async with CosmosServer(options=options) as server, CosmosClient(server.endpoint, server.key) as client:
        database = await client.create_database("plant")
        container = await database.create_container("records", PartitionKey("/pk"))
        await container.create_item({"id": "a", "pk": "p"})
        await container.read_item("a", "p")
        assert server.requests.list_by_operation("read_item")[0].request.read_header("x-ms-session-token") == "0:0#1"


async def test_the_sdk_repeats_a_slow_read_in_the_second_region() -> None:
    """If the account has two read regions, the SDK sends a slow read to the second region, too."""
    options = AccountOptions(read_regions=("West Europe", "North Europe"))
    strategy = {"threshold_ms": 50, "threshold_steps_ms": 20}
    regions = list(options.read_regions)
    async with (
        CosmosServer(options=options) as server,
        CosmosClient(
            server.endpoint, server.key, preferred_locations=regions, availability_strategy=strategy
        ) as client,
    ):
        database = await client.create_database("plant")
        container = await database.create_container("records", PartitionKey("/pk"))
        await container.create_item({"id": "a", "pk": "p"})
        slow = InjectedFault(FaultKind.DELAY, lambda request: request.operation == "read_item", times=1, seconds=1)
        server.faults.add(slow)
        assert (await container.read_item("a", "p"))["id"] == "a"
        # The slow request is logged when it completes; the result is from the other one.
        assert [exchange.fault for exchange in server.requests.list_by_operation("read_item")] == [None]
        assert slow.applied == 1


def test_without_request_units_a_request_gets_429_with_a_delay() -> None:
    """If no request units are left, a request gets 429 with the time after which requests are accepted."""
    budget = ThroughputBudget(10)
    budget.require_request_units(100.0)
    budget.spend_request_units(25)
    with pytest.raises(CosmosError) as refused:
        budget.require_request_units(100.5)
    assert (refused.value.status, refused.value.substatus, refused.value.retry_after_ms) == (429, 3200, 1001)
    budget.require_request_units(101.501)


def test_an_idle_container_saves_at_most_the_units_of_one_second() -> None:
    """An idle container saves at most the unused request units of one second."""
    budget = ThroughputBudget(10)
    budget.require_request_units(0.0)
    budget.require_request_units(1000.0)
    budget.spend_request_units(10)
    with pytest.raises(CosmosError):
        budget.require_request_units(1000.0)


async def test_a_container_beyond_its_throughput_replies_429() -> None:
    """A request beyond a container's throughput gets 429 and a delay; other containers are not affected."""
    now = [1_000_000.0]
    options = AccountOptions(request_units=5)
    async with (
        CosmosServer(options=options, clock=lambda: now[0]) as server,
        CosmosClient(server.endpoint, server.key, retry_throttle_total=-1) as client,
    ):
        database = await client.create_database("plant")
        busy = await database.create_container("busy", PartitionKey("/pk"))
        idle = await database.create_container("idle", PartitionKey("/pk"))
        await busy.create_item({"id": "1", "pk": "a"})
        with pytest.raises(CosmosHttpResponseError) as refused:
            await busy.create_item({"id": "2", "pk": "a"})
        assert refused.value.status_code == 429
        assert refused.value.headers["x-ms-retry-after-ms"] == "1"
        await idle.create_item({"id": "2", "pk": "a"})
        now[0] += 0.001
        await busy.create_item({"id": "2", "pk": "a"})
