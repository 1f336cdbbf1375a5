"""Valid items of a workspace document with their list indexes, for the rules that compare items."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.models import (
    AlertRule,
    Connection,
    DataStore,
    Member,
    Model,
    OAuthClient,
    Surface,
    WarmQuery,
    WorkspaceDocument,
)
from shared.catalog.problems import DocumentPath

HEAD: Final = ("workspace", "tier", "limits", "policies")
REFERENCED: Final = {"team": "id", "connections": "lookup", "surfaces": "lookup"}
"""Lists of a workspace document whose items are referenced by other items, with the name of their id field."""

type Indexed[T] = Sequence[tuple[int, T]]


@dataclass(frozen=True, slots=True)
class Sections:
    """Valid items of a workspace document, by section of the document.

    Attributes:
        head: workspace, tier, limits and policies; None if they are invalid.
        team: valid members with their indexes in the document; the other lists have the same form.
        declared_keys: ids of the items in each list of :data:`REFERENCED`, by name of the list. They include the ids of
            invalid items, so that a reference to an invalid item is not reported as a second error.
    """

    head: WorkspaceDocument | None
    team: Indexed[Member]
    connections: Indexed[Connection]
    surfaces: Indexed[Surface]
    queries: Indexed[WarmQuery]
    data_stores: Indexed[DataStore]
    alert_rules: Indexed[AlertRule]
    oauth_clients: Indexed[OAuthClient]
    declared_keys: Mapping[str, frozenset[str]]

    @classmethod
    def from_document(cls, document: WorkspaceDocument) -> "Sections":
        """Build the sections of a valid workspace document."""
        return cls(
            document,
            tuple(enumerate(document.team)),
            tuple(enumerate(document.connections)),
            tuple(enumerate(document.surfaces)),
            tuple(enumerate(document.warm_queries)),
            tuple(enumerate(document.data_stores)),
            tuple(enumerate(document.alert_rules)),
            tuple(enumerate(document.oauth_clients)),
            {
                name: frozenset(getattr(item, key) for item in getattr(document, name))
                for name, key in REFERENCED.items()
            },
        )

    @classmethod
    def from_invalid_document(cls, data: object, error_paths: Iterable[DocumentPath]) -> "Sections":
        """Build the sections of an invalid document; they contain only its valid items.

        Args:
            data: the workspace document as JSON values.
            error_paths: paths of the invalid fields; an item with an invalid field is omitted.
        """
        fields: dict[str, Any] = data if isinstance(data, dict) else {}
        invalid_paths = {path[:2] for path in error_paths}
        return cls(
            _parse_document_without_items(fields, invalid_paths),
            _parse_valid_items(Member, fields, "team", invalid_paths),
            _parse_valid_items(Connection, fields, "connections", invalid_paths),
            _parse_valid_items(Surface, fields, "surfaces", invalid_paths),
            _parse_valid_items(WarmQuery, fields, "warmQueries", invalid_paths),
            _parse_valid_items(DataStore, fields, "dataStores", invalid_paths),
            _parse_valid_items(AlertRule, fields, "alertRules", invalid_paths),
            _parse_valid_items(OAuthClient, fields, "oauthClients", invalid_paths),
            {
                name: frozenset(_iterate_item_keys(_get_list_items_or_empty(fields, name), key))
                for name, key in REFERENCED.items()
            },
        )


def _parse_valid_items[M: Model](
    model: type[M], fields: Mapping[str, Any], list_name: str, invalid_paths: set[DocumentPath]
) -> Indexed[M]:
    if (list_name,) in invalid_paths:
        return []
    valid = [
        (index, item)
        for index, item in enumerate(_get_list_items_or_empty(fields, list_name))
        if (list_name, index) not in invalid_paths
    ]
    return [(index, model.model_validate_json(json.dumps(item))) for index, item in valid]


def _get_list_items_or_empty(fields: Mapping[str, Any], list_name: str) -> list[Any]:
    items = fields.get(list_name)
    return items if isinstance(items, list) else []


def _iterate_item_keys(items: Iterable[Any], key_field: str) -> Iterable[str]:
    keys = (item.get(key_field) for item in items if isinstance(item, dict))
    return (key for key in keys if isinstance(key, str))


def _parse_document_without_items(
    fields: Mapping[str, Any], invalid_paths: set[DocumentPath]
) -> WorkspaceDocument | None:
    if any(len(path) <= 1 or path[0] in HEAD for path in invalid_paths):
        return None
    return WorkspaceDocument.model_validate_json(json.dumps({name: fields[name] for name in HEAD if name in fields}))
