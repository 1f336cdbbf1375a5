"""State of team members that is stored even after their removal: retired ids, and times of invalidated credentials.

Credentials that were issued before such a time are invalid. One transaction stores the state and the change of the
member, so a crash cannot separate them.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind, MemberState, to_definition
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
    """Return the new states of the team members that a set of changes disables, enables or removes."""
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
        if change.after is None:
            state = state.model_copy(update={"retired_at": at})
        elif change.before.get("enabled", True) != change.after["enabled"]:
            # Another instance may have issued tokens while the member was disabled, so enabling ends tokens, too.
            state = state.model_copy(update={"tokens_valid_from": at})
        else:
            continue
        created_at = at if item is None else item.created_at
        definition = to_definition(state)
        yield CatalogItem(ItemKind.MEMBER_STATE, change.key, definition, ItemOrigin.API, created_at, at, actor)
