"""The items of a document that are sound in themselves, each with its place: what the cross-reference rules look at."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.models import Connection, DataStore, Member, Model, Surface, WarmQuery, WorkspaceDocument
from shared.catalog.problems import Path

HEAD: Final = ("workspace", "tier", "limits", "policies")
REFERENCED: Final = {"team": "id", "connections": "lookup", "surfaces": "lookup"}
"""Lists whose items others name, and by which field."""

type Placed[T] = Sequence[tuple[int, T]]


@dataclass(frozen=True, slots=True)
class Sections:
    """A document by its sections; in one with faulty items these are left out.

    Attributes:
        head: workspace, tier, limits and policies; None when they are faulty.
        team: members with their index; the other lists alike.
        written: the keys that stand in each referenced list, those of faulty items too, so that a reference
            to one is no second fault.
    """

    head: WorkspaceDocument | None
    team: Placed[Member]
    connections: Placed[Connection]
    surfaces: Placed[Surface]
    queries: Placed[WarmQuery]
    data_stores: Placed[DataStore]
    written: Mapping[str, frozenset[str]]

    @classmethod
    def from_document(cls, document: WorkspaceDocument) -> "Sections":
        """Return the sections of a document whose every item is sound in itself."""
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
        """Return the sections of what is sound in a faulty document.

        Args:
            data: the document as JSON values.
            faults: where it breaks a rule.
        """
        fields: dict[str, Any] = data if isinstance(data, dict) else {}
        faulty = {path[:2] for path in faults}
        return cls(
            _head(fields, faulty),
            _sound(Member, fields, "team", faulty),
            _sound(Connection, fields, "connections", faulty),
            _sound(Surface, fields, "surfaces", faulty),
            _sound(WarmQuery, fields, "warmQueries", faulty),
            _sound(DataStore, fields, "dataStores", faulty),
            {name: frozenset(_keys(_list(fields, name), key)) for name, key in REFERENCED.items()},
        )


def _sound[M: Model](model: type[M], fields: Mapping[str, Any], name: str, faulty: set[Path]) -> Placed[M]:
    if (name,) in faulty:
        return []
    sound = [(index, item) for index, item in enumerate(_list(fields, name)) if (name, index) not in faulty]
    return [(index, model.model_validate_json(json.dumps(item))) for index, item in sound]


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    items = fields.get(name)
    return items if isinstance(items, list) else []


def _keys(items: Iterable[Any], field: str) -> Iterable[str]:
    keys = (item.get(field) for item in items if isinstance(item, dict))
    return (key for key in keys if isinstance(key, str))


def _head(fields: Mapping[str, Any], faulty: set[Path]) -> WorkspaceDocument | None:
    if any(len(path) <= 1 or path[0] in HEAD for path in faulty):
        return None
    return WorkspaceDocument.model_validate_json(json.dumps({name: fields[name] for name in HEAD if name in fields}))
