"""Valid items of a document with their indexes, as input of the rules between items."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.models import Connection, DataStore, Member, Model, Surface, WarmQuery, WorkspaceDocument
from shared.catalog.problems import Path

HEAD: Final = ("workspace", "tier", "limits", "policies")
REFERENCED: Final = {"team": "id", "connections": "lookup", "surfaces": "lookup"}
"""Lists whose items are referenced by other items, and the field of the reference."""

type Indexed[T] = Sequence[tuple[int, T]]


@dataclass(frozen=True, slots=True)
class Sections:
    """Valid items of a document by section.

    Attributes:
        head: workspace, tier, limits and policies; None if they are invalid.
        team: members with their indexes; the other lists likewise.
        declared_keys: keys in each referenced list, including keys of invalid items, so that a reference to an invalid
            item is not reported as a second error.
    """

    head: WorkspaceDocument | None
    team: Indexed[Member]
    connections: Indexed[Connection]
    surfaces: Indexed[Surface]
    queries: Indexed[WarmQuery]
    data_stores: Indexed[DataStore]
    declared_keys: Mapping[str, frozenset[str]]

    @classmethod
    def from_document(cls, document: WorkspaceDocument) -> "Sections":
        """Return the sections of a document whose items are all valid."""
        return cls(
            document,
            tuple(enumerate(document.team)),
            tuple(enumerate(document.connections)),
            tuple(enumerate(document.surfaces)),
            tuple(enumerate(document.warm_queries)),
            tuple(enumerate(document.data_stores)),
            {
                name: frozenset(getattr(item, key) for item in getattr(document, name))
                for name, key in REFERENCED.items()
            },
        )

    @classmethod
    def from_valid_items(cls, data: object, faults: Iterable[Path]) -> "Sections":
        """Return the sections of the valid items of an invalid document.

        Args:
            data: the document as JSON values.
            faults: paths of the violations.
        """
        fields: dict[str, Any] = data if isinstance(data, dict) else {}
        invalid_paths = {path[:2] for path in faults}
        return cls(
            _build_head(fields, invalid_paths),
            _valid_items(Member, fields, "team", invalid_paths),
            _valid_items(Connection, fields, "connections", invalid_paths),
            _valid_items(Surface, fields, "surfaces", invalid_paths),
            _valid_items(WarmQuery, fields, "warmQueries", invalid_paths),
            _valid_items(DataStore, fields, "dataStores", invalid_paths),
            {name: frozenset(_iter_keys(_get_list(fields, name), key)) for name, key in REFERENCED.items()},
        )


def _valid_items[M: Model](
    model: type[M], fields: Mapping[str, Any], name: str, invalid_paths: set[Path]
) -> Indexed[M]:
    if (name,) in invalid_paths:
        return []
    valid = [(index, item) for index, item in enumerate(_get_list(fields, name)) if (name, index) not in invalid_paths]
    return [(index, model.model_validate_json(json.dumps(item))) for index, item in valid]


def _get_list(fields: Mapping[str, Any], name: str) -> list[Any]:
    items = fields.get(name)
    return items if isinstance(items, list) else []


def _iter_keys(items: Iterable[Any], field: str) -> Iterable[str]:
    keys = (item.get(field) for item in items if isinstance(item, dict))
    return (key for key in keys if isinstance(key, str))


def _build_head(fields: Mapping[str, Any], invalid_paths: set[Path]) -> WorkspaceDocument | None:
    if any(len(path) <= 1 or path[0] in HEAD for path in invalid_paths):
        return None
    return WorkspaceDocument.model_validate_json(json.dumps({name: fields[name] for name in HEAD if name in fields}))
