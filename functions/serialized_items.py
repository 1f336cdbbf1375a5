"""Cache of the JSON texts of catalog items; an item is serialised again only after it or its state has changed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from shared.http.messages import Reply, build_json_reply
from shared.runtime import Runtime
from shared.text_formats.serialisation import serialise_json

MIN_IN_THREAD: Final = 50
"""Number of missing texts from which the serialisation runs in a worker thread."""


class SerializedItems[Version: tuple[Any, ...]]:
    """Cache of the JSON texts of catalog items, by key of the item.

    The version of an item is a tuple of all values on which its JSON text depends.

    Args:
        to_json: builds the JSON object of an item from the item's version. It can run in a worker thread, so it must
            not use objects of the event loop.
    """

    def __init__(self, to_json: Callable[[Version], Mapping[str, Any]]) -> None:
        self._to_json = to_json
        self._cache: dict[str, tuple[Version, bytes]] = {}

    async def serialize(
        self, keyed_versions: Sequence[tuple[str, Version]], max_cached_texts: int, runtime: Runtime
    ) -> list[bytes]:
        """Return the JSON texts of catalog items; a text is built again only if the item's version has changed.

        Args:
            keyed_versions: key and current version of each item.
            max_cached_texts: maximum number of cached texts, usually the number of items in the catalog. If the cache
                has more texts, it contains texts of removed items, and it is emptied.
            runtime: source of worker threads.
        """
        if len(self._cache) > max_cached_texts:
            self._cache.clear()
        found = [self._find_cached_json_text(key, version) for key, version in keyed_versions]
        missing = [pair for pair, text in zip(keyed_versions, found, strict=True) if text is None]
        if not missing:
            return [text for text in found if text is not None]
        if len(missing) < MIN_IN_THREAD:
            self._serialize_and_cache(missing)
        else:
            await runtime.run_in_thread(self._serialize_and_cache, missing)
        # Another request can replace a text meanwhile, if the catalog has changed.
        return [
            self._find_cached_json_text(key, version) or serialise_json(self._to_json(version))
            for key, version in keyed_versions
        ]

    def _find_cached_json_text(self, key: str, version: Version) -> bytes | None:
        cached = self._cache.get(key)
        # Parts of a version that did not change are the same objects, which makes the comparison fast.
        return cached[1] if cached is not None and cached[0] == version else None

    def _serialize_and_cache(self, keyed_versions: Sequence[tuple[str, Version]]) -> None:
        for key, version in keyed_versions:
            self._cache[key] = version, serialise_json(self._to_json(version))


def build_serialized_list_reply(
    property_name: str, json_texts: Sequence[bytes], cursor_property: Mapping[str, str]
) -> Reply:
    """Build the reply with a page of items that are already serialised as JSON texts.

    Args:
        property_name: name of the property that contains the items.
        json_texts: JSON text of each item.
        cursor_property: dictionary with the reply's property `cursor`; empty if no page follows.
    """
    return build_json_reply({property_name: orjson.Fragment(b"[%b]" % b",".join(json_texts)), **cursor_property})
