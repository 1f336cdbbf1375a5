"""Quota of open live streams."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from shared.backends.embedded.places import SCHEMA, SqlitePlaceStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.models import Policies, Quotas, Tier
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import PlaceStore
from shared.live_stream.ports import MessageService, OpenStream
from shared.live_stream.stream_quota import FULL_SECONDS, HANDSHAKE_SECONDS, StreamQuota, group_of


class Service:
    """A message service that knows which streams are open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.asked = 0

    async def list_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Give the open streams of the viewer."""
        assert group == group_of("viewer@t")
        self.asked += 1
        for stream in self.open:
            yield OpenStream(stream, "")


class World:
    """Two instances over one store, and a clock."""

    def __init__(self, places: PlaceStore, limit: int | None, tier: Tier = Tier.ENTERPRISE) -> None:
        self.now = 1_000.0
        self.service = Service()
        self.limit = limit
        self.tier = tier
        service = cast("MessageService", self.service)
        self.one, self.two = (StreamQuota(places, self.catalog, service, lambda: self.now) for _ in range(2))

    async def catalog(self) -> Catalog:
        """Return a catalog with the quota."""
        return Catalog(tier=self.tier, policies=Policies(quotas=Quotas(streams_per_principal=self.limit)))


@pytest.fixture
async def places(tmp_path: Path) -> AsyncIterator[SqlitePlaceStore]:
    """An empty store."""
    database = SqliteDatabase(tmp_path / "places.sqlite", SCHEMA)
    yield SqlitePlaceStore(database)
    await database.close()


async def refused(quota: StreamQuota, stream: str) -> dict[str, Any]:
    """Return the members of a refusal."""
    with pytest.raises(WorkspaceError) as failure:
        await quota.take("viewer@t", stream)
    assert (failure.value.kind, failure.value.code) == (Kind.THROTTLED, "TOO_MANY_STREAMS")
    return failure.value.members


@pytest.mark.parametrize(("tier", "set_to", "limit"), [(Tier.FREE, None, 5), (Tier.PRO, None, 20), (Tier.PRO, 2, 2)])
async def test_the_quota_holds_over_instances(
    places: SqlitePlaceStore, tier: Tier, set_to: int | None, limit: int
) -> None:
    """One stream more than the quota is refused on every instance; another principal is not affected."""
    world = World(places, set_to, tier)
    for number in range(limit):
        await (world.one if number % 2 else world.two).take("viewer@t", f"s{number}")
    assert (await refused(world.one, "more"))["limit"] == limit
    assert (await refused(world.two, "more"))["retryAfter"] > 0
    await world.two.take("editor@t", "e1")


async def test_an_ended_stream_makes_room(places: SqlitePlaceStore) -> None:
    """A stream whose end is reported to any instance makes room at once."""
    world = World(places, 1)
    await world.one.take("viewer@t", "s1")
    await world.two.free("viewer@t", "s1")
    await world.one.take("viewer@t", "s2")


async def test_streams_that_ended_unreported_make_room(places: SqlitePlaceStore) -> None:
    """Places without an open stream are freed once the handshake must be over; those of open streams stay."""
    world = World(places, 2)
    world.service.open = ["s1"]
    for stream in ("s1", "lost"):
        await world.one.take("viewer@t", stream)
    await refused(world.two, "s3")
    world.now += HANDSHAKE_SECONDS + 1
    await world.two.take("viewer@t", "s3")
    world.now += HANDSHAKE_SECONDS + 1
    world.service.open.append("s3")
    await refused(world.one, "s4")


async def test_refusals_do_not_ask_the_service_each_time(places: SqlitePlaceStore) -> None:
    """A caller that keeps trying costs the message service one list a second."""
    world = World(places, 1)
    world.service.open = ["s1"]
    await world.one.take("viewer@t", "s1")
    for _ in range(10):
        await refused(world.one, "s2")
    assert world.service.asked == 1


async def test_a_store_that_is_down_refuses_no_stream(tmp_path: Path) -> None:
    """While places cannot be counted, streams open all the same."""
    (tmp_path / "places.sqlite").mkdir()
    database = SqliteDatabase(tmp_path / "places.sqlite", SCHEMA)
    world = World(SqlitePlaceStore(database), 1)
    for stream in ("s1", "s2"):
        await world.one.take("viewer@t", stream)
    await database.close()


async def test_a_caller_that_keeps_trying_costs_the_store_little(places: SqlitePlaceStore) -> None:
    """For a moment after a refusal the store is not asked, and an end of a stream is noticed at once all the same."""
    world = World(places, 1)
    await world.one.take("viewer@t", "s1")
    await refused(world.one, "s2")
    await world.two.free("viewer@t", "s1")
    await refused(world.one, "s2")
    world.now += FULL_SECONDS
    await world.one.take("viewer@t", "s2")
    await refused(world.one, "s3")
    await world.one.free("viewer@t", "s2")
    await world.one.take("viewer@t", "s3")
