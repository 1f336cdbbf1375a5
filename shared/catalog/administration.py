"""Administration over HTTPS of single catalog items, such as members, connections and containers.

Every change follows the rules of ``change_rules``, can have an If-Match precondition, and produces an audit event.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from shared.catalog.change_rules import Caller, check_changes
from shared.catalog.diff import ItemChange, build_definition_with_defaults
from shared.catalog.etags import compute_definition_etag
from shared.catalog.items import SINGLETON_KEY, ItemKind, to_definition
from shared.catalog.models import Model
from shared.catalog.ports import CatalogItem, StoredCatalog
from shared.catalog.service import CatalogService
from shared.conditional_requests import Condition, build_item_missing_error
from shared.errors import Kind, WorkspaceError
from shared.text_formats.json_comparison import is_same_json

type Definition = dict[str, Any]


class WorkspaceDefinitions(NamedTuple):
    """Stored definitions (JSON objects) of two catalog items: the workspace, and its settings."""

    workspace: Definition
    settings: Definition


@dataclass(frozen=True, slots=True)
class ReplacedItem:
    """Catalog item after a PUT request.

    Attributes:
        item: the stored item.
        is_new: True if the request created the item.
    """

    item: CatalogItem
    is_new: bool


class Administration:
    """Service that creates, replaces and removes single catalog items."""

    def __init__(self, catalog: CatalogService) -> None:
        self._catalog = catalog

    async def find(self, kind: ItemKind, key: str) -> CatalogItem | None:
        """Return a stored catalog item; None if it does not exist.

        Raises:
            WorkspaceError: UNAVAILABLE if the store cannot be reached.
        """
        return find_item(await self._catalog.load(), kind, key)

    async def put(
        self,
        caller: Caller,
        kind: ItemKind,
        key: str,
        build_model: Callable[[Definition | None], Model],
        condition: Condition,
    ) -> ReplacedItem:
        """Create or replace a catalog item; an unchanged definition is neither stored nor audited.

        Args:
            caller: the caller of the request.
            kind: kind of the catalog item, such as ``connection``.
            key: id within the kind, such as the lookup (id in URLs) of a connection.
            build_model: builds the new item from the stored definition, which is None for a new item; called again
                after a concurrent change. Its exceptions are raised to the caller, and nothing is changed.
            condition: If-Match or If-None-Match precondition on the stored definition.

        Raises:
            WorkspaceError: the same errors as :func:`shared.catalog.change_rules.check_changes`; PRECONDITION_FAILED
                if the stored definition does not meet the condition; the errors of
                ``CatalogService.commit_api_changes``.
        """

        def build_put_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
            item = find_item(stored, kind, key)
            before = None if item is None else item.definition
            change = ItemChange(kind, key, before, to_definition(build_model(before)))
            check_changes(stored, [change], caller)
            condition.check_write_allowed(None if before is None else compute_definition_etag(before))
            # A definition that an earlier version stored lacks the properties that are new in this version.
            is_same = item is not None and is_same_json(build_definition_with_defaults(item), change.after)
            return [] if is_same else [change]

        outcome = await self._catalog.commit_api_changes(build_put_changes, caller.user_id)
        item = find_item(outcome.catalog, kind, key)
        assert item is not None  # noqa: S101  the change stored it
        return ReplacedItem(item, any(change.before is None for change in outcome.plan.changes))

    async def delete(self, caller: Caller, kind: ItemKind, key: str, condition: Condition) -> None:
        """Remove a catalog item.

        Raises:
            WorkspaceError: NOT_FOUND if the item does not exist and the request has no If-Match; PRECONDITION_FAILED if
                the request has an If-Match and the item is missing or has another ETag; the errors of :meth:`put`.
        """

        def build_removal_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
            item = find_item(stored, kind, key)
            if item is None:
                raise build_item_missing_error() if condition.match is not None else NOT_FOUND[kind](key)
            change = ItemChange(kind, key, item.definition, None)
            check_changes(stored, [change], caller)
            condition.check_write_allowed(compute_definition_etag(item.definition))
            return [change]

        await self._catalog.commit_api_changes(build_removal_changes, caller.user_id)

    async def put_workspace_and_settings(
        self,
        caller: Caller,
        build_workspace_and_settings: Callable[[Definition, Definition], tuple[Model, Model]],
        condition: Condition,
    ) -> StoredCatalog:
        """Replace the name, the description and the policies of the workspace; return the catalog after the change.

        Args:
            caller: the caller of the request.
            build_workspace_and_settings: builds the new workspace and settings from their stored definitions; called
                again after a concurrent change.
            condition: If-Match precondition on both definitions together.

        Raises:
            WorkspaceError: the same errors as :meth:`put`; UNAVAILABLE ``WORKSPACE_NOT_DECLARED``.
        """

        def build_workspace_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
            before = get_workspace_and_settings_definitions(stored)
            after = [to_definition(model) for model in build_workspace_and_settings(*before)]
            changes = [
                ItemChange(kind, SINGLETON_KEY, old, new)
                for kind, old, new in zip(_WORKSPACE_KINDS, before, after, strict=True)
                if old != new
            ]
            check_changes(stored, changes, caller)
            condition.check_write_allowed(compute_definition_etag(*before))
            return changes

        return (await self._catalog.commit_api_changes(build_workspace_changes, caller.user_id)).catalog


_WORKSPACE_KINDS: Final = (ItemKind.WORKSPACE, ItemKind.SETTINGS)


def get_workspace_and_settings_definitions(stored: StoredCatalog) -> WorkspaceDefinitions:
    """Return the stored definitions of the workspace and of its settings.

    Raises:
        WorkspaceError: UNAVAILABLE ``WORKSPACE_NOT_DECLARED`` before the first workspace document is applied.
    """
    workspace, settings = (find_item(stored, kind, SINGLETON_KEY) for kind in _WORKSPACE_KINDS)
    if workspace is None or settings is None:
        detail = "No workspace document has been applied yet."
        raise WorkspaceError(Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", detail)
    return WorkspaceDefinitions(workspace.definition, settings.definition)


def find_item(stored: StoredCatalog, kind: ItemKind, key: str) -> CatalogItem | None:
    """Return the catalog item with a kind and key; None if it does not exist."""
    return next((item for item in stored.items if item.kind == kind and item.key == key), None)


MAX_SHOWN: Final = 64
"""Maximum number of characters of an unknown lookup or id that an error repeats."""


def build_member_not_found_error(member_id: str) -> WorkspaceError:
    """Return the error for an unknown id of a team member."""
    detail = f"The team has no member with the id {member_id[:MAX_SHOWN]!r}."
    return WorkspaceError(Kind.NOT_FOUND, "MEMBER_NOT_FOUND", detail)


def build_connection_not_found_error(lookup: str) -> WorkspaceError:
    """Return the error for an unknown lookup (id in URLs) of a connection."""
    detail = f"No connection has the lookup {lookup[:MAX_SHOWN]!r} (short name in URLs)."
    return WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", detail)


def build_surface_not_found_error(lookup: str) -> WorkspaceError:
    """Return the error for an unknown lookup (id in URLs) of a surface, a group of connections."""
    detail = f"No surface has the lookup {lookup[:MAX_SHOWN]!r} (short name in URLs)."
    return WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", detail)


def build_alert_rule_not_found_error(lookup: str) -> WorkspaceError:
    """Return the error for an unknown lookup (id in URLs) of an alert rule."""
    detail = f"No alert rule has the lookup {lookup[:MAX_SHOWN]!r} (short name in URLs)."
    return WorkspaceError(Kind.NOT_FOUND, "ALERT_RULE_NOT_FOUND", detail)


NOT_FOUND: Final[Mapping[ItemKind, Callable[[str], WorkspaceError]]] = {
    ItemKind.MEMBER: build_member_not_found_error,
    ItemKind.CONNECTION: build_connection_not_found_error,
    ItemKind.SURFACE: build_surface_not_found_error,
    ItemKind.ALERT_RULE: build_alert_rule_not_found_error,
}
"""Builders of the errors for unknown items, by kind."""
