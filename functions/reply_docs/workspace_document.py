"""Documentation of the replies of the handler module `workspace_document`."""

from datetime import datetime
from enum import StrEnum
from types import NoneType
from typing import Any, Final, NotRequired, TypedDict, get_args

from shared.catalog.export import SECTIONS
from shared.catalog.models import Model, Policies, Tier, TierLimits, WorkspaceDocument, WorkspaceInfo
from shared.catalog.yaml_writer import iterate_yaml_parts
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
    """Warning about a workspace document or a warm query, for instance that PUT will reject a query."""

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
_YAML_EXAMPLE: Final = {YAML: "".join(iterate_yaml_parts(_DOCUMENT))}


def _build_object_schema(model: type[Model]) -> dict[str, Any]:
    """Build the JSON schema of an object of the document; the properties can have any type."""
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    return {
        "type": "object",
        "properties": {name: {} for name in fields},
        "required": [name for name, info in fields.items() if info.is_required()],
        "additionalProperties": False,
    }


def _build_item_schema(section_name: str) -> dict[str, Any]:
    fields = {info.alias or name: info for name, info in WorkspaceDocument.model_fields.items()}
    [model, _] = get_args(fields[section_name].annotation)
    return _build_object_schema(model)


_POLICIES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        name: {"type": ["object", "null"] if NoneType in get_args(info.annotation) else "object"}
        for name, info in Policies.model_fields.items()
    },
    "additionalProperties": False,
}
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "title": "WorkspaceDocumentBody",
    "description": "A workspace document; docs/reference/workspace-document.md describes its fields.",
    "required": ["workspace"],
    "properties": {
        "workspace": _build_object_schema(WorkspaceInfo),
        "tier": {"enum": list(Tier)},
        "limits": {**_build_object_schema(TierLimits), "type": ["object", "null"]},
        "policies": _POLICIES,
        **{section: {"type": "array", "items": _build_item_schema(section)} for section in SECTIONS.values()},
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
