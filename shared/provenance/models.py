"""Request bodies: events, amendments and rejections. Unknown members, and those that the server sets, are ignored."""

from functools import cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from shared.provenance.canonical import canonical_value
from shared.provenance.selection import MAX_SCOPE_CHARACTERS

SCOPE: Final = {"type": "string", "minLength": 1, "maxLength": MAX_SCOPE_CHARACTERS}
ScopeKey = Annotated[str | None, WithJsonSchema({"anyOf": [SCOPE, {"type": "null"}]})]
"""A scope; null means no scope."""
RequiredScopeKey = Annotated[str | None, WithJsonSchema(SCOPE)]
"""A required scope. If it is missing, the error code is ``SCOPE_KEY_REQUIRED``."""

type Text = Annotated[str, StringConstraints(strict=True, min_length=1)]


class Body(BaseModel):
    """Request body. Unknown members are ignored, but must be valid canonical JSON."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_canonical_forms(cls, value: Any) -> Any:
        if type(value) is dict and not value.keys() <= (known := _list_members(cls)):
            for name in value.keys() - known:
                canonical_value(value[name], name)
        return value


@cache
def _list_members(model: type[Body]) -> frozenset[str]:
    return frozenset(model.model_fields).union(field.alias or "" for field in model.model_fields.values())


class EventBody(Body):
    """Audit event; an optional member with the value null counts as absent."""

    action_type: Text = Field(alias="ActionType")
    entity_type: Text = Field(alias="EntityType")
    entity_id: Text = Field(alias="EntityID")
    node_id: str | None = Field(None, alias="NodeID")
    before_state: dict[str, Any] | None = Field(None, alias="BeforeState")
    after_state: dict[str, Any] | None = Field(None, alias="AfterState")
    name: str | None = Field(None, alias="Name")
    description: str | None = Field(None, alias="Description")
    scope_key: ScopeKey = Field(None, alias="ScopeKey")

    def to_event(self) -> dict[str, Any]:
        """Return the members that the event contains, without ``ScopeKey``."""
        return self.model_dump(by_alias=True, exclude={"scope_key"}, exclude_none=True)


def _require_scope(schema: dict[str, Any]) -> None:
    schema["required"] = ["ScopeKey", *schema["required"]]


class AmendmentBody(Body):
    """Body that creates an amendment."""

    model_config = ConfigDict(json_schema_extra=_require_scope)

    scope_key: RequiredScopeKey = Field(None, alias="ScopeKey", description="Required.")
    entity_type: Text = Field(alias="EntityType")
    entity_id: Text = Field(alias="EntityID")
    original_record: dict[str, Any] = Field(alias="OriginalRecord")
    amended_record: dict[str, Any] = Field(alias="AmendedRecord")
    changed_fields: list[Text] = Field(alias="ChangedFields", min_length=1)
    reason_category: Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1})] = Field(
        alias="ReasonCategory", description="One of the workspace's reason categories."
    )
    reason_text: str = Field(alias="ReasonText")


class RejectionBody(Body):
    """Body that rejects an amendment; the scope may be in the query string instead."""

    scope_key: ScopeKey = Field(None, alias="ScopeKey")
    rejection_reason: str | None = Field(None, alias="RejectionReason")
