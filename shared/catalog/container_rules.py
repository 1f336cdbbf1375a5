"""Rules for changes of the catalog's Cosmos DB containers that callers request over HTTPS.

The partition key path of a container never changes, and no change can set its data class to ``evidence``. Documents
that the command-line tool writes directly to the stores are not checked by these rules.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemId, ItemKind, build_container_key
from shared.catalog.models import DataClass, WorkspaceDocument
from shared.catalog.ports import StoredCatalog
from shared.catalog.problems import DocumentPath
from shared.errors import Kind, WorkspaceError

DATA_CLASS_REFUSED: Final = "DATA_CLASS_REFUSED"
EVIDENCE_REASON: Final = (
    "Evidence belongs in the audit chains: a container's documents can be replaced and deleted without a trace."
)


def is_data_class_changed_to_evidence(
    stored_container: Mapping[str, Any] | None, requested_class: DataClass | None
) -> bool:
    """Return whether a change gives the data class ``evidence`` to a container that does not have it.

    Args:
        stored_container: definition of the container; None if it does not exist.
        requested_class: the requested class; None for no change of the class.
    """
    return requested_class is DataClass.EVIDENCE and (
        stored_container is None or stored_container.get("dataClass") != DataClass.EVIDENCE
    )


def iterate_data_classes_changed_to_evidence(
    document: WorkspaceDocument, stored: StoredCatalog
) -> Iterator[DocumentPath]:
    """Yield the path of each ``dataClass`` that a workspace document would change to ``evidence``."""
    definitions: dict[ItemId, Mapping[str, Any]] = {(item.kind, item.key): item.definition for item in stored.items}
    for index, store in enumerate(document.data_stores):
        for place, database in enumerate(store.databases):
            for number, container in enumerate(database.containers):
                before = definitions.get((ItemKind.CONTAINER, build_container_key(database.lookup, container.name)))
                if is_data_class_changed_to_evidence(before, container.data_class):
                    yield "dataStores", index, "databases", place, "containers", number, "dataClass"


def check_partition_key_paths_unchanged(changes: Iterable[ItemChange]) -> None:
    """Check that no catalog change alters the partition key path of a container.

    Raises:
        WorkspaceError: CONFLICT ``PARTITION_KEY_IMMUTABLE``.
    """
    for change in changes:
        if change.before is None or change.after is None:
            continue
        path = change.before.get("partitionKeyPath")
        if path != change.after["partitionKeyPath"]:
            name = change.key.rpartition("/")[2]
            detail = f"The partition key path {path} of the container {name} cannot be changed."
            raise WorkspaceError(Kind.CONFLICT, "PARTITION_KEY_IMMUTABLE", detail)
