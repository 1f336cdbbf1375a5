"""Documentation of the replies of the handler module `workspace_document`."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NotRequired, TypedDict

from shared.catalog.export import SECTIONS
from shared.catalog.models import Tier
from shared.catalog.yaml_writer import write_yaml
from shared.http.operation_docs import IDEMPOTENT, TEXT_FORM, DocumentedReply, OperationDocs

YAML: Final = "application/yaml"


class PlanAction(StrEnum):
    """Effect of a planned change on a catalog item."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class PlannedChange(TypedDict):
    """Planned change of one catalog item; `before` is null for a new item, `after` for a removed one.

    `changedBy` and `changedAt` name the last change of the stored item, for example through the API.
    """

    action: PlanAction
    kind: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changedBy: NotRequired[str]
    changedAt: NotRequired[datetime]


class KeptItem(TypedDict):
    """Catalog item that stays unchanged, although the document does not declare it or declares something else."""

    kind: str
    key: str
    reason: str


class DocumentWarning(TypedDict):
    """Warning about a workspace document, for instance about a query that PUT will reject."""

    field: str
    message: str
    line: NotRequired[int]
    column: NotRequired[int]


class WorkspacePlan(TypedDict):
    """Plan: changes that applying a document would make. `planTag` is the value for If-Match, with its quotes."""

    changes: list[PlannedChange]
    kept: list[KeptItem]
    planTag: str
    warnings: list[DocumentWarning]


_DOCUMENT: Final = {
    "workspace": {"id": "plant-a", "name": "Plant A"},
    "policies": {"provenance": {"requireApproval": True}},
    "team": [{"id": "admin@plant-a.example", "name": "Administrator", "role": "Admin"}],
    "connections": [{"lookup": "pump-rig", "name": "Pump rig", "type": "CLOUD_EVENT_HUB"}],
    "surfaces": [{"lookup": "cooling", "name": "Cooling water", "connections": ["pump-rig"]}],
}
_YAML_EXAMPLE: Final = {YAML: "".join(write_yaml(_DOCUMENT))}
_OBJECT: Final = {"type": "object"}
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "title": "WorkspaceDocumentBody",
    "description": "A workspace document; docs/reference/workspace-document.md describes its fields.",
    "required": ["workspace"],
    "properties": {
        "workspace": _OBJECT,
        "tier": {"enum": list(Tier)},
        "limits": {"type": ["object", "null"]},
        "policies": _OBJECT,
        **{section: {"type": "array", "items": _OBJECT} for section in SECTIONS.values()},
    },
    "additionalProperties": False,
}
_SURFACE: Final = {"lookup": "cooling", "name": "Cooling", "description": None, "connections": ["pump-rig"]}
_PLAN: Final = {
    "changes": [
        {
            "action": "changed",
            "kind": "surface",
            "key": "cooling",
            "before": _SURFACE,
            "after": {**_SURFACE, "name": "Cooling water"},
            "changedBy": "editor@plant-a.example",
            "changedAt": "2026-12-01T08:00:00.000000Z",
        }
    ],
    "kept": [{"kind": "warmQuery", "key": "pressure-now", "reason": "created through the API"}],
    "planTag": '"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
    "warnings": [],
}
_IF_MATCH: Final = {
    "If-Match": {
        "description": "The `planTag` of the plan to apply; 412 if the document or the workspace has changed since.",
        "schema": {"type": "string", "minLength": 1},
        "example": _PLAN["planTag"],
    }
}

EXPORTED = OperationDocs((DocumentedReply(200, "The document.", dict[str, Any], _DOCUMENT, forms={YAML: TEXT_FORM}),))
PLANNED = OperationDocs(
    (DocumentedReply(200, "The plan.", WorkspacePlan, _PLAN),),
    error_statuses=(409, 422),
    example=_DOCUMENT,
    body_schema=_SCHEMA,
    body_forms={YAML: TEXT_FORM},
    form_examples=_YAML_EXAMPLE,
    headers=IDEMPOTENT,
)
APPLIED = OperationDocs(
    (DocumentedReply(200, "The applied plan.", WorkspacePlan, _PLAN),),
    error_statuses=(409, 412, 428),
    example=_DOCUMENT,
    body_schema=_SCHEMA,
    body_forms={YAML: TEXT_FORM},
    form_examples=_YAML_EXAMPLE,
    headers=_IF_MATCH,
)
