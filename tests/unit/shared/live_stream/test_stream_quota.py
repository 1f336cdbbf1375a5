"""Tests of the quota of open live streams."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from shared.backends.embedded.quotas import SCHEMA, SqliteQuotaStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.models import Policies, Quotas, Tier
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import QuotaStore
from shared.live_stream.ports import MessageService, OpenStream
from shared.live_stream.stream_quota import FULL_SECONDS, HANDSHAKE_SECONDS, StreamQuota, build_group_name_of_member
from tests.virtual_time import VirtualTime


class Service:
    """Fake message service that lists the open streams."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.asked = 0

    async def iterate_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Yield the open streams of the viewer."""
        assert group == build_group_name_of_member("viewer@t")
        self.asked += 1
        for stream in self.open:
            yield OpenStream(stream, "")


class QuotaInstances:
    """Two instances of the quota with one store and one clock."""

    def __init__(self, place_store: QuotaStore, limit: int | None, tier: Tier = Tier.ENTERPRISE) -> None:
        self.clock = VirtualTime()
        self.service = Service()
        self.limit = limit
        self.tier = tier
        self.set_back = timedelta()
        service = cast("MessageService", self.service)
        runtime = replace(self.clock.runtime, now=lambda: self.clock.now - self.set_back)
        self.one, self.two = (StreamQuota(place_store, self.catalog, service, runtime=runtime) for _ in range(2))

    async def catalog(self) -> Catalog:
        """Return a catalog with the quota of this test."""
        return Catalog(tier=self.tier, policies=Policies(quotas=Quotas(streams_per_principal=self.limit)))


@pytest.fixture
async def place_store(tmp_path: Path) -> AsyncIterator[SqliteQuotaStore]:
    """Return an empty store of quota reservations."""
    database = SqliteDatabase(tmp_path / "places.sqlite", SCHEMA)
    yield SqliteQuotaStore(database)
    await database.close()


async def get_stream_rejection(quota: StreamQuota, stream: str) -> dict[str, Any]:
    """Try to open a stream; return the properties of the error that rejects it."""
    with pytest.raises(WorkspaceError) as failure:
        await quota.reserve_stream("viewer@t", stream)
    assert (failure.value.kind, failure.value.code) == (Kind.THROTTLED, "TOO_MANY_STREAMS")
    assert f", {failure.value.members['limit']} (policies" in failure.value.detail
    return failure.value.members


@pytest.mark.parametrize(("tier", "set_to", "limit"), [(Tier.FREE, None, 5), (Tier.PRO, None, 20), (Tier.PRO, 2, 2)])
async def test_the_stream_quota_applies_across_instances(
    place_store: SqliteQuotaStore, tier: Tier, set_to: int | None, limit: int
) -> None:
    """A stream over the quota is rejected on each instance; other principals are not affected."""
    world = QuotaInstances(place_store, set_to, tier)
    for number in range(limit):
        await (world.one if number % 2 else world.two).reserve_stream("viewer@t", f"s{number}")
    assert (await get_stream_rejection(world.one, "more"))["limit"] == limit
    assert (await get_stream_rejection(world.two, "more"))["retryAfter"] > 0
    await world.two.reserve_stream("editor@t", "e1")


async def test_ended_stream_frees_its_place_in_the_quota(place_store: SqliteQuotaStore) -> None:
    """When any service instance learns of the end of a stream, its place in the quota is free at once."""
    world = QuotaInstances(place_store, 1)
    await world.one.reserve_stream("viewer@t", "s1")
    await world.two.release_stream("viewer@t", "s1")
    await world.one.reserve_stream("viewer@t", "s2")


async def test_places_of_streams_with_unreported_ends_are_freed(place_store: SqliteQuotaStore) -> None:
    """A place without an open stream is freed after the time that a handshake may take."""
    world = QuotaInstances(place_store, 2)
    world.service.open = ["s1"]
    for stream in ("s1", "lost"):
        await world.one.reserve_stream("viewer@t", stream)
    await get_stream_rejection(world.two, "s3")
    world.clock.advance(HANDSHAKE_SECONDS + 1)
    await world.two.reserve_stream("viewer@t", "s3")
    world.clock.advance(HANDSHAKE_SECONDS + 1)
    world.service.open.append("s3")
    await get_stream_rejection(world.one, "s4")


async def test_repeated_rejections_list_streams_at_most_once_a_second(place_store: SqliteQuotaStore) -> None:
    """If a principal exceeds the quota repeatedly, streams are listed at most once per second."""
    world = QuotaInstances(place_store, 1)
    world.service.open = ["s1"]
    await world.one.reserve_stream("viewer@t", "s1")
    for _ in range(10):
        await get_stream_rejection(world.one, "s2")
    assert world.service.asked == 1


async def test_streams_open_during_a_store_outage(tmp_path: Path) -> None:
    """If the store does not respond, streams are opened without being counted."""
    (tmp_path / "places.sqlite").mkdir()
    database = SqliteDatabase(tmp_path / "places.sqlite", SCHEMA)
    world = QuotaInstances(SqliteQuotaStore(database), 1)
    for stream in ("s1", "s2"):
        await world.one.reserve_stream("viewer@t", stream)
    await database.close()


async def test_shortly_after_a_rejection_the_store_is_not_called(place_store: SqliteQuotaStore) -> None:
    """Shortly after a rejection, the store is not called again, unless a stream has ended."""
    world = QuotaInstances(place_store, 1)
    await world.one.reserve_stream("viewer@t", "s1")
    await get_stream_rejection(world.one, "s2")
    await world.two.release_stream("viewer@t", "s1")
    await get_stream_rejection(world.one, "s2")
    world.clock.advance(FULL_SECONDS)
    await world.one.reserve_stream("viewer@t", "s2")
    await get_stream_rejection(world.one, "s3")
    await world.one.release_stream("viewer@t", "s2")
    await world.one.reserve_stream("viewer@t", "s3")


async def test_a_rejection_does_not_last_longer_after_clocks_are_set_back(place_store: SqliteQuotaStore) -> None:
    """If the clocks are set back after a rejection, a stream can open as soon as another stream has ended."""
    world = QuotaInstances(place_store, 1)
    await world.one.reserve_stream("viewer@t", "s1")
    await get_stream_rejection(world.one, "s2")
    await world.two.release_stream("viewer@t", "s1")
    world.set_back = timedelta(minutes=30)
    world.clock.advance(FULL_SECONDS)
    await world.one.reserve_stream("viewer@t", "s2")


async def test_places_are_freed_after_clocks_are_set_back(place_store: SqliteQuotaStore) -> None:
    """A place without an open stream is freed at the next comparison after the clocks were set back by half an hour."""
    world = QuotaInstances(place_store, 1)
    await world.one.reserve_stream("viewer@t", "lost")
    await get_stream_rejection(world.one, "s2")
    world.set_back = timedelta(minutes=30)
    world.clock.advance(HANDSHAKE_SECONDS)
    await world.one.reserve_stream("viewer@t", "s2")
