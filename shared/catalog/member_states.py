"""Times that are stored for a team member, even after the member's removal.

They are the times at which the member was last disabled or enabled, was removed, and stopped being a service. The first
ends earlier tokens of the member, the second also earlier API keys. API keys from before the third count as keys of a
service. One transaction stores these times and the change of the member, so a crash cannot separate them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind, MemberState
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog


def find_retired_member_ids(stored: StoredCatalog) -> frozenset[str]:
    """Return the ids of removed team members, which no new member can have."""
    return frozenset(
        item.key
        for item in stored.items
        if item.kind == ItemKind.MEMBER_STATE and item.definition.get("retiredAt") is not None
    )


def derive_member_states(
    changes: Iterable[ItemChange], stored: StoredCatalog, actor: str, at: datetime
) -> Sequence[CatalogItem]:
    """Return new states of the members that the changes disable, enable, remove, or turn from services into persons."""
    stored_states = {item.key: item for item in stored.items if item.kind == ItemKind.MEMBER_STATE}
    return list(_iterate_member_states(changes, stored_states, actor, at))


def _iterate_member_states(
    changes: Iterable[ItemChange], stored_states: dict[str, CatalogItem], actor: str, at: datetime
) -> Iterator[CatalogItem]:
    for change in changes:
        if change.kind != ItemKind.MEMBER or change.before is None:
            continue
        item = stored_states.get(change.key)
        state = MemberState() if item is None else MemberState.model_validate(item.definition)
        times = dict.fromkeys(_iterate_times_to_set(change.before, change.after), at)
        if not times:
            continue
        created_at = at if item is None else item.created_at
        # Times that are not set are omitted, because instances of earlier versions reject unknown properties.
        definition = state.model_copy(update=times).model_dump(mode="json", by_alias=True, exclude_none=True)
        yield CatalogItem(ItemKind.MEMBER_STATE, change.key, definition, ItemOrigin.API, created_at, at, actor)


def _iterate_times_to_set(before: Mapping[str, Any], after: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the attributes of :class:`MemberState`, such as ``retired_at``, that a change of the member sets.

    They are set to the time of the change.
    """
    if after is None:
        yield "retired_at"
    elif before.get("enabled", True) != after["enabled"]:
        # Another instance may have issued tokens while the member was disabled, so enabling ends tokens, too.
        yield "tokens_valid_from"
    if before.get("service", False) and (after is None or not after["service"]):
        yield "service_until"
