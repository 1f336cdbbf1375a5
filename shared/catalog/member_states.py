"""State of team members that is stored even after their removal: retired ids, and times of invalidated credentials.

Credentials that were issued before such a time are invalid. One transaction stores the state and the change of the
member, so a crash cannot separate them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind, MemberState, to_definition
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.validation.names import lower_ascii

PROPAGATION: Final = timedelta(seconds=15)
"""Maximum time for which another instance does not know a change of the team yet."""


def find_retired_ids(stored: StoredCatalog) -> frozenset[str]:
    """Return the ids of removed team members, which no new member can have."""
    return frozenset(
        item.key
        for item in stored.items
        if item.kind == ItemKind.MEMBER_STATE and item.definition.get("retiredAt") is not None
    )


def derive_member_states(
    changes: Iterable[ItemChange], stored: StoredCatalog, actor: str, at: datetime
) -> Sequence[CatalogItem]:
    """Return the new states of the team members that a set of changes disables, enables, removes or relinks.

    To relink a member is to set, change or remove the object id of its account in Entra ID.
    """
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
        updates = _derive_updates(state, change.before, change.after, at)
        if not updates:
            continue
        state = state.model_copy(update=updates)
        created_at = at if item is None else item.created_at
        definition = to_definition(state)
        yield CatalogItem(ItemKind.MEMBER_STATE, change.key, definition, ItemOrigin.API, created_at, at, actor)


def _derive_updates(
    state: MemberState, before: Mapping[str, Any], after: Mapping[str, Any] | None, at: datetime
) -> dict[str, datetime]:
    """Return the changed times of a member's state. No time ever decreases, because ended tokens stay invalid."""
    if after is None:
        return {"retired_at": at}
    updates = {}
    if before.get("enabled", True) != after["enabled"]:
        # Another instance may have issued tokens while the member was disabled, so enabling ends tokens, too.
        updates["tokens_valid_from"] = max(state.tokens_valid_from or at, at)
    if _has_new_account(before, after):
        # Until it knows the change, another instance may issue tokens to the former account.
        cutoff = at + PROPAGATION
        updates["service_tokens_valid_from"] = max(state.service_tokens_valid_from or cutoff, cutoff)
    return updates


def _has_new_account(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether the object id of a member in Entra ID was set, changed or removed.

    Without an object id, the account with the verified e-mail address of the member signs in, so that the first object
    id can replace this account.
    """
    old, new = (lower_ascii(definition.get("oid") or "") for definition in (before, after))
    return old != new
