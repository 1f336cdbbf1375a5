"""Tests of the cache of serialised catalog items."""

from typing import Any

import pytest

from functions import serialized_items as module
from functions.serialized_items import SerializedItems, build_serialized_list_reply
from shared.runtime import SYSTEM_RUNTIME

type Version = tuple[str, int | None]


class CountingJsonBuilder:
    """Function that builds an item's JSON value and counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, version: Version) -> dict[str, Any]:
        """Return a short JSON value, and count the call."""
        self.count += 1
        return {"name": version[0], "state": version[1]}


@pytest.mark.parametrize("threshold", [0, 50])
async def test_unchanged_items_are_serialised_once(monkeypatch: pytest.MonkeyPatch, threshold: int) -> None:
    """The JSON text of an item is built again only if the item's version changes."""
    monkeypatch.setattr(module, "MIN_IN_THREAD", threshold)
    build = CountingJsonBuilder()
    cache = SerializedItems[Version](build)
    texts: list[bytes] = []
    for _ in range(2):
        texts = await cache.serialize([("a", ("N", None)), ("b", ("N", 1))], 2, SYSTEM_RUNTIME)
    assert (texts, build.count) == ([b'{"name":"N","state":null}', b'{"name":"N","state":1}'], 2)
    assert await cache.serialize([("a", ("N", 2))], 2, SYSTEM_RUNTIME) == [b'{"name":"N","state":2}']
    assert await cache.serialize([("b", ("Other", 1))], 2, SYSTEM_RUNTIME) == [b'{"name":"Other","state":1}']
    assert build.count == 4


async def test_texts_of_removed_items_are_deleted() -> None:
    """The cached texts of removed items are deleted, so that the cache does not outgrow the catalog."""
    cache = SerializedItems[Version](CountingJsonBuilder())
    for number in range(10):
        await cache.serialize([(f"q{number}", ("N", None))], 1, SYSTEM_RUNTIME)
        assert len(cache._cache) <= 2


def test_a_list_reply_contains_the_items_and_a_cursor() -> None:
    """The reply to a list request has the items in order, and a cursor if another page follows."""
    assert build_serialized_list_reply("items", [b'{"a":1}', b"2"], {"cursor": "c"}).body == (
        b'{"items":[{"a":1},2],"cursor":"c"}'
    )
    assert build_serialized_list_reply("items", [], {}).body == b'{"items":[]}'
